#!/bin/bash
# Fuzzes targets in turns until each has had its processor time, and keeps account of it.
#   tests/fuzz/run_for_hours.sh [--hours H] [--turn SECONDS] [TARGET ...]    without targets: all of them; H is 1 by default
#   tests/fuzz/run_for_hours.sh --table                                      what the account says
# Inputs that reach new code stay in build/fuzz/work/TARGET, findings go to build/fuzz/findings, the account is
# build/fuzz/hours.txt: target, seconds of processor time, inputs, a line a turn. A target with a finding has no
# further turn, and the exit is 1 when the others are done. Ctrl-C ends a turn and keeps what it found;
# several may run at once on different targets.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=build/fuzz account=build/fuzz/hours.txt hours=1 turn=120 TIMEFORMAT='%U %S'

table() {
  touch "$account"
  awk '{ cpu[$1] += $2; inputs[$1] += $3 } END { for (t in cpu) printf "| `%s` | %.0f | %d |\n", t, cpu[t], inputs[t] }' "$account" | sort
  local open
  open=$(ls "$build/findings" 2>/dev/null)
  [[ -z $open ]] || printf 'findings in %s, to be removed when mended:\n%s\n' "$build/findings" "$open" >&2
}

while [[ ${1-} == --* ]]; do
  case $1 in
    --hours) hours=$2 && shift 2 ;;
    --turn) turn=$2 && shift 2 ;;
    --table) table && exit 0 ;;
    *) echo "run_for_hours.sh knows --hours, --turn and --table, not $1" >&2 && exit 2 ;;
  esac
done
[[ $# -gt 0 ]] || set -- tests/fuzz/corpus/*/
for target in "${@}"; do
  program=$build/tests/fuzz/fuzz_$(basename "$target")
  [[ -x $program ]] || { echo "$program is not there: cmake --preset fuzz && cmake --build --preset fuzz" >&2 && exit 2; }
done
stop= found=
trap 'stop=1' INT TERM
while :; do
  left=
  for target in "${@}"; do
    name=$(basename "$target")
    [[ $found != *" $name "* ]] || continue
    had=$(awk -v t="$name" '$1 == t { s += $2 } END { print s + 0 }' "$account" 2>/dev/null || echo 0)
    awk -v had="${had:-0}" -v hours="$hours" 'BEGIN { exit !(had < 3600 * hours) }' || continue
    left=1
    mkdir -p "$build/work/$name" "$build/findings"
    log=$build/$name.log
    took=$({ time "$build/tests/fuzz/fuzz_$name" -max_len=300000 -max_total_time="$turn" -print_final_stats=1 -artifact_prefix="$build/findings/$name-" \
      "$build/work/$name" "tests/fuzz/corpus/$name" >/dev/null 2>"$log"; } 2>&1 | awk 'END { print $1 + $2 }')
    inputs=$(awk '/stat::number_of_executed_units/ { n = $2 } END { print n + 0 }' "$log")
    echo "$name $took $inputs" >>"$account"
    if grep -q -e 'ERROR: ' -e 'runtime error' "$log"; then
      echo "$name: a finding, see $log and $build/findings; the others go on" >&2
      found+=" $name "
    fi
    [[ -z $stop ]] || { table && exit 130; }
    [[ $inputs -gt 0 || $found == *" $name "* ]] || { tail -n 3 "$log" >&2 && exit 1; } # it does not start: every turn would end at once
  done
  [[ -n $left ]] || break
done
table
[[ -z $found ]]
