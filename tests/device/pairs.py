# Sentence pairs of the size of opus_books en-it in random words: as many types, lengths log-normal with mean 30, each type at least twice.
import random


def write_pairs(path, count, *types):
    draw = random.Random(1)
    lengths = []
    for _ in range(count):
        first = min(max(round(draw.lognormvariate(3.156, 0.7)), 2), 300)
        lengths.append((first, min(max(round(first * draw.lognormvariate(-0.011, 0.15)), 2), 300)))
    sides = []
    for side, most in enumerate(types):
        total = sum(pair[side] for pair in lengths)
        words = [f'{"st"[side]}{i % most}' for i in range(2 * most)]
        ranks = [f'{"st"[side]}{int(most ** draw.random()) - 1}' for _ in range(max(0, total - len(words)))]  # Zipf's law
        words = (words + ranks)[:total]
        draw.shuffle(words)
        words = iter(words)
        sides.append([' '.join(next(words) for _ in range(pair[side])) for pair in lengths])
    path.write_text(''.join(f'{source}\t{target}\n' for source, target in zip(*sides)))
