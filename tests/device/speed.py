# Heed and PyTorch on one GPU, in turn: training steps and attention alone. JSON lines to --keep, a Markdown table to standard output.
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
PEERS = HERE.parent / 'peers'
# Heed's words, PyTorch's words, what is asked for against eager and compiled PyTorch. Tokens are random on both sides: no data is needed.
LRA = (('lra-listops', ['--max-length', '2048', '--batch', '32']), ('lra-image', ['--max-length', '1024', '--batch', '256']))
TRAINED = (
    ('shakespeare, bf16', ['gpt-6x6x384-dropout', '--batch', '64', '--precision', 'bf16'], ['shakespeare', '--bf16'], None, 1.3),
    *((f'{task}, {heed}', ['lra', *size, '--attention', heed], [task, '--attention', torch], 5, 2)
      for task, size in LRA for heed, torch in (('softmax', 'softmax'), ('fastmax:p=1', 'fastmax1'), ('fastmax:p=2', 'fastmax2'))),
    ('translate-conti', ['translator-literal'], ['translator-literal'], None, None),
)
# Heed's attention, PyTorch's, the precision.
ATTENTION = (('softmax', 'softmax', 'bf16', (32, 64, 128)), ('softmax', 'softmax', 'f32', (64,)), ('fastmax:p=1', 'fastmax1', 'f32', (32, 64, 128)))


def arguments():
    parser = argparse.ArgumentParser(description='Speed of Heed against PyTorch on a GPU, interleaved.')
    parser.add_argument('--heed', default='build/cuda/heed')
    parser.add_argument('--torch', default=sys.executable, help='a Python that has PyTorch')
    parser.add_argument('--device', default='cuda')
    parser.add_argument('--rounds', type=int, default=3, help='times each takes its turn')
    parser.add_argument('--seconds', type=float, default=240, help='after which no further row is begun')
    parser.add_argument('--keep', default='device-speed.jsonl', help='file that every measurement is added to')
    return parser.parse_args()


def lines(command):
    """The JSON lines that a command prints; none, with its last words on standard error, when it fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        print(f'{" ".join(command)}: {done.stderr.strip()[-300:]}', file=sys.stderr)
        return []
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{')]


def train(options, keep):
    began = time.monotonic()
    print('| training | Heed ms | MFU % | launches | eager ms | ratio | asked | compiled ms | ratio | asked |')
    print('|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|')
    for name, ours, theirs, eager_target, compiled_target in TRAINED:
        if time.monotonic() - began > options.seconds:
            print(f'| {name} | no time left | | | | | | | | |')
            continue
        torch = [options.torch, str(PEERS / 'speed_torch.py'), *theirs, '--best', '--device', options.device, '--seconds', '2']
        programs = {'heed': [options.heed, 'bench', 'train', *ours, '--device', options.device, '--json', '--rounds', '40'],
                    'eager': torch, 'compiled': [*torch, '--compile']}
        times = {program: [] for program in programs}
        mine = {}
        for _ in range(options.rounds):
            for program, command in programs.items():
                for row in lines(command)[-1:]:
                    keep(row | {'what': name, 'program': program})
                    times[program].append(row['step_ms'])
                    mine = row if program == 'heed' else mine
        middle = {program: statistics.median(values) if values else None for program, values in times.items()}
        cells = [f'{middle["heed"]:.2f}' if middle['heed'] else 'none', *(f'{mine[key]:.0f}' if key in mine else '' for key in ('mfu', 'launches'))]
        for program, target in (('eager', eager_target), ('compiled', compiled_target)):
            both = middle['heed'] and middle[program]
            cells += [f'{middle[program]:.2f}' if middle[program] else 'none', f'{middle[program] / middle["heed"]:.2f}x' if both else '',
                      f'{target}x' if target else '']
        print(f'| {name} | ' + ' | '.join(cells) + ' |', flush=True)


def attention(options, keep):
    print('\n| attention | length | Heed forward ms | step ms | PyTorch forward ms | step ms | forward ratio | step ratio |')
    print('|---|---:|---:|---:|---:|---:|---:|---:|')
    for ours, theirs, precision, widths in ATTENTION:
        for width in widths:
            rows = lines([options.heed, 'bench', 'attention', ours, '--head-width', str(width), '--longest', '16384', '--device', options.device,
                          '--precision', precision, '--json'])
            mine = {(row['causal'], row['length']): row for row in rows if row.get('attention') == ours}
            for causal in (False, True):
                beside = lines([options.torch, str(HERE / 'attention_torch.py'), '--kind', theirs, '--width', str(width), '--device', options.device,
                                *(['--causal'] if causal else []), *(['--bf16'] if precision == 'bf16' else [])])
                for row in beside:
                    own = mine.get((causal, row['length']))
                    keep(row | {'what': f'attention {ours}', 'precision': precision, 'heed': own})
                    if own is None:
                        continue
                    print(f'| {ours}, {precision}, d = {width}{", causal" if causal else ""} | {row["length"]:,} | {own["forward_ms"]:.3f} | {own["step_ms"]:.3f} | {row["forward_ms"]:.3f} | '
                          f'{row["step_ms"]:.3f} | {row["forward_ms"] / own["forward_ms"]:.2f}x | {row["step_ms"] / own["step_ms"]:.2f}x |', flush=True)


def main():
    options = arguments()
    with open(options.keep, 'a') as file:
        def keep(row):
            file.write(json.dumps(row) + '\n')
            file.flush()
        train(options, keep)
        attention(options, keep)


main()
