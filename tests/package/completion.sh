#!/bin/bash
# completion.sh PROGRAM: what bash, and zsh where it is installed, complete after heed. 1 for a fault.
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
expect 'heed runs ' rename remove no:hello.toml
expect 'heed runs remove ' hello.toml
expect 'heed list attention ' softmax no:hello.toml

"$1" list commands --completion zsh >"$here/_heed"
command -v zsh >/dev/null || { echo 'there is no zsh: its completion is not tested' && exit $bad; }
zsh -f <<'END' || bad=1
bad=0
# Found in a folder of functions, and read by source: both register it.
fpath=($PWD $fpath)
autoload -U compinit && compinit -D -u
[[ ${_comps[heed]} == _heed ]] || { echo "zsh: a file _heed in \$fpath is not found" && bad=1 }
unset '_comps[heed]' && source ./_heed
[[ ${_comps[heed]} == _heed ]] || { echo "zsh: source registers nothing" && bad=1 }
compadd() { [[ $1 != -- ]] || shift; offered+=("$@") }
_describe() { offered+=("${(@)${(P@)2}%%:*}") }
_files() { offered+=(FILES) }
expect() { # WHAT IS TYPED, words that must be offered; one with no: in front must not be
  words=("${(@s: :)1}") CURRENT=${#words} offered=()
  [[ $1 != *' ' ]] || { words[-1]='' }
  _heed && shift
  for wanted; do
    if [[ $wanted == no:* ]]; then
      (( ! ${offered[(Ie)${wanted#no:}]} )) || { echo "zsh, after '$words': ${wanted#no:} is offered" && bad=1 }
    else
      (( ${offered[(Ie)$wanted]} )) || { echo "zsh, after '$words': $wanted is not in: $offered" && bad=1 }
    fi
  done
}
expect 'heed ' train translate list --version
expect 'heed train ' translate mnist FILES
expect 'heed train translate --' --learning-rate --fast-dev-run no:FILES
expect 'heed train translate --attention ' linear softmax no:FILES
expect 'heed train translate --device ' auto cpu cuda
expect 'heed evaluate run --' --checkpoint no:--learning-rate
expect 'heed evaluate ' FILES no:translate
expect 'heed runs ' rename remove no:FILES
expect 'heed list attention ' softmax no:FILES
exit $bad
END
exit $bad
