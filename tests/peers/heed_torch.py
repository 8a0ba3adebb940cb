# What the *_torch.py programs share: reading what `heed export PRESET --out DIR --rounds N` wrote, transformer blocks in plain
# PyTorch, and the training of Heed: same weights, batches, rates, optimizer. Needs PyTorch, NumPy and Python 3.11.
import argparse
import json
import math
import os
import shutil
import struct
import sys
import time
import tomllib

TYPES = {'F32': '<f4', 'F64': '<f8', 'I32': '<i4', 'I64': '<i8', 'U8': 'u1'}


def arguments():
    parser = argparse.ArgumentParser(description='A model of Heed in plain PyTorch.')
    parser.add_argument('folder', help='what heed export wrote')
    parser.add_argument('--steps', type=int, default=0, help='stop after this many; 0: as many as were exported')
    parser.add_argument('--time', type=float, default=0, help='stop after this many seconds of training; 0: never')
    parser.add_argument('--dtype', choices=('f32', 'f64'), default='f32')
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument('--dropout', action='store_true', help='apply the dropout of config.toml (other draws than Heed)')
    parser.add_argument('--seed', type=int, default=1, help='of dropout')
    parser.add_argument('--nudge', type=float, default=0, help='multiply every weight by 1 + this first: what rounding does')
    parser.add_argument('--compare', metavar='FILE', help="metrics.jsonl of Heed's run of the same settings")
    parser.add_argument('--within', type=float, default=0, help='with --compare: fail when a loss differs by more than this')
    parser.add_argument('--run', metavar='DIR', help='write the trained model as a run folder, for heed evaluate')
    parser.add_argument('--quiet', action='store_true', help='print the last lines only')
    return parser.parse_args()


ARGUMENTS = arguments()
for variable in ('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS'):  # read when PyTorch is loaded
    os.environ[variable] = str(ARGUMENTS.threads)

import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402


class SafeTensors:
    """A safetensors file, mapped: eight bytes of header length, a JSON header, the bytes of the tensors."""

    def __init__(self, path):
        with open(path, 'rb') as file:
            length = struct.unpack('<Q', file.read(8))[0]
            self.entries = json.loads(file.read(length))
        self.entries.pop('__metadata__', None)
        self.bytes = np.memmap(path, dtype=np.uint8, mode='r', offset=8 + length)

    def __getitem__(self, name):
        entry = self.entries[name]
        begin, end = entry['data_offsets']
        numbers = self.bytes[begin:end].tobytes()
        return torch.from_numpy(np.frombuffer(bytearray(numbers), TYPES[entry['dtype']]).reshape(entry['shape']))


class Model:
    """Transformer blocks over a flat dictionary of named weights. A model names its attentions and gives loss()."""

    attentions = ()
    kinds = ('softmax',)

    def __init__(self, weights, config, with_dropout):
        c = config['model']
        for name in self.attentions:
            if config['attention'][name].split(':')[0] not in self.kinds or 'scale' in config['attention'][name]:
                sys.exit(f'attention.{name} = {config["attention"][name]}: known here: {", ".join(self.kinds)}, without a scale')
        if c['norm_scale'] == 'rms' or c['activation'] in ('swiglu', 'geglu') or c.get('logit_scale', 1) != 1 \
                or c.get('short_convolution', 0):
            sys.exit('this model has parts that are not known here')
        self.weights, self.config = weights, config
        self.width, self.heads, self.layers = c['d_model'], c['heads'], c['layers']
        self.pre, self.deviation, self.epsilon = c['norm'] == 'pre', c['norm_scale'] == 'deviation', c['norm_epsilon']
        self.dropout = c['dropout'] if with_dropout else 0.0
        self.attention_dropout = c['attention_dropout'] if with_dropout else 0.0
        self.scale = math.sqrt(self.width) if c['scale_embedding'] else 1.0
        self.activation = {'relu': F.relu, 'gelu': F.gelu, 'silu': F.silu,
                           'gelu_tanh': lambda x: F.gelu(x, approximate='tanh')}[c['activation']]

    def position(self, name):
        """The table added to [B, T, width], or None."""
        kind = self.config['model']['position']
        if kind == 'learned':
            return self.weights[name + '.table']
        return self.waves(self.config['model']['max_length']) if kind == 'sinusoid' else None

    def waves(self, length):
        place = torch.arange(length, dtype=torch.float64)[:, None]
        even = torch.arange(0, self.width, 2, dtype=torch.float64)
        angle = place * torch.exp(-even * math.log(10000.0) / self.width)
        table = torch.stack((angle.sin(), angle.cos()), -1).reshape(length, -1)[:, :self.width]
        return table.float().to(next(iter(self.weights.values())).dtype)

    def placed(self, x, table):
        return self.drop(x if table is None else x + table[:x.shape[1]])

    def drop(self, x):
        return F.dropout(x, self.dropout) if self.dropout > 0 else x

    def linear(self, x, name):
        return F.linear(x, self.weights[name + '.weight'], self.weights.get(name + '.bias'))

    def norm(self, x, name):
        gain, bias = self.weights[name + '.gain'], self.weights.get(name + '.bias')
        if not self.deviation:
            return F.layer_norm(x, (self.width,), gain, bias, self.epsilon)
        y = gain * (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + self.epsilon)
        return y if bias is None else y + bias

    def attention(self, queries, keys, hidden, name):
        """hidden: True where a query must not look, [B or 1, 1, Tq or 1, Tk]; None: it may look everywhere."""
        def split(x):
            return x.view(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)
        q = split(self.linear(queries, name + '.query'))
        k, v = (split(self.linear(keys, f'{name}.{part}')) for part in ('key', 'value'))
        return self.linear(self.attend(q, k, v, hidden, name).transpose(1, 2).flatten(2), name + '.output')

    def attend(self, q, k, v, hidden, name):
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        if hidden is not None:
            scores = scores.masked_fill(hidden, -math.inf)
        weights = scores.softmax(-1)
        if self.attention_dropout > 0:
            weights = F.dropout(weights, self.attention_dropout)
        return weights @ v

    def feed_forward(self, x, name):
        return self.linear(self.drop(self.activation(self.linear(x, name + '.up'))), name + '.down')

    def residual(self, x, norm, part):
        if self.pre:
            return x + self.drop(part(self.norm(x, norm)))
        return self.norm(x + self.drop(part(x)), norm)

    def stack(self, x, hidden, name, encoded=None, encoded_hidden=None):
        for i in range(self.layers):
            block = f'{name}.blocks.{i}'
            x = self.residual(x, block + '.attention_norm',
                              lambda h: self.attention(h, h, hidden, block + '.attention'))
            if encoded is not None:
                x = self.residual(x, block + '.cross_norm',
                                  lambda h: self.attention(h, encoded, encoded_hidden, block + '.cross'))
            x = self.residual(x, block + '.forward_norm', lambda h: self.feed_forward(h, block + '.feed_forward'))
        return self.norm(x, name + '.norm') if self.pre else x


def future(length):
    return torch.ones(length, length, dtype=torch.bool).triu(1)[None, None]


def optimizer_of(weights, rates):
    matrices = [w for w in weights.values() if w.dim() >= 2]
    vectors = [w for w in weights.values() if w.dim() < 2]
    of_vectors = rates['weight_decay'] if rates['decay_vectors'] else 0.0
    groups = [{'params': matrices, 'weight_decay': rates['weight_decay']}, {'params': vectors, 'weight_decay': of_vectors}]
    if rates['optimizer'] == 'sgd':
        return torch.optim.SGD(groups, lr=1.0, momentum=rates['momentum'])
    kind = torch.optim.AdamW if rates['optimizer'] == 'adamw' else torch.optim.Adam
    return kind(groups, lr=1.0, betas=(rates['beta1'], rates['beta2']), eps=rates['epsilon'])


def check_one_cycle(train, rates):
    """Fails where Heed's one-cycle rates or momenta are not those of PyTorch's own schedule."""
    if train['schedule'] != 'one_cycle':
        return
    peak, total = train['learning_rate'], rates['total_steps']
    one = torch.optim.AdamW([torch.zeros(1, requires_grad=True)], lr=peak, betas=(rates['beta1'], rates['beta2']))
    schedule = torch.optim.lr_scheduler.OneCycleLR(one, max_lr=peak, pct_start=train['warmup_steps'] / total,
                                                   anneal_strategy='linear', total_steps=total,
                                                   cycle_momentum=train['cycle_momentum'])
    for step, (rate, momentum) in enumerate(zip(rates['rates'], rates['momenta']), 1):
        group = one.param_groups[0]
        if abs(group['lr'] - rate) > 1e-9 * peak or abs(group['betas'][0] - momentum) > 1e-9:
            sys.exit(f'step {step}: rate {rate}, momentum {momentum}; OneCycleLR has {group["lr"]}, {group["betas"][0]}')
        one.step()
        schedule.step()


def clip(weights, most, each):
    """Cuts each element to `each`, then scales the whole gradient as its norm is above `most`; gives the norm it had."""
    gradients = [w.grad for w in weights.values()]
    norm = torch.stack([g.norm() for g in gradients]).norm()
    if each > 0:
        for gradient in gradients:
            gradient.clamp_(-each, each)
    if 0 < most < norm:
        for gradient in gradients:
            gradient.mul_(most / norm)
    return float(norm)


def compare(path, losses, norms):
    """The largest relative difference to the losses that Heed logged, each a mean since the line before."""
    before, worst, worst_norm, lines = 0, (0.0, 0), (0.0, 0), 0
    with open(path) as file:
        for line in map(json.loads, file):
            step = line['step']
            if 'loss' not in line or step > len(losses):
                continue
            mean = sum(losses[before:step]) / (step - before)
            worst = max(worst, (abs(mean - line['loss']) / abs(mean), step))
            worst_norm = max(worst_norm, (abs(norms[step - 1] - line['gradient_norm']) / norms[step - 1], step))
            before, lines = step, lines + 1
    return {'compared': lines, 'largest_relative_difference': worst[0], 'at_step': worst[1],
            'of_gradient_norm': worst_norm[0], 'norm_at_step': worst_norm[1]}


def crc32c(data):
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82f63b78 if value & 1 else 0)
        table.append(value)
    sum_ = 0xffffffff
    for byte in data:
        sum_ = sum_ >> 8 ^ table[(sum_ ^ byte) & 0xff]
    return f'{sum_ ^ 0xffffffff:08x}'


def write_run(exported, folder, weights, step):
    """A run folder with one checkpoint, which `heed evaluate` and `heed translate` take."""
    import hashlib
    place = os.path.join(folder, 'ckpt', f'step_{step:06d}')
    os.makedirs(place)
    shutil.copy(os.path.join(exported, 'config.toml'), folder)
    names = [n for n in os.listdir(exported) if n.startswith('tokenizer.')]
    for name in names:
        shutil.copy(os.path.join(exported, name), place)
    header, parts, at = {}, [], 0
    for name in sorted(weights):
        numbers = weights[name].detach().numpy()
        numbers = numbers.astype('<f8' if numbers.dtype == np.float64 else '<f4')
        header[name] = {'dtype': 'F64' if numbers.itemsize == 8 else 'F32', 'shape': list(numbers.shape),
                        'data_offsets': [at, at + numbers.nbytes]}
        at += numbers.nbytes
        parts.append(numbers.tobytes())
    text = json.dumps(header).encode()
    text += b' ' * (-len(text) % 8)
    with open(os.path.join(place, 'model.safetensors'), 'wb') as file:
        file.write(struct.pack('<Q', len(text)) + text + b''.join(parts))
    files = {}
    for name in names + ['model.safetensors']:
        with open(os.path.join(place, name), 'rb') as file:
            data = file.read()
        files[name] = {'size': len(data), 'crc32c': crc32c(data), 'sha256': hashlib.sha256(data).hexdigest()}
    with open(os.path.join(place, 'MANIFEST.json'), 'w') as file:
        json.dump({'format': 1, 'step': step, 'files': files}, file)


def train(kind):
    """Trains a Model of this kind. Prints one JSON line a step, then a summary and the comparison."""
    a = ARGUMENTS
    torch.set_num_threads(a.threads)
    torch.manual_seed(a.seed)
    with open(os.path.join(a.folder, 'config.toml'), 'rb') as file:
        config = tomllib.load(file)
    with open(os.path.join(a.folder, 'rates.json')) as file:
        rates = json.load(file)
    stored = SafeTensors(os.path.join(a.folder, 'model.safetensors'))
    batches = SafeTensors(os.path.join(a.folder, 'batches.safetensors'))
    dtype = torch.float64 if a.dtype == 'f64' else torch.float32
    weights = {name: (stored[name].to(dtype) * (1 + a.nudge)).requires_grad_() for name in stored.entries}
    model = kind(weights, config, a.dropout)
    optimizer = optimizer_of(weights, rates)
    check_one_cycle(config['train'], rates)
    accumulate = rates['grad_accumulation']
    parts = [name.split('.', 1)[1] for name in batches.entries if name.startswith('000000.')]
    rounds = sum(name.endswith('.targets') for name in batches.entries)
    steps = min(a.steps or rounds // accumulate, rounds // accumulate)
    losses, norms, tokens, spent = [], [], 0, 0.0

    def part_of(i, part):
        numbers = batches[f'{i:06d}.{part}']
        return numbers.to(dtype) if numbers.is_floating_point() else numbers.long()

    cpu = time.process_time()
    for step in range(1, steps + 1):
        group = [{part: part_of(i, part) for part in parts} for i in range((step - 1) * accumulate, step * accumulate)]
        began = time.perf_counter()
        weight = sum(batch['targets'].numel() for batch in group)
        optimizer.zero_grad(set_to_none=True)
        total = 0.0
        for batch in group:
            loss = model.loss(batch, rates['label_smoothing']) * (batch['targets'].numel() / weight)
            loss.backward()
            total += float(loss.detach())
        norms.append(clip(weights, rates['grad_clip'], rates['grad_clip_value']))
        for one in optimizer.param_groups:
            one['lr'], momentum = rates['rates'][step - 1], rates['momenta'][step - 1]
            if 'betas' in one:
                one['betas'] = (momentum, one['betas'][1])
            else:
                one['momentum'] = momentum
        optimizer.step()
        spent += time.perf_counter() - began
        losses.append(total)
        tokens += weight
        if not a.quiet:
            print(json.dumps({'step': step, 'loss': total, 'gradient_norm': norms[-1]}), flush=True)
        if 0 < a.time <= spent:
            break
    if a.run:
        write_run(a.folder, a.run, weights, len(losses))
    print(json.dumps({'steps': len(losses), 'seconds': round(spent, 2), 'tokens': tokens,
                      'tokens_per_second': round(tokens / spent, 1),
                      'cpu_seconds': round(time.process_time() - cpu, 2), 'dtype': a.dtype, 'threads': a.threads}))
    if a.compare:
        found = compare(a.compare, losses, norms)
        print(json.dumps(found))
        if a.within > 0 and (found['compared'] == 0 or not found['largest_relative_difference'] <= a.within):
            sys.exit(f'the losses differ by more than {a.within}, or none were compared')
