# What speed.py kept, as tables: medians, the medians of the rounds' ratios, what is asked for, and whether it is met.
import json
import pathlib
import statistics

# How many times as fast as eager and as compiled PyTorch; seconds of translate-conti; shares of FlashAttention and of the definition in PyTorch.
ASKED = {'shakespeare': {'compiled': 1.3}, 'gpt2': {}, 'listops': {'eager': 5, 'compiled': 2}, 'image': {'eager': 5, 'compiled': 2}, 'translate': {}}
SECONDS, STEPS = 300, 20 * 3638
FLASH, FASTMAX, FASTMAX_LENGTH = 0.8, 10, 16384
SOFTMAX = ('flash', 'cudnn')  # what PyTorch computes softmax attention by
NAMES = {'shakespeare': 'shakespeare', 'gpt2': 'gpt2-124m', 'listops': 'lra-listops-skyformer', 'image': 'lra-image-skyformer',
         'translate': 'translate-conti, a step; PyTorch pads to 350'}


def read(path):
    file = pathlib.Path(path)
    lines = file.read_text().splitlines() if file.exists() else []
    rows = []
    for line in lines:
        try:
            rows.append(json.loads(line))
        except ValueError:  # what a kill cut off
            pass
    return rows


def by_round(rows, key, **which):
    """The last value of each round."""
    return {row['round']: row[key] for row in rows if key in row and all(row.get(name) == value for name, value in which.items())}


def middle(values):
    return statistics.median(values.values()) if values else None


def ratio(ours, theirs):
    both = [theirs[turn] / ours[turn] for turn in ours if turn in theirs]
    return statistics.median(both) if both else None


def number(value, decimals=2):
    return 'none' if value is None else f'{value:,.{decimals}f}'


def times(value):
    return '' if value is None else f'{value:.2f}x'


def verdict(pairs, rehearsed):
    """Of ratios and what is asked of each; nothing where nothing is asked."""
    asked = [(value, target) for value, target in pairs if target]
    if not asked:
        return ''
    if rehearsed:
        return 'rehearsed'
    if any(value is None for value, _ in asked):
        return 'not measured'
    return 'hit' if all(value >= target for value, target in asked) else 'missed'


def training(rows, parts):
    out = []
    for part in parts:
        these = [row for row in rows if row['part'] == part and row['program'] in ('heed', 'eager', 'compiled')]
        for precision, attention in dict.fromkeys((row['precision'], row['attention']) for row in these):
            which = {'precision': precision, 'attention': attention}
            found = {program: by_round(these, 'step_ms', program=program, **which) for program in ('heed', 'eager', 'compiled')}
            eager, compiled = (ratio(found['heed'], found[way]) for way in ('eager', 'compiled'))
            last = {row['program']: row for row in these if row['attention'] == attention and row['precision'] == precision}
            asked = ASKED[part]
            words = ' and '.join(f'{target}x {way}' for way, target in asked.items())
            note = last.get('eager', {}).get('backend', '')
            mfu = last.get('heed', {}).get('mfu')
            out.append([f'{NAMES[part]}, {attention}, {precision}', number(middle(found['heed'])), '' if mfu is None else f'{mfu:.0f}',
                        number(middle(found['eager'])), times(eager), number(middle(found['compiled'])), times(compiled), words,
                        verdict(((eager, asked.get('eager')), (compiled, asked.get('compiled'))), any(row['small'] for row in last.values())), note, str(len(found['heed']))])
    return table(['training step', 'Heed ms', 'MFU %', 'eager ms', 'ratio', 'compiled ms', 'ratio', 'asked', 'verdict', 'attention of PyTorch', 'rounds'],
                 out)


def translation(rows):
    """20 epochs at the pace of the second half of what was run, when every shape has been seen."""
    out = []
    for row in rows:
        if row['part'] != 'translate' or row['program'] != 'train':
            continue
        (first, early), (last, late) = row['log'][len(row['log']) // 2], row['log'][-1]
        pace = (late - early) / max(1, last - first)
        seconds = late if last >= STEPS else pace * STEPS
        how = 'the whole run' if last >= STEPS else f'from {last:,} steps'
        sizes = ', small sizes' if row['small'] else ''
        out.append([f'translate-conti, 20 epochs, {row["precision"]}, {how}{sizes}', number(1e3 * pace, 3), number(seconds, 0), f'{SECONDS}',
                    verdict([(SECONDS / seconds, 1)], row['small'])])
    return table(['training run', 'ms a step', 'Heed s', 'asked: less than', 'verdict'], out)


def attention(rows):
    these = [row for row in rows if row['part'] == 'attention']
    beside = (('softmax', 'flash'), ('softmax', 'cudnn'), ('fastmax:p=1', 'straightforward'), ('fastmax:p=1', 'linear'))
    out = []
    for ours, theirs in beside:
        places = dict.fromkeys((row['width'], row['causal'], row['length'], row['precision']) for row in these
                               if row['program'] == 'torch' and row.get('kind') == theirs)
        for place in places:
            which = dict(zip(('width', 'causal', 'length', 'precision'), place))
            width, causal, length, precision = place
            cells, ratios = [], []
            for key in ('forward_ms', 'step_ms'):
                mine, other = (by_round(these, key, kind=kind, **which) for kind in (ours, theirs))
                ratios.append(ratio(mine, other))
                cells += [number(middle(mine), 3), number(middle(other), 3), times(ratios[-1])]
            asked = None
            if theirs in SOFTMAX and width in (64, 128) and precision == 'bf16':
                asked = FLASH
            if theirs == 'straightforward' and length == FASTMAX_LENGTH:
                asked = FASTMAX
            backend = next((row.get('backend') or row.get('error', '') for row in reversed(these) if row.get('kind') == theirs
                            and all(row.get(name) == value for name, value in which.items())), '')
            name = backend if theirs in SOFTMAX else f'{theirs} in PyTorch'
            out.append([f'{ours}, d = {width}{", causal" if causal else ""}, {precision}', f'{length:,}', name, *cells,
                        f'{asked}x' if asked else '', verdict([(value, asked) for value in ratios], any(row['small'] for row in these))])
    return table(['attention', 'length', 'beside', 'Heed forward ms', 'other', 'ratio', 'Heed step ms', 'other', 'ratio', 'asked', 'verdict'], out)


def table(heads, rows):
    if not rows:
        return ''
    lines = [heads, ['---' if i == 0 else '---:' for i in range(len(heads))], *rows]
    return '\n'.join('| ' + ' | '.join(line) + ' |' for line in lines) + '\n'


def markdown(rows, parts=()):
    parts = parts or [*ASKED, 'attention']
    found = [training(rows, [part for part in parts if part in ASKED]), translation(rows) if 'translate' in parts else '',
             attention(rows) if 'attention' in parts else '']
    versions = sorted({row['version'] for row in rows if 'version' in row})
    facts = f'PyTorch {", ".join(versions)}' if versions else 'PyTorch was not measured'
    machines = sorted({row['gpu'] for row in rows if row.get('gpu')})
    return '\n'.join([f'{"; ".join([*machines, facts])}. Medians of the rounds; a ratio is theirs over ours.\n', *[one for one in found if one]])
