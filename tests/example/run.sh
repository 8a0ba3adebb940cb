#!/bin/sh
# Runs one example of docs/tutorials as its page does, and looks at what it leaves: run.sh NAME PROGRAM SOURCES HEED
set -eu
name=$1 program=$2 sources=$3 heed=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fault() { echo "$name: $*" && exit 1; }
at_least() { # LINE BOUND: does the number behind the line's first word reach the bound?
  echo "$1" | awk -v bound="$2" '{ exit !($2 >= bound) }' || fault "printed '$1', and it should reach $2"
}

case $name in
  training_loop)
    said=$("$program")
    echo "$said" | grep -q 'step 200  loss [12][.]' || fault "it does not come to a loss below 3 in 200 steps: $said"
    grep -q '<svg' map.svg && grep -q '</svg>' map.svg || fault "map.svg is no picture"
    ;;
  own_program)
    "$program" list tasks | grep -q commonest || fault "heed list tasks lacks the task"
    [ "$("$program" count abba)" = "$(printf 'a 2\nb 2\nc 0\nd 0')" ] || fault "its own command does not count"
    "$program" train commonest --quiet --steps 4 >train.log 2>&1 || fault "heed train does not train its task: $(cat train.log)"
    ;;
  csv_classifier)
    said=$("$program" "$sources/plants.csv")
    at_least "$said" 0.9
    [ -s plants.safetensors ] || fault "no weights were saved"
    ;;
  own_attention)
    said=$("$program" run)
    echo "$said" | awk '{ exit !($2 > 1 && $2 < 20) }' || fault "printed '$said', no perplexity below 20"
    for file in run/metrics.jsonl run/tb run/ckpt/best.json run/config.toml; do
      [ -e "$file" ] || fault "there is no $file"
    done
    grep -q valid_perplexity run/metrics.jsonl || fault "the metrics lack the perplexity"
    [ "$("$program" run)" = "$said" ] || fault "called again, it does not say '$said'"
    ;;
  reversal_maps)
    said=$("$program" cross.svg)
    at_least "$said" 0.9
    grep -q '<svg' cross.svg && grep -q '</svg>' cross.svg || fault "cross.svg is no picture"
    ;;
  trace_heads)
    said=$("$program")
    [ "$(echo "$said" | grep -c 'head [0-3]$')" = 12 ] || fault "it does not name 12 heads: $said"
    # the digit gets across by cross-attention: the head that brings most back is there, and brings 30 % or more
    echo "$said" | sed -n 's/^ *\([-0-9]*\) %  /\1 /p' | sort -rn | head -n 1 | grep -qE '^([3-9][0-9]|[1-9][0-9][0-9]) .*cross' ||
      fault "no head of the cross-attention brings back most, and 30 %: $said"
    ;;
  heads_of_own_model)
    said=$("$program")
    echo "$said" | awk '
      $2 == "induction" { heads++; if ($1 ~ /^layers.1/ && $3 > 0.5) induction++; if ($1 ~ /^layers.0/ && $3 > 0.1) wrong++ }
      $1 ~ /^layers.0/ && $5 > 0.5 { previous++; if ($9 < 0.5) wrong++ } # the loss is greater without it
      { loss[$0 ~ /not/ ? "not" : "all", $0 ~ /ablated|patched/ ? "edited" : "whole"] = $NF }
      END {
        exit !(heads == 8 && induction > 0 && previous > 0 && !wrong && loss["all", "whole"] < 1 && loss["all", "edited"] > 2 &&
               loss["not", "whole"] > 3 && loss["not", "edited"] < 1)
      }' || fault "no induction heads that carry the repetition: $said"
    ;;
  translate)
    "$heed" train translate --quiet --name tiny --steps 4 --set data.num_examples=300 --set data.validation=12 \
      --set data.test_size=8 --set data.bleu_pairs=2 --set model.d_model=16 --set model.heads=2 --set model.d_ff=16 \
      --set train.batch_tokens=200 >train.log 2>&1 || fault "no run: $(cat train.log)"
    printf 'Anna reads the book.\n\nThe dog runs.\n' >lines
    "$program" runs/tiny <lines >said
    "$heed" translate runs/tiny --beam-size 4 <lines >known
    cmp -s said known || fault "it writes '$(cat said)', heed translate '$(cat known)'"
    ! "$program" nowhere <lines 2>why || fault "a folder that is no run is accepted"
    grep -q 'there is no run nowhere' why || fault "it says '$(cat why)'"
    ;;
  own_op)
    said=$("$program")
    echo "$said" | grep -q '^gradcheck: passed;.* 60 elements compared' || fault "its gradient is not checked: $said"
    echo "$said" | grep -q 'step 300  loss 0[.][0-4]' || fault "it does not learn which digit is marked: $said"
    ;;
  own_scores)
    said=$("$program")
    echo "$said" | grep -q '^gradcheck: passed;.* 648 elements compared' || fault "its gradient is not checked: $said"
    echo "$said" | grep -q 'step 150  loss 0[.]0' || fault "it does not learn the name of each document: $said"
    echo "$said" | awk '/^documents: / { seen = $2 > 4 && $NF < 1e-4 } END { exit !seen }' ||
      fault "a document depends on those beside it: $said"
    ;;
  vision_transformer)
    said=$("$program" run)
    at_least "$said" 0.9
    [ "$("$program" run)" = "$said" ] || fault "called again, it does not say '$said'"
    ;;
  llama)
    said=$("$program")
    echo "$said" | grep -q 'step 400  loss [01][.]' || fault "it does not come to a loss below 2: $said"
    echo "$said" | tail -n 2 | grep -q '^The .\{20\}' || fault "it writes no text: $said"
    ;;
  two_towers)
    said=$("$program")
    at_least "$said" 0.6
    ;;
  *) fault "there is no such example" ;;
esac
