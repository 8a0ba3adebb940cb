#!/bin/sh
# run_pages.sh passes pages whose examples hold, and finds each fault it is made for.
set -eu
here=$(cd "$(dirname -- "$0")" && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
bad=0
mkdir -p "$tree/docs/tutorials" "$tree/docs/how-to" "$tree/tests/docs"
cp "$here/heed_wrapper.sh" "$tree/tests/docs/"
printf '#!/bin/sh\necho "$*" >>calls\n[ "$1" != wrong ]\n' >"$tree/program" && chmod +x "$tree/program"
printf 'int main() {\n  return 0;\n}\n' >"$tree/main.cpp"

expect() { # RESULT WORD: of the page on standard input
  cat >"$tree/docs/how-to/page.md"
  answer=$(sh "$here/run_pages.sh" "$tree" "$tree/program" docs/how-to/page.md 2>&1) && result=0 || result=$?
  if [ "$result" != "$1" ] || ! echo "$answer" | grep -qF "$2"; then
    echo "result $result instead of $1 with '$2': $answer" && bad=1
  fi
}

printf '```sh\n./heed right\n```\n```console\n$ ./heed right\nwrong\n```\n' | expect 0 '2 examples run, 0 skipped'
printf '```sh\n./heed wrong\n```\n' | expect 1 'docs/how-to/page.md:1: the example fails'
printf 'words\n\n```console\n$ ./heed wrong\n```\n' | expect 1 'docs/how-to/page.md:3: the example fails'
printf '```sh\n./heed wrong\n./heed right\n```\n' | expect 1 'the example fails'
printf '```sh\n./heed right\n```\n<!-- not run: a reason -->\n```sh\n./heed wrong\n```\n' | expect 0 '1 examples run, 1 skipped'
printf '<!-- not run: a reason -->\nwords\n```sh\n./heed wrong\n```\n' | expect 1 'the example fails'
printf '```sh\n./heed train lm --steps 500\ngrep -q "^train lm --steps 2 " calls\n```\n' | expect 0 '1 examples'
printf '```sh\n./heed train lm --fast-dev-run\n./heed train recall --dry-run\n! grep -q -- "--steps" calls\n```\n' | expect 0 '1 examples'
printf '```sh\n./heed resume runs/a\ngrep -qx "resume runs/a" calls\n```\n' | expect 0 '1 examples'
printf '<!-- from main.cpp -->\n```cpp\n  return 0;\n}\n```\n' | expect 0 '1 examples'
printf '<!-- from main.cpp -->\n```cpp\n  return 1;\n}\n```\n' | expect 1 'no part of main.cpp'
printf '```cpp\nint x;\n```\n' | expect 1 'no <!-- from FILE -->'
printf '<!-- built by main.cpp -->\n```cpp\nint x;\n```\n' | expect 1 'does not build the block'
printf '```sh\n./heed right\n```\n<!-- run with a.gguf b.txt -->\n```sh\n./heed wrong\n```\n' | expect 0 '1 examples run, 1 skipped'
mkdir "$tree/files" && touch "$tree/files/a.gguf"
export HEED_PAGE_FILES="$tree/files"
printf '```sh\n./heed right\n```\n<!-- run with a.gguf b.txt -->\n```sh\n./heed wrong\n```\n' | expect 0 '1 examples run, 1 skipped'
printf '<!-- run with a.gguf -->\n```sh\n./heed right\ntest -e a.gguf\n```\n' | expect 0 '1 examples run, 0 skipped'
printf '<!-- run with a.gguf -->\n```sh\n./heed wrong\n```\n' | expect 1 'the example fails'
printf 'words\n' | expect 1 'there is no example'
exit $bad
