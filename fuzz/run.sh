#!/usr/bin/env bash
# Coverage-guided fuzzing: gives each parser inputs that libFuzzer grows from its seeds, and prints what came of it.
#
# usage: fuzz/run.sh [NAME…]    NAME: a folder of fuzz/seeds; all of them if none is named
#
# SHIKHA_FUZZ_SECONDS (600) is the time of each, SHIKHA_FUZZ_JOBS (2) how many run at a time; FUZZ_LOG=FILE adds the rows
# of the table to a file. What was learnt stays in fuzz/corpus, an input that crashed, took longer than 20 seconds or a
# gigabyte in fuzz/findings.
# Needs cargo-fuzz 0.13.2 (cargo install cargo-fuzz --version 0.13.2 --locked); FUZZ_TOOL names another place.
set -euo pipefail
cd "$(dirname "$0")/.."
export seconds="${SHIKHA_FUZZ_SECONDS:-600}" table="${FUZZ_LOG:-/dev/null}"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/fuzz" SHIKHA_FUZZ_SECONDS=
# Most parsers read files: in memory, where there is such a folder.
[ ! -w /dev/shm ] || export TMPDIR=/dev/shm
# The parsers are safe code: the sanitizer has a run of its own, tests/unsafe.sh.
tool="${FUZZ_TOOL:-cargo-fuzz}"
"$tool" build --sanitizer none
"$tool" build --sanitizer none --fuzz-dir notebooks/kernel/fuzz
export programs="$CARGO_TARGET_DIR/$(rustc -vV | sed -n "s/host: //p")/release"

one() { # NAME
  local program=parser log
  [ "$1" != notebook ] || program=notebook
  mkdir -p "fuzz/corpus/$1" fuzz/findings
  log=$(mktemp)
  if SHIKHA_FUZZ_ONLY="$1" "$programs/$program" "fuzz/corpus/$1" "fuzz/seeds/$1" -max_total_time="$seconds" \
    -timeout=20 -rss_limit_mb=1024 -artifact_prefix="fuzz/findings/$1-" -print_final_stats=1 > "$log" 2>&1; then
    awk -v name="$1" -v seconds="$seconds" '
      / cov: / { for (i = 1; i < NF; i++) if ($i == "cov:") edges = $(i + 1) }
      /^stat::/ { sub("stat::", "", $1); sub(":", "", $1); of[$1] = $2 }
      END { printf "%s,%d,%d,%d,%d,%d,%d\n", name, seconds, of["number_of_executed_units"], of["new_units_added"],
        edges, of["slowest_unit_time_sec"], of["peak_rss_mb"] }' "$log" | tee -a "$table"
    rm "$log"
  else
    tail -n 40 "$log" >&2
    echo "$1: a finding, see above; the input is in fuzz/findings, the log is $log" >&2
    return 1
  fi
}
export -f one

echo "parser,seconds,inputs,kept,edges,slowest in s,MB of memory"
if [ $# = 0 ]; then set -- $(ls fuzz/seeds); fi
printf '%s\n' "$@" | xargs -P "${SHIKHA_FUZZ_JOBS:-2}" -I{} bash -euo pipefail -c 'one {}'
