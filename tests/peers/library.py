#!/usr/bin/env python3
"""The example programs beside the same in libtorch: lines, time to compile and link, size. The table of docs/results/library.md.

    cmake --install build/release --prefix PREFIX --component development
    PKG_CONFIG_PATH=PREFIX/lib/pkgconfig python3 tests/peers/library.py      # needs libtorch-dev
"""
import argparse
import os
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAMS = ('csv_classifier', 'own_attention', 'reversal_maps', 'own_program', 'translate', 'own_op', 'vision_transformer',
            'llama', 'two_towers', 'heads_of_own_model')
TORCH = ['-isystem', '/usr/include/torch/csrc/api/include'], ['-ltorch', '-ltorch_cpu', '-lc10']


def output(*command, **options):
    done = subprocess.run(command, text=True, capture_output=True, **options)
    if done.returncode != 0:
        print(shlex.join(command), done.stderr, sep='\n', file=sys.stderr)
    done.check_returncode()
    return done.stdout


def lines(path):
    """Lines that are neither blank nor a comment: grep -cvE '^ *(//.*)?$'."""
    return sum(not re.match(r' *(//.*)?$', line.rstrip('\n')) for line in open(path))


def compiled(source, program, flags, libraries):
    """Seconds to compile with -O2, and to link."""
    began = time.monotonic()
    output('g++', '-std=c++20', '-O2', *flags, '-c', source, '-o', program + '.o')
    middle = time.monotonic()
    output('g++', program + '.o', '-o', program, *libraries, '-pthread')
    return middle - began, time.monotonic() - middle


def bytes_of(program):
    """Of the stripped program, and of it with all shared libraries that it loads."""
    output('strip', program)
    loaded = set(re.findall(r'(/\S+) \(0x', output('ldd', program)))
    return os.path.getsize(program), os.path.getsize(program) + sum(os.path.getsize(path) for path in loaded)


def run_torch(work):
    """Runs each program of libtorch and prints what it says: own_attention and llama on the README or TEXT,
    vision_transformer on the folder MNIST, two_towers on the lines "English<tab>Italian" of PAIRS."""
    output('g++', *TORCH[0], f'{ROOT}/tests/peers/libtorch/copying_model.cpp', '-o', work + '/copying_model', *TORCH[1])
    output(work + '/copying_model', work)
    learned = ('own_attention', 'run', os.environ.get('TEXT', ROOT + '/README.md'))
    extra = [(name, *words, os.environ[given]) for name, given, *words in (('vision_transformer', 'MNIST', 'seen'),
                                                                           ('two_towers', 'PAIRS')) if given in os.environ]
    for name, *words in (('csv_classifier', ROOT + '/tests/example/plants.csv'), learned, learned,
                         ('reversal_maps', 'cross.svg'), ('own_program', 'train', 'letters', '--steps', '200'),
                         ('own_program', 'evaluate', 'letters'), ('own_program', 'count', 'abba'), ('translate', work),
                         ('own_op',), ('llama', learned[2]), *extra, ('heads_of_own_model',)):
        began = time.monotonic()
        said = subprocess.run([f'{work}/torch_{name}', *words], cwd=work, text=True, capture_output=True,
                              input='Anna reads books.\n')
        print(f'{name} {shlex.join(words)}: {said.stdout.strip() or said.stderr.strip()}', said.returncode,
              f'{time.monotonic() - began:.1f} s', flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--rounds', type=int, default=3, help='each program is compiled so often, in turn (default: 3)')
    parser.add_argument('--run', action='store_true', help='also run the programs of libtorch')
    parser.add_argument('programs', nargs='*', default=PROGRAMS, help='which programs (default: all)')
    asked = parser.parse_args()
    heed = [shlex.split(output('pkg-config', *which, 'heed')) for which in (['--cflags'], ['--libs', '--static'])]
    kinds = {'heed': (ROOT + '/tests/example', *heed), 'torch': (ROOT + '/tests/peers/libtorch', *TORCH)}
    seconds = {}
    with tempfile.TemporaryDirectory() as work:
        for number in range(asked.rounds):
            for name in asked.programs:
                for kind, (folder, flags, libraries) in kinds.items():
                    took = compiled(f'{folder}/{name}.cpp', f'{work}/{kind}_{name}', flags, libraries)
                    seconds.setdefault((kind, name), []).append(took)
                    print(number, kind, name, *(f'{part:.2f}' for part in took), file=sys.stderr, flush=True)
            if asked.run and number == 0:
                run_torch(work)
        print('| program | lines: Heed | libtorch | compile + link, s: Heed | libtorch | program, MB: Heed | libtorch '
              '| with shared libraries, MB: Heed | libtorch |\n|---|---|---|---|---|---|---|---|---|')
        for name in asked.programs:
            cells = [name, *(lines(f'{folder}/{name}.cpp') for folder, *_ in kinds.values())]
            for kind in kinds:
                parts = [statistics.median(part) for part in zip(*seconds[kind, name])]
                cells.append(f'{parts[0]:.1f} + {parts[1]:.1f}')
            sizes = [bytes_of(f'{work}/{kind}_{name}') for kind in kinds]
            cells += [f'{size[0] / 1e6:.1f}' for size in sizes] + [f'{size[1] / 1e6:.0f}' for size in sizes]
            print('| ' + ' | '.join(map(str, cells)) + ' |')


main()
