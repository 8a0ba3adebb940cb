# ListOps by growing expressions: six runs, each from the weights of the one before, the last on the benchmark's lengths.
# Prints a Markdown table. A finished run is not trained again, and a stopped one is resumed.
import argparse
import json
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# Tokens above and below, depth of the grammar, share of operators, steps, steps between validations, batch, learning rate, examples.
STAGES = (
    (4, 14, 2, 0.5, 1500, 250, 256, 1e-3, 40000),
    (10, 64, 3, 0.5, 2000, 250, 128, 1e-3, 40000),
    (32, 128, 10, 0.25, 2500, 250, 64, 1e-3, 40000),
    (64, 256, 10, 0.25, 3000, 500, 32, 1e-3, 40000),
    (200, 1000, 10, 0.25, 1500, 250, 16, 3e-4, 40000),
    (500, 2000, 10, 0.25, 1000, 100, 32, 3e-4, 96000),
)


def run_of(stage, number, folder, options):
    """Trains or resumes one stage; the folder of its run."""
    shortest, below, depth, operators, steps, validate_every, batch, rate, examples = stage
    run = folder / f'stage-{number}'
    if (run / 'scores.json').exists():
        return run
    if (run / 'manifest.json').exists():
        subprocess.run([options.heed, 'resume', str(run)], check=True)
        return run
    begin = ['lra-listops', '--recipe', 'tiny', '--max-length', '2048', *shlex.split(options.settings)] if number == 1 else \
        ['--from', str(folder / f'stage-{number - 1}')]
    settings = {'data.shortest': shortest, 'data.below': below, 'data.depth': depth, 'data.arguments': 10, 'data.operators': operators,
                'data.num_examples': examples, 'train.max_steps': steps, 'train.batch_size': batch, 'train.learning_rate': rate,
                'train.validate_every': validate_every, 'train.seed': options.seed}
    command = [options.heed, 'train', *begin, '--out', str(folder), '--name', run.name, '--threads', str(options.threads)]
    for key, value in settings.items():
        command += ['--set', f'{key}={value}']
    subprocess.run(command, check=True)
    return run


def main():
    parser = argparse.ArgumentParser(description='ListOps by growing expressions.')
    parser.add_argument('--heed', default=str(ROOT / 'build/release/heed'))
    parser.add_argument('--settings', default='--attention delta:gated=true --causal true --pool last --position none',
                        help='of the model, as heed train takes them')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--stages', type=int, default=len(STAGES), choices=range(1, len(STAGES) + 1), help='only the first so many')
    parser.add_argument('--out', default='runs/listops-curriculum', help='folder of the runs')
    options = parser.parse_args()
    folder = pathlib.Path(options.out)
    if not pathlib.Path(options.heed).is_file():
        sys.exit(f'{options.heed} is not there. Build it (./heed builds it), or name the program: --heed PATH.')
    lines = ['| tokens | depth | steps | validation, best | test |', '|---|---:|---:|---:|---:|']
    for number, stage in enumerate(STAGES[:options.stages], 1):
        try:
            run = run_of(stage, number, folder, options)
        except subprocess.CalledProcessError as error:
            sys.exit(error.returncode)  # heed has said why
        metrics = [json.loads(line) for line in (run / 'metrics.jsonl').read_text().splitlines()]
        best = max(line['valid_accuracy'] for line in metrics if 'valid_accuracy' in line)
        test = json.loads((run / 'scores.json').read_text())['accuracy']
        lines.append(f'| {stage[0]} to {stage[1]} | {stage[2]} | {stage[4]:,} | {100 * best:.1f} % | {100 * test:.1f} % |')
    print('\n'.join(lines))


if __name__ == '__main__':
    sys.exit(main())
