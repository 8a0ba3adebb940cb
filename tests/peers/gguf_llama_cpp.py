# A language model of Heed, through `heed export --as gguf`, in llama.cpp: prompts are continued greedily by the same text.
#   gguf_llama_cpp.py HEED RUN PROMPT...    RUN: a folder of a LLaMA-shaped model; at most --new tokens follow each prompt
# 77: the package llama-cpp-python, which builds llama.cpp from its source, is missing.
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import llama_cpp
    import numpy as np
except ImportError as error:
    print(f'skipped: {error}')
    sys.exit(77)


def heed(*words):
    done = subprocess.run(words, capture_output=True, encoding='utf-8', errors='replace', check=False)
    if done.returncode:
        sys.exit(f'{" ".join(words)}: {done.stderr}')
    return done.stdout


def continued(model, prompt, count):
    """The prompt with its greedy continuation by llama.cpp, up to the end token, and the smallest lead of a chosen logit."""
    ids = model.tokenize(prompt.encode(), add_bos=False, special=False)
    if len(ids) + count > model.n_ctx():
        sys.exit(f'{prompt!r}: {len(ids)} tokens and {count} new ones, and the model reads {model.n_ctx()}. Give a smaller --new.')
    model.reset()
    model.eval(ids)
    lead = float('inf')
    for _ in range(count):
        logits = np.array(model.scores[model.n_tokens - 1])
        second, first = np.partition(logits, -2)[-2:]
        lead = min(lead, float(first - second))
        if int(logits.argmax()) == model.token_eos():
            break
        ids.append(int(logits.argmax()))
        model.eval(ids[-1:])
    return model.detokenize(ids).decode('utf-8', 'replace'), lead


def main():
    parser = argparse.ArgumentParser(description='Holds heed export --as gguf to llama.cpp.')
    parser.add_argument('heed')
    parser.add_argument('run')
    parser.add_argument('prompts', nargs='+')
    parser.add_argument('--new', type=int, default=128, help='tokens behind each prompt')
    parser.add_argument('--checkpoint', default='best')
    args = parser.parse_args()
    program = os.path.abspath(args.heed)
    failed = False
    with tempfile.TemporaryDirectory() as room:
        file = str(pathlib.Path(room) / 'model.gguf')
        heed(program, 'export', args.run, '--checkpoint', args.checkpoint, '--as', 'gguf', '--out', file)
        model = llama_cpp.Llama(file, n_ctx=0, logits_all=True, verbose=False)
        for prompt in args.prompts:
            ours = heed(program, 'generate', args.run, '--checkpoint', args.checkpoint, '--prompt', prompt, '--temperature', '0',
                        '--max-new-tokens', str(args.new))
            theirs, lead = continued(model, prompt, args.new)
            same = ours == theirs + '\n'
            failed = failed or not same
            print(f'{prompt!r}, up to {args.new} greedy tokens: ' +
                  (f'the same; no token led by less than {lead:.1e}' if same else f'FAILED: {ours!r} here, {theirs!r} there'))
    sys.exit(1 if failed else 0)


main()
