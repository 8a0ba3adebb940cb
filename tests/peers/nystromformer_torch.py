# Nystromformer in plain PyTorch, for arena_torch.py: equations 13 to 15 of arXiv 2102.03902 over segments at fixed places,
# with the start of the inverse, the padding and the convolution of its authors' code (mlpen/Nystromformer).
import math
import sys

import torch
import torch.nn.functional as F


def attend(q, k, v, hidden, conv, spec):
    """q, k, v [B, H, T, d]; hidden: True at padding, [B, 1, 1, T], or None; conv [H, kernel] or None -> [B, H, T, d]."""
    options = dict(part.split('=') for part in spec.partition(':')[2].split(',') if part)
    landmarks, segment = int(options.get('landmarks', 64)), int(options.get('segment', 0))
    if segment == 0 or options.get('init') != 'original':
        sys.exit(f'{spec}: only init=original with segment > 0 is known here')
    if hidden is not None:
        q, k, v = (x.masked_fill(hidden.transpose(2, 3), 0) for x in (q, k, v))
    scale = 1 / math.sqrt(q.shape[-1])
    of_queries, of_keys = (means(x, landmarks, segment) for x in (q, k))
    to_landmarks = (q @ of_keys.transpose(2, 3) * scale).softmax(-1)
    corner = (of_queries @ of_keys.transpose(2, 3) * scale).softmax(-1)
    to_keys = of_queries @ k.transpose(2, 3) * scale
    if hidden is not None:
        to_keys = to_keys.masked_fill(hidden, -math.inf)
    y = to_landmarks @ inverse(corner, int(options.get('iterations', 6))) @ (to_keys.softmax(-1) @ v)
    if conv is None:
        return y
    batch, heads, length, width = v.shape
    columns = v.permute(0, 3, 1, 2).reshape(batch * width, heads, length)
    mixed = F.conv1d(columns, conv[:, None], padding=conv.shape[1] // 2, groups=heads)
    return y + mixed.view(batch, width, heads, length).permute(0, 2, 3, 1)


def means(x, landmarks, segment):
    """Of [B, H, T, d] with zeros behind it, segment by segment: [B, H, landmarks, d]."""
    whole = F.pad(x, (0, 0, 0, landmarks * segment - x.shape[2]))
    return whole.view(*x.shape[:2], landmarks, segment, x.shape[3]).mean(3)


def inverse(corner, iterations):
    one = torch.eye(corner.shape[-1], dtype=corner.dtype)
    z = corner.transpose(2, 3) / corner.sum(2).max()
    for _ in range(iterations):
        product = corner @ z
        z = z @ (13 * one - product @ (15 * one - product @ (7 * one - product))) / 4
    return z
