# The speed of SmolLM2-135M's shape in Heed and in PyTorch (transformers), in turn: steps of training, scoring, and one
# token after another. Weights are random on both sides: a step takes the same time with any.
#   llama_speed.py HEED [--rounds N] [--threads N]
# 77: a package is missing.
import argparse
import json
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

for name in [n for n in os.environ if n.startswith(('OPENBLAS_', 'OMP_', 'MKL_'))]:
    del os.environ[name]  # they decide the speed of one side

try:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM
except ImportError as error:
    print(f'skipped: {error}')
    sys.exit(77)

VOCABULARY, WINDOW, BATCH, NEW_TOKENS = 49152, 512, 2, 64
MODEL = f'''task = "lm"
[model]
d_model = 576
heads = 9
kv_heads = 3
d_ff = 1536
layers = 30
max_length = {WINDOW}
dropout = 0
activation = "swiglu"
norm_scale = "rms"
position = "rope_interleaved"
tie_embeddings = "output"
attention_bias = false
feed_forward_bias = false
[data]
path = "PATH"
tokenizer = "ids"
vocabulary = {VOCABULARY}
eval_batches = 0
[train]
batch_size = {BATCH}
max_steps = 5
validate_every = 100
'''


class Heed:
    """Runs of the program: seconds of a training step, of scoring a token, and of each format's next token."""

    def __init__(self, program, threads, folder):
        self.program, self.threads, self.folder = program, str(threads), folder
        random.seed(1)
        self.text(folder / 'ids.txt', 20000)
        (folder / 'config.toml').write_text(MODEL.replace('PATH', str(folder / 'ids.txt')))

    def text(self, path, count):
        path.write_text(' '.join(str(random.randrange(VOCABULARY)) for _ in range(count)))

    def __call__(self, *arguments):
        begin = time.perf_counter()
        done = subprocess.run([self.program, *map(str, arguments), '--threads', self.threads], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(done.stderr)
        return time.perf_counter() - begin

    def train(self):
        """Median seconds of a step but the first."""
        shutil.rmtree(self.folder / 'run', ignore_errors=True)
        self('train', self.folder / 'config.toml', '--out', self.folder, '--name', 'run')
        lines = [json.loads(line) for line in (self.folder / 'run/metrics.jsonl').read_text().splitlines()]
        steps = [line['tokens_per_second'] for line in lines if 'loss' in line][1:]
        return BATCH * WINDOW / statistics.median(steps)

    def score(self):
        """Seconds a token: the difference of a text of 9 windows and one of 1, so that the start drops out."""
        short, long = self.folder / 'short.txt', self.folder / 'long.txt'
        self.text(short, WINDOW), self.text(long, 9 * WINDOW)
        run = self.folder / 'run'
        return (self('evaluate', run, '--data', long) - self('evaluate', run, '--data', short)) / (8 * WINDOW)

    def generate(self, precision):
        """Seconds a token: the difference of NEW_TOKENS + 1 tokens and 1."""
        def make(count):
            return self('generate', self.folder / 'run', '--prompt', '1 2 3', '--temperature', '0', '--max-new-tokens', count,
                        '--precision', precision)
        return (make(NEW_TOKENS + 1) - make(1)) / NEW_TOKENS


class Torch:
    """The same model in transformers, f32."""

    def __init__(self, threads):
        torch.set_num_threads(threads)
        self.model = LlamaForCausalLM(LlamaConfig(
            vocab_size=VOCABULARY, hidden_size=576, intermediate_size=1536, num_hidden_layers=30, num_attention_heads=9,
            num_key_value_heads=3, max_position_embeddings=WINDOW, tie_word_embeddings=True))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-5, fused=True)
        self.ids = torch.randint(0, VOCABULARY, (BATCH, WINDOW))

    def timed(self, f, count):
        seconds = []
        for _ in range(count):
            begin = time.perf_counter()
            f()
            seconds.append(time.perf_counter() - begin)
        return statistics.median(seconds)

    def train(self):
        def step():
            self.model(self.ids, labels=self.ids, use_cache=False).loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
        self.model.train()
        return self.timed(step, 3)

    @torch.no_grad()
    def score(self):
        self.model.eval()
        return self.timed(lambda: self.model(self.ids, labels=self.ids, use_cache=False), 3) / self.ids.numel()

    @torch.no_grad()
    def generate(self):
        self.model.eval()
        def make(count):
            return lambda: self.model.generate(self.ids[:1, :3], min_new_tokens=count, max_new_tokens=count, do_sample=False)
        return (self.timed(make(NEW_TOKENS + 1), 1) - self.timed(make(1), 1)) / NEW_TOKENS


def main():
    parser = argparse.ArgumentParser(description="SmolLM2's shape in Heed and in PyTorch, in turn.")
    parser.add_argument('heed', type=pathlib.Path, help='the program')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--threads', type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        heed, peer = Heed(options.heed, options.threads, pathlib.Path(folder)), Torch(options.threads)
        found = {}
        for _ in range(options.rounds):
            for name, f in (('step, Heed', heed.train), ('step, PyTorch', peer.train), ('scored, Heed', heed.score),
                            ('scored, PyTorch', peer.score), ('made, f32', lambda: heed.generate('f32')),
                            ('made, bf16', lambda: heed.generate('bf16')), ('made, q8_0', lambda: heed.generate('q8_0')),
                            ('made, PyTorch', peer.generate)):
                found.setdefault(name, []).append(1000 * f())
                print(f'{name:16} {found[name][-1]:10.2f} ms', flush=True)
    middle = {name: statistics.median(values) for name, values in found.items()}
    print(f'\n{options.threads} threads, PyTorch {torch.__version__}, medians of {options.rounds} in turn\n')
    print('| what | Heed, ms | PyTorch, ms | ratio |\n|---|---:|---:|---:|')
    for what, heed_row, peer_row in (
            (f'a training step of {BATCH} x {WINDOW} tokens', 'step, Heed', 'step, PyTorch'),
            ('a token scored', 'scored, Heed', 'scored, PyTorch'),
            ('a token made, f32', 'made, f32', 'made, PyTorch'),
            ('a token made, bf16 (PyTorch: f32)', 'made, bf16', 'made, PyTorch'),
            ('a token made, q8_0 (PyTorch: f32)', 'made, q8_0', 'made, PyTorch')):
        print(f'| {what} | {middle[heed_row]:.2f} | {middle[peer_row]:.2f} | {middle[peer_row] / middle[heed_row]:.2f} |')


if __name__ == '__main__':
    main()
