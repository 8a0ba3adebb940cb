#!/bin/sh
# headers.sh BUILD WORK COMPILER...: every header that BUILD installs compiles alone, without a warning of the options that strict
# consumers use, by each of the compilers that is there. Internal headers are not installed.
set -eu
build=$1 work=$2
shift 2
rm -rf "$work" && mkdir -p "$work"
cmake --install "$build" --prefix "$work/prefix" >"$work/log" || { cat "$work/log" && exit 1; }
root=$(dirname "$(find "$work/prefix" -type d -path '*/include/heed')")/heed
cd "$root/.."
find heed -name '*.h' | sort >"$work/headers"
[ "$(wc -l <"$work/headers")" -gt 150 ] || { echo "only $(wc -l <"$work/headers") headers are installed" && exit 1; }
for wanted in core/tensor.h core/version.h nn/module.h attention/variant.h data/batching/text_windows.h train/optim/optimizer.h train/commands/command.h; do
  grep -qx "heed/$wanted" "$work/headers" || { echo "heed/$wanted is not installed" && exit 1; }
done
if grep -E '^heed/(core/(cuda|kernels/simd)|train/bench)/|^heed/train/commands/.*[^d].h$|_cpu|tests/' "$work/headers" | grep -vx heed/train/commands/command.h; then
  echo "these are internal" && exit 1
fi
bad=0
for compiler; do
  command -v "$compiler" >/dev/null || continue
  # shellcheck disable=SC2016
  COMPILER=$compiler WORK=$work xargs -P 2 -I '{}' sh -c '
    "$COMPILER" -std=c++20 -fsyntax-only -Wall -Wextra -Wconversion -Werror -I . -x c++ -include "$1" /dev/null' sh '{}' <"$work/headers" || bad=1
  echo "$compiler: $(wc -l <"$work/headers") headers"
done
exit $bad
