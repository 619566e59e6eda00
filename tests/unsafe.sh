#!/usr/bin/env bash
# The unit tests of the `unsafe` code under Miri and under AddressSanitizer; counts are printed.
#
# Miri (wild or overlapping references, data races, freed memory), by themselves in tests/miri:
#   ops::shared                    the buffer that threads fill side by side: also below attention and the bf16 products
#   arbiter::candle::tracer        the allocator
# AddressSanitizer (reads and writes outside a buffer or after it is freed) with the standard library's own checks of
# unsafe calls:
#   ops::matmul                    the call of the `gemm` crate
#   ops::bf16                      AVX512-BF16, where the CPU has it; elsewhere only the way without it
#   ops::attention                 its writes into the shared buffer
#   and the two above, with all other unit tests of ops, corpus and arbiter::candle
# Neither covers:
#   corpus::shard                  a mapped file has no guard zones; every index into it is bounds-checked safe code,
#                                  which the fuzz targets `shard` and `shard-header` exercise
#   ops::cuda                      calls of the driver; `compute-sanitizer` on a machine with a GPU is their tool
#   main.rs                        one call of `signal`, before any thread runs
# Miri knows neither the vector instructions nor the call that `gemm` asks the CPU's caches with. The standard library
# is not instrumented: what it does with memory is seen only at its calls of the allocator and of memcpy.
#
# Miri needs a nightly toolchain with the components miri and rust-src; without one its part is skipped, and said so.
# `UNSAFE=miri` or `UNSAFE=asan` runs one part. The second builds everything once more: some ten minutes and 4 GB.
set -euo pipefail
cd "$(dirname "$0")/.."
target="${CARGO_TARGET_DIR:-target}"
part="${UNSAFE:-all}"

counted() { # NAME COMMAND…: runs it, then says how many tests passed
  local name=$1 log
  shift
  log=$(mktemp)
  "$@" 2>&1 | tee "$log"
  awk -v name="$name" '/^test result: ok/ { n += $4 } END { print name ": " n + 0 " tests passed, nothing found"; exit n == 0 }' "$log"
  rm "$log"
}

if [ "$part" != asan ]; then
  if cargo +nightly miri --version >/dev/null 2>&1; then
    # Another order of the threads for each seed.
    seeds() {
      for seed in 0 1 2 3 4 5 6 7; do
        MIRIFLAGS="-Zmiri-seed=$seed" CARGO_TARGET_DIR="$target/miri" \
          cargo +nightly miri test --locked --manifest-path tests/miri/Cargo.toml || return
      done
    }
    counted Miri seeds
  else
    echo "Miri: skipped, there is none. rustup toolchain install nightly --component miri,rust-src" >&2
  fi
fi

if [ "$part" != miri ]; then
  # The sanitizer's runtime comes with the pinned toolchain; only the option is not stable.
  RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=address" CARGO_TARGET_DIR="$target/asan" counted AddressSanitizer \
    cargo test --release --locked --lib --target x86_64-unknown-linux-gnu \
    --config 'profile.release.opt-level=1' --config 'profile.release.package.shikha.debug-assertions=true' \
    -- ops:: corpus:: arbiter::candle::
fi
