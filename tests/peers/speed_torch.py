# One row of `heed bench train` in plain PyTorch: the same shapes, random tokens, one JSON line. See README.md beside it.
import argparse
import json
import math
import os
import resource
import statistics
import time

ROWS = ('baby', 'baby-dropout', 'gpt-6x6x384', 'gpt-6x6x384-dropout', 'translator-literal', 'translator-batch',
        'translator-buckets', 'lra', 'pixels', 'patches', 'shakespeare', 'lra-listops', 'lra-image')


def arguments():
    parser = argparse.ArgumentParser(description='A training step of a known shape in plain PyTorch.')
    parser.add_argument('row', choices=ROWS)
    parser.add_argument('--threads', type=int, default=0, help='0: as PyTorch decides')
    parser.add_argument('--seconds', type=float, default=4, help='of timed steps, at least')
    parser.add_argument('--best', action='store_true', help='the fused optimizer where there is one')
    parser.add_argument('--device', default='cpu', help='cpu or cuda')
    parser.add_argument('--bf16', action='store_true', help='autocast to bfloat16')
    parser.add_argument('--compile', action='store_true', help='torch.compile of the model')
    parser.add_argument('--attention', default='softmax', choices=('softmax', 'fastmax1', 'fastmax2'), help='of lra-listops and lra-image')
    return parser.parse_args()


ARGUMENTS = arguments()
if ARGUMENTS.threads:  # read when PyTorch is loaded
    for variable in ('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'MKL_NUM_THREADS'):
        os.environ[variable] = str(ARGUMENTS.threads)

import torch  # noqa: E402
import torch.nn as nn  # noqa: E402
import torch.nn.functional as F  # noqa: E402

TILED = hasattr(F, 'scaled_dot_product_attention')


def attend(q, k, v, dropout, causal=False, allowed=None):
    """softmax(q k^T / sqrt(d)) v; the tiled kernel where this PyTorch has one."""
    if TILED:
        if causal and allowed is not None:
            n = q.shape[2]
            allowed, causal = allowed & torch.ones(n, n, dtype=torch.bool, device=q.device).tril(), False
        return F.scaled_dot_product_attention(q, k, v, attn_mask=allowed, dropout_p=dropout, is_causal=causal)
    scores = q @ k.transpose(2, 3) * (1 / math.sqrt(q.shape[3]))
    if causal:
        n = q.shape[2]
        scores = scores.masked_fill(~torch.ones(n, n, dtype=torch.bool).tril(), -math.inf)
    if allowed is not None:
        scores = scores.masked_fill(~allowed, -1e9)
    return F.dropout(scores.softmax(3), dropout) @ v


def fastmax(q, k, v, order):
    """Full Fastmax as one writes it from the paper: queries and keys of mean 0 and deviation 1, 1 + s (+ s^2 / 2), its terms as products of features."""
    def unit(x):
        x = x - x.mean(3, keepdim=True)
        return x / (x.square().mean(3, keepdim=True) + 1e-6).sqrt()

    def features(x):
        one = torch.ones_like(x[..., :1])
        if order == 1:
            return torch.cat((one, x), 3)
        return torch.cat((one, x, (x[..., :, None] * x[..., None, :]).flatten(3) * math.sqrt(0.5)), 3)
    a, b = features(unit(q)), features(unit(k))
    return (a @ (b.transpose(2, 3) @ v)) / (a @ b.sum(2)[..., None])


class SelfAttention(nn.Module):
    kind = 'softmax'

    def __init__(self, width, heads, dropout, causal, bias):
        super().__init__()
        self.heads, self.dropout, self.causal = heads, dropout, causal
        self.inner = nn.Linear(width, 3 * width, bias=bias)
        self.outer = nn.Linear(width, width, bias=bias)

    def forward(self, x, allowed=None):
        b, t, w = x.shape
        q, k, v = self.inner(x).view(b, t, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
        if self.kind != 'softmax':
            y = fastmax(q, k, v, int(self.kind[-1]))
        else:
            y = attend(q, k, v, self.dropout if self.training else 0.0, self.causal, allowed)
        return self.outer(y.transpose(1, 2).reshape(b, t, w))


class CrossAttention(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.query, self.outer = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.inner = nn.Linear(width, 2 * width, bias=False)

    def forward(self, x, encoded, allowed):
        b, t, w = x.shape
        q = self.query(x).view(b, t, self.heads, -1).transpose(1, 2)
        k, v = self.inner(encoded).view(b, -1, 2, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
        y = attend(q, k, v, self.dropout if self.training else 0.0, allowed=allowed)
        return self.outer(y.transpose(1, 2).reshape(b, t, w))


class Block(nn.Module):
    """Pre-norm: attention, perhaps attention to an encoder, and the two-layer network, each with its residual."""

    def __init__(self, width, heads, hidden, dropout, causal=False, cross=False, attention_bias=False, bias=True,
                 activation=F.gelu):
        super().__init__()
        self.attention_norm, self.forward_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = SelfAttention(width, heads, dropout, causal, attention_bias)
        self.cross = CrossAttention(width, heads, dropout) if cross else None
        self.cross_norm = nn.LayerNorm(width) if cross else None
        self.up, self.down = nn.Linear(width, hidden, bias=bias), nn.Linear(hidden, width, bias=bias)
        self.drop, self.activation, self.inner_drop = nn.Dropout(dropout), activation, nn.Dropout(dropout if cross or not causal else 0)

    def forward(self, x, allowed=None, encoded=None, encoded_allowed=None):
        x = x + self.drop(self.attention(self.attention_norm(x), allowed))
        if self.cross is not None:
            x = x + self.drop(self.cross(self.cross_norm(x), encoded, encoded_allowed))
        return x + self.drop(self.down(self.inner_drop(self.activation(self.up(self.forward_norm(x))))))


class LanguageModel(nn.Module):
    def __init__(self, layers, heads, width, context, dropout):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(65, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads, 4 * width, dropout, causal=True, bias=False) for _ in range(layers))
        self.norm, self.drop = nn.LayerNorm(width), nn.Dropout(dropout)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, ids):
        x = self.drop(self.tokens(ids) + self.positions.weight[:ids.shape[1]])
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.tokens.weight)


class Translator(nn.Module):
    def __init__(self, width=512, heads=8, hidden=2048, longest=350, sources=15698, targets=22463, dropout=0.1):
        super().__init__()
        self.width = width
        self.source, self.target = nn.Embedding(sources, width), nn.Embedding(targets, width)
        angle = torch.arange(longest)[:, None] * torch.exp(torch.arange(0, width, 2) * (-math.log(1e4) / width))
        self.register_buffer('positions', torch.stack((angle.sin(), angle.cos()), 2).view(longest, width))
        self.encoder = Block(width, heads, hidden, dropout, activation=F.relu)
        self.decoder = Block(width, heads, hidden, dropout, causal=True, cross=True, activation=F.relu)
        self.encoder_norm, self.decoder_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.output, self.drop = nn.Linear(width, targets), nn.Dropout(dropout)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)

    def embedded(self, table, ids):
        return self.drop(table(ids) * math.sqrt(self.width) + self.positions[:ids.shape[1]])

    def forward(self, source, target):
        seen, made = (source != 1)[:, None, None, :], (target != 1)[:, None, None, :]
        encoded = self.encoder_norm(self.encoder(self.embedded(self.source, source), seen))
        return self.output(self.decoder_norm(self.decoder(self.embedded(self.target, target), made, encoded, seen)))


class Classifier(nn.Module):
    def __init__(self, tokens, width, hidden, layers, heads, vocabulary):
        super().__init__()
        self.inputs = nn.Embedding(vocabulary, width) if vocabulary else nn.Linear(16, width)
        self.positions = nn.Parameter(torch.randn(tokens, width) * 0.02)
        self.blocks = nn.ModuleList(Block(width, heads, hidden, 0.0, attention_bias=True) for _ in range(layers))
        self.norm, self.classes = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, x):
        x = self.inputs(x) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.classes(self.norm(x).mean(1))


def language_model(layers, heads, width, context, batch, dropout):
    model = LanguageModel(layers, heads, width, context, dropout)
    text = torch.randint(0, 65, (200000,))
    beside = torch.arange(context)

    def loss(step):
        places = torch.randint(0, len(text) - context - 1, (batch, 1)) + beside
        ids, wanted = (x.to(ARGUMENTS.device, non_blocking=True) for x in (text[places], text[places + 1]))
        return F.cross_entropy(model(ids).view(-1, 65), wanted.view(-1)), batch * context

    optimizer = {'lr': 1e-3, 'betas': (0.9, 0.99), 'weight_decay': 0.1}
    return model, loss, torch.optim.AdamW, optimizer, 1.0, 1


def translator(kind, batch=8):
    model = Translator()

    def lengths(count):
        first = torch.exp(torch.randn(count) * 0.7 + math.log(30) - 0.245).round().clamp(4, 348)
        second = (first * torch.exp(torch.randn(count) * 0.15 - 0.01125)).round().clamp(4, 348)
        return [(int(s), int(t)) for s, t in zip(first, second)]

    pairs = lengths(16 * batch)
    if kind == 'buckets':
        pairs.sort(key=lambda pair: (-pair[1], -pair[0]))
    steps = [pairs[i:i + batch] for i in range(0, len(pairs), batch)]
    if kind == 'literal':
        steps = steps[:4]

    def rows(sizes, words):
        longest = 350 if kind == 'literal' else max(sizes)
        ids = torch.randint(4, words, (len(sizes), longest))
        ids[torch.arange(longest)[None] >= torch.tensor(sizes)[:, None]] = 1
        return ids

    def loss(step):
        now = steps[step % len(steps)]
        source, wanted = (x.to(ARGUMENTS.device) for x in (rows([s for s, _ in now], 15698), rows([t for _, t in now], 22463)))
        logits = model(source, torch.roll(wanted, 1, 1).masked_fill(wanted == 1, 1))
        return (F.cross_entropy(logits.view(-1, 22463), wanted.view(-1), ignore_index=1, label_smoothing=0.1),
                sum(t for _, t in now))

    return model, loss, torch.optim.Adam, {'lr': 1e-4, 'eps': 1e-9}, 0, len(steps)


def classifier(tokens, width, hidden, layers, heads, batch, vocabulary):
    model = Classifier(tokens, width, hidden, layers, heads, vocabulary)
    x = (torch.randint(0, vocabulary, (batch, tokens)) if vocabulary else torch.rand(batch, tokens, 16)).to(ARGUMENTS.device)
    wanted = torch.randint(0, 10, (batch,)).to(ARGUMENTS.device)
    return model, lambda step: (F.cross_entropy(model(x), wanted), batch * tokens), torch.optim.AdamW, {'lr': 1e-3}, 0, 1


def made(row):
    """Model, loss of step i with its real tokens, optimizer, its settings, largest norm of the gradient, period."""
    if row.startswith('baby'):
        return language_model(4, 4, 128, 64, 12, 0.2 if row.endswith('dropout') else 0.0)
    if row.startswith('gpt'):
        return language_model(6, 6, 384, 256, 8, 0.2 if row.endswith('dropout') else 0.0)
    if row == 'shakespeare':
        return language_model(6, 6, 384, 256, 64, 0.2)
    if row.startswith('translator'):
        return translator(row.split('-')[1])
    return classifier(*{'lra': (2000, 64, 128, 2, 2, 8, 256), 'pixels': (784, 32, 128, 2, 2, 8, 256),
                        'patches': (49, 64, 256, 4, 4, 64, 0), 'lra-listops': (2048, 64, 128, 2, 2, 32, 32),
                        'lra-image': (1024, 64, 128, 2, 2, 256, 256)}[row])


def main():
    torch.manual_seed(1)
    if ARGUMENTS.threads:
        torch.set_num_threads(ARGUMENTS.threads)
    SelfAttention.kind = ARGUMENTS.attention
    model, loss_of, kind, options, clip, period = made(ARGUMENTS.row)
    model.to(ARGUMENTS.device)
    if ARGUMENTS.compile:
        model.compile()
    if ARGUMENTS.best and int(torch.__version__.split('.')[0]) >= 2:
        options['fused'] = True
    optimizer = kind(model.parameters(), **options)

    def step(number):
        with torch.autocast(ARGUMENTS.device, torch.bfloat16, enabled=ARGUMENTS.bf16):
            loss, tokens = loss_of(number)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        if ARGUMENTS.device == 'cuda':
            torch.cuda.synchronize()
        return tokens

    for number in range(max(2, period if ARGUMENTS.compile else 2)):
        step(number)
    times, tokens, number, began = [[] for _ in range(period)], [0] * period, 0, time.perf_counter()
    while number < max(5, period) or time.perf_counter() - began < ARGUMENTS.seconds:
        start = time.perf_counter()
        tokens[number % period] = step(number)
        times[number % period].append(time.perf_counter() - start)
        number += 1
    seconds = statistics.mean(statistics.median(place) for place in times)
    print(json.dumps({
        'row': ARGUMENTS.row, 'step_ms': 1e3 * seconds, 'tokens_per_s': statistics.mean(tokens) / seconds,
        'process_mib': resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        'device_mib': torch.cuda.max_memory_allocated() / 1048576 if ARGUMENTS.device == 'cuda' else 0, 'steps': number,
        'threads': torch.get_num_threads(), 'version': torch.__version__, 'tiled_attention': TILED,
        'parameters': sum(p.numel() for p in model.parameters())}))


main()
