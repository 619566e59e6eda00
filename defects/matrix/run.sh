#!/bin/sh
# Builds the checks against one version of Candle after another, runs them, and writes candle.json beside this file.
# One at a time and one job each, so that memory and disk hold; the build folder is removed at the end.
set -eu
cd "$(dirname "$0")"
export CARGO_TARGET_DIR="${TMPDIR:-/tmp}/shikha-defects-matrix"
for version in ${VERSIONS:-0.8.4 0.9.2 0.10.2 0.11.1}; do
    (cd "candle-$version" && nice -n 19 cargo build --release --locked -j1)
    "$CARGO_TARGET_DIR/release/check" candle.json "$version" "$(date +%F)" "$(rustc --version)"
done
rm -rf "$CARGO_TARGET_DIR"
