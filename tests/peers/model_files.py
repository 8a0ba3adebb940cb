# Checkpoints of llm.c, llama2.c, nanoGPT and minGPT in and out. In: models with random weights and odd sizes, computed here in f64 and
# written here in each format, through `heed import`: the logits are the same. Out: `heed export` of these runs is read by NumPy
# and by torch.load(weights_only=True), and every tensor has the bits that went in.
#   model_files.py HEED [--nanogpt FOLDER] [--llm-c FOLDER] [--llama2-c FOLDER]
# HEED: the program in its build folder, beside libheed.a, against which model_logits.cpp is compiled. FOLDER: a checkout of
# karpathy/nanoGPT, llm.c or llama2.c, whose own code then writes or reads such a file, too. 77: a package is missing.
import argparse
import base64
import importlib.util
import json
import math
import os
import pathlib
import pickle
import shlex
import struct
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import torch
    from torch.nn import functional
except ImportError as error:
    print(f'skipped: {error}')
    sys.exit(77)

LIBRARIES = '-lopenblas -lcrypto -lpng -lz -lutf8proc -ldl -lsentencepiece -lsentencepiece_train -lpthread'
WITHIN = 1e-5  # of the largest logit


def normal(*shape, mean=0.0, std=0.3):
    return torch.randn(*shape) * std + mean


def gpt2_weights(layers, width, tokens, positions, has_biases=True):
    """The tensors of a GPT-2 by nanoGPT's names; matrices are [out, in]."""
    out = {'transformer.wte.weight': normal(tokens, width), 'transformer.wpe.weight': normal(positions, width)}

    def add(name, *shape):
        out[f'{name}.weight'] = normal(*shape, mean=1.0 if len(shape) == 1 else 0.0)
        if has_biases:
            out[f'{name}.bias'] = normal(shape[0])

    for layer in range(layers):
        block = f'transformer.h.{layer}'
        add(f'{block}.ln_1', width)
        add(f'{block}.attn.c_attn', 3 * width, width)
        add(f'{block}.attn.c_proj', width, width)
        add(f'{block}.ln_2', width)
        add(f'{block}.mlp.c_fc', 4 * width, width)
        add(f'{block}.mlp.c_proj', width, 4 * width)
    add('transformer.ln_f', width)
    return out


def attend(q, k, v):
    """Causal softmax attention of [heads, T, d]."""
    length = q.shape[1]
    scores = (q @ k.transpose(1, 2) / math.sqrt(q.shape[2])).masked_fill(torch.ones(length, length).triu(1).bool(), -torch.inf)
    return (scores.softmax(-1) @ v).transpose(0, 1).reshape(length, -1)


def gpt2_logits(weights, heads, ids, gelu):
    w = {name: x.double() for name, x in weights.items()}

    def norm(name, x):
        return functional.layer_norm(x, x.shape[-1:], w[f'{name}.weight'], w.get(f'{name}.bias'), 1e-5)

    def linear(name, x):
        return functional.linear(x, w[f'{name}.weight'], w.get(f'{name}.bias'))

    x = w['transformer.wte.weight'][ids] + w['transformer.wpe.weight'][:len(ids)]
    for layer in range(sum(name.endswith('ln_1.weight') for name in w)):
        block = f'transformer.h.{layer}'
        parts = linear(f'{block}.attn.c_attn', norm(f'{block}.ln_1', x)).chunk(3, -1)
        q, k, v = (part.reshape(len(ids), heads, -1).transpose(0, 1) for part in parts)
        x = x + linear(f'{block}.attn.c_proj', attend(q, k, v))
        hidden = functional.gelu(linear(f'{block}.mlp.c_fc', norm(f'{block}.ln_2', x)), approximate=gelu)
        x = x + linear(f'{block}.mlp.c_proj', hidden)
    return norm('transformer.ln_f', x) @ w.get('lm_head.weight', w['transformer.wte.weight']).T


LAYER_TENSORS = ('attention_norm', 'attention.wq', 'attention.wk', 'attention.wv', 'attention.wo', 'ffn_norm', 'feed_forward.w1',
                 'feed_forward.w2', 'feed_forward.w3')


def llama_weights(layers, width, hidden, heads, kv_heads, tokens, is_tied):
    """The tensors of a LLaMA by llama2.c's names."""
    keys = width // heads * kv_heads
    shapes = {'attention_norm': (width,), 'ffn_norm': (width,), 'attention.wq': (width, width), 'attention.wk': (keys, width),
              'attention.wv': (keys, width), 'attention.wo': (width, width), 'feed_forward.w1': (hidden, width),
              'feed_forward.w2': (width, hidden), 'feed_forward.w3': (hidden, width)}
    out = {'tok_embeddings.weight': normal(tokens, width), 'norm.weight': normal(width, mean=1.0)}
    for layer in range(layers):
        for name, shape in shapes.items():
            out[f'layers.{layer}.{name}.weight'] = normal(*shape, mean=1.0 if len(shape) == 1 else 0.0)
    if not is_tied:
        out['output.weight'] = normal(tokens, width)
    return out


def llama_logits(weights, heads, kv_heads, ids):
    w = {name: x.double() for name, x in weights.items()}
    x = w['tok_embeddings.weight'][ids]
    size = x.shape[1] // heads
    angles = torch.arange(len(ids)).double()[:, None] / 10000 ** (torch.arange(0, size, 2).double() / size)
    turns = torch.polar(torch.ones_like(angles), angles)

    def norm(name, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * w[f'{name}.weight']

    def turned(x, count):  # neighbouring numbers are a complex one
        pairs = torch.view_as_complex(x.reshape(len(ids), count, -1, 2).contiguous()) * turns[:, None]
        return torch.view_as_real(pairs).flatten(2).transpose(0, 1)

    for layer in range(sum(name.endswith('wq.weight') for name in w)):
        block = f'layers.{layer}'
        y = norm(f'{block}.attention_norm', x)
        q = turned(y @ w[f'{block}.attention.wq.weight'].T, heads)
        k = turned(y @ w[f'{block}.attention.wk.weight'].T, kv_heads).repeat_interleave(heads // kv_heads, 0)
        v = (y @ w[f'{block}.attention.wv.weight'].T).reshape(len(ids), kv_heads, -1).transpose(0, 1).repeat_interleave(heads // kv_heads, 0)
        x = x + attend(q, k, v) @ w[f'{block}.attention.wo.weight'].T
        y = norm(f'{block}.ffn_norm', x)
        gate = functional.silu(y @ w[f'{block}.feed_forward.w1.weight'].T)
        x = x + (gate * (y @ w[f'{block}.feed_forward.w3.weight'].T)) @ w[f'{block}.feed_forward.w2.weight'].T
    return norm('norm', x) @ w.get('output.weight', w['tok_embeddings.weight']).T


def raw(x):
    return x.contiguous().view(torch.uint8).numpy().tobytes() if x.dtype == torch.bfloat16 else x.contiguous().numpy().tobytes()


def llm_c_bytes(weights, heads, positions, dtype):
    tokens, width = weights['transformer.wte.weight'].shape
    layers = sum(name.endswith('ln_1.weight') for name in weights)
    padded = -(-tokens // 128) * 128
    header = [20240326, 3 if dtype == torch.float32 else 5, positions, tokens, layers, heads, width, padded]
    table = torch.cat([weights['transformer.wte.weight'], torch.zeros(padded - tokens, width)])
    order = [table, weights['transformer.wpe.weight']]
    for part in ('ln_1', 'attn.c_attn', 'attn.c_proj', 'ln_2', 'mlp.c_fc', 'mlp.c_proj'):
        for suffix in ('weight', 'bias'):
            order += [weights[f'transformer.h.{layer}.{part}.{suffix}'] for layer in range(layers)]
    order += [weights['transformer.ln_f.weight'], weights['transformer.ln_f.bias']]
    return struct.pack('<256i', *header, *[0] * 248) + b''.join(raw(x.to(dtype)) for x in order)


def llama2_c_bytes(weights, heads, kv_heads, positions, version):
    tokens, width = weights['tok_embeddings.weight'].shape
    layers = sum(name.endswith('wq.weight') for name in weights)
    is_tied = 'output.weight' not in weights
    sizes = [width, weights['layers.0.feed_forward.w1.weight'].shape[0], layers, heads, kv_heads,
             -tokens if version == 0 and not is_tied else tokens, positions]

    def of(name):
        return [weights[f'layers.{layer}.{name}.weight'] for layer in range(layers)]

    table, norm, last = [weights['tok_embeddings.weight']], [weights['norm.weight']], [] if is_tied else [weights['output.weight']]
    if version == 0:
        order = table + [x for name in LAYER_TENSORS for x in of(name)] + norm + [torch.zeros(2 * positions, width // heads // 2)] + last
        return struct.pack('<7i', *sizes) + b''.join(map(raw, order))
    names = ('attention.wq', 'attention.wk', 'attention.wv', 'attention.wo', 'feed_forward.w1', 'feed_forward.w2', 'feed_forward.w3')
    order = of('attention_norm') + of('ffn_norm') + norm + table + [x for name in names for x in of(name)] + last
    return (struct.pack('<Ii7iB', 0x616b3432, 1, *sizes, is_tied)).ljust(256, b'\0') + b''.join(map(raw, order))


def module_of(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(pathlib.Path(path).parent))
    spec.loader.exec_module(module)
    sys.path.pop(0)
    return module


class Judge:
    """Runs heed in one folder and keeps whether a check failed."""

    def __init__(self, heed, room):
        self.program, self.room, self.failed = os.path.abspath(heed), room, False
        here, build = pathlib.Path(__file__).resolve().parent, pathlib.Path(self.program).parent
        subprocess.run(['g++', '-std=c++20', '-O1', f'-I{here.parents[1] / "include"}', here / 'model_logits.cpp', build / 'libheed.a',
                        *shlex.split(LIBRARIES), '-o', room / 'model_logits'], check=True)

    def run(self, *words):
        done = subprocess.run([*map(str, words)], cwd=self.room, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f'{" ".join(map(str, words))}: {done.stdout}{done.stderr}')
        return done.stdout

    def check(self, what, holds, numbers):
        self.failed = self.failed or not holds
        print(f'{what}: {numbers}{"" if holds else "  FAILED"}')

    def goes_in(self, name, content, ids, wanted):
        """Imports a file and compares the logits of a text."""
        if content is not None:
            (self.room / name).write_bytes(content)
        self.run(self.program, 'import', name, '--name', name)
        self.run('./model_logits', f'runs/{name}', 'logits.npy', *ids.tolist())
        made = np.load(self.room / 'logits.npy')[0].astype(np.float64)
        apart = float(np.abs(made - wanted.numpy()).max() / wanted.abs().max())
        self.check(f'in, {name}, {made.shape[0]} x {made.shape[1]} logits', apart <= WITHIN, f'{apart:.1e} apart of the largest, at most {WITHIN:.0e}')

    def goes_out(self, name, form):
        self.run(self.program, 'export', f'runs/{name}', '--as', form, '--out', f'{name}.out')
        return self.room / f'{name}.out'

    def comes_again(self, name):
        """The exported file, imported, is the same weights."""
        self.run(self.program, 'import', f'{name}.out', '--name', f'{name}-again')
        paths = [self.room / 'runs' / run / 'ckpt/step_000000/model.safetensors' for run in (name, f'{name}-again')]
        same = paths[0].read_bytes() == paths[1].read_bytes()
        self.check(f'out and in again, {name}', same, 'the same bytes of weights' if same else 'other weights')

    def same_tensors(self, what, mine, theirs):
        same = mine.keys() == theirs.keys() and all(torch.equal(mine[name].view(torch.int32), theirs[name].view(torch.int32)) for name in mine)
        self.check(what, same, f'{len(mine)} tensors, bit for bit' if same else 'other tensors')


def judge_llm_c(judge, checkout):
    for layers, heads, width, tokens, positions in ((3, 5, 35, 131, 17), (1, 1, 6, 300, 40)):
        weights = gpt2_weights(layers, width, tokens, positions)
        ids = torch.randint(tokens, (positions,))
        for dtype in (torch.float32, torch.bfloat16):
            name = f'llm.c-{width}-{"f32" if dtype == torch.float32 else "bf16"}'
            kept = {key: x.to(dtype).float() for key, x in weights.items()}
            content = llm_c_bytes(weights, heads, positions, dtype)
            judge.goes_in(name, content, ids, gpt2_logits(kept, heads, ids, 'tanh'))
            out = judge.goes_out(name, 'llm.c').read_bytes()
            wanted = llm_c_bytes(kept, heads, positions, torch.float32)
            judge.check(f'out, {name}', out == wanted, f'{len(out)} bytes, the same' if out == wanted else 'other bytes')
            judge.comes_again(name)
    if not checkout:
        return
    theirs = module_of(pathlib.Path(checkout) / 'train_gpt2.py', 'llm_c_train_gpt2')
    model = theirs.GPT(theirs.GPTConfig(block_size=20, vocab_size=50257, n_layer=2, n_head=3, n_embd=24)).eval()
    theirs.write_model(model, judge.room / 'llm.c-own', 'float32')
    ids = torch.randint(50257, (20,))
    weights = {key: x.detach() for key, x in model.state_dict().items()}
    judge.goes_in('llm.c-own', None, ids, model.double()(ids[None], return_logits=True, targets=ids[None])[0][0].detach())
    out = judge.goes_out('llm.c-own', 'llm.c').read_bytes()
    judge.check('out, llm.c-own, the file of llm.c', out == (judge.room / 'llm.c-own').read_bytes(), f'{len(out)} bytes, {len(weights)} tensors')


def judge_llama2_c(judge, checkout):
    for layers, heads, kv_heads, width, hidden, tokens, positions in ((3, 6, 2, 36, 50, 77, 19), (1, 1, 1, 10, 7, 30, 12)):
        for is_tied in (True, False):
            weights = llama_weights(layers, width, hidden, heads, kv_heads, tokens, is_tied)
            ids = torch.randint(tokens, (positions,))
            for version in (0, 1):
                judge.goes_in(f'llama2.c-{width}-{"tied" if is_tied else "untied"}-version-{version}',
                              llama2_c_bytes(weights, heads, kv_heads, positions, version), ids, llama_logits(weights, heads, kv_heads, ids))
    if not checkout:
        return
    theirs = module_of(pathlib.Path(checkout) / 'export.py', 'llama2_c_export')
    arguments = sys.modules['model'].ModelArgs(dim=48, n_layers=2, n_heads=6, n_kv_heads=3, vocab_size=64, hidden_dim=80, max_seq_len=32)
    model = sys.modules['model'].Transformer(arguments).eval()
    ids = torch.randint(64, (32,))
    wanted = model(ids[None], ids[None])[0].double().detach()
    for version, write in ((0, theirs.legacy_export), (1, theirs.version1_export)):
        write(model, judge.room / f'llama2.c-own-{version}')
        judge.goes_in(f'llama2.c-own-{version}', None, ids, wanted)


def judge_llama2_c_tokenizer(judge):
    """A sentencepiece model with bytes for unknown characters, in the form of llama2.c: generate goes on as the model does on the ids
    that sentencepiece gives the prompt."""
    try:
        import sentencepiece
    except ImportError as error:
        print(f'llama2.c, tokenizer.bin: skipped: {error}')
        return
    room = judge.room / 'with-tokenizer'
    room.mkdir()
    lines = [' '.join(f'w{i * j % 97} the moon{i % 7} and {j}seas' for j in range(1, 9)) for i in range(400)]
    (room / 'lines.txt').write_text('\n'.join(lines))
    sentencepiece.SentencePieceTrainer.train(input=str(room / 'lines.txt'), model_prefix=str(room / 't'), vocab_size=360, model_type='bpe',
                                             byte_fallback=True, normalization_rule_name='identity', add_dummy_prefix=True,
                                             remove_extra_whitespaces=False, minloglevel=2)
    words = sentencepiece.SentencePieceProcessor(model_file=str(room / 't.model'))
    pieces = [words.id_to_piece(i) for i in range(words.vocab_size())]
    pieces[1], pieces[2] = '\n<s>\n', '\n</s>\n'
    raw_pieces = [piece.replace('\u2581', ' ').encode() for piece in pieces]
    (room / 'tokenizer.bin').write_bytes(struct.pack('<i', max(map(len, raw_pieces))) + b''.join(
        struct.pack('<fi', words.get_score(i), len(piece)) + piece for i, piece in enumerate(raw_pieces)))
    weights = llama_weights(2, 24, 32, 4, 2, len(pieces), True)
    (room / 'm.bin').write_bytes(llama2_c_bytes(weights, 4, 2, 96, 1))
    judge.run(judge.program, 'import', 'with-tokenizer/m.bin', '--name', 'with-tokenizer')
    same = 0
    texts = ['w12 the moon3 and 4seas', 'Seas \u00e9\u4e2d  of w7w7', 'x', ' the  moon6', 'and\nthe']
    for line in texts:
        prompt = words.encode(line, add_bos=True)
        wanted = list(prompt)
        while len(wanted) < len(prompt) + 8 and wanted[-1] != 2 and (len(wanted) == len(prompt) or wanted[-1] != 1):
            wanted.append(int(llama_logits(weights, 4, 2, torch.tensor(wanted))[-1].argmax()))
        made = b''.join(bytes([i - 3]) if 3 <= i < 259 else b'' if i in (1, 2) else raw_pieces[i] for i in wanted)[1:]
        said = subprocess.run([judge.program, 'generate', 'runs/with-tokenizer', '--prompt', line, '--max-new-tokens', '8', '--temperature', '0'],
                              cwd=judge.room, capture_output=True, check=True).stdout
        same += said.decode('utf-8', 'replace').rstrip('\n') == made.decode('utf-8', 'replace').rstrip('\n') or print(f'{said!r}\n{made!r}') or 0
    judge.check(f'in, tokenizer.bin of {len(pieces)} pieces, greedy texts of {len(texts)} prompts', same == len(texts), f'{same} the same')


def judge_mingpt(judge):
    """A minGPT in JSON, as llm-viz keeps it."""
    layers, heads, width, tokens, positions = 2, 3, 21, 29, 12
    weights = gpt2_weights(layers, width, tokens, positions)
    weights['lm_head.weight'] = normal(tokens, width)
    members = {name: {'shape': list(x.shape), 'dtype': 'torch.float32', 'data': base64.b64encode(raw(x)).decode()} for name, x in weights.items()}
    config = dict(model_type='gpt-nano', n_layer=layers, n_head=heads, n_embd=width, vocab_size=tokens, block_size=positions)
    ids = torch.randint(tokens, (positions,))
    judge.goes_in('mingpt.json', json.dumps({'config': config, **members}).encode(), ids, gpt2_logits(weights, heads, ids, 'tanh'))


def judge_nanogpt(judge, checkout):
    for layers, heads, width, tokens, positions, has_biases, is_compiled in ((3, 5, 35, 131, 17, True, False), (2, 2, 14, 65, 40, False, True)):
        weights = gpt2_weights(layers, width, tokens, positions, has_biases)
        weights['lm_head.weight'] = weights['transformer.wte.weight']
        parameters = {name: torch.nn.Parameter(x) for name, x in weights.items() if name != 'lm_head.weight'}
        optimizer = torch.optim.AdamW(parameters.values(), lr=0.0, weight_decay=0.0)
        sum(x.sum() for x in parameters.values()).backward()
        optimizer.step()
        arguments = dict(n_layer=layers, n_head=heads, n_embd=width, block_size=positions, bias=has_biases, vocab_size=tokens, dropout=0.1)
        name = f'nanogpt-{width}'
        torch.save({'model': {('_orig_mod.' if is_compiled else '') + key: x for key, x in weights.items()}, 'optimizer': optimizer.state_dict(),
                    'model_args': arguments, 'iter_num': 7, 'best_val_loss': torch.tensor(1.5), 'config': {'dataset': 'x', 'compile': True}}, judge.room / name)
        ids = torch.randint(tokens, (positions,))
        judge.goes_in(name, None, ids, gpt2_logits(weights, heads, ids, 'none'))
        made = torch.load(judge.goes_out(name, 'nanogpt'), weights_only=True)
        judge.same_tensors(f'out, {name}', made['model'], weights)
        judge.check(f'out, {name}, model_args', made['model_args'] == arguments, made['model_args'])
        judge.comes_again(name)
        if checkout:
            theirs = module_of(pathlib.Path(checkout) / 'model.py', 'nanogpt_model')
            model = theirs.GPT(theirs.GPTConfig(**made['model_args']))
            model.load_state_dict(made['model'])
            said = model.eval().double()(ids[None], ids[None])[0][0].detach()
            apart = float((said - gpt2_logits(weights, heads, ids, 'none')).abs().max())
            judge.check(f'out, {name}, logits in nanoGPT', apart < 1e-9, f'{apart:.1e} apart')
    characters = sorted(set('the moon and the sea\n\u00e8'))
    weights = gpt2_weights(1, 8, len(characters), 32)
    (judge.room / 'characters').mkdir()
    torch.save({'model': weights, 'model_args': dict(n_layer=1, n_head=1, n_embd=8, block_size=32, vocab_size=len(characters))},
               judge.room / 'characters/ckpt.pt')
    with open(judge.room / 'characters/meta.pkl', 'wb') as meta:
        pickle.dump({'vocab_size': len(characters), 'itos': dict(enumerate(characters)), 'stoi': {c: i for i, c in enumerate(characters)}}, meta)
    judge.run(judge.program, 'import', 'characters/ckpt.pt', '--name', 'characters')
    ids = [characters.index(c) for c in 'the sea']
    wanted = list(ids)
    for _ in range(20):
        wanted.append(int(gpt2_logits(weights, 1, torch.tensor(wanted), 'none')[-1].argmax()))
    said = judge.run(judge.program, 'generate', 'runs/characters', '--prompt', 'the sea', '--max-new-tokens', '20', '--temperature', '0')
    text = ''.join(characters[i] for i in wanted)
    judge.check('in, characters with meta.pkl, 20 greedy tokens', text.strip() in said, 'the same' if text.strip() in said else f'{said!r}, not {text!r}')


def main():
    parser = argparse.ArgumentParser(description='Holds heed import and heed export of checkpoints to PyTorch and NumPy.')
    parser.add_argument('heed')
    for name in ('nanogpt', 'llm-c', 'llama2-c'):
        parser.add_argument(f'--{name}', help='a checkout of that program')
    args = parser.parse_args()
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as room:
        judge = Judge(args.heed, pathlib.Path(room))
        judge_llm_c(judge, args.llm_c)
        judge_llama2_c(judge, args.llama2_c)
        judge_nanogpt(judge, args.nanogpt)
        judge_llama2_c_tokenizer(judge)
        judge_mingpt(judge)
        sys.exit(1 if judge.failed else 0)


main()
