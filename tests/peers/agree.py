# Losses of Heed and PyTorch, step by step, from the same weights, batches and rates: python3 agree.py HEED [ROW ...]
# prints the table of docs/results/exactness.md and fails where a bound is passed. HEED is the program; see README.md.
import argparse
import json
import os
import subprocess
import sys
import tempfile

SHORT = '--shortest 50 --below 200 --num-examples 500 --validation 50 --test-size 50'
ROWS = {  # name: (what, program, settings, precision, steps, bound)
    't64': ('translator', 'translate_torch.py', 'translate --warmup-steps 2', 'f64', 20, 1e-10),
    'l64': ('language model', 'lm_torch.py', 'shakespeare-cpu --warmup-steps 2', 'f64', 20, 1e-10),
    'c64': ('classifier', 'classify_torch.py', 'mnist --epochs 0 --warmup-steps 2', 'f64', 20, 1e-10),
    # The Arena's recipes, with inputs of up to 200 tokens; rates and momenta are checked against PyTorch's OneCycleLR.
    'n64': ('ListOps, recipe nystrom', 'arena_torch.py', f'lra-listops-nystrom {SHORT} --warmup-steps 5', 'f64', 20, 1e-10),
    'y64': ('the same with Nystromformer', 'arena_torch.py', f'lra-listops-nystrom {SHORT} --warmup-steps 5 --attention '
            'nystromformer:landmarks=16,init=original,kernel=35,segment=13', 'f64', 20, 1e-10),
    'g64': ('ListOps, recipe google', 'arena_torch.py',
            f'lra-listops-google {SHORT} --d-model 64 --d-ff 64 --layers 2 --warmup-steps 5', 'f64', 20, 1e-10),
    'p64': ('Pathfinder, recipe google', 'arena_torch.py',
            'lra-pathfinder-google --num-examples 200 --validation 20 --test-size 20 --batch-size 8 --warmup-steps 5',
            'f64', 20, 1e-10),
    't32': ('translator, GELU', 'translate_torch.py', 'translate --activation gelu', 'f32', 100, 1e-4),
    'l32': ('language model', 'lm_torch.py', 'shakespeare-cpu', 'f32', 100, 1e-4),
    'c32': ('classifier', 'classify_torch.py', 'mnist --epochs 0', 'f32', 100, 1e-4),
    # ReLU tells signs that single precision cannot: PyTorch is as far from itself, nudged by one rounding (docs/results/exactness.md).
    'r32': ('translator, ReLU', 'translate_torch.py', 'translate', 'f32', 100, 3.2e-4),
}


def main():
    parser = argparse.ArgumentParser(description='How near Heed and PyTorch stay to each other.')
    parser.add_argument('heed', help='the program, such as build/release/heed')
    parser.add_argument('rows', nargs='*', choices=[*ROWS, []], help='which rows; all when none is named')
    parser.add_argument('--threads', default='1', help='of PyTorch')
    a = parser.parse_args()
    here, heed, failed = os.path.dirname(os.path.abspath(__file__)), os.path.abspath(a.heed), False
    print('| what | precision | settings | steps | largest relative difference of a loss | at step | of a gradient norm | asked |')
    print('|---|---|---|---|---|---|---|---|')
    for name in a.rows or ROWS:
        what, program, settings, precision, steps, bound = ROWS[name]
        with tempfile.TemporaryDirectory() as folder:
            common = [*settings.split(), '--steps', str(steps), '--precision', precision, '--dropout', '0',
                      '--attention-dropout', '0', '--validate-every', str(steps)]
            quiet = {'cwd': folder, 'check': True, 'stdout': subprocess.DEVNULL}
            subprocess.run([heed, 'export', *common, '--out', 'start', '--rounds', str(steps)], **quiet)
            subprocess.run([heed, 'train', *common, '--name', 'peer', '--quiet'], **quiet)
            out = subprocess.run([sys.executable, os.path.join(here, program), 'start', '--dtype', precision, '--quiet',
                                  '--threads', a.threads, '--compare', 'runs/peer/metrics.jsonl'],
                                 cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout
        found = json.loads(out.splitlines()[-1])
        worst = found['largest_relative_difference']
        failed = failed or found['compared'] != steps or not worst <= bound
        print(f'| {what} | {precision} | `{settings}` | {steps} | {worst:.1e} | {found["at_step"]} | '
              f'{found["of_gradient_norm"]:.1e} | {bound} |', flush=True)
    sys.exit('a bound is passed, or steps are missing' if failed else 0)


main()
