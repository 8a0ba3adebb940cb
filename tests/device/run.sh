#!/bin/bash
# Builds, tests and measures Heed on the GPU of this machine in one go; its limits add up to what ten minutes on 16 cores should hold.
#   tests/device/run.sh [OUT]      OUT: folder for logs and results (default: build/device)
# HEED_DEPS names a folder of unpacked packages (usr/include, usr/lib/...) where the system lacks OpenBLAS, sentencepiece and the like.
# Each stage says how it ended and the next one goes on; the exit code is that of the first stage that failed.
set -uo pipefail
cd "$(dirname "$0")/../.."
out=${1:-build/device}
mkdir -p "$out"
worst=0
options=()
if [[ -n ${HEED_DEPS-} ]]; then
  triplet=$(gcc -dumpmachine)
  options+=("-DCMAKE_PREFIX_PATH=$HEED_DEPS/usr" "-DCMAKE_INCLUDE_PATH=$HEED_DEPS/usr/include")
  libraries="$HEED_DEPS/usr/lib/$triplet:$HEED_DEPS/usr/lib/$triplet/openblas-pthread"
  options+=("-DCMAKE_LIBRARY_PATH=${libraries//:/;}")
  export LD_LIBRARY_PATH="$libraries:${LD_LIBRARY_PATH-}" LIBRARY_PATH="$libraries:${LIBRARY_PATH-}" PKG_CONFIG_PATH="$HEED_DEPS/usr/lib/$triplet/pkgconfig"
  export PKG_CONFIG_SYSROOT_DIR="$HEED_DEPS" CPLUS_INCLUDE_PATH="$HEED_DEPS/usr/include:$HEED_DEPS/usr/include/$triplet:${CPLUS_INCLUDE_PATH-}"
fi
generator=(-G Ninja)
command -v ninja >/dev/null || generator=(-G "Unix Makefiles")

# stage NAME SECONDS COMMAND...: runs it within its time; its words go to OUT/NAME.log.
stage() {
  local name=$1 limit=$2 began=$SECONDS code=0
  shift 2
  timeout "$limit" "$@" >"$out/$name.log" 2>&1 || code=$?
  printf '%-10s %-7s %4d s\n' "$name" "$([[ $code == 0 ]] && echo ok || echo "code $code")" $((SECONDS - began)) | tee -a "$out/stages.txt"
  if [[ $code != 0 ]]; then
    tail -n 25 "$out/$name.log"
    [[ $worst != 0 ]] || worst=$code
  fi
  return 0
}

: >"$out/stages.txt"
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader | tee "$out/machine.txt"
# The device at hand alone: half the kernels to compile.
architecture=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
stage configure 60 cmake "${generator[@]}" -S . -B build/cuda -DCMAKE_BUILD_TYPE=Release -DHEED_CUDA=ON -DHEED_NATIVE=ON \
  "-DCMAKE_CUDA_ARCHITECTURES=${architecture:-90}-real" "${options[@]}"
stage build 300 cmake --build build/cuda -j "$(nproc)"
stage tests 200 ctest --test-dir build/cuda -j "$(nproc)" --output-on-failure -E '^(style|scorecard|isa)/'
if command -v compute-sanitizer >/dev/null; then
  for tool in memcheck racecheck; do
    stage $tool 90 compute-sanitizer --tool $tool --error-exitcode 9 build/cuda/tests/core_tests "twins*"
  done
fi
stage speed 300 python3 tests/device/speed.py --heed build/cuda/heed --keep "$out/speed.jsonl"
cat "$out/speed.log"
exit "$worst"
