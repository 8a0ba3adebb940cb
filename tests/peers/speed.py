# Training steps, and decoded tokens, of Heed and of PyTorch in turn, and the table of their ratios. See README.md beside it.
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
# Heed's row, PyTorch's row. Real work only stands beside each way of feeding PyTorch the same sentences.
PAIRS = (('baby', 'baby'), ('baby-dropout', 'baby-dropout'), ('gpt-6x6x384', 'gpt-6x6x384'),
         ('gpt-6x6x384-dropout', 'gpt-6x6x384-dropout'), ('translator-literal', 'translator-literal'),
         ('translator-padded', 'translator-literal'), ('translator-real', 'translator-literal'),
         ('translator-real', 'translator-batch'), ('translator-real', 'translator-buckets'), ('lra', 'lra'),
         ('lra-fastmax2', 'lra-fastmax2'), ('pixels', 'pixels'), ('patches', 'patches'))
# Heed's row, how many outputs at once, and of how many hypotheses each: 1 is greedy.
DECODED = (('baby', 1, 1), ('baby, bf16', 1, 1), ('gpt-6x6x384', 1, 1), ('gpt-6x6x384, bf16', 1, 1), ('translator-literal', 1, 1),
           ('translator-literal, bf16', 1, 1), ('gpt-6x6x384', 32, 1), ('translator-literal', 32, 1), ('baby', 1, 4),
           ('gpt-6x6x384', 1, 4), ('translator-literal', 1, 4), ('translator-literal, bf16', 1, 4), ('translator-literal', 32, 4))
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
    parser.add_argument('--decode', action='store_true', help='decoding from the same weights instead of training')
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
        settings['LD_LIBRARY_PATH'] = options.openblas
    return plain() | settings


def programs(options):
    """Name, Python of its PyTorch (none: Heed), environment."""
    out = [('heed', None, plain()), ('best', options.torch, best(options, True)), ('installed', options.torch, plain())]
    if options.torch2:
        out += [('best2', options.torch2, best(options, False)), ('installed2', options.torch2, plain())]
    return out


def run(command, environment):
    """The JSON lines that a command prints; none, with its last words, when it fails."""
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        print(f'{" ".join(command)}: {done.stderr.strip()[-400:]}', file=sys.stderr)
        return []
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{')]


def measure(options, what, commands, pick, sink):
    """`commands` gives what a program is asked; `pick` is true for the line that counts; `what` names the pair."""
    for _ in range(options.rounds):
        said = []
        for name, python, environment in programs(options):
            lines = [line for line in run(commands(python, name), environment) if pick(line)]
            if lines:
                sink(lines[-1] | what | {'program': name, 'asked_threads': options.threads})
                said.append(f'{name} {lines[-1]["tokens_per_s"]:.0f} tokens/s')
        print(f'{what["heed_row"]} against {what["torch_row"]}: {", ".join(said)}', file=sys.stderr, flush=True)


def measure_training(options, pair, sink):
    threads = ['--threads', str(options.threads)]

    def commands(python, name):
        if python is None:
            return [options.heed, 'bench', 'train', pair[0], '--json', *threads]
        more = ['--best'] if name.startswith('best') else []
        return [python, str(HERE / 'speed_torch.py'), pair[1], '--seconds', str(options.seconds), *threads, *more]

    measure(options, {'heed_row': pair[0], 'torch_row': pair[1]}, commands, lambda line: 'step_ms' in line, sink)


def decoding(batch, beam):
    return f'batch {batch}, ' + ('greedy' if beam == 1 else f'beam {beam}')


def measure_decoding(options, row, batch, beam, sink):
    threads = ['--threads', str(options.threads)]
    model, _, precision = row.partition(', ')
    with tempfile.TemporaryDirectory() as folder:
        def commands(python, name):
            if python is None:
                return [options.heed, 'bench', 'decode', model, '--json', '--out', folder, *threads,
                        '--precision', precision or 'f32']
            return [python, str(HERE / 'decode_torch.py'), folder, model, '--batch', str(batch), '--beam', str(beam),
                    '--seconds', str(options.seconds), *threads]

        measure(options, {'heed_row': row, 'torch_row': decoding(batch, beam)}, commands,
                lambda line: (line['batch'], line['beam']) == (batch, beam), sink)


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


def show(results, threads, decode):
    """The table; rows of which Heed was not measured are left out."""
    results = [r for r in results if r['asked_threads'] == threads]
    versions = {r['program']: r['version'] for r in results if 'version' in r}
    names = ['best', 'installed'] + (['best2', 'installed2'] if 'best2' in versions else [])
    titles = {'heed': 'Heed', 'best': 'best', 'installed': 'as installed', 'best2': '2.x best', 'installed2': '2.x as installed'}
    key, unit = ('tokens_per_s', 'tokens/s') if decode else ('step_ms', 'ms')
    pairs = [(row, decoding(*how)) for row, *how in DECODED] if decode else PAIRS
    print(f'{threads} threads; PyTorch {versions.get("best", "not measured")}'
          + (f' and {versions["best2"]}' if 'best2' in versions else '')
          + f'; medians; ratios of {"" if decode else "real "}tokens a second\n')
    heads = ['Heed', 'PyTorch', f'Heed {unit}']
    for name in names:
        heads += [f'{titles[name]} {unit}', 'ratio']
    if not decode:
        heads += [f'{titles[name]} MiB' for name in ['heed', *names]]
    print('| ' + ' | '.join(heads) + ' |')
    print('|---|---|' + '---:|' * (len(heads) - 2))
    for pair in pairs:
        if median_of(results, 'heed', pair, key) is None:
            continue
        cells = [*pair, number(median_of(results, 'heed', pair, key))]
        for name in names:
            cells += [number(median_of(results, name, pair, key)), ratio(results, pair, name)]
        if not decode:
            cells += [number(median_of(results, name, pair, 'process_mib'), 0) for name in ['heed', *names]]
        print('| ' + ' | '.join(cells) + ' |')
    disturbed = {r['heed_row'] for r in results if r.get('interruptions_per_s', 0) > 100}
    if disturbed:
        print(f'\nOther programs were at work on this machine during: {", ".join(sorted(disturbed))}.')
    parted = [r for r in results if r.get('same_tokens', r.get('tokens')) != r.get('tokens') and 'version' in r]
    if decode and parted:
        print(f'\nOutputs differed in {len(parted)} runs of PyTorch.')


def main():
    options = arguments()
    results = []
    if options.keep and pathlib.Path(options.keep).exists():
        results = [json.loads(line) for line in pathlib.Path(options.keep).read_text().splitlines()]
    known = list(dict.fromkeys(row for row, *_ in (DECODED if options.decode else PAIRS)))
    unknown = [row for row in options.rows if row not in known]
    if unknown:
        sys.exit(f'unknown: {", ".join(unknown)}. Known: {", ".join(known)}')
    if not options.show and not pathlib.Path(options.openblas).is_dir():
        sys.exit(f'--openblas {options.openblas}: there is no such folder. PyTorch is not at its best without the OpenMP build '
                 'of OpenBLAS: install libopenblas0-openmp, or name the folder it was unpacked into.')

    def sink(result):
        results.append(result)
        if options.keep:
            with open(options.keep, 'a') as file:
                file.write(json.dumps(result) + '\n')

    for row, *other in () if options.show else DECODED if options.decode else PAIRS:
        if options.rows and row not in options.rows:
            continue
        if options.decode:
            measure_decoding(options, row, *other, sink)
        else:
            measure_training(options, (row, *other), sink)
    show(results, options.threads, options.decode)


main()
