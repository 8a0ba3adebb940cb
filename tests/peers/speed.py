# Steps of Heed and of PyTorch in turn, and the table of their ratios. See README.md beside it.
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
# Heed's row, PyTorch's row. Real work only stands beside each way of feeding PyTorch the same sentences.
PAIRS = (('baby', 'baby'), ('baby-dropout', 'baby-dropout'), ('gpt-6x6x384', 'gpt-6x6x384'),
         ('gpt-6x6x384-dropout', 'gpt-6x6x384-dropout'), ('translator-literal', 'translator-literal'),
         ('translator-padded', 'translator-literal'), ('translator-real', 'translator-literal'),
         ('translator-real', 'translator-batch'), ('translator-real', 'translator-buckets'), ('lra', 'lra'),
         ('pixels', 'pixels'), ('patches', 'patches'))
DECIDING = ('OPENBLAS_', 'OMP_', 'MKL_', 'ATEN_', 'MALLOC_', 'KMP_', 'GOMP_')


def arguments():
    parser = argparse.ArgumentParser(description='Training speed of Heed against PyTorch, interleaved.')
    parser.add_argument('rows', nargs='*', help="Heed's rows; none: all")
    parser.add_argument('--heed', default=str(HERE.parent.parent / 'build/release/heed'), help='the program')
    parser.add_argument('--torch', default='/usr/bin/python3', help='a Python that has PyTorch 1')
    parser.add_argument('--torch2', default='', help='a Python that has PyTorch 2')
    parser.add_argument('--openblas', default='/usr/lib/x86_64-linux-gnu/openblas-openmp',
                        help='folder of the OpenMP build of OpenBLAS, for PyTorch at its best')
    parser.add_argument('--threads', type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument('--rounds', type=int, default=3, help='times each program takes its turn')
    parser.add_argument('--seconds', type=float, default=3, help='of steps in a turn')
    parser.add_argument('--keep', metavar='FILE', help='add what is measured to this file, and show all that it holds')
    parser.add_argument('--show', action='store_true', help='measure nothing: show what --keep holds')
    return parser.parse_args()


def plain():
    """The environment without what decides the speed of BLAS, threads and memory."""
    return {name: value for name, value in os.environ.items() if not name.startswith(DECIDING)}


def best(options, debian):
    settings = {'MALLOC_MMAP_THRESHOLD_': '17179869184', 'MALLOC_TRIM_THRESHOLD_': '17179869184',
                'MALLOC_TOP_PAD_': '67108864'}
    if debian:
        settings |= {'ATEN_CPU_CAPABILITY': 'avx512', 'OPENBLAS_CORETYPE': 'SkylakeX'}
        if pathlib.Path(options.openblas).is_dir():
            settings['LD_LIBRARY_PATH'] = options.openblas
    return plain() | settings


def programs(options):
    """Name, command of a pair of rows, environment."""
    seconds = str(options.seconds)

    def torch(python, more):
        return lambda heed, row: [python, str(HERE / 'speed_torch.py'), row, '--seconds', seconds] + more

    threads = ['--threads', str(options.threads)]
    out = [('heed', lambda heed, row: [options.heed, 'bench', 'train', heed, '--json', *threads], plain()),
           ('best', torch(options.torch, threads + ['--best']), best(options, True)),
           ('installed', torch(options.torch, threads), plain())]
    if options.torch2:
        out += [('best2', torch(options.torch2, threads + ['--best']), best(options, False)),
                ('installed2', torch(options.torch2, threads), plain())]
    return out


def measure(options, pair, sink):
    for _ in range(options.rounds):
        done = {}
        for name, command, environment in programs(options):
            run = subprocess.run(command(*pair), env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            lines = [line for line in run.stdout.splitlines() if line.startswith('{')]
            if run.returncode != 0 or not lines:
                print(f'{name} failed on {pair}: {run.stderr.strip()[-400:]}', file=sys.stderr)
                continue
            result = json.loads(lines[-1]) | {'program': name, 'heed_row': pair[0], 'torch_row': pair[1],
                                              'asked_threads': options.threads}
            done[name] = result
            sink(result)
        said = ', '.join(f'{name} {one["step_ms"]:.1f} ms' for name, one in done.items())
        print(f'{pair[0]} against {pair[1]}: {said}', file=sys.stderr, flush=True)


def median_of(results, program, pair, key):
    values = [r[key] for r in results
              if r['program'] == program and (r['heed_row'], r['torch_row']) == pair and key in r]
    return statistics.median(values) if values else None


def number(value, decimals=1):
    return '' if value is None else f'{value:.{decimals}f}'


def ratio(results, pair, program):
    """How many times as many real tokens a second Heed does: the median of the rounds' ratios is robust to drift."""
    ours, theirs = ([r['tokens_per_s'] for r in results if r['program'] == name and (r['heed_row'], r['torch_row']) == pair]
                    for name in ('heed', program))
    both = [a / b for a, b in zip(ours, theirs)]
    return f'{statistics.median(both):.2f}x' if both else ''


def show(results, threads):
    results = [r for r in results if r['asked_threads'] == threads]
    versions = {r['program']: r['version'] for r in results if 'version' in r}
    second = 'best2' in versions
    print(f'{threads} threads; PyTorch {versions.get("best", "not measured")}'
          + (f' and {versions["best2"]}' if second else '') + '; medians; ratios of real tokens a second\n')
    heads = ['Heed', 'PyTorch', 'Heed ms', 'best ms', 'ratio', 'as installed ms', 'ratio']
    if second:
        heads += ['2.x best ms', 'ratio', '2.x as installed ms', 'ratio']
    heads += ['Heed MiB', 'best MiB', 'as installed MiB'] + (['2.x MiB'] if second else [])
    print('| ' + ' | '.join(heads) + ' |')
    print('|---|---|' + '---:|' * (len(heads) - 2))
    for pair in PAIRS:
        if median_of(results, 'heed', pair, 'step_ms') is None:
            continue
        names = ['best', 'installed'] + (['best2', 'installed2'] if second else [])
        cells = [*pair, number(median_of(results, 'heed', pair, 'step_ms'))]
        for name in names:
            cells += [number(median_of(results, name, pair, 'step_ms')), ratio(results, pair, name)]
        for name in ['heed', 'best', 'installed'] + (['best2'] if second else []):
            cells.append(number(median_of(results, name, pair, 'process_mib'), 0))
        print('| ' + ' | '.join(cells) + ' |')


def main():
    options = arguments()
    results = []
    if options.keep and pathlib.Path(options.keep).exists():
        results = [json.loads(line) for line in pathlib.Path(options.keep).read_text().splitlines()]
    unknown = [row for row in options.rows if row not in {heed for heed, _ in PAIRS}]
    if unknown:
        sys.exit(f'unknown: {", ".join(unknown)}. Known: {", ".join(dict.fromkeys(heed for heed, _ in PAIRS))}')

    def sink(result):
        results.append(result)
        if options.keep:
            with open(options.keep, 'a') as file:
                file.write(json.dumps(result) + '\n')

    for pair in PAIRS:
        if not options.show and (not options.rows or pair[0] in options.rows):
            measure(options, pair, sink)
    show(results, options.threads)


main()
