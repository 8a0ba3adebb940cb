#!/bin/sh
# The front door, with its compiler, cmake, apt and sudo played by scripts: what it asks of them, and what reaches the program.
set -eu
script=$1/heed
page=$1/docs/reference/commands.md
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
bad=0
say() { echo "$*" && bad=1; }
returned() { [ "$result" = "$1" ] || say "$2: it returned $result, not $1: $(cat "$room/err")"; }
holds() { grep -qF -- "$2" "$1" || say "$3: '$2' is not in: $(cat "$1")"; }
lacks() { ! grep -qF -- "$2" "$1" || say "$3: '$2' is in: $(cat "$1")"; }

play() { # NAME, its script on standard input
  { echo '#!/bin/sh' && cat; } >"$room/bin/$1" && chmod +x "$room/bin/$1"
}
plant() { # a checkout whose path has a blank, nothing built, nothing missing, user root
  rm -rf "${room:?}/bin" "$room/a tree" && mkdir -p "$room/bin" "$room/a tree/core" "$room/elsewhere"
  cp "$script" "$room/a tree/heed"
  mkdir -p "$room/a tree/docs/reference" && cp "$page" "$room/a tree/docs/reference/"
  for file in CMakeLists.txt CMakePresets.json core/a.h core/b.h; do echo old >"$room/a tree/$file"; done
  log=$room/log && : >"$log"
  for tool in sh find head dirname readlink grep cat mkdir mv rm df awk sed cmp printf flock getconf touch chmod cp; do
    ln -s "$(command -v $tool)" "$room/bin/" 2>/dev/null || true
  done
  export ROOM="$room" LOG="$log" USER_ID=0
  unset CI CXX HEED_PRESET 2>/dev/null || true
  for tool in c++ ninja pkg-config strace; do play $tool </dev/null; done
  play id <<'END'
echo "$USER_ID"
END
  play apt-get <<'END'
echo "apt-get $*" >>"$LOG"
echo "words of apt"
exit "${APT_RESULT:-0}"
END
  play sudo <<'END'
echo "sudo $*" >>"$LOG"
[ "$1" != -n ] || exit "${SUDO_RESULT:-0}"
exec "$@"
END
  play ctest <<'END'
echo "ctest $*" >>"$LOG"
exit "${CTEST_RESULT:-0}"
END
  play cmake <<'END'
echo "cmake $*" >>"$LOG"
cat >/dev/null # what is typed is for the program alone
echo "words of cmake"
if [ "$1" = --preset ]; then
  mkdir -p "build/$2" && : >"build/$2/build.ninja"
  { echo "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" && echo "HEED_CUDA:STRING=AUTO" && echo "HEED_CUDA_KERNELS:INTERNAL=${KERNELS:-0}"
    echo 'HEED_BUILD_WORDS:INTERNAL=for this CPU alone, and so on'; } >"build/$2/CMakeCache.txt"
elif [ "$1" = -S ]; then
  [ -z "${NO_NVCC:-}" ] || [ "$6" != HEED_CUDA=ON ] || { echo "there is no nvcc" >&2 && exit 1; }
  [ "$6" != HEED_CUDA=ON ] || echo "HEED_CUDA_KERNELS:INTERNAL=1" >"$4/CMakeCache.txt"
  echo "CMAKE_HOME_DIRECTORY:INTERNAL=$2" >>"$4/CMakeCache.txt"
else
  [ -z "${BUILD_RESULT:-}" ] || exit "$BUILD_RESULT"
  { echo '#!/bin/sh' && echo 'echo "program in $PWD:" && for word; do echo "[$word]"; done && cat && exit 3'; } >"$2/heed"
  chmod +x "$2/heed" && mkdir -p "$2/tests" && cp "$2/heed" "$2/tests/scorecard"
fi
END
}
start() { # runs the door from elsewhere without a terminal; its answer in out and err, its exit code in result
  : >"$log"
  (cd "$room/elsewhere" && PATH="$room/bin" "${door:-$room/a tree/heed}" "$@" <"${in:-/dev/null}" >"$room/out" 2>"$room/err") && result=0 || result=$?
}

plant && echo words >"$room/in" && in=$room/in && start train 'two words' --x && in=
returned 3 'first start'
holds "$log" 'cmake --preset release' 'first start configures'
holds "$log" '--target heed' 'first start builds the program only'
lacks "$log" 'apt-get' 'nothing is missing'
[ "$(cat "$room/out")" = "program in $room/elsewhere:
[train]
[two words]
[--x]
words" ] || say "arguments, folder, input and clean output: $(cat "$room/out")"

start show && returned 3 'second start'
[ ! -s "$log" ] || say "second start builds: $(cat "$log")"
sleep 0.02 && echo new >"$room/a tree/core/b.h" && start show && holds "$log" 'cmake --build' 'a newer source builds'
lacks "$log" '--preset' 'a newer source does not configure'
start && returned 3 'settled: the program gives its own help'
[ ! -s "$log" ] || say "settled, yet it builds: $(cat "$log")"
sleep 0.02 && rm "$room/a tree/core/a.h" && start show
holds "$log" 'cmake --build' 'a source that has gone builds'
ln -sf "$room/a tree/heed" "$room/elsewhere/door" && door=./door && start x
door= && returned 3 'through a symbolic link' && holds "$room/out" '[x]' 'through a symbolic link'
lacks "$log" '--preset' 'a symbolic link leads to the same tree'
mv "$room/a tree" "$room/b tree" && sleep 0.02 && touch "$room/b tree/core/b.h" && door="$room/b tree/heed" && start show
holds "$log" '--preset' 'a moved checkout is configured anew' && door= && rm -rf "$room/b tree"

plant # help without a build: at once, all commands of the page that is made from the program, in 80 columns
for word in '' help --help -h; do
  # shellcheck disable=SC2086
  start $word && returned 0 "help by '$word'"
  [ ! -s "$log" ] && [ ! -e "$room/a tree/build" ] || say "help by '$word' builds: $(cat "$log")"
  sed -n '/^## /q; s/^- `\([a-z]*\)`: .*/\1/p' "$page" >"$room/commands"
  [ -s "$room/commands" ] && sed -n 's/^  \([a-z][a-z]*\) .*/\1/p' "$room/out" | cmp - "$room/commands" ||
    say "help by '$word' lists other commands than $page: $(cat "$room/out")"
  holds "$room/out" 'COMMAND --help' "help by '$word' says how to go on"
  ! grep -E '^.{81}' "$room/out" || say "help by '$word' is wider than 80 columns"
done
start help train && holds "$log" 'cmake --build' 'help of a command is the program'"'"'s'
start && returned 3 'help of a program that is built' && holds "$room/out" 'program in' 'help of a program that is built'

plant && start train --device cpu
lacks "$log" 'HEED_CUDA' 'without --device cuda CMake decides'
holds "$room/err" 'heed: building for this CPU alone, and so on' 'says what it builds'
start train --lr 1e-3 --device cuda && returned 3 'cuda is asked for later'
holds "$log" "cmake -S $room/a tree -B $room/a tree/build/release -D HEED_CUDA=ON" 'the build folder is configured again'
holds "$log" '--target heed' 'its kernels are built'
holds "$room/err" 'building the CUDA kernels too' 'says that it builds them, and how to avoid it'
holds "$room/out" '[cuda]' 'the words reach the program'
start resume run --device=cuda && [ ! -s "$log" ] || say "built twice: $(cat "$log")"
plant && start train --device=cuda && holds "$log" '-D HEED_CUDA=ON' 'cuda at the first start'
lacks "$room/err" 'and so on' 'what is built is said once'
plant && export KERNELS=1 && start train --device cuda && lacks "$log" '-D HEED_CUDA' 'a folder that has them stays as it is'
unset KERNELS && plant && start train --name '--device cuda' && lacks "$log" '-D HEED_CUDA' 'one word that looks like two'
plant && export NO_NVCC=1 && start train --device cuda
returned 1 'no nvcc' && holds "$room/err" 'there is no nvcc' 'the reason is passed on'
holds "$room/err" 'To train on the CPU, leave out --device cuda' 'what to do without nvcc'
holds "$log" '-D HEED_CUDA=AUTO' 'and the folder is as it was'
unset NO_NVCC && start train && returned 3 'the CPU after that'

plant && export BUILD_RESULT=1 && start train
returned 1 'a failed build' && holds "$room/err" 'the build failed' 'a failed build says so'
[ ! -s "$room/out" ] || say "a failed build speaks on standard output"
unset BUILD_RESULT && start train
returned 3 'after a failed build' && holds "$log" 'cmake --build' 'after a failed build the next start builds'

plant && rm "$room/bin/ninja" && play c++ <<'END'
! grep -qF -e openblas_config.h -e catch2/catch.hpp # cblas.h alone may be of another BLAS
END
start train
holds "$room/err" 'apt-get update; apt-get install -y --no-install-recommends ninja-build libopenblas-dev' 'one line is shown'
lacks "$room/err" ' catch2' 'either header of Catch2 will do'
lacks "$room/err" zlib1g-dev 'what is there is not installed'
holds "$log" 'apt-get install -y --no-install-recommends ninja-build libopenblas-dev' 'root installs without a question'
lacks "$log" sudo 'root needs no sudo'
export APT_RESULT=100 && rm -rf "$room/a tree/build" && start train
returned 1 'apt fails' && holds "$room/err" 'apt could not install' 'apt fails'
unset APT_RESULT && USER_ID=1000 && start train
holds "$log" 'sudo apt-get install' 'sudo that asks nothing is used'
export SUDO_RESULT=1 && rm -rf "$room/a tree/build" && start train
holds "$room/err" 'no terminal to ask' 'sudo with a password needs a terminal'
lacks "$log" apt-get 'and changes nothing'
unset SUDO_RESULT && rm "$room/bin/sudo" && start train
holds "$room/err" 'ask an administrator' 'no sudo'
rm "$room/bin/apt-get" && start train
returned 1 'no apt-get' && holds "$room/err" 'no apt-get' 'no apt-get'

plant && start test --fast -R 'some name'
returned 0 'tests pass' && holds "$room/err" 'all tests passed' 'tests pass'
holds "$log" '-L fast -R some name' 'options reach ctest'
lacks "$log" '--target' 'test builds everything'
lacks "$log" 'long' 'options leave no label out'
: >"$log" && start test
holds "$log" '-LE long' 'without options the long rows of the scorecard are left out' && holds "$room/err" '--all runs them' 'and this is said'
: >"$log" && start test --all && lacks "$log" 'long' 'all is all'
: >"$log" && export CI=1 && start test && lacks "$log" 'long' 'CI runs all'
unset CI
start test --scorecard L1,L2 --json
returned 3 'the scorecard' && lacks "$log" ctest 'the scorecard is no ctest'
[ "$(sed 1d "$room/out" | tr '\n' ' ')" = '[--long] [L1,L2] [--json] ' ] || say "words of the scorecard: $(cat "$room/out")"
export CTEST_RESULT=8 && start test
returned 1 'tests fail' && holds "$room/err" 'a test failed' 'tests fail'
unset CTEST_RESULT && export HEED_PRESET=dev && start test
holds "$log" 'cmake --preset dev' 'another preset'
plant && rm "$room/bin/strace" && start train && lacks "$log" strace 'strace is for tests only'
plant && rm "$room/bin/strace" && start test && holds "$log" '--no-install-recommends strace' 'tests install strace'
exit $bad
