#!/bin/sh
# isas.sh NM OBJECT...: whatever the joined kernels of an Isa define for others is a kernel of that Isa, so that nothing compiled
# for a newer CPU can take the place of a function that all CPUs run.
set -eu
nm=$1
shift
for object in "$@"; do
  isa=$(basename "$object" .o)
  case $isa in
    kernels_avx2) number=1 ;;
    kernels_avx512) number=2 ;;
    *) echo "$object: unknown instructions" && exit 1 ;;
  esac
  kernels=$("$nm" --extern-only --defined-only "$object" | grep -c "3cpuILNS_3IsaE${number}EE") || true
  [ "$kernels" -gt 50 ] || { echo "$object has only $kernels kernels"; exit 1; }
  if "$nm" --extern-only --defined-only "$object" | grep -v "3cpuILNS_3IsaE${number}EE"; then
    echo "$object defines these beside its kernels: core/kernels/simd/isas.cmake must keep them local"
    exit 1
  fi
done
