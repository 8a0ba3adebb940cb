# The language model in plain PyTorch, trained on what `heed export PRESET --out DIR --rounds N` wrote; see README.md beside it.
import torch.nn.functional as F

import heed_torch


class LanguageModel(heed_torch.Model):
    """A causal decoder, GPT-2's shape where the preset says so."""

    attentions = ('decoder',)

    def loss(self, batch, smoothing):
        ids, table = batch['input'], self.weights['embedder.tokens.weight']
        x = self.placed(F.embedding(ids, table) * self.scale, self.position('embedder.position'))
        x = self.stack(x, heed_torch.future(ids.shape[1]), 'decoder')
        logits = self.linear(x, 'output') if 'output.weight' in self.weights else F.linear(x, table)
        return F.cross_entropy(logits.flatten(0, 1), batch['targets'].flatten(), label_smoothing=smoothing)


heed_torch.train(LanguageModel)
