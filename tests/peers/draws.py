# What the judges of generated sequences share: reading examples that `heed export` wrote, and comparing two samples.
# Needs NumPy.
import json
import math
import struct
import subprocess
import tempfile

import numpy as np


def tensors(path):
    """The tensors of a safetensors file of i32, by name."""
    with open(path, 'rb') as file:
        header = json.loads(file.read(struct.unpack('<Q', file.read(8))[0]))
        data = file.read()
    header.pop('__metadata__', None)
    return {name: np.frombuffer(data[slice(*entry['data_offsets'])], '<i4').reshape(entry['shape'])
            for name, entry in header.items() if entry['dtype'] == 'I32'}


def exported(heed, preset, count, split, settings=()):
    """`count` sequences of a preset: tokens [count, T], and targets [count, T] with -100 where nothing is asked."""
    with tempfile.TemporaryDirectory() as folder:
        out = folder + '/start'
        more = (['--test-examples', str(count), '--set', f'data.test_size={count}'] if split == 'test' else
                ['--rounds', '1', '--batch-size', str(count), '--set', f'data.num_examples={count}'])
        command = [heed, 'export', preset, '--out', out, '--device', 'cpu', *more]
        for setting in settings:
            command += ['--set', setting]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        one = tensors(out + ('/test.safetensors' if split == 'test' else '/batches.safetensors'))
    part = {name.split('.', 1)[1]: values for name, values in one.items()}
    targets = np.full(part['ids'].size, -100)
    targets[part['places']] = part['targets']
    return part['ids'], targets.reshape(part['ids'].shape)


def same_law(name, ours, theirs):
    """Prints the chi-square of two samples of whole numbers, one for each sequence; False where p is below 1e-4."""
    ours, theirs = np.asarray(ours).ravel(), np.asarray(theirs).ravel()
    both = np.concatenate([ours, theirs])
    kinds = np.unique(both)
    a = np.array([(ours == k).sum() for k in kinds], float)
    b = np.array([(theirs == k).sum() for k in kinds], float)
    # Categories of few examples are joined with the next, so that the chi-square law holds.
    cells, open_cell = [], np.zeros(2)
    for pair in np.stack([a, b], 1):
        open_cell = open_cell + pair
        if open_cell.sum() >= 20:
            cells.append(open_cell)
            open_cell = np.zeros(2)
    if cells:
        cells[-1] = cells[-1] + open_cell
    table = np.array(cells)
    freedom = len(table) - 1
    if freedom < 1:
        fine = set(ours) == set(theirs)
        print(f'{name:58s} both are {kinds[0]}' if fine and len(kinds) == 1 else f'{name:58s} too few categories')
        return fine
    expected = table.sum(1, keepdims=True) * table.sum(0) / table.sum()
    chi = ((table - expected) ** 2 / expected).sum()
    z = ((chi / freedom) ** (1 / 3) - (1 - 2 / (9 * freedom))) / math.sqrt(2 / (9 * freedom))  # Wilson and Hilferty
    p = 0.5 * math.erfc(z / math.sqrt(2))
    print(f'{name:58s} means {ours.mean():9.3f} {theirs.mean():9.3f}   chi-square {chi:7.1f} of {freedom:3d}   p {p:.3f}')
    return p > 1e-4
