#!/bin/sh
# ./heed of the pages' examples: the program, with short trainings on little data. Everything else goes through as it stands.
set -eu
command=${1-}
[ $# -eq 0 ] || shift
case $command in
  train | compare | resume)
    most=2 task=none steps= left=$#
    [ "$command" != resume ] || most=4
    case ${1-} in *.toml) task=$(sed -n 's/^task *= *"\(.*\)"/\1/p' "$1") ;; *) task=${1-translate} ;; esac
    while [ $left -gt 0 ]; do # --steps N is N, and at most $most
      word=$1 && shift && left=$((left - 1))
      case $word in
        --dry-run | --fast-dev-run) most=0 ;;
        --steps)
          steps=$1 && shift && left=$((left - 1))
          [ "$most" = 0 ] || [ "$steps" -le $most ] || steps=$most
          set -- "$@" --steps && word=$steps
          ;;
      esac
      set -- "$@" "$word"
    done
    [ -n "$steps" ] || [ $most = 0 ] || [ "$command" = resume ] || set -- "$@" --steps $most
    if [ "$command" != resume ]; then
      case $task in
        translate*) set -- "$@" --set data.num_examples=600 --set data.validation=20 --set data.test_size=20 --set data.bleu_pairs=2 ;;
        lm | shakespeare* | wikitext2) set -- "$@" --set data.num_examples=20000 --set data.eval_batches=1 ;;
        mnist*) set -- "$@" --set data.num_examples=200 --set data.test_size=50 ;;
        recall) set -- "$@" --set data.validation=50 --set data.test_size=50 ;;
      esac
    fi
    ;;
esac
exec "$HEED_PROGRAM" ${command:+"$command"} "$@"
