# A curriculum: runs of heed, each from the weights of the one before, on harder data. A finished run is not trained again, and a
# stopped one is resumed.
import argparse
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def parser_of(description, out, stages):
    """The command line of a curriculum of `stages` runs in the folder `out`."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument('--heed', default=str(ROOT / 'build/release/heed'))
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--stages', type=int, default=stages, choices=range(1, stages + 1), help='only the first so many')
    parser.add_argument('--out', default=out, help='folder of the runs')
    return parser


def parsed(parser):
    """The options; ends with what to do where the program is missing."""
    options = parser.parse_args()
    if not pathlib.Path(options.heed).is_file():
        sys.exit(f'{options.heed} is not there. Build it (./heed builds it), or name the program: --heed PATH.')
    return options


def run_stage(number, begin, settings, options):
    """Trains or resumes stage `number`, the first one with the arguments `begin`: best validation and test accuracy in percent."""
    folder = pathlib.Path(options.out)
    run = folder / f'stage-{number}'
    if not (run / 'scores.json').exists():
        command = [options.heed, 'resume', str(run)]
        if not (run / 'manifest.json').exists():
            start = begin if number == 1 else ['--from', str(folder / f'stage-{number - 1}')]
            command = [options.heed, 'train', *start, '--out', str(folder), '--name', run.name, '--threads', str(options.threads)]
            for key, value in {**settings, 'train.seed': options.seed}.items():
                command += ['--set', f'{key}={value}']
        try:
            subprocess.run(command, check=True)
        except subprocess.CalledProcessError as error:
            sys.exit(error.returncode)  # heed has said why
    metrics = [json.loads(line) for line in (run / 'metrics.jsonl').read_text().splitlines()]
    best = max(line['valid_accuracy'] for line in metrics if 'valid_accuracy' in line)
    return 100 * best, 100 * json.loads((run / 'scores.json').read_text())['accuracy']
