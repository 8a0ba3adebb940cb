# Packed recall with every way of attending: trains each for 300 steps and prints a Markdown table of test accuracies.
# Runs go to the folder given; one that is there already is not trained again.
import argparse
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# Specs beside the defaults of every variant: what a user would try next.
MORE = ('fastmax:p=1', 'fastmax:p=1,normalise=l2', 'fastmax:p=3', 'fastmax:p=0', 'kernel:kernel=exp', 'hard:mode=expect', 'window:left=2,right=2')


def name_of(spec):
    return ''.join(c if c.isalnum() else '-' for c in spec)


def train(heed, folder, spec, causal, steps):
    """Accuracy and seconds of a run, or the reason why there is none."""
    run = folder / name_of(spec)
    if not (run / 'scores.json').exists():
        done = subprocess.run([heed, 'train', 'recall', '--attention', spec, '--set', f'data.causal={str(causal).lower()}', '--steps', str(steps),
                               '--out', str(folder), '--name', run.name, '--quiet'], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            return None, done.stderr.strip().removeprefix('error: ')
    lines = [json.loads(line) for line in (run / 'metrics.jsonl').read_text().splitlines()]
    last = [line['valid_accuracy'] for line in lines if 'valid_accuracy' in line][-1]
    speed = sorted(line['tokens_per_second'] for line in lines if 'tokens_per_second' in line)
    return (last, speed[len(speed) // 2]), ''


def main():
    parser = argparse.ArgumentParser(description='Packed recall with every way of attending.')
    parser.add_argument('specs', nargs='*', help='attentions; none: all variants and a few options')
    parser.add_argument('--heed', default=str(ROOT / 'build/release/heed'))
    parser.add_argument('--steps', type=int, default=300)
    parser.add_argument('--out', default='runs/recall', help='folder of the runs')
    options = parser.parse_args()
    listed = json.loads(subprocess.run([options.heed, 'list', 'attention', '--json'], stdout=subprocess.PIPE, check=True).stdout)
    traits = {row['name']: row for row in listed}
    print(f'| attention | looks | accuracy at step {options.steps} | tokens/s | note |\n|---|---|---:|---:|---|')
    for spec in options.specs or [*traits, *MORE]:
        row = traits.get(spec.split(':')[0])
        if row is None:
            sys.exit(f'{spec}: heed lists no such attention.')
        causal = not row['full']
        found, why = train(options.heed, pathlib.Path(options.out), spec, causal, options.steps)
        numbers = f'{100 * found[0]:.1f} % | {found[1]:.0f}' if found else ' | '
        print(f'| {spec} | {"back" if causal else "both ways"} | {numbers} | {why} |', flush=True)


main()
