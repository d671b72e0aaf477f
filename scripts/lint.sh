#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Formatters of all languages and clippy as errors. Runs them all and fails if one did.
set -u
cd "$(dirname "$0")/.." || exit 1
failed=0

check() {
  name=$1
  shift
  if "$@"; then
    echo "ok   $name"
  else
    echo "FAIL $name"
    failed=$((failed + 1))
  fi
}

go_format() {
  unformatted=$(gofmt -l lab stories)
  [ -z "$unformatted" ] || {
    echo "run make fmt: $unformatted"
    return 1
  }
}

# The fuzz targets are a workspace of their own, and so are the lab's servers on tokio.
rust_format() {
  cargo fmt --all --check || return 1
  for manifest in fuzz/Cargo.toml lab/zoo/tokio/Cargo.toml lab/scenarios/lock-convoy-tokio/Cargo.toml; do
    cargo fmt --check --manifest-path "$manifest" || return 1
  done
}

c_format() {
  git ls-files '*.c' '*.h' | xargs clang-format --dry-run --Werror
}

go_vet() {
  git ls-files '*go.mod' | while read -r module; do
    (cd "$(dirname "$module")" && go vet ./...) || return 1
  done
}

# Every source file says its licence.
licences() {
  missing=$(git ls-files '*.rs' '*.c' '*.h' '*.go' '*.java' '*.js' '*.css' '*.sh' '*.lua' | xargs grep -L SPDX-License-Identifier)
  [ -z "$missing" ] || {
    echo "no SPDX line: $missing"
    return 1
  }
}

# Tests say what they lack by `need!`: one that just returns counts as passed.
skips() {
  git ls-files '*.rs' | xargs awk '
    /^[[:space:]]*#\[test\]/ { inside = 1; indent = $0; sub(/#.*/, "", indent) }
    /#\[ignore = "not a test: / { inside = 0 }
    inside && (/[^a-z_]return;/ || /\{ return \}/ || /return e?println!/) {
      print FILENAME ":" FNR ": a test returns; say what it lacks by need!()"; found = 1
    }
    /println!\("(SKIPPED|skipped)/ && FILENAME !~ /^lab\/src\// { print FILENAME ":" FNR ": use need!()"; found = 1 }
    inside && $0 == indent "}" { inside = 0 }
    END { exit found }'
}

# A source file of more than 400 lines is several; their functions are bounded by clippy (clippy.toml).
lengths() {
  git ls-files '*.rs' '*.c' '*.h' '*.js' '*.go' | xargs awk '
    FNR == 401 { print FILENAME ": over 400 lines"; found = 1 } END { exit found }'
}

# A file that its module does not name is not compiled, and nothing else complains.
modules() {
  unnamed=$(git ls-files 'crates/*/src/*.rs' 'lab/src/*.rs' | while read -r file; do
    name=$(basename "$file" .rs)
    dir=$(dirname "$file")
    case $name in lib | main) continue ;; esac
    grep -qsw "$name" "$dir.rs" "$dir/lib.rs" "$dir/main.rs" || echo "$file"
  done)
  [ -z "$unnamed" ] || {
    echo "no module names it: $unnamed"
    return 1
  }
}

page() {
  cd crates/report/web && { [ -d node_modules ] || npm ci --no-audit --no-fund; } && npm run -s lint
}

check rustfmt rust_format
check licences licences
check gofmt go_format
check clang-format c_format
check "go vet" go_vet
check "skipped tests" skips
check lengths lengths
check modules modules
check "page's script" page
check clippy cargo clippy --release --workspace --all-targets --quiet -- -D warnings

echo "$((10 - failed)) of 10 lints passed"
exit "$failed"
