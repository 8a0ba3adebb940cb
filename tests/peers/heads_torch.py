# Ablation of heads in plain PyTorch: hooks zero a head before the output projection, and the change of loss is compared
# with that of `heed ablate`. python3 tests/peers/heads_torch.py build/release/heed RUN [--examples 200] [--within 1e-5]
import argparse
import json
import math
import os
import struct
import subprocess
import sys
import tempfile
import tomllib

try:
    import numpy as np
    import torch
    import torch.nn.functional as F
except ImportError as missing:
    print(f'skipped: {missing}')
    sys.exit(77)

TYPES = {'F32': '<f4', 'F64': '<f8', 'I32': '<i4', 'I64': '<i8', 'U8': 'u1'}


def safetensors(path):
    with open(path, 'rb') as file:
        length = struct.unpack('<Q', file.read(8))[0]
        entries, data = json.loads(file.read(length)), file.read()
    entries.pop('__metadata__', None)
    return {name: torch.from_numpy(np.frombuffer(bytearray(data[slice(*entry['data_offsets'])]),
                                                 TYPES[entry['dtype']]).reshape(entry['shape']))
            for name, entry in entries.items()}


class Attention(torch.nn.Module):
    """Plain softmax attention; `output` is the module whose inputs the hooks edit."""

    def __init__(self, weights, name, heads):
        super().__init__()
        self.heads = heads
        for part in ('query', 'key', 'value', 'output'):
            weight, bias = weights[f'{name}.{part}.weight'], weights.get(f'{name}.{part}.bias')
            linear = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None, dtype=weight.dtype)
            linear.weight.data = weight
            if bias is not None:
                linear.bias.data = bias
            setattr(self, part, linear)

    def forward(self, queries, keys, hidden):
        def split(x):
            return x.view(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)
        q, k, v = split(self.query(queries)), split(self.key(keys)), split(self.value(keys))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        if hidden is not None:
            scores = scores.masked_fill(hidden, -math.inf)
        return self.output((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class Model:
    """The translator or the language model of an exported run, in f64."""

    def __init__(self, folder):
        with open(os.path.join(folder, 'config.toml'), 'rb') as file:
            self.config = tomllib.load(file)
        self.weights = {name: x.double() for name, x in safetensors(os.path.join(folder, 'model.safetensors')).items()}
        self.model = m = self.config['model']
        for name, spec in self.config['attention'].items():
            if spec.split(':')[0] != 'softmax':
                sys.exit(f'attention.{name} = {spec}: only plain softmax is known here')
        if m['position'] not in ('sinusoid', 'learned', 'none') or m.get('kv_heads', 0) or m['norm_scale'] != 'variance' \
                or m['activation'] in ('swiglu', 'geglu') or m.get('logit_scale', 1) != 1 or m.get('short_convolution', 0):
            sys.exit('this model has parts that are not known here')
        self.scale = math.sqrt(m['d_model']) if m['scale_embedding'] else 1.0
        self.activation = {'relu': F.relu, 'gelu': F.gelu, 'silu': F.silu,
                           'gelu_tanh': lambda x: F.gelu(x, approximate='tanh')}[m['activation']]
        self.attentions = {name[:-len('.query.weight')]: Attention(self.weights, name[:-len('.query.weight')], m['heads'])
                           for name in self.weights if name.endswith('.query.weight')}

    def linear(self, x, name):
        return F.linear(x, self.weights[name + '.weight'], self.weights.get(name + '.bias'))

    def norm(self, x, name):
        return F.layer_norm(x, (x.shape[-1],), self.weights[name + '.gain'], self.weights.get(name + '.bias'),
                            self.model['norm_epsilon'])

    def embed(self, ids, name):
        x = F.embedding(ids.long(), self.weights[name + '.tokens.weight']) * self.scale
        width, length = x.shape[-1], x.shape[1]
        if self.model['position'] == 'learned':
            return x + self.weights[name + '.position.table'][:length]
        if self.model['position'] == 'none':
            return x
        angle = torch.arange(length).double()[:, None] * torch.exp(-torch.arange(0, width, 2).double() * math.log(1e4) / width)
        return x + torch.stack((angle.sin(), angle.cos()), -1).reshape(length, -1)[:, :width]

    def residual(self, x, norm, part):
        return x + part(self.norm(x, norm)) if self.model['norm'] == 'pre' else self.norm(x + part(x), norm)

    def stack(self, x, hidden, name, encoded=None, padding=None):
        for i in range(self.model['layers']):
            block = f'{name}.blocks.{i}'
            x = self.residual(x, block + '.attention_norm', lambda h: self.attentions[block + '.attention'](h, h, hidden))
            if encoded is not None:
                x = self.residual(x, block + '.cross_norm',
                                  lambda h: self.attentions[block + '.cross'](h, encoded, padding))
            x = self.residual(x, block + '.forward_norm', lambda h: self.linear(
                self.activation(self.linear(h, block + '.feed_forward.up')), block + '.feed_forward.down'))
        return self.norm(x, name + '.norm') if self.model['norm'] == 'pre' else x

    def losses(self, batch):
        """The sum of losses of a batch, and its number of targets."""
        def future(ids):
            return torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).triu(1)
        if 'source' in batch:
            padding = (torch.arange(batch['source'].shape[1])[None] >= batch['source_lengths'][:, None])[:, None, None]
            encoded = self.stack(self.embed(batch['source'], 'source'), padding, 'encoder')
            tied = 'target.tokens.weight' not in self.weights
            x = self.stack(self.embed(batch['target_in'], 'source' if tied else 'target'), future(batch['target_in']), 'decoder',
                           encoded, padding)
            x, table = x.flatten(0, 1)[batch['places'].long()], f'{"source" if tied else "target"}.tokens.weight'
        else:
            x = self.stack(self.embed(batch['input'], 'embedder'), future(batch['input']), 'decoder').flatten(0, 1)
            table = 'embedder.tokens.weight'
        logits = self.linear(x, 'output') if 'output.weight' in self.weights else F.linear(x, self.weights[table])
        targets = batch['targets'].flatten().long()
        return float(F.cross_entropy(logits, targets, ignore_index=-1, reduction='sum')), int((targets >= 0).sum())


def without(attention, head):
    """Zeroes a head's part of what the output projection reads, until the handle is removed."""
    def hook(_, inputs):
        x = inputs[0].clone()
        width = x.shape[-1] // attention.heads
        x[..., head * width:(head + 1) * width] = 0
        return (x,)
    return attention.output.register_forward_pre_hook(hook)


def module_of(name):
    kind, layer, head = name.split('.')
    stack = 'decoder' if kind == 'cross' else kind
    return f'{stack}.blocks.{layer}.{"cross" if kind == "cross" else "attention"}', int(head)


def main():
    parser = argparse.ArgumentParser(description='Ablation of heads by PyTorch hooks, beside heed ablate.')
    parser.add_argument('heed')
    parser.add_argument('run')
    parser.add_argument('--examples', type=int, default=200)
    parser.add_argument('--within', type=float, default=1e-5, help='largest difference of a change of loss, nats per target')
    a = parser.parse_args()
    torch.set_grad_enabled(False)
    with tempfile.TemporaryDirectory() as scratch:
        model, batches = os.path.join(scratch, 'model'), os.path.join(scratch, 'batches.safetensors')
        subprocess.run([a.heed, 'export', a.run, '--out', model], check=True, stdout=subprocess.DEVNULL)
        said = subprocess.run([a.heed, 'ablate', a.run, '--json', '--no-curve', '--examples', str(a.examples), '--batches', batches,
                               '--out', os.path.join(scratch, 'out')], check=True, stdout=subprocess.PIPE)
        heed, peer, stored = json.loads(said.stdout), Model(model), safetensors(batches)
    together = {}
    for name, tensor in stored.items():
        number, part = name.split('.', 1)
        together.setdefault(number, {})[part] = tensor

    def loss():
        sums = [peer.losses(batch) for batch in together.values()]
        return sum(one[0] for one in sums) / sum(one[1] for one in sums)

    whole, worst = loss(), 0
    print(f'whole model: heed {heed["whole"]["loss"]:.6f}, PyTorch {whole:.6f}')
    for entry in heed['heads']:
        module, head = module_of(entry['name'])
        handle = without(peer.attentions[module], head)
        change = loss() - whole
        handle.remove()
        worst = max(worst, abs(change - entry['loss_change']['value']))
        print(f'{entry["name"]:14} heed {entry["loss_change"]["value"]:+.7f}  PyTorch {change:+.7f}')
    print(f'{len(heed["heads"])} heads, {heed["examples"]} examples: the largest difference is {worst:.2e} nats per target')
    sys.exit(0 if worst <= a.within and abs(whole - heed['whole']['loss']) <= a.within else 'they differ by more than that')


main()
