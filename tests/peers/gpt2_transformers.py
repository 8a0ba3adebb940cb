# A GPT-2 of the package transformers, with random weights and a tokenizer of its own, through `heed import`: the attention maps of all
# heads and 40 greedily generated tokens are the same.
#   gpt2_transformers.py HEED TEXT    TEXT: a file to learn the tokenizer from
# 77: transformers is missing.
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import torch
    from tokenizers import ByteLevelBPETokenizer
    from transformers import GPT2Config, GPT2LMHeadModel, GPT2Tokenizer
except ImportError as error:
    print(f'skipped: {error}')
    sys.exit(77)

PROMPT = "The animal didn't cross the street, because it was too tired:\n  1,024 caffè"


def made(folder, text):
    folder.mkdir()
    bpe = ByteLevelBPETokenizer()
    bpe.train([text], vocab_size=600, special_tokens=['<|endoftext|>'], show_progress=False)
    bpe.save_model(str(folder))
    torch.manual_seed(1)
    config = GPT2Config(vocab_size=bpe.get_vocab_size(), n_positions=128, n_embd=48, n_layer=3, n_head=4,
                        initializer_range=0.3, bos_token_id=0, eos_token_id=0)
    model = GPT2LMHeadModel(config).eval()
    for name, weight in model.named_parameters():  # biases and scales begin at 0 and 1: that would hide a mistake
        if weight.dim() == 1:
            torch.nn.init.normal_(weight.data, 1.0 if 'ln' in name and 'weight' in name else 0.0, 0.2)
    model.save_pretrained(folder, safe_serialization=True)
    tokenizer = GPT2Tokenizer(folder / 'vocab.json', folder / 'merges.txt')
    tokenizer.save_pretrained(folder)
    return model, tokenizer


def main():
    parser = argparse.ArgumentParser(description='Holds heed import to transformers.')
    parser.add_argument('heed')
    parser.add_argument('text')
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as room:
        room = pathlib.Path(room)
        model, tokenizer = made(room / 'theirs', os.path.abspath(args.text))

        def heed(*words):
            done = subprocess.run([os.path.abspath(args.heed), *words], cwd=room, capture_output=True, text=True, check=False)
            if done.returncode:
                sys.exit(f'heed {" ".join(words)}: {done.stderr}')
            return done.stdout

        heed('import', 'theirs', '--name', 'ours')
        heed('inspect', 'runs/ours', PROMPT, '--out', 'maps')
        ids = tokenizer(PROMPT, return_tensors='pt').input_ids
        with torch.no_grad():
            theirs = model(ids, output_attentions=True).attentions
            after = model.generate(ids, max_new_tokens=40, do_sample=False, pad_token_id=0)[0][ids.shape[1]:]
        apart = 0.0
        for layer, weights in enumerate(theirs):
            ours = np.load(room / 'maps' / f'decoder-self-{layer}.npy')
            if ours.shape != tuple(weights[0].shape):
                sys.exit(f'layer {layer}: maps are {ours.shape} here and {tuple(weights[0].shape)} there')
            apart = max(apart, float(np.abs(ours - weights[0].numpy()).max()))
        print(f'{len(theirs)} layers of maps of {ids.shape[1]} tokens: {apart:.2e} apart, at most 1e-05')
        wanted = tokenizer.decode(after)
        said = heed('generate', 'runs/ours', '--prompt', PROMPT, '--max-new-tokens', '40', '--temperature', '0')
        same = len(wanted.strip()) > 20 and wanted.strip() in said
        print(f'{len(after)} greedy tokens: {"the same" if same else f"{said!r} here, {wanted!r} there"}')
        sys.exit(0 if same and apart <= 1e-5 else 1)


main()
