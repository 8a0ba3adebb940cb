#!/bin/sh
# deb.sh BUILD WORK: the Debian packages of BUILD hold what they should, and the program in them runs. 77 where dpkg is missing.
set -eu
build=$1 work=$2
for tool in cpack dpkg-deb dpkg-shlibdeps; do
  command -v $tool >/dev/null || { echo "there is no $tool" && exit 77; }
done
rm -rf "$work" && mkdir -p "$work/all"
cpack --config "$build/CPackConfig.cmake" -B "$work" >"$work/log" 2>&1 || { cat "$work/log" && exit 1; }
for name in heed libheed-dev; do
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
has heed.files 'doc/heed/copyright$'
has libheed-dev.depends 'libopenblas-dev'
has libheed-dev.files 'libheed.a$'
has libheed-dev.files 'include/heed/core/tensor.h$'
has libheed-dev.files 'heedConfig.cmake$'
! grep -E 'bin/heed$' "$work/libheed-dev.files" || bad=1
! grep -E '\.(h|a)$' "$work/heed.files" || bad=1
program=$(find "$work/all" -path '*/bin/heed')
(cd "$work" && "$program" train translate-small --steps 2 --quiet --name packaged --device cpu) || bad=1
[ -f "$work/runs/packaged/config.toml" ] || { echo "the packaged program trained nothing" && bad=1; }
exit $bad
