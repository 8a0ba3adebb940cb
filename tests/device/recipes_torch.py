# The recipes that Heed is timed on, in plain PyTorch: model, loss, batches and optimizer of each, as `heed show PRESET` lists them.
import pathlib
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / 'peers'))
from models_torch import Block, Fastmax, LanguageModel, Translator  # noqa: E402


class LongClassifier(nn.Module):
    """lra-skyformer: embedding, learned positions, blocks, the mean of real tokens over the padded length, a head with a hidden layer."""

    def __init__(self, vocabulary, tokens, attention, width=64, heads=2, hidden=128, layers=2, head=128, classes=10, dropout=0.1):
        super().__init__()
        self.inputs, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(tokens, width)
        self.blocks = nn.ModuleList(Block(width, heads, hidden, dropout, attention_bias=True) for _ in range(layers))
        if attention != 'softmax':
            for block in self.blocks:
                block.attention = Fastmax(width, heads, dropout, int(attention[-1]))
        self.norm, self.drop = nn.LayerNorm(width), nn.Dropout(dropout)
        self.hidden, self.classes = nn.Linear(width, head), nn.Linear(head, classes)
        for table in (self.inputs, self.positions):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, ids, real):
        x = self.drop(self.inputs(ids) + self.positions.weight[:ids.shape[1]])
        for block in self.blocks:
            x = block(x, real[:, None, None, :])
        mean = (self.norm(x) * real[..., None]).sum(1) / self.positions.num_embeddings
        return self.classes(F.relu(self.hidden(mean)))


BATCHES = 8  # made once, and taken in turn


class Recipe:
    """What a step needs: the model, its loss of a batch, the batches, and what comes after the gradients."""
    clip_norm = grad_clip_value = 0

    def optimizer(self, fused):
        return self.kind(self.model.parameters(), **self.settings, **({'fused': True} if fused else {}))

    def clip(self):
        if self.clip_norm:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.clip_norm)
        if self.grad_clip_value:
            torch.nn.utils.clip_grad_value_(self.model.parameters(), self.grad_clip_value)


class Language(Recipe):
    """Next tokens of windows of a random text."""
    kind, clip_norm, flash = torch.optim.AdamW, 1.0, True

    def __init__(self, layers, heads, width, length, count, dropout, vocabulary, settings):
        self.model, self.vocabulary, self.settings = LanguageModel(layers, heads, width, length, dropout, vocabulary), vocabulary, settings
        text = torch.randint(0, vocabulary, (1000000,))
        places = torch.randint(0, len(text) - length - 1, (BATCHES, count, 1)) + torch.arange(length)
        self.batches = list(zip(text[places], text[places + 1]))

    def loss(self, ids, wanted):
        return F.cross_entropy(self.model(ids).view(-1, self.vocabulary), wanted.view(-1))


def shakespeare(attention, small):
    return Language(*((1, 2, 32, 16, 2) if small else (6, 6, 384, 256, 64)), 0.2, 65, {'lr': 1e-3, 'betas': (0.9, 0.99), 'weight_decay': 0.1})


def gpt2(attention, small):
    return Language(*((1, 2, 32, 16, 2) if small else (12, 12, 768, 1024, 16)), 0.0, 50304, {'lr': 6e-4, 'betas': (0.9, 0.95), 'weight_decay': 0.1})


class Long(Recipe):
    """Classes of long inputs. Each batch is as long as its longest input, which is `longest` in all, as in Heed's; so there is one shape."""
    kind, settings, grad_clip_value, flash = torch.optim.AdamW, {'lr': 1e-4, 'eps': 1e-6, 'weight_decay': 0.0}, 1.0, False

    def __init__(self, vocabulary, positions, count, shortest, longest, attention):
        self.model = LongClassifier(vocabulary, positions, attention)
        share = torch.rand(BATCHES, count, 1) ** 1.8  # so that half of the rows are padding, where the shortest is a quarter of the longest
        share[:, 0] = 1
        lengths = (shortest + share * (longest - shortest)).long()
        ids = torch.randint(1, vocabulary, (BATCHES, count, longest)).masked_fill(torch.arange(longest) >= lengths, 0)  # 0 is padding
        self.batches = list(zip(ids, ids != 0, torch.randint(0, 10, (BATCHES, count))))

    def loss(self, ids, real, wanted):
        return F.cross_entropy(self.model(ids, real), wanted)


def listops(attention, small):
    return Long(16, 64, 2, 20, 60, attention) if small else Long(16, 2048, 32, 500, 1984, attention)


def image(attention, small):
    return Long(256, 64, 2, 60, 64, attention) if small else Long(256, 1024, 256, 1000, 1024, attention)


class Translation(Recipe):
    """translate-conti as its authors train it: every sentence padded to 350, logits of padding too."""
    kind, settings, flash = torch.optim.Adam, {'lr': 1e-4, 'eps': 1e-9}, False

    def __init__(self, attention, small):
        self.length, self.words = (12, (50, 60)) if small else (350, (15698, 22463))
        self.model = Translator(*((32, 2, 32) if small else ()), longest=self.length, sources=self.words[0], targets=self.words[1])
        self.batches = [self.batch() for _ in range(BATCHES)]

    def batch(self):
        lengths = torch.exp(torch.randn(2, 8, 1) * 0.7 + 3.156).clamp(4, self.length - 2)
        source, wanted = (torch.randint(4, words, (8, self.length)).masked_fill(torch.arange(self.length) >= one, 1)
                          for words, one in zip(self.words, lengths))
        return source, torch.roll(wanted, 1, 1), wanted

    def loss(self, source, given, wanted):
        return F.cross_entropy(self.model(source, given).view(-1, self.words[1]), wanted.view(-1), ignore_index=1, label_smoothing=0.1)


RECIPES = {'shakespeare': shakespeare, 'gpt2': gpt2, 'listops': listops, 'image': image, 'translate': Translation}
