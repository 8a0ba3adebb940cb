# Folders of Hugging Face's Transformers in and out. In: a LLaMA of the package transformers with random weights, tied and
# untied, and a tokenizer of its own through `heed import`: the attention maps and 40 greedy tokens are the same. Out: a model of
# LLaMA's shape and one of GPT-2's that Heed trained through `heed export --as huggingface`: the tokens of a text are the same,
# and its loss is that of `heed evaluate`.
#   huggingface_folders.py HEED TEXT    TEXT: a file to learn tokenizers and models from
# 77: a package is missing.
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
except ImportError as error:
    print(f'skipped: {error}')
    sys.exit(77)

PROMPT = "The animal didn't cross the street, because it was too tired:\n  1,024 caffè"
WINDOW = 256  # tokens of the trained models' texts: the scored one is a window and the token behind it
SHAPES = {
    'llama': '--activation swiglu --norm-scale rms --position rope --kv-heads 2 --position-base 20000 --attention-bias false '
             '--feed-forward-bias false --output-bias false --tie-embeddings none --scale-embedding false',
    'gpt2': '--activation gelu_tanh --position learned --attention-bias true --feed-forward-bias true --output-bias false '
            '--tie-embeddings output --scale-embedding false',
}


def made(folder, text, is_tied):
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    bpe.decoder = decoders.ByteLevel()
    bpe.train([text], trainers.BpeTrainer(vocab_size=600, special_tokens=['<|endoftext|>'], show_progress=False,
                                          initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bpe, bos_token='<|endoftext|>', eos_token='<|endoftext|>')
    torch.manual_seed(1)
    config = LlamaConfig(vocab_size=bpe.get_vocab_size(), hidden_size=48, intermediate_size=80, num_hidden_layers=3, num_attention_heads=4,
                         num_key_value_heads=2, max_position_embeddings=128, rope_parameters={'rope_type': 'default', 'rope_theta': 20000.0},
                         rope_theta=20000.0, initializer_range=0.3, tie_word_embeddings=is_tied, bos_token_id=0, eos_token_id=0,
                         attn_implementation='eager')
    model = LlamaForCausalLM(config).eval()
    for weight in model.parameters():  # the scales of norms begin at 1: that would hide a mistake
        if weight.dim() == 1:
            torch.nn.init.normal_(weight.data, 1.0, 0.2)
    model.save_pretrained(folder, safe_serialization=True)
    tokenizer.save_pretrained(folder)
    return model, tokenizer


class Judge:
    """Runs heed in one folder and keeps whether a check failed."""

    def __init__(self, heed, text, room):
        self.program, self.text, self.room, self.failed = os.path.abspath(heed), os.path.abspath(text), room, False

    def heed(self, *words):
        done = subprocess.run([self.program, *words], cwd=self.room, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f'heed {" ".join(words)}: {done.stderr}')
        return done.stdout

    def check(self, what, holds, numbers):
        self.failed = self.failed or not holds
        print(f'{what}: {numbers}{"" if holds else "  FAILED"}')

    def goes_in(self, is_tied):
        kind = 'tied' if is_tied else 'untied'
        model, tokenizer = made(self.room / kind, self.text, is_tied)
        self.heed('import', kind, '--name', kind)
        self.heed('inspect', f'runs/{kind}', PROMPT, '--out', f'maps-{kind}')
        ids = tokenizer(PROMPT, return_tensors='pt').input_ids
        theirs = model(ids, output_attentions=True).attentions
        after = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=40, do_sample=False, pad_token_id=0)[0][ids.shape[1]:]
        apart = max(float(np.abs(np.load(self.room / f'maps-{kind}' / f'decoder-self-{layer}.npy') - weights[0].numpy()).max())
                    for layer, weights in enumerate(theirs))
        self.check(f'in, {kind}, {len(theirs)} layers of maps of {ids.shape[1]} tokens', apart <= 1e-5, f'{apart:.2e} apart, at most 1e-05')
        wanted = tokenizer.decode(after)
        said = self.heed('generate', f'runs/{kind}', '--prompt', PROMPT, '--max-new-tokens', '40', '--temperature', '0')
        same = len(wanted.strip()) > 20 and wanted.strip() in said
        self.check(f'in, {kind}, {len(after)} greedy tokens', same, 'the same' if same else f'{said!r} here, {wanted!r} there')

    def goes_out(self, shape):
        self.heed('train', 'lm', '--data', self.text, '--tokenizer', 'byte_pair', '--vocabulary', '600', '--d-model', '48', '--heads', '4',
                  '--layers', '3', '--d-ff', '96', '--max-length', str(WINDOW), '--steps', '20', '--batch-size', '2', '--name', shape, '--quiet',
                  *SHAPES[shape].split())
        self.heed('export', f'runs/{shape}', '--as', 'huggingface', '--out', shape)
        model, tokenizer = AutoModelForCausalLM.from_pretrained(self.room / shape).eval(), AutoTokenizer.from_pretrained(self.room / shape)
        self.check(f'out, {shape}, the class', type(model).__name__ == {'llama': 'LlamaForCausalLM', 'gpt2': 'GPT2LMHeadModel'}[shape], type(model).__name__)
        content = open(self.text, 'rb').read()[:20 * WINDOW].decode('utf-8', 'ignore')
        text = next(content[:end] for end in range(WINDOW, len(content)) if len(tokenizer(content[:end]).input_ids) == WINDOW + 1)
        (self.room / 'scored.txt').write_text(text)
        ids = tokenizer(text, return_tensors='pt').input_ids
        same = tokenizer.decode(ids[0]) == text
        self.check(f'out, {shape}, {ids.shape[1]} tokens decoded', same, 'the text' if same else 'another text')
        scored = json.loads(self.heed('evaluate', f'runs/{shape}', '--data', 'scored.txt', '--json'))
        loss = float(torch.nn.functional.cross_entropy(model(ids[:, :-1]).logits[0].double(), ids[0, 1:]))
        apart = abs(scored['loss'] - loss) / loss
        self.check(f'out, {shape}, loss of {ids.shape[1] - 1} tokens, {loss:.6f} nats there', apart <= 1e-5, f'{apart:.2e} apart, at most 1e-05')


def main():
    parser = argparse.ArgumentParser(description='Holds heed import and heed export of folders to transformers.')
    parser.add_argument('heed')
    parser.add_argument('text')
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as room, torch.no_grad():
        judge = Judge(args.heed, args.text, pathlib.Path(room))
        for is_tied in (True, False):
            judge.goes_in(is_tied)
        for shape in SHAPES:
            judge.goes_out(shape)
        sys.exit(1 if judge.failed else 0)


main()
