#!/bin/bash
# Builds, tests and measures Heed on the GPU of this machine in one go; its limits add up to what ten minutes on 16 cores should hold.
#   tests/device/run.sh [OUT]      OUT: folder for logs and results (default: build/device)
# Where there is no GPU it is rehearsed on the device that the CPU acts, tests and timings shortened: only its own logic is proven so.
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
if command -v nvidia-smi >/dev/null; then
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader | tee "$out/machine.txt"
  build=build/cuda
  # The device at hand alone: half the kernels to compile.
  architecture=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
  options+=(-DHEED_CUDA=ON "-DCMAKE_CUDA_ARCHITECTURES=${architecture:-90}-real")
else
  echo "no GPU here: a rehearsal on the device that the CPU acts, whose times mean nothing" | tee "$out/machine.txt"
  build=build/acted
  options+=(-DHEED_CUDA=ACTED)
fi
# The kernels of each kind, those of the tensor cores and of cuBLASLt among them.
checked='twins*,attention on devices: rounded*,block attention kernel: rounded*,linear kernel*'
stage configure 60 cmake "${generator[@]}" -S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DHEED_NATIVE=ON "${options[@]}"
if [[ $build == build/cuda ]]; then
  stage build 300 cmake --build "$build" -j "$(nproc)"
  stage tests 200 ctest --test-dir "$build" -j "$(nproc)" --output-on-failure -E '^(style|scorecard|isa)/'
  if command -v compute-sanitizer >/dev/null; then
    for tool in memcheck racecheck; do
      stage $tool 120 compute-sanitizer --tool $tool --error-exitcode 9 "$build/tests/core_tests" "$checked"
    done
  fi
  steps=60 sizes=(--rounds 40)
else
  stage build 7200 cmake --build "$build" -j "$(nproc)" --target heed core_tests
  stage tests 600 "$build/tests/core_tests" 'twins*'
  steps=300 sizes=(--rounds 2 --width 32 --heads 2 --feed-forward 32 --layers 1 --max-length 12 --batch 2)
fi
stage limits 60 "$build/heed" bench limits --device cuda
stage products 60 "$build/heed" bench gemm --device cuda
stage ops 90 "$build/heed" bench ops --device cuda
for precision in f32 tf32 bf16; do
  stage "steps-$precision" $steps "$build/heed" bench train gpt-6x6x384-dropout translator-real --device cuda --precision $precision "${sizes[@]}"
done
cat "$out"/{limits,products,ops}.log "$out"/steps-*.log
if [[ $build == build/cuda ]]; then
  stage speed 300 python3 tests/device/speed.py --heed "$build/heed" --keep "$out/speed.jsonl"
else
  stage speed 60 python3 tests/device/speed.py --help
fi
cat "$out/speed.log"
exit "$worst"
