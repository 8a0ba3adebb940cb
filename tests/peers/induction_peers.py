# The induction scores that a run keeps with its maps, beside those of TransformerLens on the same maps.
#   induction_peers.py RUN    trained with --maps-every N --maps-of INPUT, an input whose tokens occur at most twice
# 77: TransformerLens is missing.
import argparse
import json
import math
import pathlib
import struct
import sys

try:
    import numpy as np
    import torch
    from transformer_lens.head_detector import (
        compute_head_attention_similarity_score,
        get_induction_head_detection_pattern,
    )
except ImportError as error:
    print(f'skipped: {error}')
    sys.exit(77)


def kept_maps(path):
    """Of one file: tokens, weights [heads, queries, keys] and the induction score of each head, for maps of self-attention."""
    with open(path, 'rb') as file:
        entries = json.loads(file.read(struct.unpack('<Q', file.read(8))[0]))
        data = file.read()
    for one in json.loads(entries['__metadata__']['maps'])['maps']:
        if one['queries'] != one['keys']:
            continue
        entry = entries[one['tensor']]
        weights = np.frombuffer(data[slice(*entry['data_offsets'])], '<f4').reshape(entry['shape'])
        yield one['name'], one['queries'], weights, [head[6] for head in one['heads']]


def their_score(weights, tokens):
    """TransformerLens divides what falls on the pattern by all weight, which is one a row; Heed by the rows that have a place in it."""
    numbers = {token: number for number, token in enumerate(dict.fromkeys(tokens))}
    pattern = get_induction_head_detection_pattern(torch.tensor([[numbers[token] for token in tokens]]))
    rows = int((pattern.sum(1) > 0).sum())
    share = compute_head_attention_similarity_score(
        torch.from_numpy(weights.astype(np.float64)),
        pattern,
        exclude_bos=False,
        exclude_current_token=False,
        error_measure='mul',
    )
    return share * len(tokens) / rows if rows else math.nan


def main():
    parser = argparse.ArgumentParser(description='Holds induction scores to TransformerLens.')
    parser.add_argument('run', type=pathlib.Path)
    files = sorted((parser.parse_args().run / 'maps').glob('step_*.safetensors'))
    if not files:
        sys.exit('the run keeps no maps: train it with --maps-every N --maps-of INPUT')
    apart, compared, largest = 0.0, 0, 0.0
    for path in files:
        for name, tokens, weights, scores in kept_maps(path):
            if max(tokens.count(token) for token in tokens) > 2:
                sys.exit(f'{path.name}, {name}: a token occurs more than twice. TransformerLens adds up all its places.')
            if not np.allclose(weights, np.tril(weights)):
                continue  # TransformerLens knows maps of decoders alone
            for head, ours in enumerate(scores):
                theirs = their_score(weights[head], tokens)
                apart, largest, compared = max(apart, abs(theirs - ours)), max(largest, ours), compared + 1
                print(f'{path.stem} {name} head {head}: heed {ours:.8f}, TransformerLens {theirs:.8f}')
    print(f'{compared} scores, up to {largest:.3f}: {apart:.2e} apart, at most 1e-06')
    sys.exit(0 if compared and apart <= 1e-6 else 1)


main()
