#!/bin/sh
# Trains the workloads of docs/results/house.md and prints a hash of their last weights and of their logged losses, so that two
# programs can be compared bit by bit: house_bits.sh PROGRAM FOLDER. Data: HEED_DATA, or embedded.
set -eu
[ $# -eq 2 ] || { echo "usage: house_bits.sh PROGRAM FOLDER" >&2 && exit 2; }
program=$1
mkdir -p "$2"
folder=$(cd "$2" && pwd)
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE
hash() { sha256sum | cut -c1-16; }
run() { # NAME and the words of heed train
  name=$1
  shift
  "$program" train "$@" --steps 40 --seed 3 --threads 2 --quiet --out "$folder" --name "$name"
  printf '%-20s %s %s\n' "$name" "$(hash <"$folder/$name/ckpt/step_000040/model.safetensors")" \
    "$(grep -oE '"(loss|gradient_norm)": *[^,]*' "$folder/$name/metrics.jsonl" | hash)"
}
for workload in translate translate-small shakespeare-cpu mnist-fast; do run $workload $workload; done
for attention in softmax fastmax:p=2 linear; do
  run "recall-${attention%:*}" recall --attention $attention
  run "listops-${attention%:*}" lra-listops --recipe tiny --attention $attention
done
