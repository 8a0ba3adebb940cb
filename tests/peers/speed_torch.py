# One row of `heed bench train` in plain PyTorch: the same shapes, random tokens, one JSON line. See README.md beside it.
import argparse
import json
import math
import os
import resource
import statistics
import time

ROWS = ('baby', 'baby-dropout', 'gpt-6x6x384', 'gpt-6x6x384-dropout', 'translator-literal', 'translator-batch',
        'translator-buckets', 'lra', 'lra-fastmax2', 'pixels', 'patches')


def arguments():
    parser = argparse.ArgumentParser(description='A training step of a known shape in plain PyTorch.')
    parser.add_argument('row', choices=ROWS)
    parser.add_argument('--threads', type=int, default=0, help='0: as PyTorch decides')
    parser.add_argument('--seconds', type=float, default=4, help='of timed steps, at least')
    parser.add_argument('--best', action='store_true', help='the fused optimizer where there is one')
    return parser.parse_args()


ARGUMENTS = arguments()
if ARGUMENTS.threads:  # read when PyTorch is loaded
    for variable in ('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'MKL_NUM_THREADS'):
        os.environ[variable] = str(ARGUMENTS.threads)

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from models_torch import TILED, Classifier, LanguageModel, Translator  # noqa: E402


def language_model(layers, heads, width, context, batch, dropout):
    model = LanguageModel(layers, heads, width, context, dropout)
    text = torch.randint(0, 65, (200000,))
    beside = torch.arange(context)

    def loss(step):
        places = torch.randint(0, len(text) - context - 1, (batch, 1)) + beside
        return F.cross_entropy(model(text[places]).view(-1, 65), text[places + 1].view(-1)), batch * context

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
        source, wanted = rows([s for s, _ in now], 15698), rows([t for _, t in now], 22463)
        logits = model(source, torch.roll(wanted, 1, 1).masked_fill(wanted == 1, 1))
        return (F.cross_entropy(logits.view(-1, 22463), wanted.view(-1), ignore_index=1, label_smoothing=0.1),
                sum(t for _, t in now))

    return model, loss, torch.optim.Adam, {'lr': 1e-4, 'eps': 1e-9}, 0, len(steps)


def classifier(tokens, width, hidden, layers, heads, batch, vocabulary, attention='softmax'):
    model = Classifier(tokens, width, hidden, layers, heads, vocabulary, attention)
    x = torch.randint(0, vocabulary, (batch, tokens)) if vocabulary else torch.rand(batch, tokens, 16)
    wanted = torch.randint(0, 10, (batch,))
    return model, lambda step: (F.cross_entropy(model(x), wanted), batch * tokens), torch.optim.AdamW, {'lr': 1e-3}, 0, 1


def made(row):
    """Model, loss of step i with its real tokens, optimizer, its settings, largest norm of the gradient, period."""
    if row.startswith('baby'):
        return language_model(4, 4, 128, 64, 12, 0.2 if row.endswith('dropout') else 0.0)
    if row.startswith('gpt'):
        return language_model(6, 6, 384, 256, 8, 0.2 if row.endswith('dropout') else 0.0)
    if row.startswith('translator'):
        return translator(row.split('-')[1])
    return classifier(*{'lra': (2000, 64, 128, 2, 2, 8, 256), 'lra-fastmax2': (2000, 64, 128, 2, 2, 8, 256, 'fastmax2'),
                        'pixels': (784, 32, 128, 2, 2, 8, 256), 'patches': (49, 64, 256, 4, 4, 64, 0)}[row])


def main():
    torch.manual_seed(1)
    if ARGUMENTS.threads:
        torch.set_num_threads(ARGUMENTS.threads)
    model, loss_of, kind, options, clip, period = made(ARGUMENTS.row)
    if ARGUMENTS.best and int(torch.__version__.split('.')[0]) >= 2:
        options['fused'] = True
    optimizer = kind(model.parameters(), **options)

    def step(number):
        loss, tokens = loss_of(number)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        return tokens

    for number in range(2):
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
        'steps': number,
        'threads': torch.get_num_threads(), 'version': torch.__version__, 'tiled_attention': TILED,
        'parameters': sum(p.numel() for p in model.parameters())}))


main()
