# The translator in plain PyTorch, trained on what `heed export PRESET --out DIR --rounds N` wrote; see README.md beside it.
import torch
import torch.nn.functional as F

import heed_torch


class Translator(heed_torch.Model):
    """The encoder-decoder."""

    attentions = ('encoder', 'decoder', 'cross')

    def __init__(self, weights, config, with_dropout):
        super().__init__(weights, config, with_dropout)
        # Tied tables are in the file once, under the first of their names.
        tied = config['model']['tie_embeddings'] == 'all'
        self.tables = {'source': 'source.tokens.weight', 'target': f'{"source" if tied else "target"}.tokens.weight'}
        self.positions = {side: self.position(side + '.position') for side in ('source', 'target')}

    def embed(self, ids, side):
        return self.placed(F.embedding(ids, self.weights[self.tables[side]]) * self.scale, self.positions[side])

    def loss(self, batch, smoothing):
        source, target = batch['source'], batch['target_in']
        padding = (torch.arange(source.shape[1])[None] >= batch['source_lengths'][:, None])[:, None, None]
        encoded = self.stack(self.embed(source, 'source'), padding, 'encoder')
        x = self.stack(self.embed(target, 'target'), heed_torch.future(target.shape[1]), 'decoder', encoded, padding)
        x = x.reshape(-1, self.width)[batch['places']]
        if 'output.weight' in self.weights:
            logits = self.linear(x, 'output')
        else:
            logits = F.linear(x, self.weights[self.tables['target']])
        return F.cross_entropy(logits, batch['targets'], label_smoothing=smoothing)


heed_torch.train(Translator)
