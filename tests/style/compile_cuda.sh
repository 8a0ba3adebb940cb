#!/bin/sh
# compile_cuda.sh ROOT [FILE.cu ...]: every CUDA source compiles by nvcc without a warning. It stops at PTX and does not optimise, which
# takes a tenth of a build's time. All files are tried, two at a time; the failing ones are named. 77 where there is no nvcc.
set -u
cd "$1" || exit 1
shift
PATH=$PATH:${CUDA_PATH:-/usr/local/cuda}/bin
command -v nvcc >/dev/null || { echo "there is no nvcc: CUDA sources are not compiled" && exit 77; }
room=$(mktemp -d) || exit 1
trap 'rm -rf "$room"' EXIT
mkdir "$room/failed" || exit 1
export room

# shellcheck disable=SC2046
[ $# -gt 0 ] || set -- $(find core -name '*.cu' | sort)
[ $# -gt 0 ] || { echo "core/ has no CUDA source" && exit 1; }
# shellcheck disable=SC2016
printf '%s\n' "$@" | xargs -P 2 -I '{}' sh -c '
  said=$room/failed/$(echo "$1" | tr / +)
  if nvcc -arch=compute_90 -Xcicc -O0 -std=c++20 --expt-relaxed-constexpr --extended-lambda -Xcompiler=-Wall,-Wextra \
    -Werror all-warnings -DHEED_CUDA_BUILD=1 -DHEED_CUDA_EMULATED=0 -I include -ptx -x cu "$1" -o /dev/null >"$said" 2>&1; then
    rm "$said"
  else
    { echo "$1:" && cat "$said"; } >&2
    exit 1
  fi' sh '{}' && all=yes || all=
failed=$(find "$room/failed" -type f -exec basename {} \; | tr + / | sort | tr '\n' ' ')
[ -n "$all" ] || { echo "of $# CUDA sources these fail: $failed" && exit 1; }
echo "$# CUDA sources compile without a warning"
