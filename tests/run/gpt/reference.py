#!/usr/bin/env python3
"""reference.py GPT TEXT [MASTER]: the example's losses against PyTorch's.

The same start, samples and steps, by torch.autograd and torch.optim in double
precision. One process; with MASTER (pccl-master) also DiLoCo by three members,
synchronous and asynchronous, which are simulated here one after the other.

TORCH_PYTHON (environment) names an interpreter that has torch; default: this
one. Exits 77, with a word, where it has not."""
import os
import re
import subprocess
import sys

try:
    import torch
    from torch.nn import functional as f
except ImportError:
    torch = None

SYMBOLS = 256
SHAPE = dict(layers=2, heads=2, width=32, context=24)
SEED, STEPS, BATCH, RATE = 3, 20, 6, 3e-3
MEMBERS, INNER, OUTER_RATE, OUTER_MOMENTUM = 3, 4, 0.7, 0.7
TOLERANCE = 1e-4
MASK = (1 << 64) - 1


def rand(number):
    """SplitMix64."""
    x = (number + 0x9e3779b97f4a7c15) & MASK
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9 & MASK
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb & MASK
    return x ^ (x >> 31)


def shapes():
    d, layers = SHAPE['width'], SHAPE['layers']
    spread = (2 * layers) ** -0.5
    yield 'bytes', SYMBOLS, d, 0.1
    yield 'positions', SHAPE['context'], d, 0.1
    for i in range(layers):
        yield f'{i}.norm1', 1, d, None
        yield f'{i}.qkv', d, 3 * d, (3 / d) ** 0.5
        yield f'{i}.mix', d, d, (3 / d) ** 0.5 * spread
        yield f'{i}.norm2', 1, d, None
        yield f'{i}.up', d, 4 * d, (3 / d) ** 0.5
        yield f'{i}.down', 4 * d, d, (3 / (4 * d)) ** 0.5 * spread
    yield 'norm', 1, d, None
    yield 'head', d, SYMBOLS, (3 / d) ** 0.5


def weights():
    found, number, start = {}, 0, rand(SEED)
    for name, rows, columns, size in shapes():
        values = []
        for _ in range(rows * columns):
            bits = rand(start + number & MASK) >> 40
            number += 1
            values.append(1 if size is None else size * (bits / 2**23 - 1))
        found[name] = torch.tensor(values, dtype=torch.float32).double() \
            .reshape(rows, columns).requires_grad_()
    return found


def norm(x, gain):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * gain


def loss_of(w, samples):
    """Nats per byte, the mean over the samples."""
    d, heads, n = SHAPE['width'], SHAPE['heads'], SHAPE['context']
    now, after = samples[:, :-1], samples[:, 1:]
    x = w['bytes'][now] + w['positions']
    later = torch.ones(n, n).triu(1).bool()
    for i in range(SHAPE['layers']):
        qkv = norm(x, w[f'{i}.norm1']) @ w[f'{i}.qkv']
        q, k, v = (part.reshape(len(samples), n, heads, d // heads)
                   .transpose(1, 2) for part in qkv.split(d, -1))
        scores = q @ k.transpose(2, 3) * (d // heads) ** -0.5
        y = scores.masked_fill(later, -torch.inf).softmax(-1) @ v
        x = x + y.transpose(1, 2).reshape(x.shape) @ w[f'{i}.mix']
        up = norm(x, w[f'{i}.norm2']) @ w[f'{i}.up']
        x = x + f.gelu(up, approximate='tanh') @ w[f'{i}.down']
    scores = norm(x, w['norm']) @ w['head']
    return f.cross_entropy(scores.flatten(0, 1), after.flatten())


class Trainer:
    """A copy of the weights with its optimizer, and its place in the run."""

    def __init__(self, text, start, rank, world):
        self.text, self.rank, self.world = text, rank, world
        self.w = {name: t.detach().clone().requires_grad_()
                  for name, t in start.items()}
        self.adam = torch.optim.AdamW(self.w.values(), lr=RATE,
                                      betas=(0.9, 0.95), weight_decay=0.1)

    def samples(self, step):
        n = SHAPE['context']
        trained = len(self.text) - len(self.text) // 20
        base = rand(rand(SEED) + step & MASK)
        found = []
        for i in range(self.rank, BATCH, self.world):
            at = rand(base + i & MASK) % (trained - n)
            found.append(list(self.text[at:at + n + 1]))
        return torch.tensor(found)

    def step(self, step):
        for group in self.adam.param_groups:
            rise = min(1, (step + 1) / (1 + STEPS / 20))
            group['lr'] = RATE * (1 - 0.9 * step / STEPS) * rise
        self.adam.zero_grad()
        loss = loss_of(self.w, self.samples(step))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.w.values(), 1)
        self.adam.step()
        return loss.item()


def alone(text):
    trainer = Trainer(text, weights(), 0, 1)
    return [trainer.step(step) for step in range(STEPS)]


def diloco(text, late):
    """late: each outer step comes one phase after its pseudo-gradients."""
    outer = weights()
    sgd = torch.optim.SGD(outer.values(), lr=OUTER_RATE, nesterov=True,
                          momentum=OUTER_MOMENTUM)
    trainers = [Trainer(text, outer, r, MEMBERS) for r in range(MEMBERS)]
    losses, owed = [], []
    for phase in range(STEPS // INNER):
        deltas = []
        for t in trainers:
            with torch.no_grad():
                for name, value in outer.items():
                    t.w[name].copy_(value)
            first = phase * INNER
            mine = [t.step(first + i) for i in range(INNER)]
            deltas.append((sum(mine) / INNER,
                           [outer[name].detach() - t.w[name].detach()
                            for name in outer]))
        owed.append(deltas)
        if len(owed) > (1 if late else 0):
            losses.append(apply(sgd, outer, owed.pop(0)))
    losses += [apply(sgd, outer, deltas) for deltas in owed]
    return losses


def apply(sgd, outer, deltas):
    for i, value in enumerate(outer.values()):
        value.grad = sum(delta[i] for _, delta in deltas) / MEMBERS
    sgd.step()
    return sum(loss for loss, _ in deltas) / MEMBERS


def run(command, gpt, way, path):
    line = command + [gpt, way, '--held', '1', '--steps', STEPS, '--seed',
                      SEED, '--batch', BATCH, '--rate', RATE, '--inner', INNER,
                      '--outer-rate', OUTER_RATE, '--outer-momentum',
                      OUTER_MOMENTUM]
    for name, value in SHAPE.items():
        line += [f'--{name}', value]
    ended = subprocess.run([str(word) for word in line + [path]],
                           check=False, text=True, capture_output=True)
    if ended.returncode != 0:
        sys.exit(f'{way}: {ended.stdout}{ended.stderr}')
    return [float(value) for value in
            re.findall(r'^step \d+ members \d+ loss (\S+)', ended.stdout, re.M)]


def main():
    gpt, path = sys.argv[1:3]
    python = os.environ.get('TORCH_PYTHON')
    if torch is None:
        if python and python != sys.executable:
            os.environ.pop('TORCH_PYTHON')
            os.execv(python, [python, '-B'] + sys.argv)
        print(f'skipped: {sys.executable} has no torch; set TORCH_PYTHON')
        return 77
    torch.set_num_threads(1)
    with open(path, 'rb') as file:
        text = file.read()
    ways = [('alone', [], lambda: alone(text))]
    if len(sys.argv) > 3:
        master = [sys.argv[3], '--timeout', '300', '-n', str(MEMBERS)]
        ways += [('diloco', master, lambda: diloco(text, False)),
                 ('async', master, lambda: diloco(text, True))]
    bad = 0
    for way, command, reference in ways:
        found, wanted = run(command, gpt, way, path), reference()
        far = max((abs(a - b) for a, b in zip(found, wanted)), default=1)
        print(f'{way}: {len(wanted)} losses, {wanted[0]:.6f} to '
              f'{wanted[-1]:.6f}, at most {far:.1e} apart')
        if len(found) != len(wanted) or not far < TOLERANCE or \
                wanted[-1] > wanted[0] - 0.5:
            print(f'FAILED: {found}\nPyTorch: {wanted}')
            bad = 1
    return bad


if __name__ == '__main__':
    sys.exit(main())
