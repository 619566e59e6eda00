#!/bin/sh
# Builds the checks against one version of Candle, then of Burn, after another, runs them, and writes candle.json and
# burn.json beside this file. VERSIONS and BURN_VERSIONS choose some; an empty one leaves that framework out.
# One at a time and one job each, so that memory and disk hold; the build folder is removed at the end.
set -eu
cd "$(dirname "$0")"
export CARGO_TARGET_DIR="${TMPDIR:-/tmp}/shikha-defects-matrix"
for version in ${VERSIONS-0.8.4 0.9.2 0.10.2 0.11.1}; do
    (cd "candle-$version" && nice -n 19 cargo build --release --locked -j1)
    "$CARGO_TARGET_DIR/release/check" candle.json "$version" "$(date +%F)" "$(rustc --version)"
done
rm -rf "$CARGO_TARGET_DIR"
# The runner is this repository's command; the pinned version of Burn is the catalogue's own program.
versions=${BURN_VERSIONS-0.20.1 0.21.0 0.22.1}
[ -z "$versions" ] || (cd ../.. && CARGO_TARGET_DIR=target nice -n 19 cargo build --release --locked)
for version in $versions; do
    if [ -d "burn-$version" ]; then
        (cd "burn-$version" && nice -n 19 cargo build --release --locked -j1)
        program=$CARGO_TARGET_DIR/release/check
    else
        (cd ../../burn && CARGO_TARGET_DIR=target nice -n 19 cargo build --release --locked -p shikha-burn-defects)
        program=../../burn/target/release/shikha-burn-defects
    fi
    ../../target/release/shikha defects --burn "$program" --into burn.json --built "$(date +%F)" "$(rustc --version)"
done
rm -rf "$CARGO_TARGET_DIR"
