# The classifier of token sequences of the Long Range Arena in plain PyTorch, trained on what `heed export PRESET --out DIR
# --rounds N` wrote; see README.md beside it.
import torch
import torch.nn.functional as F

import heed_torch
import nystromformer_torch


class Classifier(heed_torch.Model):
    """An encoder over tokens, and one class for all of them."""

    attentions = ('encoder',)
    kinds = ('softmax', 'nystromformer')

    def attend(self, q, k, v, hidden, name):
        spec = self.config['attention']['encoder']
        if not spec.startswith('nystromformer'):
            return super().attend(q, k, v, hidden, name)
        return nystromformer_torch.attend(q, k, v, hidden, self.weights.get(name + '.conv'), spec)

    def loss(self, batch, smoothing):
        ids, lengths = batch['ids'], batch.get('lengths')
        rows, columns = ids.shape
        x = self.weights['embedder.tokens.weight'][ids] * self.scale
        first = self.config['model']['pool'] == 'first'
        if first:
            x = torch.cat((self.weights['first'].expand(rows, -1, -1), x), 1)
        table, places = self.position('embedder.position'), batch.get('places')
        if places is None or table is None:
            x = self.placed(x, table)
        else:
            x = self.drop(x + table[places])
        hidden = None
        if lengths is not None:
            hidden = torch.arange(x.shape[1])[None, :] >= lengths[:, None]
        x = self.stack(x, None if hidden is None else hidden[:, None, None, :], 'encoder')
        x = x[:, 0] if first else self.mean(x, hidden)
        if 'hidden.weight' in self.weights:
            x = F.relu(self.linear(x, 'hidden'))
        return F.cross_entropy(self.linear(x, 'classes'), batch['targets'], label_smoothing=smoothing)

    def mean(self, x, hidden):
        over = self.config['data']['mean_over']
        if hidden is None or over == 'all':
            return x.mean(1)
        total = x.masked_fill(hidden[:, :, None], 0).sum(1)
        if over == 'padded':
            return total / self.config['model']['max_length']
        return total / (~hidden).sum(1, keepdim=True)


heed_torch.train(Classifier)
