#!/bin/bash
# completion.sh PROGRAM: what bash completes after heed. 1 for a fault.
set -eu
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
"$1" list commands --completion >"$here/heed"
cd "$here" && touch hello.toml
complete() { :; } # of bash, which has no use without a terminal
# shellcheck disable=SC1091
source ./heed
bad=0
expect() { # WHAT IS TYPED, words that must be offered; a word with - in front must not be
  read -r -a COMP_WORDS <<<"$1"
  [[ $1 != *' ' ]] || COMP_WORDS+=('')
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
  shift
  _heed || true
  for wanted; do
    if [[ $wanted == no:* ]]; then
      [[ " ${COMPREPLY[*]} " != *" ${wanted#no:} "* ]] || { echo "after '${COMP_WORDS[*]}': ${wanted#no:} is offered" && bad=1; }
    else
      [[ " ${COMPREPLY[*]} " == *" $wanted "* ]] || { echo "after '${COMP_WORDS[*]}': $wanted is not in: ${COMPREPLY[*]}" && bad=1; }
    fi
  done
}
expect 'heed ' train translate list
expect 'heed tra' train translate no:list
expect 'heed train ' translate mnist hello.toml
expect 'heed train tran' translate no:mnist
expect 'heed train translate --learn' --learning-rate
expect 'heed train translate --attention lin' linear linformer no:softmax
expect 'heed train translate --device ' auto cpu cuda
expect 'heed evaluate hel' hello.toml
expect 'heed evaluate run --che' --checkpoint
exit $bad
