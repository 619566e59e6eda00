#!/usr/bin/env bash
# Mutation testing: changes the code at one place at a time and counts the changes that no test notices.
#
# usage: tests/mutants.sh [AREA...]    AREA: claims, checkpoint, loader, ops, arbiter; all of them if none is named
#
# MUTANTS=all takes every mutant; without it each area gives the fixed sample of `areas` below, and MUTANTS_SHARD=1 and
# on gives others of the same size, without a mutant in common.
# The source tree is changed in place and put back after each mutant: run it on a clean tree, and let it end.
# Needs cargo-mutants 27.1.0 (cargo install cargo-mutants --version 27.1.0 --locked); MUTANTS_TOOL names another place.
set -euo pipefail
cd "$(dirname "$0")/.."
tool="${MUTANTS_TOOL:-cargo-mutants}"
out="${MUTANTS_OUT:-target/mutants}"
# A mutant differs from the tree by a line: most of the last build stays.
export CARGO_INCREMENTAL=1

# Name, one mutant in so many, files, and the tests that belong to them (parts of their names, in the lib and in tests/all).
areas() {
  cat <<'AREAS'
claims      2  src/report/claims.rs        report::
checkpoint  4  src/train/checkpoint.rs     train:: robust_faults::
loader      6  src/corpus/loader.rs        corpus::loader loader::
ops         40 src/ops/**                  ops cuda::
arbiter     40 src/arbiter/**              arbiter
AREAS
}

run() { # OUTPUT OPTIONS... -- TESTS...: 2 is survivors and 3 is time-outs, which are results
  local status=0
  mkdir -p "$1"
  "$tool" mutants --in-place --output "$1" "${@:2}" || status=$?
  case $status in 0 | 2 | 3) ;; *) exit "$status" ;; esac
}

wanted() { [ -z "$asked" ] || [[ " $asked " == *" $1 "* ]]; }
asked="$*"
[ "${MUTANTS:-}" != all ] || share_of_all=1
[ -z "$(git status --porcelain --untracked-files=no -- src)" ] || { echo "src/ has changes that are not committed: mutants would be mixed with them."; exit 1; }

# First the tests of the area alone: a mutant that they notice is noticed.
areas | while read -r area share files tests; do
  wanted "$area" || continue
  share="${share_of_all:-$share}"
  echo "== $area: one mutant in $share of $files"
  run "$out/$area" --file "$files" --shard "${MUTANTS_SHARD:-0}/$share" -- --lib --test all -- $tests < /dev/null
done
# Then all tests, for the mutants that they did not notice.
areas | while read -r area share files tests; do
  missed="$out/$area/mutants.out/missed.txt"
  wanted "$area" && [ -s "$missed" ] || continue
  echo "== $area: $(wc -l < "$missed") against all tests"
  mapfile -t names < <(sed -e 's/[][\.*^$+?(){}|/]/\\&/g' -e 's/^/--re=^/' -e 's/$/$/' "$missed")
  run "$out/$area-all" --file "$files" "${names[@]}" -- --workspace < /dev/null
done
# What came out, as the table of tests/mutants.md; a time-out is a mutant that a test noticed.
lines() { [ -f "$1" ] && wc -l < "$1" || echo 0; }
printf '| area | sample | mutants | do not compile | caught | survive | share caught, 95 %% interval |\n|---|---|---|---|---|---|---|\n'
areas | while read -r area share files tests; do
  of="$out/$area/mutants.out"
  wanted "$area" && [ -d "$of" ] || continue
  share="${share_of_all:-$share}"
  missed="$of/missed.txt" extra=0
  if [ -s "$missed" ]; then
    # All tests noticed some more.
    missed="$out/$area-all/mutants.out/missed.txt"
    extra=$(($(lines "$of/missed.txt") - $(lines "$missed")))
  fi
  awk -v area="$area" -v files="$files" -v share="$share" -v missed="$(lines "$missed")" \
    -v caught="$(($(lines "$of/caught.txt") + $(lines "$of/timeout.txt") + extra))" -v unviable="$(lines "$of/unviable.txt")" '
    BEGIN {
      # The interval of E. B. Wilson, JASA 22 (1927).
      n = caught + missed; p = caught / n; z = 1.959964
      middle = (p + z * z / (2 * n)) / (1 + z * z / n)
      half = z / (1 + z * z / n) * sqrt(p * (1 - p) / n + z * z / (4 * n * n))
      printf "| %s: `%s` | 1 in %d | %d | %d | %d | %d | %.0f %% (%.0f to %.0f) |\n", area, files, share, n + unviable,
        unviable, caught, missed, 100 * p, 100 * (middle - half), 100 * (middle + half)
    }'
done
