# A LLaMA in a GGUF file, through `heed import` and in plain PyTorch on the same numbers: attention maps of all heads, greedy
# text, and the loss of a text are the same; with the package tokenizers, the number of its tokens, too.
#   llama_gguf_torch.py HEED MODEL.gguf TEXT    TEXT: a file; its first --bytes are scored
# 77: a package is missing.
import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import torch
    from gguf import GGUFReader
    from gguf.quants import dequantize
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
except ImportError as error:
    print(f'skipped: {error}')
    sys.exit(77)

PROMPT = 'The capital of France is'


class Llama:
    """The formulas of LLaMA in float64, with rotations of neighbouring pairs as GGUF stores them."""

    def __init__(self, path):
        reader = GGUFReader(path)
        self.facts = {name: field.contents() for name, field in reader.fields.items()}
        self.weights = {t.name: torch.from_numpy(np.array(dequantize(t.data, t.tensor_type), dtype=np.float64)) for t in reader.tensors}
        self.heads = self.fact('attention.head_count')
        self.kv_heads = self.fact('attention.head_count_kv')
        self.epsilon = self.fact('attention.layer_norm_rms_epsilon')
        self.base = self.fact('rope.freq_base')

    def fact(self, name):
        return self.facts['llama.' + name]

    def norm(self, x, name):
        return x / torch.sqrt(x.square().mean(-1, keepdim=True) + self.epsilon) * self.weights[name]

    def rotated(self, x):
        """x [T, heads, d]: pair i turns by t base^(-2 i / d)."""
        length, _, d = x.shape
        angles = torch.arange(length, dtype=torch.float64)[:, None] * self.base ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
        sine, cosine = angles.sin()[:, None], angles.cos()[:, None]
        even, odd = x[..., 0::2], x[..., 1::2]
        return torch.stack((even * cosine - odd * sine, even * sine + odd * cosine), -1).flatten(-2)

    def __call__(self, ids):
        """Logits [T, V] and maps [heads, T, T] by layer."""
        x, maps = self.weights['token_embd.weight'][ids], []
        hidden = torch.ones(len(ids), len(ids)).triu(1).bool()
        for layer in range(self.fact('block_count')):
            name = f'blk.{layer}.'
            h = self.norm(x, name + 'attn_norm.weight')
            q, k, v = (h @ self.weights[f'{name}attn_{part}.weight'].T for part in 'qkv')
            q = self.rotated(q.view(len(ids), self.heads, -1))
            k = self.rotated(k.view(len(ids), self.kv_heads, -1)).repeat_interleave(self.heads // self.kv_heads, 1)
            v = v.view(len(ids), self.kv_heads, -1).repeat_interleave(self.heads // self.kv_heads, 1)
            scores = torch.einsum('qhd,khd->hqk', q, k) / math.sqrt(q.shape[-1])
            maps.append(scores.masked_fill(hidden, -math.inf).softmax(-1))
            x = x + torch.einsum('hqk,khd->qhd', maps[-1], v).flatten(1) @ self.weights[name + 'attn_output.weight'].T
            h = self.norm(x, name + 'ffn_norm.weight')
            gate, up = (h @ self.weights[f'{name}ffn_{part}.weight'].T for part in ('gate', 'up'))
            x = x + (torch.nn.functional.silu(gate) * up) @ self.weights[name + 'ffn_down.weight'].T
        table = self.weights.get('output.weight', self.weights['token_embd.weight'])
        return self.norm(x, 'output_norm.weight') @ table.T, maps

    def tokenizer(self):
        tokens = self.facts['tokenizer.ggml.tokens']
        merges = [tuple(merge.split(' ')) for merge in self.facts['tokenizer.ggml.merges']]
        out = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges))
        bytes_alone = pre_tokenizers.ByteLevel(add_prefix_space=False)
        digits = pre_tokenizers.Digits(individual_digits=True)
        is_smollm = self.facts['tokenizer.ggml.pre'] == 'smollm'
        out.pre_tokenizer = pre_tokenizers.Sequence([digits, bytes_alone]) if is_smollm else bytes_alone
        out.decoder = decoders.ByteLevel()
        return out


def main():
    parser = argparse.ArgumentParser(description='Holds heed import of a GGUF file to PyTorch.')
    parser.add_argument('heed')
    parser.add_argument('model')
    parser.add_argument('text')
    parser.add_argument('--bytes', type=int, default=6000, help='bytes of TEXT that are scored')
    parser.add_argument('--new', type=int, default=24, help='tokens of greedy text')
    args = parser.parse_args()
    theirs = Llama(args.model)
    tokenizer = theirs.tokenizer()
    content = open(args.text, 'rb').read()[:args.bytes].decode('utf-8', 'ignore')
    with tempfile.TemporaryDirectory() as room:
        room = pathlib.Path(room)

        def heed(*words):
            done = subprocess.run([os.path.abspath(args.heed), *words], cwd=room, capture_output=True, text=True, check=False)
            if done.returncode:
                sys.exit(f'heed {" ".join(words)}: {done.stderr}')
            return done.stdout

        scored_ids = tokenizer.encode(content).ids
        heed('import', os.path.abspath(args.model), '--name', 'ours', '--max-length', str(len(scored_ids) - 1))  # one window
        failed = False

        def check(what, apart, bound):
            nonlocal failed
            failed = failed or not apart <= bound
            print(f'{what}: {apart:.2e} apart, at most {bound:.0e}{"" if apart <= bound else "  FAILED"}')

        with torch.no_grad():
            ids = tokenizer.encode(PROMPT).ids
            heed('inspect', 'runs/ours', PROMPT, '--out', 'maps')
            _, maps = theirs(ids)
            apart = max(float(np.abs(np.load(room / 'maps' / f'decoder-self-{layer}.npy') - one.numpy()).max()) for layer, one in enumerate(maps))
            check(f'{len(maps)} x {theirs.heads} maps of {len(ids)} tokens', apart, 1e-4)

            wanted = list(ids)
            for _ in range(args.new):
                wanted.append(int(theirs(wanted)[0][-1].argmax()))
            said = heed('generate', 'runs/ours', '--prompt', PROMPT, '--max-new-tokens', str(args.new), '--temperature', '0')
            same = tokenizer.decode(wanted, skip_special_tokens=False).strip() in said
            failed = failed or not same
            print(f'{args.new} greedy tokens: {"the same" if same else f"{said!r} here, {tokenizer.decode(wanted)!r} there"}')

            (room / 'text.txt').write_text(content)
            scored = json.loads(heed('evaluate', 'runs/ours', '--data', 'text.txt', '--json'))
            logits, _ = theirs(scored_ids)
            loss = float(torch.nn.functional.cross_entropy(logits[:-1], torch.tensor(scored_ids[1:])))
            check(f'loss of {len(scored_ids) - 1} tokens, {loss:.6f} nats there', abs(scored['loss'] - loss) / loss, 1e-5)
        sys.exit(1 if failed else 0)


main()
