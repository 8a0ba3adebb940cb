# Compares the sequences of the task mqar with those of Zoology's own generator:
#     python3 tests/peers/zoology_mqar.py build/release/heed --zoology FOLDER
# FOLDER is a checkout of HazyResearch/zoology. Needs torch, NumPy, pydantic.
import argparse
import sys
import unittest.mock

import numpy as np

from draws import exported, same_law


def features(inputs, labels, pairs):
    """For each sequence: whole numbers whose laws are compared."""
    context = 2 * pairs
    first = inputs[:, :context]
    asked = labels != -100
    out = {'scored places': asked.sum(1), 'last key': first[:, -2] // 256, 'last value': first[:, -1] // 256,
           'first key, modulo 16': first[:, 0] % 16, 'first value, modulo 16': first[:, 1] % 16,
           'smallest key': first[:, 0::2].min(1) // 64, 'largest value': first[:, 1::2].max(1) // 64}
    for pair in (0, 1, pairs - 1):
        matches = asked & (labels == first[:, 2 * pair + 1][:, None])
        out[f'gap of pair {pair}'] = (matches.argmax(1) - context) // 2
    out['largest gap'] = (labels.shape[1] - 1 - asked[:, ::-1].argmax(1) - context) // 2
    out['places of odd number that are scored'] = asked[:, 1::2].sum(1)
    out['token behind the context'] = np.minimum(inputs[:, context + 1], 1) if inputs[:, context + 1].max() == 0 \
        else inputs[:, context + 1] // 512
    return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('heed')
    parser.add_argument('--zoology', required=True)
    parser.add_argument('--count', type=int, default=4000)
    a = parser.parse_args()
    sys.path.insert(0, a.zoology)
    for unused in ('wandb', 'pandas'):  # what Zoology imports and a generator does not need
        sys.modules.setdefault(unused, unittest.mock.MagicMock())
    from zoology.data.multiquery_ar import multiquery_ar
    fine = True
    for length, pairs, alpha, filler in ((64, 4, 0.01, False), (128, 8, 0.01, False), (256, 16, 0.01, False),
                                         (512, 64, 0.01, False), (64, 4, 0.5, False), (64, 4, 1.0, True)):
        print(f'length {length}, {pairs} pairs, alpha {alpha}' + (', random filler' if filler else ''))
        theirs = multiquery_ar(vocab_size=8192, num_examples=a.count, input_seq_len=length, seed=5, power_a=alpha,
                               num_kv_pairs=pairs, random_non_queries=filler)
        inputs, labels = exported(a.heed, 'mqar', a.count, 'train', [
            f'data.length={length}', f'model.max_length={length}', f'data.kv_pairs={pairs}', f'data.alpha={alpha}',
            f'data.random_filler={str(filler).lower()}', 'model.d_model=8'])
        of_theirs = features(theirs.inputs.numpy(), theirs.labels.numpy(), pairs)
        for name, values in features(inputs, labels, pairs).items():
            fine &= same_law('  ' + name, values, of_theirs[name])
    print('the laws agree' if fine else 'SOME LAWS DIFFER')
    return 0 if fine else 1


if __name__ == '__main__':
    sys.exit(main())
