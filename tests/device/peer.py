# PyTorch kept ready beside Heed: it warms up and compiles once, then does what each line of its input asks and answers with a JSON line.
#   peer.py attention      {"kind": "flash", "width": 64, "causal": true, "length": 512}
#   peer.py RECIPE         {"run": "eager" or "compiled", "steps": 40}
import argparse
import contextlib
import functools
import json
import statistics
import sys
import time

import torch
from attention_torch import measured, pinned_to
from recipes_torch import RECIPES

BLOCK = 10  # steps between two waits for the device, as nanoGPT logs


def arguments():
    parser = argparse.ArgumentParser(description='PyTorch that steps when it is told to.')
    parser.add_argument('what', choices=('attention', *RECIPES))
    parser.add_argument('--attention', default='softmax', choices=('softmax', 'fastmax1', 'fastmax2'))
    parser.add_argument('--device', default='cuda')
    parser.add_argument('--precision', default='bf16', choices=('f32', 'tf32', 'bf16'))
    parser.add_argument('--small', action='store_true', help='sizes for a dry run')
    return parser.parse_args()


def say(**words):
    print(json.dumps(words | {'version': torch.__version__}), flush=True)


class Batches:
    """A recipe's batches in turn. On a GPU they lie in pinned memory, and each is copied while the step before it runs."""

    def __init__(self, batches, device):
        self.on_gpu = device == 'cuda'
        self.batches = [[x.pin_memory() for x in batch] for batch in batches] if self.on_gpu else batches
        self.stream, self.step = torch.cuda.Stream() if self.on_gpu else None, 0
        self.ahead = self.copied()

    def copied(self):
        batch = self.batches[self.step % len(self.batches)]
        self.step += 1
        if not self.on_gpu:
            return batch
        with torch.cuda.stream(self.stream):
            return [x.to('cuda', non_blocking=True) for x in batch]

    def next(self):
        batch = self.ahead
        if self.on_gpu:
            torch.cuda.current_stream().wait_stream(self.stream)
            for x in batch:
                x.record_stream(torch.cuda.current_stream())
        self.ahead = self.copied()
        return batch


class Trained:
    """Training steps of a recipe; the compiled ones are of model and loss together."""

    def __init__(self, options, compiled):
        torch.manual_seed(1)
        self.options, self.recipe = options, RECIPES[options.what](options.attention, options.small)
        self.batches = Batches(self.recipe.batches, options.device)
        self.recipe.model.to(options.device)
        self.optimizer = self.recipe.optimizer(fused=int(torch.__version__.split('.')[0]) >= 2)
        self.loss = self.recipe.loss
        if compiled:
            if not hasattr(torch, 'compile'):
                raise RuntimeError(f'PyTorch {torch.__version__} has no torch.compile: PyTorch 2 has.')
            self.loss = torch.compile(self.recipe.loss)
        is_flash = self.recipe.flash and options.precision == 'bf16' and pinned_to('flash')
        self.pinned = functools.partial(pinned_to, 'flash') if is_flash else contextlib.nullcontext
        try:
            self.run(4)
        except RuntimeError:  # FlashAttention may lack what the recipe asks for on this device
            self.pinned = contextlib.nullcontext
            self.run(4)

    def backend(self):
        return 'as PyTorch chooses' if self.pinned is contextlib.nullcontext else 'FlashAttention'

    def wait(self):
        if self.options.device == 'cuda':
            torch.cuda.synchronize()

    def one(self):
        batch = self.batches.next()
        with torch.autocast(self.options.device, torch.bfloat16, enabled=self.options.precision == 'bf16'):
            loss = self.loss(*batch)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.recipe.clip()
        self.optimizer.step()

    def run(self, steps):
        """Median seconds of a step, over blocks of steps."""
        times, done = [], 0
        with self.pinned():
            while done < steps:
                count = min(BLOCK, steps - done)
                self.wait()
                start = time.perf_counter()
                for _ in range(count):
                    self.one()
                self.wait()
                times.append((time.perf_counter() - start) / count)
                done += count
        return statistics.median(times)


def train(options):
    ways, missing = {}, {}
    for way in ('eager', 'compiled'):
        began = time.perf_counter()
        try:
            ways[way] = Trained(options, way == 'compiled')
            print(f'{way}: ready after {time.perf_counter() - began:.1f} s', file=sys.stderr, flush=True)
        except Exception as error:  # what one way cannot do, the other may
            missing[way] = ' '.join(str(error).split())[:300]
    say(ready=list(ways), missing=missing)
    for line in sys.stdin:
        asked = json.loads(line)
        if asked['run'] not in ways:
            say(error=missing[asked['run']])
            continue
        way = ways[asked['run']]
        say(step_ms=1e3 * way.run(asked['steps']), steps=asked['steps'], backend=way.backend())


def attention(options):
    say(ready=['attention'], missing={})
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            say(**asked, **measured(**asked, device=options.device, dtype=torch.bfloat16 if options.precision == 'bf16' else torch.float32))
        except Exception as error:  # too long for the memory, or no such kernel
            say(**asked, error=' '.join(str(error).split())[:300])


def main():
    options = arguments()
    if options.precision != 'f32':  # what stays in f32 beside bf16 may use the tensor cores too, as nanoGPT has it
        torch.backends.cuda.matmul.allow_tf32 = True
        torch.backends.cudnn.allow_tf32 = True
    if options.what == 'attention':
        attention(options)
    else:
        train(options)


main()
