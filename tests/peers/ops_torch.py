#!/usr/bin/env python3
"""Compares what ops_judge.cpp wrote with PyTorch: ops_torch.py PROGRAM [SEEDS].

PROGRAM is ops_judge.cpp built against an installed Heed. For each seed (default: 20), PROGRAM writes random shapes,
values and gradients in f64; each must be within 1e-10 of PyTorch's, and optimizers after six steps, too. Needs torch
2.9 or later, numpy and schedulefree.
"""
import functools
import importlib
import inspect
import pathlib
import subprocess
import sys
import tempfile

import numpy
import schedulefree
import torch
import torch.nn.functional as F


def images(x):
    return x.permute(0, 3, 1, 2)


def conv1d(x, taps, padding):
    return F.conv1d(x.transpose(1, 2), taps[:, None], padding=padding, groups=taps.shape[0]).transpose(1, 2)


def conv2d(x, weight, bias):
    channels = x.shape[3]
    kernel = weight.reshape(-1, 3, 3, channels).permute(0, 3, 1, 2)
    return F.conv2d(images(x), kernel, bias, stride=2, padding=1).permute(0, 2, 3, 1)


OPS = {
    "where": lambda x, row: torch.where(x < row, x, row),
    "pow": lambda x: x.pow(1.7),
    "rdiv": lambda x: 2 / x + (1 - x),
    "logsumexp": lambda x: x.logsumexp(1, keepdim=True),
    "amin": lambda x: x.amin(0, keepdim=True),
    "cumsum": lambda x: x.cumsum(1),
    "gather": lambda x, index: x.gather(1, index.long()),
    "select": lambda x: x[-1] * 2,
    "stack": lambda x, y: torch.stack([x, y], 2),
    "cat": lambda x, y: torch.cat([x, y], 1),
    "argmax": lambda x: x.argmax(1),
    "topk": lambda x: x.topk(min(x.shape[2], 3)).values,
    "topk_indices": lambda x: x.topk(min(x.shape[2], 3)).indices,
    "greater_equal": lambda x, row: x >= row,
    "mse": F.mse_loss,
    "bce": lambda x, y: F.binary_cross_entropy_with_logits(x, y, reduction="sum",
                                                           pos_weight=torch.tensor(1.5, dtype=torch.float64)),
    "kl": lambda x, y: F.kl_div(x, y, reduction="batchmean"),
    "cross_entropy": lambda x, y: F.cross_entropy(x, y.long(), label_smoothing=0.1, ignore_index=0, reduction="none"),
    "conv2d": conv2d,
    "rms_norm": lambda x, gain: F.rms_norm(x, gain.shape, gain, 1e-5),
    "conv1d_causal": lambda x, taps: conv1d(F.pad(x, (0, 0, taps.shape[1] - 1, 0)), taps, 0),
    "conv1d_same": lambda x, taps: conv1d(x, taps, "same"),
    "swiglu": lambda x, gate, up, down: F.linear(F.silu(F.linear(x, gate)) * F.linear(x, up), down),
    "geglu": lambda x, gate, up, down: F.linear(F.gelu(F.linear(x, gate)) * F.linear(x, up), down),
    "max_pool2d": lambda x: F.max_pool2d(images(x), 3, 2, 1).permute(0, 2, 3, 1),
    "avg_pool2d": lambda x: F.avg_pool2d(images(x), 3, 2, 1).permute(0, 2, 3, 1),
}


def read(path):
    return torch.from_numpy(numpy.load(path))


def distance(ours, theirs):
    ours, theirs = ours.double(), theirs.detach().double()
    assert ours.shape == theirs.shape, (ours.shape, theirs.shape)
    return float(((ours - theirs).abs() / theirs.abs().clamp(min=1)).max()) if ours.numel() else 0.0


def compare_op(folder, function):
    inputs = [read(folder / f"x{i}.npy") for i in range(len(list(folder.glob("x*.npy"))))]
    for x in inputs:
        x.requires_grad_(x.is_floating_point())
    y = function(*inputs)
    worst = distance(read(folder / "y.npy"), y)
    if (folder / "direction.npy").exists():
        y.backward(read(folder / "direction.npy"))
        for i, x in enumerate(inputs):
            if (folder / f"g{i}.npy").exists():
                worst = max(worst, distance(read(folder / f"g{i}.npy"), x.grad))
    return worst


class Lion(torch.optim.Optimizer):
    """Algorithm 2 of Chen et al. 2023: PyTorch has no Lion."""

    def __init__(self, groups, lr):
        super().__init__(groups, {"lr": lr})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                mean = self.state[p].setdefault("mean", torch.zeros_like(p))
                direction = (0.9 * mean + 0.1 * p.grad).sign()
                p -= group["lr"] * (direction + group["weight_decay"] * p)
                mean.mul_(0.999).add_(p.grad, alpha=0.001)


@functools.cache
def muon_in_f64():
    """PyTorch's Muon with its Newton-Schulz function in f64 in place of bf16, by the text of that function."""
    module = importlib.import_module("torch.optim._muon")
    source = inspect.getsource(module._zeropower_via_newtonschulz)
    exact = source.replace("torch.bfloat16", "torch.float64").replace(".bfloat16()", ".double()")
    assert exact != source
    exec(exact, module.__dict__)
    return torch.optim.Muon


def make_optimizers(name, matrices, bias):
    """Optimizers of `matrices` and `bias`, each with the factor on its learning rate."""
    if name.startswith("muon"):
        adjust = "original" if name == "muon_original" else "match_rms_adamw"
        return [(muon_in_f64()(matrices, lr=0.1, weight_decay=0.1, adjust_lr_fn=adjust), 2),
                (torch.optim.AdamW([bias], lr=0.1, weight_decay=0.3), 0.5)]
    kind = {"adamw": torch.optim.AdamW, "adam": torch.optim.Adam, "lion": Lion,
            "schedule_free": schedulefree.AdamWScheduleFree,
            "sgd": lambda groups, lr: torch.optim.SGD(groups, momentum=0.9, lr=lr)}[name]
    return [(kind([{"params": matrices, "weight_decay": 0.1}], lr=0.1), 1),
            (kind([{"params": [bias], "weight_decay": 0.3}], lr=0.1), 0.5)]


class Regression(torch.nn.Module):
    def __init__(self, folder):
        super().__init__()
        for name in ("tall", "wide", "bias"):
            self.register_parameter(name, torch.nn.Parameter(read(folder / f"{name}.npy")))

    def forward(self, x):
        return F.linear(torch.tanh(x @ self.tall.T), self.wide, self.bias)


def compare_optimizer(folder, name):
    x, target = (read(folder / f"{part}.npy") for part in ("x", "target"))
    model = Regression(folder)
    optimizers = make_optimizers(name, [model.tall, model.wide], model.bias)
    average = torch.optim.swa_utils.AveragedModel(
        model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.8))
    is_schedule_free = name == "schedule_free"
    for optimizer, _ in optimizers:
        if is_schedule_free:
            optimizer.train()
    for step in range(1, 7):
        model.zero_grad()
        F.mse_loss(model(x), target).backward()
        # PyTorch divides by norm + 1e-6: here the exact norm, as the library's documentation says.
        norm = torch.cat([p.grad.flatten() for p in model.parameters()]).norm()
        for p in model.parameters():
            p.grad *= min(1.0, 0.7 / norm)
        for optimizer, factor in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = 0.1 / step * factor
            optimizer.step()
        average.update_parameters(model)
    ends = {part: value.detach().clone() for part, value in model.named_parameters()}
    means = dict(average.module.named_parameters())
    if is_schedule_free:
        for optimizer, _ in optimizers:
            optimizer.eval()
        means = dict(model.named_parameters())
    pairs = [(prefix + part, values[part]) for prefix, values in (("end_", ends), ("mean_", means)) for part in ends]
    return max(distance(read(folder / f"{part}.npy"), value) for part, value in pairs)


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    worst = {}
    for seed in range(int(sys.argv[2]) if len(sys.argv) == 3 else 20):
        with tempfile.TemporaryDirectory() as scratch:
            subprocess.run([sys.argv[1], scratch, str(seed)], check=True)
            for folder in sorted(pathlib.Path(scratch).iterdir()):
                name = folder.name
                if name == "one_hot":
                    ids, y = read(folder / "x0.npy").long(), read(folder / "y.npy")
                    found = distance(y, F.one_hot(ids, y.shape[-1]))
                elif name in OPS:
                    found = compare_op(folder, OPS[name])
                else:
                    found = compare_optimizer(folder, name)
                worst[name] = max(worst.get(name, 0.0), found)
    for name, found in worst.items():
        print(f"{name:16} {found:.1e}")
    if max(worst.values()) > 1e-10:
        sys.exit("a difference is above 1e-10")


if __name__ == "__main__":
    main()
