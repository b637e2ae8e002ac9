#!/usr/bin/env python3
"""reference.py BIN TEXT: losses of the example `stages` against PyTorch's, in
double precision, with and without a subspace: by one process (--alone), and by
a trainer and a worker for each stage.

TORCH_PYTHON (environment) names an interpreter that has torch; default: this
one. Exits 77, with a word, where it has not."""
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'gpt'))
import reference as gpt  # noqa: E402  the same model

torch, f = gpt.torch, getattr(gpt, 'f', None)
STAGES, STEPS, BATCH, RATE, TOLERANCE = 2, 20, 6, 1e-3, 1e-4


def basis(width, size):
    """Gram-Schmidt of random columns."""
    start = gpt.rand(gpt.SEED + 1)
    columns = []
    for i in range(size):
        own = torch.tensor([(gpt.rand(start + i * width + n & gpt.MASK) >> 11)
                            / 2**52 - 1 for n in range(width)],
                           dtype=torch.float64)
        for other in columns:
            own = own - (own @ other) * other
        columns.append(own / own.norm())
    return torch.stack(columns, 1)


def stage_of(name):
    layers = gpt.SHAPE['layers']
    if name in ('bytes', 'positions'):
        return 0
    if name in ('norm', 'head'):
        return STAGES - 1
    layer = int(name.partition('.')[0])
    return next(s for s in range(STAGES)
                if s * layers // STAGES <= layer < (s + 1) * layers // STAGES)


class Model:
    """The weights of all stages, each clipped by itself."""

    def __init__(self, text, size):
        self.text = text
        self.w = gpt.weights()
        self.basis = basis(gpt.SHAPE['width'], size) if size else None
        if size:
            for name in self.w:
                frozen = 'norm' in name or name in ('bytes', 'positions')
                self.w[name].requires_grad_(not frozen)
        self.trained = [t for t in self.w.values() if t.requires_grad]
        self.adam = torch.optim.AdamW(self.trained, lr=RATE, betas=(0.9, 0.95),
                                      weight_decay=0.1)
        self.project()

    def project(self):
        """The weights, and the gradients where there are some."""
        if self.basis is None:
            return
        with torch.no_grad():
            for name, t in self.w.items():
                if name.endswith(('.mix', '.down')):
                    for x in [t] if t.grad is None else [t, t.grad]:
                        x.copy_(x @ self.basis @ self.basis.T)

    def loss(self, samples):
        d, heads, n = (gpt.SHAPE[k] for k in ('width', 'heads', 'context'))
        now, after = samples[:, :-1], samples[:, 1:]
        x = self.w['bytes'][now] + self.w['positions']
        later = torch.ones(n, n).triu(1).bool()
        for i in range(gpt.SHAPE['layers']):
            w = {k: self.w[f'{i}.{k}'] for k in
                 ('norm1', 'qkv', 'mix', 'norm2', 'up', 'down')}
            q, k, v = (part.reshape(len(samples), n, heads, d // heads)
                       .transpose(1, 2) for part in
                       (gpt.norm(x, w['norm1']) @ w['qkv']).split(d, -1))
            scores = q @ k.transpose(2, 3) * (d // heads) ** -0.5
            y = scores.masked_fill(later, -torch.inf).softmax(-1) @ v
            x = x + y.transpose(1, 2).reshape(x.shape) @ w['mix']
            up = gpt.norm(x, w['norm2']) @ w['up']
            x = x + f.gelu(up, approximate='tanh') @ w['down']
        scores = gpt.norm(x, self.w['norm']) @ self.w['head']
        return f.cross_entropy(scores.flatten(0, 1), after.flatten())

    def samples(self, step):
        n = gpt.SHAPE['context']
        trained = len(self.text) - len(self.text) // 20
        base = gpt.rand(gpt.rand(gpt.SEED) + step & gpt.MASK)
        places = [gpt.rand(base + i & gpt.MASK) % (trained - n)
                  for i in range(BATCH)]
        return torch.tensor([list(self.text[at:at + n + 1]) for at in places])

    def step(self, step):
        self.adam.zero_grad()
        loss = self.loss(self.samples(step))
        loss.backward()
        self.project()
        for stage in range(STAGES):
            mine = [t for name, t in self.w.items()
                    if t.requires_grad and stage_of(name) == stage]
            limit = (5 if stage == STAGES - 1 else 1) / STAGES**0.5
            torch.nn.utils.clip_grad_norm_(mine, limit)
        self.adam.step()
        self.project()
        return loss.item()


def run(command, path, size):
    line = command + ['--stages', STAGES, '--steps', STEPS, '--batch', BATCH,
                      '--micro', 2, '--seed', gpt.SEED, '--rate', RATE,
                      '--held', 0, '--subspace', size]
    for name, value in gpt.SHAPE.items():
        line += [f'--{name}', value]
    ended = subprocess.run([str(word) for word in line + [path]],
                           check=False, text=True, capture_output=True)
    if ended.returncode != 0:
        sys.exit(f'{line}: {ended.stdout}{ended.stderr}')
    return [float(value) for value in
            re.findall(r'^step \d+ .*?loss (\S+)', ended.stdout, re.M)]


def main():
    bin_, path = pathlib.Path(sys.argv[1]), sys.argv[2]
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
    bad = 0
    alone = [bin_ / 'stages', '--alone']
    spread = [bin_ / 'pccl-master', '--timeout', 300, '-n', 1 + STAGES,
              '--elastic', bin_ / 'stages']
    for size in (0, 4):
        model = Model(text, size)
        wanted = [model.step(step) for step in range(STEPS)]
        for name, command in (('one process', alone), ('stages', spread)):
            found = run(command, path, size)
            far = max((abs(a - b) for a, b in zip(found, wanted)), default=1)
            print(f'{name}, subspace {size}: {len(wanted)} losses, '
                  f'{wanted[0]:.6f} to {wanted[-1]:.6f}, at most {far:.1e} '
                  'apart')
            if len(found) != len(wanted) or not far < TOLERANCE or \
                    wanted[-1] > wanted[0] - 0.2:
                print(f'FAILED: {found}\nPyTorch: {wanted}')
                bad = 1
    return bad


if __name__ == '__main__':
    sys.exit(main())
