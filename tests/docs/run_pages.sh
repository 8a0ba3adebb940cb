#!/bin/sh
# Runs every example of docs/tutorials and docs/how-to: run_pages.sh ROOT PROGRAM [PAGE ...]. 1 for a fault, which names page and line.
#   ```sh, ```console   its commands run, each page in a scratch folder of its own; of a console block, the lines after "$ "
#   ```cpp, ```cmake    are a part of the file that <!-- from FILE --> above the block names, or are built: <!-- built by FILE -->
# <!-- not run: REASON --> above a block skips it. <!-- run with FILE ... --> runs it where the folder HEED_PAGE_FILES has these
# files, which then lie in the scratch folder. ./heed is a wrapper that shortens what the page starts: see heed_wrapper.sh.
set -eu
root=$(cd "$1" && pwd)
HEED_PROGRAM=$(readlink -f -- "$2")
export HEED_PROGRAM
files=
if [ -n "${HEED_PAGE_FILES-}" ]; then files=$(cd "$HEED_PAGE_FILES" && pwd); fi
shift 2
unset HEED_DATA HEED_CACHE 2>/dev/null || true
here=$root/tests/docs
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
bad=0 run=0 skipped=0

npy() { # FILE SHAPE NUMBERS: a NumPy file of small floats
  header="{'descr': '<f4', 'fortran_order': False, 'shape': ($2), }"
  printf '\223NUMPY\001\000\166\000%-117s\n' "$header" >"$1"
  i=0
  while [ $i -lt "$3" ]; do # 0.1 and -0.2 in turn
    printf '\315\314\314\075\315\314\114\276' && i=$((i + 2))
  done >>"$1"
}

own_files() { # what a page calls the reader's own: sentence pairs, texts, tensors
  awk 'BEGIN { for (i = 0; i < 1500; ++i) printf "I have %d red books .\tHo %d libri rossi .\n", i, i }' >pairs.tsv
  awk 'BEGIN { for (i = 0; i < 300; ++i) print "Line " i " of a text. The quick brown fox jumps over the lazy dog." }' >text.txt
  for name in valid test; do cp text.txt $name.txt; done
  for name in q k v g; do npy $name.npy "1, 2, 16, 8" 256; done
}

blocks() { # PAGE: its blocks as files NUMBER.KIND, the first line of each in NUMBER.line, the comment above in NUMBER.note
  awk -v to="$2" '
    /^<!--.*-->$/ && !inside { note = $0; next }
    /^```/ && !inside { inside = 1; kind = substr($0, 4); ++n; print FNR > (to "/" n ".line"); print note > (to "/" n ".note")
      file = to "/" n "." (kind == "" ? "text" : kind); printf "" > file; next }
    /^```$/ && inside { inside = 0; note = ""; close(file); next }
    inside && kind == "console" { if (sub(/^\$ /, "")) print > file; next }
    inside { print > file; next }
    /./ { note = "" }
    END { print n + 0 > (to "/count") }' "$1"
}

part_of() { # BLOCK FILE: are the lines of the block a part of the file?
  awk 'NR == FNR { block[NR] = $0; size = NR; next } { line[FNR] = $0; lines = FNR }
    END {
      for (at = 0; at + size <= lines; ++at) {
        for (i = 1; i <= size && block[i] == line[at + i]; ++i);
        if (i > size) exit 0
      }
      exit 1
    }' "$1" "$2"
}

has_files() { # NOTE FOLDER: does the folder have the files that <!-- run with FILE ... --> names?
  for name in $(echo "$1" | sed 's/^<!-- run with \(.*\) -->$/\1/'); do [ -e "$2/$name" ] || return 1; done
}

fault() { echo "$*" && bad=1; }

page() { # PAGE, relative to ROOT
  folder=$scratch/$(basename "$1" .md) && mkdir -p "$folder/blocks" "$folder/work"
  blocks "$root/$1" "$folder/blocks"
  cp "$here/heed_wrapper.sh" "$folder/work/heed"
  (cd "$folder/work" && own_files)
  [ -z "$files" ] || for file in "$files"/*; do ln -sf "$file" "$folder/work/"; done
  number=0
  while [ $number -lt "$(cat "$folder/blocks/count")" ]; do
    number=$((number + 1))
    line=$(cat "$folder/blocks/$number.line") note=$(cat "$folder/blocks/$number.note")
    block=$(ls "$folder/blocks/$number".* | grep -vE '\.(line|note)$')
    case $block in
      *.sh | *.console)
        seconds=120
        case $note in
          '<!-- not run: '?*) skipped=$((skipped + 1)) && continue ;;
          '<!-- run with '?*) # models of real size
            seconds=900
            has_files "$note" "$folder/work" || { skipped=$((skipped + 1)) && continue; } ;;
        esac
        run=$((run + 1))
        (cd "$folder/work" && PS4='$ ' timeout $seconds sh -eux "$block" </dev/null >"$block.out" 2>&1) ||
          fault "$1:$line: the example fails: $(tail -n 12 "$block.out")"
        ;;
      *.cpp | *.cmake)
        file=$(echo "$note" | sed -n 's/^<!-- \(from\|built by\) \([^ ]*\) -->$/\2/p')
        if [ -z "$file" ] || [ ! -f "$root/$file" ]; then
          fault "$1:$line: no <!-- from FILE --> or <!-- built by FILE --> above the block"
          continue
        fi
        run=$((run + 1))
        case $note in
          *from*) part_of "$block" "$root/$file" || fault "$1:$line: the block is no part of $file" ;;
          *) grep -qF "$1" "$root/$file" || fault "$1:$line: $file does not build the block" ;;
        esac
        ;;
    esac
  done
}

cd "$root"
[ $# -gt 0 ] || set -- docs/tutorials/*.md docs/how-to/*.md
for name; do page "$name"; done
echo "$run examples run, $skipped skipped"
[ $run -gt 0 ] || fault "there is no example"
exit $bad
