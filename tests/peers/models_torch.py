# Transformers in plain PyTorch, as its users write them: what speed_torch.py and tests/device/ time Heed against.
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

TILED = hasattr(F, 'scaled_dot_product_attention')


def attend(q, k, v, dropout, causal=False, allowed=None):
    """softmax(q k^T / sqrt(d)) v; the tiled kernel where this PyTorch has one."""
    if TILED:
        if causal and allowed is not None:
            n = q.shape[2]
            allowed, causal = allowed & torch.ones(n, n, dtype=torch.bool, device=q.device).tril(), False
        return F.scaled_dot_product_attention(q, k, v, attn_mask=allowed, dropout_p=dropout, is_causal=causal)
    scores = q @ k.transpose(2, 3) * (1 / math.sqrt(q.shape[3]))
    if causal:
        n = q.shape[2]
        scores = scores.masked_fill(~torch.ones(n, n, dtype=torch.bool).tril(), -math.inf)
    if allowed is not None:
        scores = scores.masked_fill(~allowed, -1e9)
    return F.dropout(scores.softmax(3), dropout) @ v


class SelfAttention(nn.Module):
    def __init__(self, width, heads, dropout, causal, bias):
        super().__init__()
        self.heads, self.dropout, self.causal = heads, dropout, causal
        self.inner = nn.Linear(width, 3 * width, bias=bias)
        self.outer = nn.Linear(width, width, bias=bias)

    def forward(self, x, allowed=None):
        b, t, w = x.shape
        q, k, v = self.inner(x).view(b, t, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
        return self.outer(self.mixed(q, k, v, allowed).transpose(1, 2).reshape(b, t, w))

    def mixed(self, q, k, v, allowed):
        return attend(q, k, v, self.dropout if self.training else 0.0, self.causal, allowed)


def unit(x):
    """What Fastmax does to queries and keys, and Heed too: mean 0 and deviation 1."""
    x = x - x.mean(3, keepdim=True)
    return x / (x.square().mean(3, keepdim=True) + 1e-6).sqrt()


class Fastmax(SelfAttention):
    """Full Fastmax in linear time: 1 + s (+ s^2 / 2) as products of features of queries and keys, the keys of padding left out."""

    def __init__(self, width, heads, dropout, order):
        super().__init__(width, heads, dropout, False, True)
        self.order = order

    def mixed(self, q, k, v, allowed):
        a, b = (self.features(unit(x)) for x in (q, k))
        if allowed is not None:
            b = b * allowed.transpose(2, 3)
        return (a @ (b.transpose(2, 3) @ v)) / (a @ b.sum(2)[..., None])

    def features(self, x):
        """Dropout is of what is multiplied: of entries where the order is 1, else of the monomials of degree 2."""
        one = torch.ones_like(x[..., :1])
        if self.order == 1:
            return torch.cat((one, F.dropout(x, self.dropout, self.training)), 3)
        squares = (x[..., :, None] * x[..., None, :]).flatten(3) * 0.5 ** 0.5
        return torch.cat((one, x, F.dropout(squares, self.dropout, self.training)), 3)


class CrossAttention(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.query, self.outer = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.inner = nn.Linear(width, 2 * width, bias=False)

    def forward(self, x, encoded, allowed):
        b, t, w = x.shape
        q = self.query(x).view(b, t, self.heads, -1).transpose(1, 2)
        k, v = self.inner(encoded).view(b, -1, 2, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
        y = attend(q, k, v, self.dropout if self.training else 0.0, allowed=allowed)
        return self.outer(y.transpose(1, 2).reshape(b, t, w))


class Block(nn.Module):
    """Pre-norm: attention, perhaps attention to an encoder, and the two-layer network, each with its residual."""

    def __init__(self, width, heads, hidden, dropout, causal=False, cross=False, attention_bias=False, bias=True,
                 activation=F.gelu):
        super().__init__()
        self.attention_norm, self.forward_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = SelfAttention(width, heads, dropout, causal, attention_bias)
        self.cross = CrossAttention(width, heads, dropout) if cross else None
        self.cross_norm = nn.LayerNorm(width) if cross else None
        self.up, self.down = nn.Linear(width, hidden, bias=bias), nn.Linear(hidden, width, bias=bias)
        self.drop, self.activation, self.inner_drop = nn.Dropout(dropout), activation, nn.Dropout(dropout if cross or not causal else 0)

    def forward(self, x, allowed=None, encoded=None, encoded_allowed=None):
        x = x + self.drop(self.attention(self.attention_norm(x), allowed))
        if self.cross is not None:
            x = x + self.drop(self.cross(self.cross_norm(x), encoded, encoded_allowed))
        return x + self.drop(self.down(self.inner_drop(self.activation(self.up(self.forward_norm(x))))))


class LanguageModel(nn.Module):
    def __init__(self, layers, heads, width, context, dropout, vocabulary=65):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads, 4 * width, dropout, causal=True, bias=False) for _ in range(layers))
        self.norm, self.drop = nn.LayerNorm(width), nn.Dropout(dropout)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, ids):
        x = self.drop(self.tokens(ids) + self.positions.weight[:ids.shape[1]])
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.tokens.weight)


class Translator(nn.Module):
    def __init__(self, width=512, heads=8, hidden=2048, longest=350, sources=15698, targets=22463, dropout=0.1):
        super().__init__()
        self.width = width
        self.source, self.target = nn.Embedding(sources, width), nn.Embedding(targets, width)
        angle = torch.arange(longest)[:, None] * torch.exp(torch.arange(0, width, 2) * (-math.log(1e4) / width))
        self.register_buffer('positions', torch.stack((angle.sin(), angle.cos()), 2).view(longest, width))
        self.encoder = Block(width, heads, hidden, dropout, activation=F.relu)
        self.decoder = Block(width, heads, hidden, dropout, causal=True, cross=True, activation=F.relu)
        self.encoder_norm, self.decoder_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.output, self.drop = nn.Linear(width, targets), nn.Dropout(dropout)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)

    def embedded(self, table, ids):
        return self.drop(table(ids) * math.sqrt(self.width) + self.positions[:ids.shape[1]])

    def forward(self, source, target):
        seen, made = (source != 1)[:, None, None, :], (target != 1)[:, None, None, :]
        encoded = self.encoder_norm(self.encoder(self.embedded(self.source, source), seen))
        return self.output(self.decoder_norm(self.decoder(self.embedded(self.target, target), made, encoded, seen)))


class Classifier(nn.Module):
    def __init__(self, tokens, width, hidden, layers, heads, vocabulary, attention='softmax'):
        super().__init__()
        self.inputs = nn.Embedding(vocabulary, width) if vocabulary else nn.Linear(16, width)
        self.positions = nn.Parameter(torch.randn(tokens, width) * 0.02)
        self.blocks = nn.ModuleList(Block(width, heads, hidden, 0.0, attention_bias=True) for _ in range(layers))
        if attention != 'softmax':
            for block in self.blocks:
                block.attention = Fastmax(width, heads, 0.0, int(attention[-1]))
        self.norm, self.classes = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, x):
        x = self.inputs(x) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.classes(self.norm(x).mean(1))
