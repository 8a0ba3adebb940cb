#!/bin/sh
# deb.sh BUILD WORK: the Debian packages of BUILD hold what they should, and the program in them runs. 77 where dpkg is missing.
set -eu
build=$1 work=$2
for tool in cpack dpkg-deb dpkg-shlibdeps; do
  command -v $tool >/dev/null || { echo "there is no $tool" && exit 77; }
done
rm -rf "$work" && mkdir -p "$work/all"
cpack --config "$build/CPackConfig.cmake" -B "$work" >"$work/log" 2>&1 || { cat "$work/log" && exit 1; }
cuda=
! grep -q 'CPACK_DEBIAN_CUDA_PACKAGE_NAME' "$build/CPackConfig.cmake" || cuda=heed-cuda
for name in heed libheed-dev $cuda; do
  set -- "$work/${name}"_*.deb
  [ $# = 1 ] && [ -f "$1" ] || { echo "no package $name in: $(ls "$work")" && exit 1; }
  dpkg-deb -x "$1" "$work/all" && dpkg-deb -f "$1" Depends >"$work/$name.depends" && dpkg-deb -c "$1" >"$work/$name.files"
done
bad=0
has() { grep -qE -- "$2" "$work/$1" || { echo "$1 lacks $2: $(cat "$work/$1")" && bad=1; }; }
has heed.depends 'libc6'
has heed.depends 'libopenblas'
has heed.files 'bin/heed$'
has heed.files 'man/man1/heed.1$'
has heed.files 'bash-completion/completions/heed$'
has heed.files 'zsh/(vendor-completions|site-functions)/_heed$'
has heed.files 'doc/heed/copyright$'
has libheed-dev.depends 'libopenblas-dev'
has libheed-dev.depends 'libssl-dev'
has libheed-dev.files 'libheed.a$'
has libheed-dev.files 'include/heed/core/tensor.h$'
has libheed-dev.files 'heedConfig.cmake$'
! grep -E 'bin/heed$' "$work/libheed-dev.files" || bad=1
! grep -E '\.(h|a)$' "$work/heed.files" || bad=1
program=$(find "$work/all" -path '*/bin/heed')
if [ -n "$cuda" ]; then
  version=$(dpkg-deb -f "$work"/heed_*.deb Version)
  has heed-cuda.depends "heed \(= $version\)"
  has heed-cuda.files '/heed/heed_cuda\.so$'
  has heed-cuda.files 'doc/heed-cuda/copyright$'
  ! grep -E 'heed_cuda' "$work/heed.files" "$work/libheed-dev.files" || bad=1
  [ "$(grep -c '^-' "$work/heed-cuda.files")" = 2 ] || { echo "heed-cuda holds more than its module" && bad=1; }
  module=$(find "$work/all" -name heed_cuda.so)
  # Code for GPUs lies in sections of its own; the runtime of CUDA names its calls.
  for file in "$program" "$(find "$work/all" -name libheed.a)"; do
    ! readelf -SW "$file" | grep -E '\.nv_fatbin|\.nvFatBinSegment' || { echo "$file holds code for GPUs" && bad=1; }
    ! grep -q 'cudaLaunchKernel' "$file" || { echo "$file holds the runtime of CUDA" && bad=1; }
  done
  # Opened with or without a GPU, the module is of this program: what is missing then is the device.
  (cd "$work" && HEED_CUDA_MODULE_FILE=$module "$program" env) >"$work/env"
  ! grep -E 'cannot be opened|is no file' "$work/env" || bad=1
fi
(cd "$work" && "$program" train translate-small --steps 2 --quiet --name packaged --device cpu) || bad=1
[ -f "$work/runs/packaged/config.toml" ] || { echo "the packaged program trained nothing" && bad=1; }
exit $bad
