# Attention alone in PyTorch on a device: scaled_dot_product_attention, or Fastmax of the first order as one writes it. One JSON line a length.
import argparse
import json
import statistics
import time

import torch
import torch.nn.functional as F


def fastmax1(q, k, v, causal):
    """1 + q k, in sums over chunks of 256 when causal."""
    if not causal:
        a, b = (torch.cat((torch.ones_like(x[..., :1]), x), 3) for x in (q, k))
        return (a @ (b.transpose(2, 3) @ v)) / (a @ b.sum(2)[..., None])
    a, b = (torch.cat((torch.ones_like(x[..., :1]), x), 3).unflatten(2, (-1, 256)) for x in (q, k))
    values = torch.cat((v, torch.ones_like(v[..., :1])), 3).unflatten(2, (-1, 256))
    state = (b.transpose(3, 4) @ values).cumsum(2)
    before = torch.cat((torch.zeros_like(state[:, :, :1]), state[:, :, :-1]), 2)
    y = (a @ before + (a @ b.transpose(3, 4)).tril() @ values).flatten(2, 3)
    return y[..., :-1] / y[..., -1:]


def main():
    parser = argparse.ArgumentParser(description='Attention alone in PyTorch against length.')
    parser.add_argument('--kind', choices=('softmax', 'fastmax1'), default='softmax')
    parser.add_argument('--width', type=int, default=64)
    parser.add_argument('--causal', action='store_true')
    parser.add_argument('--bf16', action='store_true')
    parser.add_argument('--longest', type=int, default=16384)
    parser.add_argument('--device', default='cuda')
    options = parser.parse_args()
    wait = torch.cuda.synchronize if options.device == 'cuda' else lambda: None
    length = 512
    while length <= options.longest:
        q, k, v = (torch.randn(1, 4, length, options.width, device=options.device, requires_grad=True,
                               dtype=torch.bfloat16 if options.bf16 else torch.float32) for _ in range(3))

        def forward():
            if options.kind == 'fastmax1':
                return fastmax1(q, k, v, options.causal)
            return F.scaled_dot_product_attention(q, k, v, is_causal=options.causal)

        def step():
            forward().sum().backward()

        def median(run):
            times = []
            for i in range(12):
                wait()
                start = time.perf_counter()
                run()
                wait()
                times.append(time.perf_counter() - start)
            return 1e3 * statistics.median(times[2:])

        with torch.no_grad():
            ahead = median(forward)
        print(json.dumps({'kind': options.kind, 'width': options.width, 'causal': options.causal, 'length': length,
                          'forward_ms': ahead, 'step_ms': median(step), 'version': torch.__version__}), flush=True)
        length *= 2


main()
