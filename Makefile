# Two commands matter: `make demo` and `make test`. `make help` lists the others.

.DEFAULT_GOAL := help
.PHONY: help build demo test bench bench-diff soak lab lab-fixtures lab-verdicts chains scripted loads zoo languages kernels deb story-001 story-002 story-004 fuzz lint fmt schema \
	install-deps

TARGET := $(or $(CARGO_TARGET_DIR),target)
LAB := $(TARGET)/release/lab

help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | column -t -s '|'

build: install-deps ## build target/release/wakewalk and the lab
	scripts/build.sh

demo: build ## start a service with a fault, diagnose it, say where the page is
	$(LAB) demo --html $(TARGET)/demo/report.html

test: ## everything that CI runs: lint, unit, golden, page, live lab
	scripts/test.sh

bench: ## what wakewalk costs, beside other tools (over an hour, quiet host); NAME=nginx, PAIRS=8, README=1 as in docs/bench.md; NAME=versions AGAINST=/old/wakewalk
	@scripts/install-deps.sh
	@scripts/install-deps.sh bench
	scripts/build.sh
	$(LAB) bench $(NAME) $(if $(PAIRS),--pairs $(PAIRS)) $(if $(AGAINST),--against $(AGAINST)) $(if $(README),--readme)

soak: build ## capture a busy service that forks for an hour: wakewalk's memory must not grow, its ledger must add up; MINUTES=3
	$(LAB) soak $(if $(MINUTES),--minutes $(MINUTES))

lab: build ## run the lab; SCENARIO=busy-poll runs one, TIMES=3 each three times, VARIANTS=3 SEED=42 with drawn parameters
	$(LAB) run $(SCENARIO) $(if $(TIMES),--times $(TIMES)) $(if $(VARIANTS),--variants $(VARIANTS)) $(if $(SEED),--seed $(SEED))
	$(if $(SCENARIO),,$(LAB) loads $(if $(VARIANTS),--variants $(VARIANTS)) $(if $(SEED),--seed $(SEED)))

loads: build ## judge what `wakewalk load` says of loads whose truth is known (15 minutes); LOAD=freeze runs one, VARIANTS=3 SEED=42 as above
	$(LAB) loads $(LOAD) $(if $(VARIANTS),--variants $(VARIANTS)) $(if $(SEED),--seed $(SEED))

lab-fixtures: build ## run the lab and keep its recordings as golden fixtures; SCENARIO= as above
	$(LAB) run $(SCENARIO) --for 4
	$(LAB) fixtures $(SCENARIO)

lab-verdicts: build ## make the verdicts of the golden fixtures anew, after a rule has changed
	$(LAB) fixtures --verdicts $(SCENARIO)

chains: build ## score the walk on chains of processes with a known root (5 minutes); README=1 as in docs/walk.md
	$(LAB) chains $(if $(README),--readme)

zoo: ## diagnose some forty healthy real servers at idle, 30 and 80 % of their limit (half an hour); SERVER=nginx, LOADS=idle,30, ROUNDS=3, README=1 as in docs/zoo.md
	@scripts/install-deps.sh
	@scripts/install-deps.sh zoo
	scripts/build.sh
	$(LAB) zoo $(SERVER) $(if $(LOADS),--loads $(LOADS)) $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(README),--readme)

scripted: build ## score what is said of requests whose script is known (4 minutes); README=1 as in docs/requests.md
	$(LAB) scripted $(if $(README),--readme)

languages: build ## how good stacks are for each language, from the last `make lab`; README=1 as in docs/walk.md
	$(LAB) languages $(if $(README),--readme)

kernels: build ## boot the kernels that the package manager offers, and try the binary on each
	$(LAB) kernels

deb: build ## make target/wakewalk_VERSION_ARCH.deb
	scripts/deb.sh

bench-diff: build ## judge `wakewalk diff`: false alarms and power on 10 + 10 runs of a real service (8 minutes, wants silence)
	$(LAB) bench-diff

story-001: build ## retell story 001, the benchmark that collapsed (3 minutes); README=1 puts the output into its README
	$(LAB) story 001 $(if $(README),--readme)

story-002: build ## retell story 002, the CPU that did not follow the load; README=1 as above
	$(LAB) story 002 $(if $(README),--readme)

story-004: build ## retell story 004, slower at low load (5 minutes); README=1 as above
	$(LAB) story 004 $(if $(README),--readme)

fuzz: install-deps ## fuzz each reader of foreign bytes for a minute; SECONDS=10 and TARGETS=elf change that
	FUZZ_SECONDS=$(or $(SECONDS),60) scripts/fuzz.sh $(TARGETS)

lint: install-deps ## clippy as errors, and the formatters of all languages
	scripts/lint.sh

fmt: ## format all languages
	cargo fmt --all
	gofmt -w lab stories
	git ls-files '*.c' '*.h' | xargs clang-format -i
	cd crates/report/web && npm run format

schema: ## write SCHEMA.md and docs/schema anew from the types
	UPDATE_SCHEMA=1 cargo test --release --workspace -q --lib schema_md_is_up_to_date
	UPDATE_SCHEMA=1 cargo test --release --workspace -q --test contract published

install-deps: ## install the Debian packages that are missing
	@scripts/install-deps.sh
