#!/bin/bash
# pack.sh [FILE]: builds what a bare machine with a GPU runs, and packs it into FILE (default: build/pack.tar.xz). No GPU is needed here, but
# nvcc 13.0. FILE holds heed, the test programs and the programs that they start, the CUDA kernels for sm_90 alone, and the libraries that a
# bare machine lacks. That machine has the C and C++ libraries, the driver, and cuBLAS of CUDA 13, which is too large to travel.
# HEED_JOBS: compilers at once (default: one a core). HEED_CUOBJDUMP: where cuobjdump lies, if it is not on the PATH.
set -euo pipefail
cd "$(dirname "$0")/../.."
file=${1:-build/pack.tar.xz}
build=build/pack
max_bytes=$((60 * 1024 * 1024))
tests=(core_tests autograd_tests nn_tests attention_tests train_tests)
started_by_tests=(heed_with_faults own_program fit_program locale_program) # see tests/source_paths.h
# What every machine has: the C library, and what comes with a compiler, as nvcc needs one.
of_system='^(linux-vdso|ld-linux-x86-64|lib(c|m|dl|rt|pthread|gcc_s|stdc[+][+]))[.]so'
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

stop() {
  echo "pack.sh: $*" >&2
  exit 1
}

build_all() {
  local cuda=(-DHEED_CUDA=ON -DHEED_CUDA_MODULE=ON -DCMAKE_CUDA_ARCHITECTURES=90-real)
  # Libraries are found in ../lib wherever the pack lies; that of a library, too, which only the older tag of the two does.
  local relative=("-DCMAKE_BUILD_RPATH=\$ORIGIN/../lib" "-DCMAKE_EXE_LINKER_FLAGS=-Wl,--disable-new-dtags")
  cmake -G Ninja -S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DHEED_NATIVE=OFF -DHEED_UNITY=ON "${cuda[@]}" "${relative[@]}"
  cmake --build "$build" -j "${HEED_JOBS:-$(nproc)}" --target heed "${tests[@]}" "${started_by_tests[@]}"
}

# collect FOLDER: programs and kernels into FOLDER/bin, libraries into FOLDER/lib, all stripped; contents.txt says what they are.
collect() {
  local name library
  mkdir -p "$1/bin" "$1/lib"
  for name in heed heed_cuda.so "${tests[@]/#/tests/}" "${started_by_tests[@]/#/tests/}"; do
    strip -o "$1/bin/$(basename "$name")" "$build/$name"
  done
  ldd "$1"/bin/* | sed -n 's/^\t\([^ ]*\) => \(\/[^ ]*\) .*/\1 \2/p' | sort -u | grep -vE "$of_system" | while read -r name library; do
    strip -o "$1/lib/$name" "$(readlink -f "$library")"
  done
  {
    echo "commit $(git rev-parse HEAD)$([[ -z $(git status --porcelain) ]] || echo ', changed')"
    nvcc --version | sed -n 's/.*release \([^,]*\).*/nvcc \1, sm_90/p'
    for name in GLIBC GLIBCXX; do
      echo "needs $(readelf -VW "$1"/bin/* "$1"/lib/* | grep -oE "${name}_[0-9.]+" | sort -uV | tail -n 1)"
    done
  } >"$1/contents.txt"
}

# No code of this machine alone: not in what was compiled, and not in what is packed.
check_portable() {
  ! grep -q -- '-march=native' "$build/build.ninja" || stop "build.ninja has -march=native: the programs would need this machine's CPU"
  grep -q 'HEED_ALL_ISAS=1' "$build/build.ninja" || stop "the kernels of the CPU are not built for every set of instructions"
}

check_kernels() { # FOLDER
  local cuobjdump=${HEED_CUOBJDUMP:-$(command -v cuobjdump || true)} found
  [[ -n $cuobjdump ]] || stop "there is no cuobjdump, which says for which GPUs kernels are: put it on the PATH (PyPI has nvidia-cuda-cuobjdump)"
  found=$("$cuobjdump" --list-elf --list-ptx "$1/bin/heed_cuda.so" 2>/dev/null | grep -oE 'sm_[0-9a-z]+' | sort | uniq -c)
  [[ $(awk '{print $2}' <<<"$found") == sm_90 ]] || stop "heed_cuda.so has kernels for other GPUs than sm_90: $found"
  echo "kernels: $(awk '{print $1}' <<<"$found") files of sm_90, no others"
}

# Each program finds in the module what it calls there, and the module in each program what it needs of Heed.
check_module() { # FOLDER
  local program missing
  missing=$(comm -23 <(awk '$1 != "keep" { print $2 }' "$build/heed_cuda_links.links" | sort) <(symbols --defined-only "$1/bin/heed_cuda.so"))
  [[ -z $missing ]] || stop "heed_cuda.so does not export $missing"
  for program in heed "${tests[@]}" "${started_by_tests[@]}"; do
    missing=$(comm -23 <(symbols --undefined-only "$1/bin/heed_cuda.so" | grep -E '^_Z.*4heed|^heed_cuda') <(symbols --defined-only "$1/bin/$program"))
    [[ -z $missing ]] || stop "$program lacks what heed_cuda.so needs: $missing"
  done
}

symbols() { # DEFINED FILE: names of the loader's symbols
  nm -D "$1" --format=just-symbols "$2" | sort
}

check_stripped() { # FOLDER
  local file
  for file in "$1"/bin/* "$1"/lib/*; do
    ! readelf -SW "$file" | grep -qE ' [.](symtab|debug_info) ' || stop "$file is not stripped"
    [[ $file != */bin/* || $file == *.so ]] || readelf -dW "$file" | grep -q "RPATH.*[[].ORIGIN/[.][.]/lib" || stop "$file looks for libraries elsewhere"
  done
}

# In a folder it was not made in, without this shell's environment: each library is one of the pack or of the system, and the programs run.
check_runs() { # FOLDER
  local strange program
  strange=$(env -i ldd "$1"/bin/* | sed -n 's/^\t\([^ ]*\)\( => \([^ ]*\)\)\?.*/\1 \3/p' | sort -u | grep -vE "$of_system|^/lib64/" |
    grep -vF " $1/" || true)
  [[ -z $strange ]] || stop "these libraries are neither in the pack nor in every system: $strange"
  for program in "${tests[@]}"; do
    [[ $(env -i "$1/bin/$program" --list-test-names-only | wc -l) -gt 1 ]] || stop "$program does not list its tests"
  done
  (cd "$1" && env -i bin/heed train lm --steps 2 --d-model 16 --heads 2 --out "$1/runs" --quiet >/dev/null) || stop "heed does not train"
  rm -r "$1/runs"
}

build_all
collect "$work/pack"
check_portable
check_kernels "$work/pack"
check_module "$work/pack"
check_stripped "$work/pack"
mkdir -p "$(dirname "$file")" "$work/elsewhere"
# The programs share most of their code: the dictionary is as large as all of them.
tar --sort=name --owner=0 --group=0 -C "$work" -cf - pack | xz -T1 --lzma2=preset=6,dict=256MiB >"$file"
tar -C "$work/elsewhere" -xf "$file"
check_runs "$work/elsewhere/pack"
cat "$work/pack/contents.txt"
(cd "$work/pack" && du --apparent-size --block-size=KiB bin/* lib/* | sort -k2)
bytes=$(stat -c %s "$file")
echo "$file: $bytes bytes, of at most $max_bytes"
((bytes <= max_bytes)) || stop "$file is too large to travel"
