# The classifier of images in plain PyTorch, trained on what `heed export PRESET --out DIR --rounds N` wrote; see README.md
# beside it.
import torch
import torch.nn.functional as F

import heed_torch


class Classifier(heed_torch.Model):
    """An encoder over patches, and one class for all of them."""

    attentions = ('encoder',)

    def loss(self, batch, smoothing):
        x = self.linear(batch['patches'], 'patches')
        first = self.config['model']['pool'] == 'first'
        if first:
            x = torch.cat((self.weights['first'].expand(len(x), -1, -1), x), 1)
        x = self.stack(self.placed(x, self.position('position')), None, 'encoder')
        x = x[:, 0] if first else x.mean(1)
        if 'hidden.weight' in self.weights:
            x = F.relu(self.linear(x, 'hidden'))
        return F.cross_entropy(self.linear(x, 'classes'), batch['targets'], label_smoothing=smoothing)


heed_torch.train(Classifier)
