# The page of `heed inspect` beside others' tools on the same maps. See README.md beside it.
#   maps_peers.py FOLDER    of --out: maps.html, *.npy
# NumPy: the rollout anew. BertViz: the weights inside its HTML are those inside ours. 77: a judge is missing; it is named.
import argparse
import base64
import json
import pathlib
import re
import sys

try:
    import numpy as np
except ImportError:
    print('skipped: NumPy is missing')
    sys.exit(77)

faults, missing = [], []


def verdict(what, apart, within):
    print(f'{what}: {apart:.2e} apart, at most {within:.0e}')
    if not apart <= within:
        faults.append(what)


def page_maps(page):
    """The maps inside a page: kind, layer, tokens and weights [heads, queries, keys] as far as they are whole."""
    data = json.loads(re.search(r'<script type="application/json">(.*?)</script>', page.read_text(), re.DOTALL)[1])
    for one in data['maps']:
        block = one['weights']['whole'] or one['weights']['view']
        raw = base64.b64decode(block['bytes'])
        if block['code'] == 'f32':
            weights = np.frombuffer(raw, '<f4').reshape(block['shape'])
        elif block['code'] == 'u16':
            weights = (
                block['low']
                + (block['high'] - block['low']) * np.frombuffer(raw, '<u2').reshape(block['shape']) / 65534
            )
        else:
            continue
        yield one['kind'], one['layer'], data['tokens'][one['rows']], data['tokens'][one['columns']], weights


def rollout(layers):
    """Abnar and Zuidema 2020: the mean of the heads and the identity, rows divided by their sums, layer by layer."""
    flow = None
    for layer in layers:
        mixed = layer.astype(np.float64).mean(0) + np.eye(layer.shape[-1])
        mixed /= mixed.sum(-1, keepdims=True)
        flow = mixed if flow is None else mixed @ flow
        yield flow


def judge_rollout(folder):
    for stack in ('encoder-self', 'decoder-self'):
        files = sorted(folder.glob(f'{stack}-*-rollout.npy'), key=lambda path: int(path.name.split('-')[2]))
        layers = [np.load(folder / path.name.replace('-rollout', '')) for path in files]
        for path, flow in zip(files, rollout(layers)):
            verdict(f'NumPy, {path.name}', np.abs(np.load(path) - flow).max(), 1e-6)


def bertviz_attention(html):
    """The attentions inside BertViz's HTML: {name: [layers, heads, queries, keys]}."""
    start = html.index('"attention": [')
    listed = json.JSONDecoder().raw_decode(html[start + len('"attention": ') :])[0]
    return {one['name']: np.array(one['attn'], np.float64) for one in listed}


def judge_bertviz(maps):
    try:
        import torch
        from bertviz import head_view, model_view
    except ImportError as error:
        missing.append(f'BertViz ({error})')
        return
    stacks = {}
    for kind, layer, queries, keys, weights in maps:
        stacks.setdefault(kind, []).append((layer, queries, keys, weights))
    for stack in stacks.values():
        stack.sort(key=lambda one: one[0])
    given = {
        kind: [torch.tensor(np.array(one[3], np.float32))[None] for one in stack] for kind, stack in stacks.items()
    }
    for draw in (head_view, model_view):
        if 'cross' in stacks:
            html = draw(
                encoder_attention=given['encoder self'],
                decoder_attention=given['decoder self'],
                cross_attention=given['cross'],
                encoder_tokens=list(stacks['encoder self'][0][1]),
                decoder_tokens=list(stacks['decoder self'][0][1]),
                html_action='return',
            )
            pairs = {'Encoder': 'encoder self', 'Decoder': 'decoder self', 'Cross': 'cross'}
        else:
            kind = next(iter(stacks))
            html = draw(given[kind], list(stacks[kind][0][1]), html_action='return')
            pairs = {None: kind}
        theirs = bertviz_attention(html.data)
        for name, kind in pairs.items():
            ours = np.stack([one[3] for one in stacks[kind]]).astype(np.float32).astype(np.float64)
            verdict(f'BertViz {draw.__name__}, {kind}', np.abs(theirs[name] - ours).max(), 0)


def judge_files(folder, maps):
    for kind, layer, _, _, weights in maps:
        saved = np.load(folder / f'{kind.replace(" ", "-")}-{layer}.npy')
        step = (max(saved.max(), 0) - min(saved.min(), 0)) / 65534
        verdict(f'page and npy, {kind} {layer}', np.abs(saved - weights).max(), step)


def main():
    parser = argparse.ArgumentParser(description='Holds the maps of a page to other tools.')
    parser.add_argument('folder', type=pathlib.Path, help='what heed inspect --out wrote')
    folder = parser.parse_args().folder
    maps = list(page_maps(folder / 'maps.html'))
    judge_files(folder, maps)
    judge_rollout(folder)
    judge_bertviz(maps)
    for judge in missing:
        print(f'skipped: {judge} is missing')
    for fault in faults:
        print(f'wrong: {fault}')
    sys.exit(1 if faults else 77 if missing else 0)


main()
