# Heed and PyTorch on one GPU, in turn, against what is asked for. Each measurement is added to --keep as it comes; --table shows what that file holds.
#   speed.py shakespeare gpt2 listops image translate attention --keep FILE --seconds 500
import argparse
import json
import pathlib
import select
import subprocess
import sys
import tempfile
import time

import tables
from pairs import write_pairs

HERE = pathlib.Path(__file__).resolve().parent
# Heed's words, PyTorch's words, Heed's for a dry run. Each task's own data are made here: a few examples give the shapes of all.
FEW = ['--set', 'data.num_examples=2000', '--set', 'data.validation=64', '--set', 'data.test_size=64']
ATTENTIONS = (('softmax', 'softmax'), ('fastmax:p=1', 'fastmax1'), ('fastmax:p=2', 'fastmax2'))
SMALL = ['--d-model', '32', '--heads', '2', '--d-ff', '32', '--layers', '1', '--batch-size', '2']
RECIPES = {
    'shakespeare': ('shakespeare', [], [*SMALL, '--max-length', '16', '--set', 'data.num_examples=20000']),
    'gpt2': ('gpt2-124m', [], [*SMALL, '--max-length', '16']),
    'listops': ('lra-listops-skyformer', FEW,
                [*FEW, *SMALL, '--max-length', '64', '--set', 'data.depth=4', '--set', 'data.shortest=20', '--set', 'data.below=60']),
    'image': ('lra-image-skyformer', FEW, [*FEW, *SMALL, '--max-length', '64', '--set', 'data.side=8']),
    'translate': ('translator-padded', [], [*SMALL, '--max-length', '12']),
}
WIDTHS = (64, 128, 32)  # those that are asked for first


def arguments():
    parser = argparse.ArgumentParser(description='Speed of Heed against PyTorch on a GPU, interleaved.')
    parser.add_argument('parts', nargs='*', choices=(*RECIPES, 'attention', []), help='none: all')
    parser.add_argument('--heed', default='build/cuda/heed')
    parser.add_argument('--torch', default=sys.executable, help='a Python that has PyTorch')
    parser.add_argument('--device', default='cuda', help="of Heed and of PyTorch")
    parser.add_argument('--torch-device', default='', help='of PyTorch alone')
    parser.add_argument('--precision', default='bf16', choices=('f32', 'tf32', 'bf16'), help='of products on both sides')
    parser.add_argument('--rounds', type=int, default=3, help='times each takes its turn')
    parser.add_argument('--steps', type=int, default=48, help='of a turn')
    parser.add_argument('--seconds', type=float, default=540, help='after which no further turn is begun')
    parser.add_argument('--longest', type=int, default=16384, help='length of attention')
    parser.add_argument('--epochs', type=int, default=1, help='of translate-conti that are trained; 20: the whole run')
    parser.add_argument('--small', action='store_true', help='sizes for a dry run')
    parser.add_argument('--keep', default='device-speed.jsonl', help='file that every measurement is added to')
    parser.add_argument('--table', action='store_true', help='measure nothing: print what --keep holds as Markdown')
    return parser.parse_args()


class Peer:
    """One kept PyTorch. It starts and compiles while others do; it is asked only once all are ready."""

    def __init__(self, options, what, attention='softmax'):
        command = [options.torch, str(HERE / 'peer.py'), what, '--attention', attention, '--device', options.torch_device or options.device,
                   '--precision', options.precision, *(['--small'] if options.small else [])]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.missing = ''

    def answer(self):
        line = self.process.stdout.readline()
        return json.loads(line) if line else {'error': f'PyTorch ended with code {self.process.wait()}'}

    def wait(self, seconds):
        """Until it is ready; one that is not by then is ended, so that Heed is measured alone."""
        name = ' '.join(self.process.args[2:5])
        if not select.select([self.process.stdout], [], [], max(1, seconds))[0]:
            self.end()
            self.missing = f'PyTorch was not ready after {seconds:.0f} s'
            print(f'{name}: {self.missing}', file=sys.stderr, flush=True)
            return
        for way, why in self.answer().get('missing', {}).items():
            print(f'{name}: no {way} PyTorch: {why}', file=sys.stderr, flush=True)

    def ask(self, **words):
        if self.missing:
            return {'error': self.missing}
        try:
            self.process.stdin.write(json.dumps(words) + '\n')
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        return self.answer()

    def end(self):
        self.process.kill()
        self.process.wait()


class Session:
    """What measurements share: the file they go to and the time that is left."""

    def __init__(self, options):
        self.options, self.began = options, time.monotonic()

    def left(self):
        return self.options.seconds - (time.monotonic() - self.began)

    def keep(self, row):
        with open(self.options.keep, 'a') as file:
            file.write(json.dumps(row) + '\n')

    def heed(self, *words, cwd=None):
        """The JSON lines that it prints; none, with its last words on standard error, when it fails or takes too long."""
        command = [str(pathlib.Path(self.options.heed).resolve()), *words, '--device', self.options.device]
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=max(5, self.left()), cwd=cwd)
        except subprocess.TimeoutExpired:
            print(f'{" ".join(words)}: no time left', file=sys.stderr)
            return []
        if done.returncode != 0:
            print(f'{" ".join(words)}: {done.stderr.strip()[-400:]}', file=sys.stderr)
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{')]


def train(session, part):
    """Turns of Heed, eager and compiled PyTorch; where a recipe has several attentions, all their peers compile at once."""
    options = session.options
    preset, full, small = RECIPES[part]
    kinds = ATTENTIONS if part in ('listops', 'image') else ATTENTIONS[:1]
    peers = {theirs: Peer(options, part, theirs) for _, theirs in kinds}
    try:
        for peer in peers.values():
            peer.wait(0.7 * session.left())
        for turn in range(options.rounds):
            for ours, theirs in kinds:
                if session.left() < 0:
                    return
                what = {'part': part, 'attention': ours, 'round': turn, 'precision': options.precision, 'small': options.small}
                rows = session.heed('bench', 'train', preset, *(small if options.small else full), '--attention', ours, '--json',
                                    '--precision', options.precision, '--rounds', str(options.steps))
                for row in rows[-1:]:
                    session.keep(what | {'program': 'heed'} | row)
                for way in ('eager', 'compiled'):
                    session.keep(what | {'program': way} | peers[theirs].ask(run=way, steps=options.steps))
    finally:
        for peer in peers.values():
            peer.end()


def attention(session):
    """Heed over all lengths of a width, then PyTorch over the same, again and again."""
    options = session.options
    peer = Peer(options, 'attention')
    try:
        peer.wait(0.7 * session.left())
        for turn in range(options.rounds):
            for width in WIDTHS:
                what = {'part': 'attention', 'round': turn, 'precision': options.precision, 'width': width, 'small': options.small}
                if session.left() < 0:
                    return
                for row in session.heed('bench', 'attention', 'fastmax:p=1', '--head-dim', str(width), '--longest', str(options.longest),
                                        '--precision', options.precision, '--json'):
                    session.keep(row | what | {'program': 'heed', 'kind': row['attention']})
                for causal in (False, True):
                    length = min(512, options.longest)
                    while length <= options.longest and session.left() > 0:
                        for kind in ('flash', 'cudnn', 'straightforward', 'linear'):
                            answer = peer.ask(kind=kind, width=width, causal=causal, length=length)
                            session.keep(answer | what | {'program': 'torch', 'kind': kind})
                        length *= 2
    finally:
        peer.end()


def whole_translation(session):
    """heed train translate-conti on pairs as many and as long as the recipe's, as far as the time goes."""
    options = session.options
    with tempfile.TemporaryDirectory() as folder:
        kept = 200 if options.small else 29098
        write_pairs(pathlib.Path(folder) / 'pairs.tsv', kept + 64, *((50, 60) if options.small else (15698, 22463)))
        small = ['--d-model', '32', '--heads', '2', '--d-ff', '32', '--max-length', '350'] if options.small else []
        session.heed('train', 'translate-conti', *small, '--data', 'pairs.tsv', '--name', 'timed', '--quiet', '--precision', options.precision,
                     '--epochs', str(options.epochs), '--set', 'data.validation=64', '--set', 'data.bleu_pairs=0',
                     '--set', 'train.validate_every=1000000', '--set', f'train.time_limit={max(5, int(session.left() * (0.5 if options.epochs == 1 else 0.9)))}', cwd=folder)
        log = pathlib.Path(folder) / 'runs/timed/metrics.jsonl'
        lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        steps = [(line['step'], line['seconds']) for line in lines if 'seconds' in line]
        if len(steps) > 1:
            session.keep({'part': 'translate', 'program': 'train', 'precision': options.precision, 'small': options.small, 'log': steps})


def main():
    options = arguments()
    if not options.table:
        session = Session(options)
        parts = options.parts or [*RECIPES, 'attention']
        for part in parts:
            if part == 'attention':
                attention(session)
                continue
            if part == 'translate':
                whole_translation(session)
            train(session, part)
    print(tables.markdown(tables.read(options.keep), options.parts))


main()
