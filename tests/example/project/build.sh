#!/bin/sh
# Installs Heed and builds the programs of docs/tutorials against it: build.sh EXAMPLES BUILD WORK COMPILER
set -eu
examples=$1 build=$2 work=$3 compiler=$4
rm -rf "$work" && mkdir -p "$work/project"
cmake --install "$build" --prefix "$work/prefix" >/dev/null
cp "$examples"/*.cpp "$examples/project/CMakeLists.txt" "$work/project"
for header in core/tensor core/io/json data/dataset data/batching/data_loader train/trainer train/fit; do
  mkdir -p "$work/project/${header%/*}"
  printf '#error "this is the project'"'"'s own %s.h, not the one of Heed"\n' "$header" >"$work/project/$header.h"
done
# A source of the project's own core, with names that Heed has too.
printf '#include <string>\nstruct Tensor { int rank = 0; };\nstd::string text(const Tensor& x) { return std::to_string(x.rank); }\n' \
  >"$work/project/core/tensor.cpp"
cmake -S "$work/project" -B "$work/build" -G Ninja -D CMAKE_BUILD_TYPE=Release -D "CMAKE_CXX_COMPILER=$compiler" \
  -D "CMAKE_PREFIX_PATH=$work/prefix" -D CMAKE_FIND_USE_PACKAGE_REGISTRY=OFF >/dev/null
cmake --build "$work/build"
