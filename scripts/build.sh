#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the workspace, and links the programs to where people look for them: cargo keeps what it
# builds for a named target (see .cargo/config.toml) in a folder of that name.
set -eu
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
built=$(rustc -vV | sed -n 's/^host: //p')/release

cargo build --release --workspace "$@"
mkdir -p "$target/release"
for program in wakewalk lab; do
  ln -sfn "../$built/$program" "$target/release/$program"
done
