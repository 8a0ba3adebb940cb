#!/bin/sh
# compiled_kernels.sh ROOT: what nvcc makes of the hot kernels for sm_90: registers, bytes of spills, bytes of code, each at most what it is
# today. Needs no GPU. It prints what it found; 1 where a kernel exceeds its bound or is not found, 77 where there is no nvcc or no readelf.
set -u
export LC_ALL=C
cd "$1" || exit 1
PATH=$PATH:${CUDA_PATH:-/usr/local/cuda}/bin
command -v nvcc >/dev/null || { echo "there is no nvcc: what it makes of kernels is not checked" && exit 77; }
nvcc --version | grep -q 'release 13[.]0' || { echo "nvcc is not of release 13.0, whose output the bounds are of" && exit 77; }
command -v readelf >/dev/null || { echo "there is no readelf: what nvcc makes of kernels is not checked" && exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# FILE, the kernel in it (in its mangled name), and the greatest number of registers, bytes of spills stored, and bytes of code of all its
# instances, by nvcc 13.0. Pairs 0 are attention without dropout and biases, 1 with dropout, 2 with biases too.
# Packed sequences took up to 2 % more code than before them: each block looks up where its sequence begins and ends.
bounds='linear_attention/polynomial_backward_keys_cuda.cu back_keysIfLi32E 168 28 264320
linear_attention/polynomial_backward_keys_cuda.cu back_keysIfLi64E 248 0 266240
linear_attention/polynomial_backward_keys_cuda.cu back_keysIdLi32E 255 80 272256
attention/attention_tensor_core_cuda.cu forwardI.*ELi32E.*PairsE0E 168 4 52864
attention/attention_tensor_core_cuda.cu forwardI.*ELi32E.*PairsE1E 180 0 59520
attention/attention_tensor_core_cuda.cu forwardI.*ELi64E.*PairsE0E 240 0 63744
attention/attention_tensor_core_cuda.cu forwardI.*ELi64E.*PairsE1E 255 60 70912
attention/attention_tensor_core_cuda.cu forwardI.*ELi128E.*PairsE0E 255 0 71552
attention/attention_tensor_core_cuda.cu forwardI.*ELi128E.*PairsE1E 255 152 78464
attention/attention_tensor_core_cuda.cu forwardI.*PairsE2E 255 396 151040
attention/attention_tensor_core_backward_cuda.cu backwardI.*ELi32ELb0E.*PairsE0E 128 0 44288
attention/attention_tensor_core_backward_cuda.cu backwardI.*ELi32ELb0E.*PairsE1E 157 0 53376
attention/attention_tensor_core_backward_cuda.cu backwardI.*ELi32ELb1E.*PairsE0E 183 0 53248
attention/attention_tensor_core_backward_cuda.cu backwardI.*ELi32ELb1E.*PairsE1E 180 0 60928
attention/attention_tensor_core_backward_cuda.cu backwardI.*ELi64ELb0E.*PairsE[01]E 166 0 61568
attention/attention_tensor_core_backward_cuda.cu backwardI.*ELi64ELb1E.*PairsE[01]E 240 0 73344
attention/attention_tensor_core_backward_cuda.cu backwardI.*ELi128ELb0E.*PairsE[01]E 234 0 61696
attention/attention_tensor_core_backward_cuda.cu backwardI.*ELi128ELb1E.*PairsE[01]E 255 72 75392
attention/attention_tensor_core_backward_cuda.cu backwardI.*PairsE2E 255 76 117248'

failed=
for file in $(printf '%s\n' "$bounds" | cut -d' ' -f1 | sort -u); do
  nvcc -arch=sm_90 -std=c++20 --expt-relaxed-constexpr --extended-lambda -DHEED_CUDA_BUILD=1 -DHEED_CUDA_EMULATED=0 -I include \
    -Xptxas -v -cubin -x cu "core/kernels/$file" -o "$work/cubin" >"$work/said" 2>&1 ||
    { cat "$work/said" && echo "$file does not compile" && exit 1; }
  # Lines NAME REGISTERS SPILLS of what ptxas says, and NAME BYTES of the sections of code.
  awk "/Compiling entry function/ { split(\$0, at, \"'\"); name = at[2] }
       /bytes spill stores/ { spills[name] = \$5 }
       match(\$0, /Used [0-9]+ registers/) { print name, substr(\$0, RSTART + 5, RLENGTH - 15), spills[name] + 0 }" "$work/said" |
    sort >"$work/resources"
  readelf -SW "$work/cubin" 2>/dev/null | sed -n 's/^ *\[ *[0-9]*\] *\.text\.\([^ ]*\) *PROGBITS *[^ ]* *[^ ]* *\([^ ]*\).*/\1 \2/p' |
    while read -r name bytes; do echo "$name $((0x$bytes))"; done | sort >"$work/sizes"
  join "$work/resources" "$work/sizes" >"$work/all"
  while read -r of kernel registers spills bytes; do
    [ "$of" = "$file" ] || continue
    found=$(awk -v kernel="$kernel" '
      $1 ~ kernel { n++; if ($2 > r) r = $2; if ($3 > s) s = $3; if ($4 > b) b = $4 } END { print n + 0, r + 0, s + 0, b + 0 }' "$work/all")
    # shellcheck disable=SC2086
    set -- $found
    echo "$file: $kernel, $1 instances: $2 of $registers registers, $3 of $spills bytes of spills, $4 of $bytes bytes of code"
    if [ "$1" = 0 ] || [ "$2" -gt "$registers" ] || [ "$3" -gt "$spills" ] || [ "$4" -gt "$bytes" ]; then
      echo "$file: $kernel is not found, or exceeds its bound"
      failed=yes
    fi
  done <<END
$bounds
END
done
[ -z "$failed" ] || { echo "Mend the kernel, or say in tests/core/cuda/compiled_kernels.sh why it may take more." && exit 1; }
