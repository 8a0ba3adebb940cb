# Attention alone in PyTorch: scaled_dot_product_attention by FlashAttention and by cuDNN, and Fastmax of the first order in two ways.
import contextlib
import pathlib
import statistics
import sys
import time

import torch
import torch.nn.functional as F

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / 'peers'))
from models_torch import unit  # noqa: E402


def straightforward(q, k, v, causal):
    """The definition: all N x N weights 1 + q k, masked, over the sums of their rows."""
    weights = 1 + unit(q) @ unit(k).transpose(2, 3)
    if causal:
        weights = weights.tril()
    return weights @ v / weights.sum(3, keepdim=True)


def linear(q, k, v, causal):
    """The same as sums of products of features, in chunks of 256 when causal."""
    a, b = (torch.cat((torch.ones_like(x[..., :1]), unit(x)), 3) for x in (q, k))
    if not causal:
        return (a @ (b.transpose(2, 3) @ v)) / (a @ b.sum(2)[..., None])
    chunk = min(256, q.shape[2])
    a, b, values = (x.unflatten(2, (-1, chunk)) for x in (a, b, torch.cat((v, torch.ones_like(v[..., :1])), 3)))
    state = (b.transpose(3, 4) @ values).cumsum(2)
    before = torch.cat((torch.zeros_like(state[:, :, :1]), state[:, :, :-1]), 2)
    y = (a @ before + (a @ b.transpose(3, 4)).tril() @ values).flatten(2, 3)
    return y[..., :-1] / y[..., -1:]


BACKENDS = {'flash': ('FLASH_ATTENTION', 'FlashAttention'), 'cudnn': ('CUDNN_ATTENTION', 'cuDNN')}


def pinned_to(kind):
    """A context in which scaled_dot_product_attention is that backend or fails; None where this PyTorch cannot be told so."""
    try:
        from torch.nn.attention import SDPBackend, sdpa_kernel
    except ImportError:
        return None
    return sdpa_kernel(getattr(SDPBackend, BACKENDS[kind][0]))


def softmax(q, k, v, causal):
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal)


KINDS = {'flash': softmax, 'cudnn': softmax, 'straightforward': straightforward, 'linear': linear}


def median_ms(work, wait, budget, least):
    """As bench::median_time does it: once unmeasured, then each call waited for."""
    work()
    times, began = [], time.perf_counter()
    while len(times) < least or time.perf_counter() - began < budget:
        wait()
        start = time.perf_counter()
        work()
        wait()
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times)


def measured(kind, width, causal, length, device, dtype):
    """Milliseconds of one forward, and of forward and backward, of 4 heads; and what computed them."""
    wait = torch.cuda.synchronize if device == 'cuda' else lambda: None
    q, k, v = (torch.randn(1, 4, length, width, device=device, dtype=dtype, requires_grad=True) for _ in range(3))
    slope = torch.randn(1, 4, length, width, device=device, dtype=dtype)
    pinned, backend = (pinned_to(kind) if kind in BACKENDS and dtype == torch.bfloat16 else None), 'PyTorch ops'
    if kind in BACKENDS:
        backend = BACKENDS[kind][1] if pinned else 'as PyTorch chooses'

    def ahead():
        with torch.no_grad():
            return KINDS[kind](q, k, v, causal)

    def step():
        torch.autograd.grad(KINDS[kind](q, k, v, causal), (q, k, v), slope)

    with pinned or contextlib.nullcontext():
        return {'forward_ms': median_ms(ahead, wait, 0.1, 3), 'step_ms': median_ms(step, wait, 0.15, 3), 'backend': backend}
