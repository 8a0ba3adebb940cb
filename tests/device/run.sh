#!/bin/bash
# run.sh PART...: tests and measures Heed on the GPU of this machine, with what pack.sh has built elsewhere. Nothing is compiled here.
#   kernels      one step of ListOps and of GPT-2 kernel by kernel; in turn with the pack HEED_BEFORE, where that is set
#   attention    attention alone beside FlashAttention, cuDNN and Fastmax in PyTorch
#   lra          steps of ListOps and Image beside PyTorch, eager and compiled; listops: of ListOps alone
#   gpt2, shakespeare, translate     the same of GPT-2 124M, of nanoGPT's Shakespeare and of translate-conti
#   sanitize     compute-sanitizer over kernels in small shapes: racecheck, then memcheck
#   trainings    the trainings of trainings.txt (or of the file HEED_QUEUE), several at once; those of the archive HEED_TRAININGS are continued
#   tests        all fast tests, 75 cases a process
#   bench        limits, products and ops of the GPU
# Each part takes at most HEED_SECONDS (140). Results are added to files in OUT (build/device) as they come; a part that is stopped, by SIGTERM
# too, keeps what it has. HEED_PACK is the pack (build/pack.tar.xz), HEED_TORCH a Python with PyTorch (python3).
# Where there is no GPU this is a dry run of build/emulated in small sizes: it shows that the script works, and its times mean nothing.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
here=tests/device
known='kernels attention lra listops gpt2 shakespeare translate sanitize trainings tests bench'
for part in "$@"; do
  [[ " $known " == *" $part "* ]] || { echo "run.sh: '$part' is no part. There are: $known" >&2 && exit 2; }
done
[[ $# -gt 0 ]] || { echo "run.sh: name parts. There are: $known" >&2 && exit 2; }
out=$(realpath -m "${OUT:-build/device}")
torch=${HEED_TORCH:-python3}
mkdir -p "$out"
work=$(mktemp -d)
trap 'keep_trainings; rm -rf "$work"' EXIT
trap 'kill $(jobs -p) 2>/dev/null; wait; exit 143' TERM INT
worst=0

# stage NAME COMMAND...: runs it until the part ends at most. Its output goes to the file $to, or to log.txt; how it ended to stages.txt.
stage() {
  local name=$1 began=$SECONDS code=0 left=$((ends - SECONDS))
  shift
  echo "== $name" >>"$out/log.txt"
  # In the background, since the shell hears signals while it waits.
  timeout -k 5 "$((left > 0 ? left : 1))" "$@" >>"${to:-$out/log.txt}" 2>>"$out/log.txt" &
  wait $! || code=$?
  printf '%-28s %-8s %4d of %4d s\n' "$name" "$([[ $code == 0 ]] && echo ok || echo "code $code")" $((SECONDS - began)) "$left" | tee -a "$out/stages.txt"
  [[ $code == 0 ]] || tail -n 15 "$out/log.txt"
  [[ $worst != 0 ]] || worst=$code
}

unpacked() { # FILE FOLDER: the pack in it
  mkdir -p "$2" && { tar -C "$2" -xf "$1" 2>/dev/null || python3 -m tarfile -e "$1" "$2"; } && cat "$2/pack/contents.txt"
}

# The folder of cuBLAS: that of the loader, of a toolkit, or of PyTorch.
cublas_folder() {
  local file
  for file in $(ldconfig -p | sed -n 's/.*libcublasLt[.]so[.]13 .*=> //p') /usr/local/cuda*/{lib64,lib}/libcublasLt.so.13 \
    $("$torch" -c 'import pathlib, torch; print(*pathlib.Path(torch.__file__).parents[1].glob("nvidia/*/lib/libcublasLt.so.13"))' 2>/dev/null); do
    [[ ! -e $file ]] || { dirname "$file" && return; }
  done
  echo "run.sh: there is no libcublasLt.so.13 on this machine, so Heed's products will fail" >&2
}

if command -v nvidia-smi >/dev/null; then
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader | tee -a "$out/machine.txt"
  unpacked "${HEED_PACK:-build/pack.tar.xz}" "$work/now" | tee -a "$out/machine.txt" || exit
  [[ -z ${HEED_BEFORE-} ]] || unpacked "$HEED_BEFORE" "$work/before" || exit
  programs=$work/now/pack/bin heed=$work/now/pack/bin/heed before=$work/before/pack/bin/heed
  LD_LIBRARY_PATH=$(cublas_folder):${LD_LIBRARY_PATH-}
  export LD_LIBRARY_PATH HEED_TEST_PROGRAMS=$programs HEED_TEST_SOURCES=$PWD
  seconds=${HEED_SECONDS:-140} sizes=() timing=(--rounds 5) cases='~[slow]~[.]' suites=(core autograd nn attention train)
  # Kernels of each kind, those of the tensor cores and of cuBLASLt among them.
  sanitized='twins*,attention on devices: rounded*,block attention kernel: rounded*,linear kernel*'
else
  echo "no GPU here: a dry run on the emulated device, whose times mean nothing" | tee -a "$out/machine.txt"
  programs=$PWD/build/emulated/tests heed=$PWD/build/emulated/heed before=
  [[ -x $heed ]] || { echo "run.sh: build it: cmake --preset emulated && cmake --build --preset emulated --target heed core_tests" >&2 && exit 1; }
  seconds=${HEED_SECONDS:-1800} cases='twins: a*' sanitized='twins: a*' suites=(core)
  sizes=(--d-model 32 --heads 2 --d-ff 32 --layers 1 --max-length 64 --batch-size 2 --set data.depth=4 --set data.shortest=20 --set data.below=60)
  timing=(--small --torch-device cpu --rounds 1 --steps 4 --longest 64)
fi
few=(--set data.num_examples=2000 --set data.validation=64 --set data.test_size=64)
gpu=(--device cuda --precision bf16)
at_once=$(($(nproc) / 2 + 1))

# speed WORD...: these rows beside PyTorch. No turn is begun in the last fifth, so that the last one ends.
speed() {
  stage "$part" "$torch" $here/speed.py "$@" --heed "$heed" --keep "$out/speed.jsonl" --seconds $(((ends - SECONDS) * 4 / 5)) "${timing[@]}"
  "$torch" $here/speed.py "$@" --keep "$out/speed.jsonl" --table
}

kernels() { # ROW WORD...: before and after in turn
  [[ ! -x $before ]] || to=$out/kernels-before.jsonl stage "before: $1" "$before" bench kernels "$@" "${gpu[@]}" --json
  to=$out/kernels.jsonl stage "kernels: $1" "$heed" bench kernels "$@" "${gpu[@]}" --json
}

# The trainings of trainings.txt (HEED_QUEUE) in order, the runs of a line at once. Where a line ends early, the next one begins.
train_queue() {
  local line
  mkdir -p "$work/runs"
  [[ -z ${HEED_TRAININGS-} ]] || tar -C "$work" -xzf "$HEED_TRAININGS"
  while read -r -u 3 line; do
    [[ -n $line && $line != '#'* && $((ends - SECONDS)) -gt 20 ]] || continue
    # shellcheck disable=SC2086
    stage "train: $line" "$heed" $line --device cuda "${sizes[@]}" --out "$work/runs" --jobs auto --budget $((ends - SECONDS - 10))s
  done 3<"${HEED_QUEUE:-$here/trainings.txt}"
}

# What was trained, checkpoints too where they are small enough to come back.
# shellcheck disable=SC2317
keep_trainings() {
  [[ -d $work/runs ]] || return 0
  tar -C "$work" -czf "$out/trainings.tar.gz" runs
  [[ $(stat -c %s "$out/trainings.tar.gz") -le 15000000 ]] || tar -C "$work" -czf "$out/trainings.tar.gz" --exclude=ckpt runs
}

for part in "$@"; do
  ends=$((SECONDS + seconds))
  case $part in
    kernels)
      for spec in softmax fastmax:p=1 fastmax:p=2; do
        kernels lra-listops-skyformer --attention $spec "${few[@]}" "${sizes[@]}"
      done
      kernels gpt2-124m "${sizes[@]:0:12}" ;;
    lra)
      finish=$ends ends=$((SECONDS + seconds / 2))
      speed listops
      ends=$finish
      speed image ;;
    attention | listops | gpt2 | shakespeare | translate) speed "$part" ;;
    sanitize)
      if command -v compute-sanitizer >/dev/null; then
        finish=$ends tools=2
        for tool in racecheck memcheck; do
          ends=$((SECONDS + (finish - SECONDS) / tools--))
          stage "$tool" bash $here/run_groups.sh 4 "$at_once" "$out/$tool.txt" "$programs/core_tests" "$sanitized" compute-sanitizer --tool $tool --error-exitcode 9
        done
      else
        echo "sanitize: there is no compute-sanitizer here" | tee -a "$out/stages.txt"
      fi ;;
    trainings) train_queue ;;
    tests)
      for suite in "${suites[@]}"; do
        stage "${suite}_tests" bash $here/run_groups.sh 75 "$at_once" "$out/tests.txt" "$programs/${suite}_tests" "$cases"
      done ;;
    bench)
      for what in limits gemm ops; do
        stage $what "$heed" bench $what --device cuda
      done ;;
  esac
done
exit "$worst"
