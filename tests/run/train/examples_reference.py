#!/usr/bin/env python3
"""examples_reference.py BIN TEXT - the losses that the examples diloco and
async_diloco print, against the same training in NumPy, in double: the model of
examples/text_model.c, AdamW inside, Nesterov momentum outside, three workers.
77 without NumPy."""
import importlib.util
import pathlib
import re
import subprocess
import sys

WORKERS, OUTER, INNER, BATCH, HIDDEN = 3, 5, 20, 64, 64
SYMBOLS, CONTEXT, EMBEDDING = 97, 8, 16
INPUTS = CONTEXT * EMBEDDING
SHAPES = ((SYMBOLS, EMBEDDING), (INPUTS, HIDDEN), (HIDDEN,),
          (HIDDEN, SYMBOLS), (SYMBOLS,))


def mix(x):
    """SplitMix64."""
    import numpy
    with numpy.errstate(over='ignore'):
        x = numpy.asarray(x, numpy.uint64) + numpy.uint64(0x9e3779b97f4a7c15)
        x = (x ^ (x >> numpy.uint64(30))) * numpy.uint64(0xbf58476d1ce4e5b9)
        x = (x ^ (x >> numpy.uint64(27))) * numpy.uint64(0x94d049bb133111eb)
        return x ^ (x >> numpy.uint64(31))


def load(path):
    import numpy
    raw = numpy.frombuffer(pathlib.Path(path).read_bytes(), numpy.uint8)
    text = numpy.where((raw >= 32) & (raw <= 126), raw.astype(int) - 30, 0)
    text[raw == 10] = 1
    return text


def initial():
    """Uniform weights; biases begin at 0."""
    import numpy
    out = []
    for shape, width in zip(SHAPES, (0.5, INPUTS ** -0.5, 0, HIDDEN ** -0.5,
                                     0)):
        count = int(numpy.prod(shape))
        bits = mix(numpy.arange(count, 0, -1)) >> numpy.uint64(40)
        out.append((width * (bits / 2.0 ** 23 - 1)).reshape(shape))
    return out


def gradient(weights, text, step, worker):
    """Loss and gradients, means over the worker's part of the batch."""
    import numpy
    embedding, inside, inside_bias, out, out_bias = weights
    places = numpy.arange(worker, BATCH * WORKERS, WORKERS) + (
        step * BATCH * WORKERS)
    at = (mix(places) % numpy.uint64(len(text) - CONTEXT)).astype(int)
    context = text[at[:, None] + numpy.arange(CONTEXT)]
    target = text[at + CONTEXT]
    n = len(at)
    x = embedding[context].reshape(n, INPUTS)
    h = numpy.tanh(x @ inside + inside_bias)
    scores = h @ out + out_bias
    p = numpy.exp(scores - scores.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    loss = -numpy.log(p[numpy.arange(n), target]).mean()
    p[numpy.arange(n), target] -= 1
    p /= n
    dh = (p @ out.T) * (1 - h * h)
    d_embedding = numpy.zeros_like(embedding)
    numpy.add.at(d_embedding, context.ravel(),
                 (dh @ inside.T).reshape(-1, EMBEDDING))
    return loss, [d_embedding, x.T @ dh, dh.sum(axis=0), h.T @ p,
                  p.sum(axis=0)]


class AdamW:
    def __init__(self):
        import numpy
        self.m = [numpy.zeros(shape) for shape in SHAPES]
        self.v = [numpy.zeros(shape) for shape in SHAPES]
        self.steps = 0

    def step(self, weights, gradients):
        import numpy
        self.steps += 1
        for i, g in enumerate(gradients):
            self.m[i] = 0.9 * self.m[i] + 0.1 * g
            self.v[i] = 0.99 * self.v[i] + 0.01 * g * g
            size = numpy.sqrt(self.v[i] / (1 - 0.99 ** self.steps)) + 1e-8
            weights[i] = weights[i] * (1 - 3e-3 * 0.01) - (
                3e-3 * self.m[i] / (1 - 0.9 ** self.steps) / size)


def train(text, late):
    """The losses of all outer steps. `late`: each comes one phase late."""
    import numpy
    outer = initial()
    momentum = [numpy.zeros_like(x) for x in outer]
    adams = [AdamW() for _ in range(WORKERS)]
    losses, waiting = [], []

    def apply():
        loss, mean = waiting.pop(0)
        losses.append(loss)
        for i, delta in enumerate(mean):
            momentum[i] = 0.7 * momentum[i] + delta
            outer[i] = outer[i] - 0.5 * (delta + 0.7 * momentum[i])

    for phase in range(OUTER):
        deltas, loss = [], 0
        for worker, adam in enumerate(adams):
            mine = [x.copy() for x in outer]
            for i in range(INNER):
                one, gradients = gradient(mine, text, phase * INNER + i,
                                          worker)
                loss += one / INNER / WORKERS
                adam.step(mine, gradients)
            deltas.append([a - b for a, b in zip(outer, mine)])
        waiting.append((loss, [numpy.mean(d, axis=0) for d in zip(*deltas)]))
        if not late or phase > 0:
            apply()
    while waiting:
        apply()
    return losses


def main():
    if not importlib.util.find_spec('numpy'):
        print('skipped: no numpy')
        sys.exit(77)
    programs, path = sys.argv[1:]
    text, failed = load(path), False
    for program, late in (('diloco', False), ('async_diloco', True)):
        ended = subprocess.run([
            pathlib.Path(programs) / 'pccl-master', '--timeout', '300', '-n',
            str(WORKERS), pathlib.Path(programs) / program, '--outer',
            str(OUTER), '--inner', str(INNER), path],
            stdout=subprocess.PIPE, check=True, text=True)
        got = [float(x) for x in re.findall(r'^outer .* loss (\S+)$',
                                            ended.stdout, re.M)]
        want = train(text, late)
        print(program, got, ['%.6f' % x for x in want])
        # In all printed digits, but for one unit by their rounding.
        failed |= len(got) != OUTER or any(
            abs(a - b) > 1.1e-4 for a, b in zip(got, want))
    sys.exit(failed)


if __name__ == '__main__':
    main()
