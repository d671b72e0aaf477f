#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Fuzzes every reader of bytes that somebody else writes: `scripts/fuzz.sh [TARGET...]`, FUZZ_SECONDS each.
#
# The engine is libFuzzer (crate libfuzzer-sys). Coverage comes from LLVM's own pass, which the stable
# compiler has: no nightly toolchain and no cargo-fuzz are needed. There is no address sanitizer, which
# stable lacks; the readers hold no unsafe code, so what there is to find are panics, hangs and memory
# without bound.
set -eu
cd "$(dirname "$0")/.."
seconds=${FUZZ_SECONDS:-60}
dir=$(realpath -m "${CARGO_TARGET_DIR:-target}/fuzz")
host=x86_64-unknown-linux-gnu
targets=${*:-recording events labels elf proc replies requests}

# Overflow and debug assertions are in fuzz/Cargo.toml. With --target, build scripts stay as they are.
flags="--cfg fuzzing -Cpasses=sancov-module"
for pass in level=4 inline-8bit-counters pc-table trace-compares; do
  flags="$flags -Cllvm-args=-sanitizer-coverage-$pass"
done
CARGO_TARGET_DIR=$dir CARGO_INCREMENTAL=0 RUSTFLAGS=$flags \
  cargo build --release --quiet --manifest-path fuzz/Cargo.toml --target $host
bin=$dir/$host/release

# A few kilobytes with everything that a large program has.
mkdir -p "$dir/corpus" "$dir/found"
echo 'int f(int n) { return n * 7; } int main(int n, char **v) { return f(n) + v[0][0]; }' >"$dir/small.c"
cc -O1 -g -fasynchronous-unwind-tables -nostdlib -Wl,-e,main -o "$dir/small" "$dir/small.c"
TMPDIR=$dir "$bin/seeds" "$dir/corpus" lab/fixtures "$dir/small"

# Files of one input live in memory: the disk is not what is tested.
scratch=$(mktemp -d -p "$([ -d /dev/shm ] && echo /dev/shm || echo /tmp)" wakewalk-fuzz-XXXXXX)
trap 'rm -rf "$scratch"' EXIT
failed=0
for target in $targets; do
  echo "== $target, $seconds s"
  mkdir -p "$dir/found/$target" "fuzz/regressions/$target"
  if ! TMPDIR=$scratch "$bin/$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -max_len=65536 \
    -print_final_stats=1 -artifact_prefix="$dir/found/$target/" "$dir/corpus/$target" "fuzz/regressions/$target" \
    >"$dir/$target.log" 2>&1; then
    failed=$((failed + 1))
    grep -aE 'panicked|SUMMARY|ERROR' "$dir/$target.log" | head -5
    echo "FAIL $target: the input is in $dir/found/$target; mend it and keep the input in fuzz/regressions/$target"
  else
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$dir/$target.log")
    echo "ok   $target: $runs inputs, $(grep -ac . <(ls "$dir/corpus/$target")) kept, nothing found"
  fi
done
exit $failed
