#!/usr/bin/env python3
"""diloco_reference.py BIN TEXT: the losses of the examples diloco and
async_diloco against the same training in NumPy, in double precision.

The model, AdamW (Loshchilov & Hutter, 2019) and the outer SGD with Nesterov
momentum, in the form of torch.optim, are written out here; three members are
computed one after the other. Exits 77, with a word, without NumPy."""
import re
import subprocess
import sys

try:
    import numpy as np
except ImportError:
    np = None

SYMBOLS, CONTEXT, EMBEDDING, HIDDEN = 97, 8, 16, 8
MEMBERS, OUTER, INNER, BATCH = 3, 20, 4, 8
TOLERANCE = 1e-4  # the examples print four digits
MASK = (1 << 64) - 1


def mix(x):
    """SplitMix64."""
    x = (x + 0x9e3779b97f4a7c15) & MASK
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9 & MASK
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb & MASK
    return x ^ (x >> 31)


def symbol(byte):
    if byte == 10:
        return 1
    return byte - 32 + 2 if 32 <= byte <= 126 else 0


def start():
    """The weights, as one vector."""
    def random(count, size):
        size = np.float32(size)
        return [float(size * np.float32((mix(count - i) >> 40) / 2**23 - 1))
                for i in range(count)]
    inputs = CONTEXT * EMBEDDING
    return np.array(random(SYMBOLS * EMBEDDING, 0.5) +
                    random(inputs * HIDDEN, inputs ** -0.5) + [0.0] * HIDDEN +
                    random(HIDDEN * SYMBOLS, HIDDEN ** -0.5) + [0.0] * SYMBOLS)


def layers(vector):
    inputs, at = CONTEXT * EMBEDDING, 0
    for shape in ((SYMBOLS, EMBEDDING), (inputs, HIDDEN), (HIDDEN,),
                  (HIDDEN, SYMBOLS), (SYMBOLS,)):
        size = int(np.prod(shape))
        yield vector[at:at + size].reshape(shape)
        at += size


def gradient(weights, samples):
    """The mean loss of the samples, and its gradient."""
    embedding, first, first_bias, last, last_bias = layers(weights)
    found = np.zeros_like(weights)
    to = list(layers(found))
    known, wanted = samples[:, :-1], samples[:, -1]
    x = embedding[known].reshape(len(samples), -1)
    h = np.tanh(x @ first + first_bias)
    scores = h @ last + last_bias
    p = np.exp(scores - scores.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    rows = np.arange(len(samples))
    loss = -np.log(p[rows, wanted]).mean()
    p[rows, wanted] -= 1
    p /= len(samples)
    to[4][:] = p.sum(0)
    to[3][:] = h.T @ p
    inner = p @ last.T * (1 - h * h)
    to[2][:] = inner.sum(0)
    to[1][:] = x.T @ inner
    np.add.at(to[0], known, (inner @ first.T).reshape(known.shape + (-1,)))
    return loss, found


class AdamW:
    def __init__(self, count):
        self.mean, self.square, self.steps = np.zeros(count), np.zeros(count), 0

    def step(self, weights, g, rate=3e-3, kept=0.9, kept2=0.99, decay=0.01):
        self.steps += 1
        self.mean = kept * self.mean + (1 - kept) * g
        self.square = kept2 * self.square + (1 - kept2) * g * g
        mean = self.mean / (1 - kept ** self.steps)
        square = self.square / (1 - kept2 ** self.steps)
        weights *= 1 - rate * decay
        weights -= rate * mean / (np.sqrt(square) + 1e-8)


def samples_of(text, step, rank):
    world_batch = BATCH * MEMBERS
    at = [mix(step * world_batch + i) % (len(text) - CONTEXT)
          for i in range(rank, world_batch, MEMBERS)]
    return np.array([text[a:a + CONTEXT + 1] for a in at])


def train(text, late):
    """late: each outer step comes one phase after its pseudo-gradients."""
    outer = start()
    momentum = np.zeros_like(outer)
    adams = [AdamW(len(outer)) for _ in range(MEMBERS)]
    losses, owed = [], []

    def apply(mean, loss):
        momentum[:] = 0.7 * momentum + mean
        outer[:] -= 0.5 * (mean + 0.7 * momentum)
        losses.append(loss)

    for phase in range(OUTER):
        deltas, told = [], []
        for rank, adam in enumerate(adams):
            mine = outer.copy()
            for i in range(INNER):
                loss, g = gradient(mine, samples_of(text, phase * INNER + i,
                                                    rank))
                adam.step(mine, g)
                told.append(loss)
            deltas.append(outer - mine)
        owed.append((sum(deltas) / MEMBERS, sum(told) / len(told)))
        if len(owed) > late:
            apply(*owed.pop(0))
    for each in owed:
        apply(*each)
    return losses


def run(folder, program, path):
    line = [f'{folder}/pccl-master', '--timeout', '300', '-n', MEMBERS,
            f'{folder}/{program}', '--outer', OUTER, '--inner', INNER,
            '--batch', BATCH, '--hidden', HIDDEN, '--min', MEMBERS, path]
    ended = subprocess.run([str(word) for word in line], check=False,
                           text=True, capture_output=True)
    if ended.returncode != 0:
        sys.exit(f'{program}: {ended.stdout}{ended.stderr}')
    return [float(value) for value in re.findall(
        r'^outer \d+ members 3 hash \S+ loss (\S+)$', ended.stdout, re.M)]


def main():
    if np is None:
        print(f'skipped: {sys.executable} has no numpy')
        return 77
    folder, path = sys.argv[1:]
    with open(path, 'rb') as file:
        text = [symbol(byte) for byte in file.read()]
    bad = 0
    for program, late in (('diloco', 0), ('async_diloco', 1)):
        found, wanted = run(folder, program, path), train(text, late)
        far = max((abs(a - b) for a, b in zip(found, wanted)), default=1)
        print(f'{program}: {len(wanted)} losses, {wanted[0]:.4f} to '
              f'{wanted[-1]:.4f}, at most {far:.1e} apart')
        if len(found) != len(wanted) or not far < TOLERANCE or \
                not wanted[-1] < wanted[0] - 0.3:
            print(f'FAILED: {found}\nNumPy: {wanted}')
            bad = 1
    return bad


if __name__ == '__main__':
    sys.exit(main())
