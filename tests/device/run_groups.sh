#!/bin/bash
# run_groups.sh SIZE JOBS REPORT PROGRAM CASES [UNDER...]: runs the test cases of a Catch2 program that match CASES, in groups of SIZE cases a
# process and JOBS processes at once, each under the command UNDER. Adds a line for each group to REPORT as it ends. A group that fails, crashes
# or takes longer than HEED_GROUP_SECONDS (100) is named there with its last words, and the others go on. 1 where one did not pass.
set -uo pipefail
if [[ $1 == --group ]]; then # REPORT PROGRAM FILE [UNDER...]: one of them
  report=$2 program=$3 cases=$4 code=0 began=$SECONDS
  shift 4
  # In the foreground: what ends this script ends the group, too.
  timeout --foreground -k 5 "${HEED_GROUP_SECONDS:-100}" "$@" "$program" --input-file "$cases" --durations yes >"$cases.said" 2>&1 || code=$?
  ! grep -q '^Invalid Filter' "$cases.said" || code=2 # cases that were not run
  name="$(basename "$program") $(basename "$cases")"
  if [[ $code == 0 ]]; then
    echo "$name: ok, $((SECONDS - began)) s" >>"$report"
  else
    { echo "$name: code $code after $((SECONDS - began)) s; its failures and last words:" &&
      grep -B 12 -A 4 -E 'FAILED|fatal error' "$cases.said" | head -n 200
      tail -n 12 "$cases.said"; } >>"$report"
  fi
  exit $((code != 0))
fi

size=$1 jobs=$2 report=$3 program=$4 cases=$5
shift 5
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$program" "$cases" --list-test-names-only >"$folder/names" 2>/dev/null # of version 2, whose exit code is their number
[[ -s $folder/names ]] || "$program" "$cases" --list-tests --verbosity quiet >"$folder/names"
[[ -s $folder/names ]] || { echo "$(basename "$program"): no case matches $cases" | tee -a "$report" && exit 1; }
sed -i 's/[\\,[]/\\&/g' "$folder/names" # Catch2 takes commas and brackets for its own
split --numeric-suffixes=1 --suffix-length=3 -l "$size" "$folder/names" "$folder/group_"
printf '%s\0' "$folder"/group_??? | xargs -0 -P "$jobs" -I{} bash "$0" --group "$report" "$program" {} "$@"
exit $(($? != 0))
