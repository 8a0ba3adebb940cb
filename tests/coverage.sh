#!/bin/sh
# Line coverage of the numeric folders: builds the preset coverage, runs their tests, and fails below 95 %.
#   sh tests/coverage.sh [--lines]     with --lines: also every line that no test has run
set -eu
root=$(cd -- "$(dirname -- "$0")/.." && pwd)
build=$root/build/coverage
folders="core autograd nn attention"
least=95

cd "$root"
[ -f "$build/build.ninja" ] || cmake --preset coverage >/dev/null
# shellcheck disable=SC2046
cmake --build "$build" --target $(printf '%s_tests ' $folders)
find "$build" -name '*.gcda' -delete
for folder in $folders; do
  "$build/tests/${folder}_tests" >"$build/$folder.txt" 2>&1 || { tail -n 40 "$build/$folder.txt" && exit 1; }
done

# gcov prints each source with a count before every line; a line counts as run if any object that holds it ran it.
find "$build" -name '*.gcda' -print0 |
  xargs -0 -n 40 gcov --stdout --source-prefix "$root" --relative-only 2>/dev/null |
  awk -v least=$least -v folders="$folders" -v lines="${1-}" '
    BEGIN { FS = ":"; split(folders, wanted, " ") }
    { count = $1; line = $2; gsub(/[ *]/, "", count); gsub(/ /, "", line) }
    line == "0" { if ($3 == "Source") file = $4; next }
    line !~ /^[0-9]+$/ || count == "-" { next }
    {
      key = file ":" line
      if (!(key in ran)) ran[key] = 0
      if (count !~ /^[#=%]/) ran[key] = 1
    }
    END {
      for (key in ran) {
        folder = key; sub(/\/.*/, "", folder)
        all[folder]++
        hit[folder] += ran[key]
        if (lines == "--lines" && !ran[key]) print key | "sort -t: -k1,1 -k2,2n"
      }
      close("sort -t: -k1,1 -k2,2n")
      bad = 0
      for (i = 1; i in wanted; ++i) {
        folder = wanted[i]
        share = all[folder] > 0 ? 100 * hit[folder] / all[folder] : 0
        printf "%-10s %6d of %6d lines  %5.1f %%\n", folder, hit[folder], all[folder], share
        if (share < least) bad = 1
      }
      if (bad) printf "Below %d %%: sh tests/coverage.sh --lines names the lines that no test runs.\n", least
      exit bad
    }'
