# Compares the sequences of the tasks mad-* with those of MAD's own generators, in training and in the test:
#     python3 tests/peers/mad_generators.py build/release/heed --mad FOLDER
# FOLDER is a checkout of athms/mad-lab. Needs NumPy; with torchmetrics it compares the accuracy's average, too.
import argparse
import importlib.util
import sys

import numpy as np

from draws import exported, same_law

RECALL = dict(vocab_size=16, seq_len=128, noise_vocab_size=0, multi_query=True)
TASKS = {  # preset: generator of mad/data/instances.py, its arguments (configs/tasks/), settings of Heed
    'mad-recall': [('generate_in_context_recall_instance', RECALL, ()),
                   ('generate_in_context_recall_instance', dict(RECALL, vocab_size=64, seq_len=256),
                    ('data.vocabulary=64', 'data.length=256'))],
    'mad-noisy': [('generate_noisy_in_context_recall_instance',
                   dict(vocab_size=32, seq_len=128, noise_vocab_size=16, frac_noise=0.2, multi_query=True), ()),
                  ('generate_noisy_in_context_recall_instance',
                   dict(vocab_size=32, seq_len=128, noise_vocab_size=16, frac_noise=0.8, multi_query=True),
                   ('data.noise=0.8',))],
    'mad-fuzzy': [('generate_fuzzy_in_context_recall_instance',
                   dict(vocab_size=16, seq_len=128, k_motif_size=3, v_motif_size=3, multi_query=True), ()),
                  ('generate_fuzzy_in_context_recall_instance',
                   dict(vocab_size=16, seq_len=256, k_motif_size=2, v_motif_size=3, multi_query=True),
                   ('data.length=256', 'data.max_key=2'))],
    'mad-copy': [('generate_selective_copying_instance', dict(vocab_size=16, seq_len=256, num_tokens_to_copy=16), ()),
                 ('generate_selective_copying_instance', dict(vocab_size=32, seq_len=256, num_tokens_to_copy=96),
                  ('data.vocabulary=32', 'data.copied=96'))],
    'mad-compress': [('generate_compression_instance', dict(vocab_size=16, seq_len=32), ())],
    'mad-memorize': [('generate_memorization_instance', dict(vocab_size=256, seq_len=32), ())],
}


def generators(folder):
    spec = importlib.util.spec_from_file_location('instances', folder + '/mad/data/instances.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def features(preset, tokens, targets, vocabulary):
    """For each sequence: whole numbers whose laws are compared."""
    length = tokens.shape[1]
    scored = targets >= 0
    out = {'length': np.full(len(tokens), length), 'scored places': scored.sum(1), 'first scored place': scored.argmax(1),
           'last scored place': length - 1 - scored[:, ::-1].argmax(1), 'different tokens': [len(set(row)) for row in tokens],
           'last target': targets[:, -1] % 64, 'sum of tokens, modulo 7': tokens.sum(1) % 7}
    for place in (0, 1, length // 2, length // 2 + 1, length - 2, length - 1):
        out[f'token {place}'] = tokens[:, place] if vocabulary <= 64 else tokens[:, place] // 8
    same = tokens[:, :-1] == tokens[:, -1:]
    out['distance to the last token before'] = np.where(same.any(1), same[:, ::-1].argmax(1) + 1, 0)
    most = np.array([np.bincount(row, minlength=vocabulary).max() for row in tokens])
    out['occurrences of the commonest token'] = most
    if preset == 'mad-copy':
        blank = tokens == vocabulary - 2
        out['blanks in front'] = (~blank).argmax(1)
        middle = [np.flatnonzero(~row[:-1]) for row in blank]
        out['blanks before the second token'] = [m[1] - m[0] - 1 for m in middle]
        out['blanks before the token that asks'] = [m[-1] - m[-2] - 1 for m in middle]
    if preset == 'mad-fuzzy':
        out['padding'] = (tokens != vocabulary - 1).argmax(1)
        keys = (vocabulary - 1) // 2
        is_key = tokens < keys
        out['runs of keys'] = (is_key[:, 1:] & ~is_key[:, :-1]).sum(1)
        out['tokens of keys'] = is_key.sum(1)
    return out


def accuracy_agrees():
    """The average of accuracy over tokens, on the example of tests/train/tasks/synthetic/."""
    try:
        import torch
        from torchmetrics.classification import MulticlassAccuracy
    except ImportError:
        print('accuracy: torchmetrics is missing')
        return True
    metric = MulticlassAccuracy(num_classes=4, ignore_index=-100)
    found = float(metric(torch.tensor([0, 0, 1, 3, 2]), torch.tensor([0, 1, 1, 1, -100])))
    print(f'accuracy of torchmetrics {found:.6f}, of Heed {4 / 9:.6f}')
    return abs(found - 4 / 9) < 1e-6


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('heed')
    parser.add_argument('--mad', required=True)
    parser.add_argument('--count', type=int, default=4000)
    parser.add_argument('--presets', nargs='*', default=list(TASKS))
    a = parser.parse_args()
    mad = generators(a.mad)
    np.random.seed(7)  # insert_indices of selective copying come from the global generator
    fine = accuracy_agrees()
    for preset in a.presets:
        for name, arguments, settings in TASKS[preset]:
            for split in ('train', 'test'):
                print(f'{preset} {split} {" ".join(settings)}')
                rng = np.random.default_rng(11)
                theirs = [getattr(mad, name)(rng=rng, is_training=split == 'train', **arguments) for _ in range(a.count)]
                tokens, targets = exported(a.heed, preset, a.count, split,
                                           ['model.d_model=16', 'model.heads=2', 'model.layers=1', *settings])
                vocabulary = arguments['vocab_size']
                of_theirs = features(preset, np.array([t[0] for t in theirs]), np.array([t[1] for t in theirs]), vocabulary)
                for what, values in features(preset, tokens, targets, vocabulary).items():
                    if preset == 'mad-memorize' and what == 'last target':
                        continue  # each program has a map of its own
                    fine &= same_law('  ' + what, values, of_theirs[what])
    print('the laws agree' if fine else 'SOME LAWS DIFFER')
    return 0 if fine else 1


if __name__ == '__main__':
    sys.exit(main())
