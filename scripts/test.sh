#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Everything that CI runs, cheapest first. A step that fails does not keep the others from running;
# the last line counts what all of them reported.
set -u
cd "$(dirname "$0")/.." || exit 1
target=${CARGO_TARGET_DIR:-target}
logs=$target/test
mkdir -p "$logs"
passed=0 failed=0 skipped=0
began=$SECONDS

step() { # name, limit in minutes, command
  local name=$1 limit=$2 status
  shift 2
  echo
  echo "== $name ($(((SECONDS - began) / 60)) min)"
  timeout --kill-after=30 "${limit}m" "$@" 2>&1 </dev/null | tee "$logs/$name.log"
  status=${PIPESTATUS[0]}
  [ "$status" = 124 ] && echo "$name did not end within $limit minutes"
  return "$status"
}

# Adds what the tools counted; a step that failed without a count is one failure.
count() { # status, passed, failed, skipped
  passed=$((passed + $2)) failed=$((failed + $3)) skipped=$((skipped + $4))
  [ "$1" != 0 ] && [ "$3" = 0 ] && failed=$((failed + 1))
}

sum() { # log, pattern with one number in it
  grep -Eo "$2" "$logs/$1.log" | grep -Eo '[0-9]+' | paste -sd+ - | sed 's/^$/0/' | bc_or_zero
}

# The names of what failed, by the log they stand in: the last lines are what people see first.
failures() {
  grep -hE '^test .* \.\.\. FAILED$' "$logs/rust.log"
  grep -hE '^FAIL ' "$logs"/{lint,deb}.log
  grep -hE '^ *(not ok|✖) ' "$logs/page.log" | sort -u
  grep -HE '^FAIL |WRONG|wrong: ' "$logs"/{kernels,lab,variants,loads,zoo}.log | sed "s|^$logs/||"
}

bc_or_zero() {
  read -r terms || terms=0
  echo $((terms))
}

# The lab closes with a line of its own.
count_closing() { # status, log
  local closing='^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$'
  if [[ $(grep -E "$closing" "$logs/$2.log" | tail -1) =~ ([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped ]]; then
    count "$1" "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}" "${BASH_REMATCH[3]}"
  else
    count 1 0 0 0
  fi
}

# A disk that fills up on the way fails in a hundred places, none of which says so first.
needs=6 # GB; what a clean build of everything and its tests take
free=$(($(df --output=avail -k "$logs" | tail -1) / 1024 / 1024))
if [ ! -e "$target/release/wakewalk" ] && [ "$free" -lt "$needs" ]; then
  echo "make test: $free GB are free in $(realpath "$target"), and a clean build needs $needs GB; free some, or set CARGO_TARGET_DIR to a directory on another disk"
  echo "0 passed, 1 failed, 0 skipped"
  exit 2
fi

step dependencies 20 scripts/install-deps.sh || {
  count 1 0 0 0
  echo "$passed passed, $failed failed, $skipped skipped"
  exit 1
}

# All targets at once: features are unified over binaries and tests, so nothing is compiled twice.
step build 30 scripts/build.sh --all-targets
status=$?
count $status $((status == 0)) 0 0

# Other kernels take minutes of an emulator: beside lint and the Rust tests, and before the live lab.
echo
echo "== kernels (in the background)"
timeout --kill-after=30 10m "$target/release/lab" kernels >"$logs/kernels.log" 2>&1 </dev/null &
kernels=$!
trap 'kill $kernels 2>/dev/null' EXIT

step lint 25 scripts/lint.sh
status=$?
count $status "$(grep -c '^ok ' "$logs/lint.log")" "$(grep -c '^FAIL ' "$logs/lint.log")" 0

# A test that lacks what it needs notes so and returns, which its harness counts as passed. Functions that are
# ignored as `not a test` are processes that tests start; they count as nothing.
export WAKEWALK_SKIPS=$PWD/$logs/skips
[[ $logs == /* ]] && WAKEWALK_SKIPS=$logs/skips
: >"$WAKEWALK_SKIPS"
step rust 25 cargo test --release --workspace --no-fail-fast
status=$?
skips=$(sort -u "$WAKEWALK_SKIPS" | wc -l)
helpers=$(grep -cE ' \.\.\. ignored, not a test: ' "$logs/rust.log")
count $status $(($(sum rust '[0-9]+ passed;') - skips)) "$(sum rust '[0-9]+ failed;')" \
  $(($(sum rust '[0-9]+ ignored;') - helpers + skips))
unset WAKEWALK_SKIPS

# The sample pages by the binary that is there already; cargo would build for one package anew.
SAMPLE_PAGE=$(dirname "$(realpath "$target/release/wakewalk")")/examples/sample_page
export SAMPLE_PAGE
step deb 5 scripts/deb.sh --check
status=$?
count $status "$(grep -c '^ok ' "$logs/deb.log")" "$(grep -c '^FAIL ' "$logs/deb.log")" 0

step page 10 npm --prefix crates/report/web test
status=$?
count $status "$(sum page '^. pass [0-9]+')" "$(sum page '^. fail [0-9]+')" "$(sum page '^. skipped [0-9]+')"

echo
echo "== kernels ($(((SECONDS - began) / 60)) min)"
wait $kernels
status=$?
cat "$logs/kernels.log"
count_closing $status kernels

step lab 15 "$target/release/lab" run --changed
count_closing $? lab

# Other parameters with each commit, and the same again for the same one.
step variants 8 "$target/release/lab" run --rotating 2 --variants 1 --seed "$(git rev-list --count HEAD)"
count_closing $? variants

# What `wakewalk load` says of two loads whose truth is known.
step loads 8 "$target/release/lab" loads --rotating 2
count_closing $? loads

# Two of the healthy servers, at one load: whose turn it is goes by the number of commits, which is printed.
step zoo 4 "$target/release/lab" zoo --rotating
count_closing $? zoo

echo
grep -h '^test result:' "$logs/rust.log" | sort | uniq -c
grep -hE '^# (tests|pass|fail|skipped)' "$logs/page.log"
grep -hE ' \.\.\. ignored' "$logs/rust.log" | grep -v 'ignored, not a test: '
sort -u "$logs/skips"
grep -h 'SKIPPED' "$logs"/{kernels,lab,variants,loads}.log
echo "$helpers functions among the Rust tests are processes that tests start; they are not counted"
[ "$failed" != 0 ] && failures
echo "$(((SECONDS - began) / 60)) minutes"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
