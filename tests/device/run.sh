#!/bin/bash
# Builds, tests and measures Heed on the GPU of this machine, part by part, within HEED_SECONDS (540) in all.
#   tests/device/run.sh [OUT [PART...]]     OUT: folder for logs and results (default: build/device)
# Parts, and the seconds of each when all of the first line run, which is what no PART means. Of fewer parts each gets the same share of the whole,
# and what one leaves over goes to those after it; so their limits always add up. Three calls that keep build/cuda give each part half as long again and more:
#   build 170, tests 90, speed-shakespeare 60, speed-attention 60, speed-listops 65, speed-image 55, speed-translate 40
#   bench 60 (limits, products, ops, steps in each precision), sanitize 90 (compute-sanitizer over the twins)
#   run.sh OUT build tests sanitize; run.sh OUT bench speed-shakespeare speed-attention speed-translate; run.sh OUT speed-listops speed-image
# Results are added to OUT/speed.jsonl one by one, so a part that is stopped loses only what was being measured; speed.py --table prints that file.
# Where there is no GPU it is rehearsed on the emulated device, all sizes small: only its own logic is proven so.
# HEED_DEPS names a folder of unpacked packages (usr/include, usr/lib/...) where the system lacks OpenBLAS, sentencepiece and the like;
# HEED_TORCH a Python that has PyTorch (python3). HEED_BUILT=1: build/cuda was compiled elsewhere; the part build is left out, and tests are not compiled.
# Each stage says how it ended and the next one goes on; the exit code is that of the first stage that failed.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
out=${1:-build/device}
shift $(($# > 0))
declare -A share=([build]=170 [tests]=90 [speed-shakespeare]=60 [speed-attention]=60 [speed-listops]=65 [speed-image]=55 [speed-translate]=40
  [bench]=60 [sanitize]=90)
parts=("$@")
[[ $# -gt 0 ]] || parts=(build tests speed-shakespeare speed-attention speed-listops speed-image speed-translate)
whole=0
for part in "${parts[@]}"; do
  [[ -n ${share[$part]-} ]] || { echo "run.sh: '$part' is no part. There are: ${!share[*]}"; exit 2; }
  whole=$((whole + share[$part]))
done
mkdir -p "$out"
worst=0
torch=${HEED_TORCH:-python3}
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

if command -v nvidia-smi >/dev/null; then
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader | tee "$out/machine.txt"
  build=build/cuda total=${HEED_SECONDS:-540}
  # The device at hand alone: half the kernels to compile.
  architecture=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
  options+=(-DHEED_CUDA=ON "-DCMAKE_CUDA_ARCHITECTURES=${architecture:-90}-real")
  programs=(core_tests autograd_tests nn_tests attention_tests train_tests)
  sizes=(--rounds 40) timing=()
else
  echo "no GPU here: a dry run on the emulated device, whose times mean nothing" | tee "$out/machine.txt"
  build=build/emulated total=${HEED_SECONDS:-7200}
  options+=(-DHEED_CUDA=EMULATED)
  programs=(core_tests)
  sizes=(--rounds 2 --d-model 32 --heads 2 --d-ff 32 --layers 1 --max-length 12 --batch-size 2)
  timing=(--small --torch-device cpu --rounds 1 --steps 4 --longest 64)
fi
# The kernels of each kind, those of the tensor cores and of cuBLASLt among them.
checked='twins*,attention on devices: rounded*,block attention kernel: rounded*,linear kernel*'

# stage NAME COMMAND...: runs it within what is left of its part; its words go to OUT/NAME.log.
stage() {
  local name=$1 began=$SECONDS code=0 limit=$((ends - SECONDS))
  shift
  if ((limit <= 0)); then
    code=124
    echo "no time was left" >"$out/$name.log"
  else
    timeout -k 5 "$limit" "$@" >"$out/$name.log" 2>&1 || code=$?
  fi
  printf '%-18s %-8s %4d of %4d s\n' "$name" "$([[ $code == 0 ]] && echo ok || echo "code $code")" $((SECONDS - began)) "$limit" | tee -a "$out/stages.txt"
  if [[ $code != 0 ]]; then
    tail -n 15 "$out/$name.log"
    [[ $worst != 0 ]] || worst=$code
  fi
  return "$code"
}

# share_of COUNT: the next stage is one of so many that are left of the part, and may take that share of its time.
share_of() {
  ends=$((SECONDS + (finish - SECONDS) / $1))
}

: >"$out/stages.txt"
for part in "${parts[@]}"; do
  left=$((total - SECONDS))
  finish=$((SECONDS + left * share[$part] / whole))
  ends=$finish
  whole=$((whole - share[$part]))
  case $part in
    build)
      [[ -z ${HEED_BUILT-} ]] || continue
      stage configure cmake "${generator[@]}" -S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DHEED_NATIVE=ON "${options[@]}" &&
        stage build cmake --build "$build" -j "$(nproc)" --target heed ;;
    tests)
      [[ -n ${HEED_BUILT-} ]] || stage build-tests cmake --build "$build" -j "$(nproc)" --target "${programs[@]}" || continue
      if [[ $build == build/cuda ]]; then
        # Without those of more than two seconds and those of the program as a whole, which need no GPU.
        stage tests ctest --test-dir "$build" -j "$(nproc)" --timeout 60 --output-on-failure -L fast -R '^(core|autograd|nn|attention|train)/'
      else
        stage tests "$build/tests/core_tests" 'twins*'
      fi ;;
    sanitize)
      if command -v compute-sanitizer >/dev/null; then
        share_of 2
        stage memcheck compute-sanitizer --tool memcheck --error-exitcode 9 "$build/tests/core_tests" "$checked"
        ends=$finish
        stage racecheck compute-sanitizer --tool racecheck --error-exitcode 9 "$build/tests/core_tests" "$checked"
      else
        echo "sanitize: there is no compute-sanitizer here" | tee -a "$out/stages.txt"
      fi ;;
    bench)
      stages=6
      for what in limits gemm ops; do
        share_of $((stages--))
        stage "$what" "$build/heed" bench "$what" --device cuda
        cat "$out/$what.log"
      done
      for precision in bf16 tf32 f32; do
        share_of $((stages--))
        stage "steps-$precision" "$build/heed" bench train gpt-6x6x384-dropout translator-real --device cuda --precision "$precision" "${sizes[@]}"
        cat "$out/steps-$precision.log"
      done ;;
    speed-*)
      # No turn is begun in the last fifth, so that the last one ends.
      stage "$part" "$torch" tests/device/speed.py "${part#speed-}" --heed "$build/heed" --keep "$out/speed.jsonl" \
        --seconds $(((ends - SECONDS) * 4 / 5)) --rounds 5 "${timing[@]}"
      "$torch" tests/device/speed.py "${part#speed-}" --keep "$out/speed.jsonl" --table ;;
  esac
done
exit "$worst"
