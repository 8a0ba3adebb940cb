# Greedy and beam decoding in plain PyTorch of what `heed bench decode ROW --out DIR` kept: same weights, same tokens, a memory of
# keys and values. Prints one JSON line. See README.md beside it.
import argparse
import json
import math
import os
import statistics
import struct
import sys
import time


def arguments():
    parser = argparse.ArgumentParser(description='Decoding with a memory of keys and values.')
    parser.add_argument('folder', help='what heed bench decode --out wrote')
    parser.add_argument('row')
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument('--batch', type=int, default=1)
    parser.add_argument('--beam', type=int, default=1, help='hypotheses of each output; 1: greedy')
    parser.add_argument('--seconds', type=float, default=2)
    return parser.parse_args()


ARGUMENTS = arguments()
for variable in ('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'MKL_NUM_THREADS'):  # read when PyTorch is loaded
    os.environ[variable] = str(ARGUMENTS.threads)

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

TILED = hasattr(F, 'scaled_dot_product_attention')


def tensors(path):
    """The f32 tensors of a safetensors file by name."""
    with open(path, 'rb') as file:
        header = json.loads(file.read(struct.unpack('<Q', file.read(8))[0]))
        data = bytearray(file.read())
    whole = torch.frombuffer(data, dtype=torch.float32)
    return {name: whole[entry['data_offsets'][0] // 4:entry['data_offsets'][1] // 4].view(entry['shape'])
            for name, entry in header.items() if name != '__metadata__'}


def attend(q, k, v):
    if TILED:
        return F.scaled_dot_product_attention(q, k, v)
    return (q @ k.transpose(2, 3) * (1 / math.sqrt(q.shape[3]))).softmax(3) @ v


class Model:
    """Pre-norm blocks over named weights; one position at a time, projections of one input joined."""

    def __init__(self, weights, facts):
        self.weights, self.heads, self.layers = weights, facts['heads'], facts['layers']
        self.epsilon, self.deviation = facts['norm_epsilon'], facts['norm_scale'] == 'deviation'
        self.activation = {'relu': F.relu, 'gelu': F.gelu}[facts['activation']]
        self.source = facts['source']
        self.stack = 'decoder.'
        self.embedding = weights['target.tokens.weight' if self.source else 'embedder.tokens.weight']
        self.width = self.embedding.shape[1]
        self.scale = math.sqrt(self.width) if facts['scale_embedding'] else 1.0
        if self.source:
            angle = torch.arange(512)[:, None] * torch.exp(torch.arange(0, self.width, 2) * (-math.log(1e4) / self.width))
            self.positions = torch.stack((angle.sin(), angle.cos()), 2).view(512, self.width)
        else:
            self.positions = weights['embedder.position.table']
        for layer in range(self.layers):
            for stack in ('encoder', 'decoder'):
                name = f'{stack}.blocks.{layer}.attention.'
                if name + 'query.weight' in weights:
                    weights[name + 'inner'] = torch.cat([weights[name + part + '.weight'] for part in ('query', 'key', 'value')])
        self.output = weights.get('output.weight', self.embedding)

    def norm(self, x, name):
        gain, bias = self.weights[name + '.gain'], self.weights.get(name + '.bias')
        if not self.deviation:
            return F.layer_norm(x, (self.width,), gain, bias, self.epsilon)
        y = gain * (x - x.mean(-1, True)) / (x.std(-1, keepdim=True) + self.epsilon)
        return y if bias is None else y + bias

    def linear(self, x, name):
        return F.linear(x, self.weights[name + '.weight'], self.weights.get(name + '.bias'))

    def split(self, x):
        return x.view(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)

    def joined(self, x):
        return x.transpose(1, 2).reshape(x.shape[0], -1, self.width)

    def forward_part(self, x, block):
        return x + self.linear(self.activation(self.linear(self.norm(x, block + 'forward_norm'), block + 'feed_forward.up')),
                               block + 'feed_forward.down')

    def encode(self, ids):
        x = self.weights['source.tokens.weight'][ids] * self.scale + self.positions[:ids.shape[1]]
        for layer in range(self.layers):
            block = f'encoder.blocks.{layer}.'
            q, k, v = (self.split(part) for part in
                       F.linear(self.norm(x, block + 'attention_norm'), self.weights[block + 'attention.inner']).chunk(3, 2))
            x = x + self.linear(self.joined(attend(q, k, v)), block + 'attention.output')
            x = self.forward_part(x, block)
        return self.norm(x, 'encoder.norm')

    def start(self, batch, longest):
        """Room for the keys and values of each layer, and those of the source."""
        shape = (batch, self.heads, longest, self.width // self.heads)
        memory = [[torch.empty(shape), torch.empty(shape)] for _ in range(self.layers)]
        if self.source:
            encoded = self.encode(torch.tensor([self.source] * batch))
            for layer, rows in enumerate(memory):
                name = f'decoder.blocks.{layer}.cross.'
                rows += [self.split(self.linear(encoded, name + part)) for part in ('key', 'value')]
        return memory

    def next(self, ids, place, memory):
        x = self.embedding[ids][:, None] * self.scale + self.positions[place]
        for layer, rows in enumerate(memory):
            block = f'decoder.blocks.{layer}.'
            q, k, v = (self.split(part) for part in
                       F.linear(self.norm(x, block + 'attention_norm'), self.weights[block + 'attention.inner']).chunk(3, 2))
            rows[0][:, :, place], rows[1][:, :, place] = k[:, :, 0], v[:, :, 0]
            seen = attend(q, rows[0][:, :, :place + 1], rows[1][:, :, :place + 1])
            x = x + self.linear(self.joined(seen), block + 'attention.output')
            if self.source:
                q = self.split(self.linear(self.norm(x, block + 'cross_norm'), block + 'cross.query'))
                x = x + self.linear(self.joined(attend(q, rows[2], rows[3])), block + 'cross.output')
            x = self.forward_part(x, block)
        return F.linear(self.norm(x, 'decoder.norm')[:, 0], self.output, self.weights.get('output.bias'))


def main():
    torch.set_num_threads(ARGUMENTS.threads)
    with open(os.path.join(ARGUMENTS.folder, ARGUMENTS.row + '.json')) as file:
        facts = json.load(file)
    model = Model(tensors(os.path.join(ARGUMENTS.folder, ARGUMENTS.row + '.safetensors')), facts)
    batch, beam = ARGUMENTS.batch, ARGUMENTS.beam
    wanted = facts['ids'] if beam == 1 else facts['beam_ids']
    if beam not in (1, facts['beam']):
        sys.exit(f'--beam {beam}: {ARGUMENTS.folder} holds outputs of beams 1 and {facts["beam"]}')

    def greedy():
        memory, made = model.start(batch, len(wanted)), []
        last = torch.full((batch,), facts['start'])
        for place in range(len(wanted)):
            last = model.next(last, place, memory).argmax(1)
            made.append(last)
        return torch.stack(made, 1)

    def searched():
        """All outputs end together, so the likeliest is the one of the largest sum: no hypothesis leaves the beam early."""
        memory = model.start(batch * beam, len(wanted))
        first = torch.arange(batch)[:, None] * beam
        sums = torch.full((batch, beam), -math.inf)
        sums[:, 0] = 0  # all begin alike: one of them goes on
        last, made = torch.full((batch * beam,), facts['start']), torch.empty((batch * beam, 0), dtype=torch.long)
        for place in range(len(wanted)):
            chances = model.next(last, place, memory).log_softmax(1).view(batch, beam, -1)
            sums, places = (sums[..., None] + chances).flatten(1).topk(beam)
            parents = (first + places // chances.shape[2]).flatten()
            last = (places % chances.shape[2]).flatten()
            for rows in memory:  # the source is the same for all of an output
                for kept in rows[:2]:
                    kept[:, :, :place + 1] = kept[parents, :, :place + 1]
            made = torch.cat((made[parents], last[:, None]), 1)
        return made[::beam]

    decode = greedy if beam == 1 else searched
    with torch.inference_mode():
        ids = decode().tolist()
        alike = sum(a == b for a, b in zip(ids[0], wanted))
        times, began = [], time.perf_counter()
        while len(times) < 3 or time.perf_counter() - began < ARGUMENTS.seconds:
            start = time.perf_counter()
            decode()
            times.append(time.perf_counter() - start)
    seconds = statistics.median(times)
    if alike < len(wanted):
        print(f'{len(wanted) - alike} of {len(wanted)} tokens differ', file=sys.stderr)
    print(json.dumps({'row': ARGUMENTS.row, 'batch': batch, 'beam': beam, 'tokens': len(wanted), 'same_tokens': alike,
                      'tokens_per_s': batch * len(wanted) / seconds, 'ms': 1e3 * seconds,
                      'threads': torch.get_num_threads(), 'version': torch.__version__}))


main()
