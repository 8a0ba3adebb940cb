#!/bin/sh
# headers.sh ROOT BUILD WORK COMPILER...: every header that BUILD installs compiles without a warning of the options that strict consumers
# use: alone by the first compiler that is there, since what is missing in a header is missing for all of them, and in one unit by the
# others. Internal headers are not installed. Without the variable CI, headers that a source of ROOT includes first are compiled in that
# unit too, which takes seconds instead of minutes.
set -eu
root=$(cd "$1" && pwd) build=$2 work=$3
shift 3
rm -rf "$work" && mkdir -p "$work"
cmake --install "$build" --prefix "$work/prefix" >"$work/log" || { cat "$work/log" && exit 1; }
cd "$(dirname "$(find "$work/prefix" -type d -path '*/include/heed')")"
find heed -name '*.h' | sort >"$work/headers"
[ "$(wc -l <"$work/headers")" -gt 150 ] || { echo "only $(wc -l <"$work/headers") headers are installed" && exit 1; }
for wanted in core/tensor.h core/version.h nn/module.h attention/variant.h data/batching/text_windows.h train/optim/optimizer.h train/commands/command.h; do
  grep -qx "heed/$wanted" "$work/headers" || { echo "heed/$wanted is not installed" && exit 1; }
done
if grep -E '^heed/(core/(cuda|kernels/simd)|train/bench)/|^heed/train/commands/.*[^d].h$|_cpu|tests/' "$work/headers" | grep -vx heed/train/commands/command.h; then
  echo "these are internal" && exit 1
fi
sed 's/.*/#include "&"/' "$work/headers" >"$work/all.h"
while read -r header; do
  source=${header#heed/}
  [ -z "${CI:-}" ] && [ -f "$root/${source%.h}.cpp" ] || echo "$header"
done <"$work/headers" >"$work/alone"
echo "$work/all.h" >>"$work/alone"
bad=0
for compiler; do
  command -v "$compiler" >/dev/null || continue
  # shellcheck disable=SC2016
  COMPILER=$compiler xargs -P 2 -I '{}' sh -c '
    "$COMPILER" -std=c++20 -fsyntax-only -Wall -Wextra -Wconversion -Werror -I . -x c++ -include "$1" /dev/null' sh '{}' <"$work/alone" || bad=1
  echo "$compiler: $(wc -l <"$work/headers") headers, $(wc -l <"$work/alone") units"
  echo "$work/all.h" >"$work/alone"
done
exit $bad
