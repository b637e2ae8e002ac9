#!/usr/bin/env python3
"""reference.py BIN LIB - PowerSGD, SPARTA, AdamW and DiLoCo of libpccl_train
against the same in NumPy, in double. Three ranks of pccl-master run this file
(reference.py --rank LIB) and call the library by ctypes; each computes what
all members do. 77 without NumPy."""
import ctypes
import importlib.util
import pathlib
import subprocess
import sys

MEMBERS, STEPS, RANK, SEED = 3, 30, 3, 12345
SHAPES = (('in', 48, 64), ('bias', 1, 48), ('tiny', 5, 4), ('out', 96, 32))
PARTS, EVERY = 6, 2


# ------------------------------------------------------------- the library
class Tensor(ctypes.Structure):
    _fields_ = [('name', ctypes.c_char_p), ('rows', ctypes.c_size_t),
                ('columns', ctypes.c_size_t)]


class Options(ctypes.Structure):
    """What all structs of options do: their size comes first."""

    def __init__(self, **values):
        super().__init__(size=ctypes.sizeof(self), **values)


class PowerSgd(Options):
    _fields_ = [('size', ctypes.c_size_t), ('rank', ctypes.c_uint32),
                ('seed', ctypes.c_uint64), ('tag', ctypes.c_uint64),
                ('name', ctypes.c_char_p)]


class Sparta(Options):
    _fields_ = [('size', ctypes.c_size_t), ('parts', ctypes.c_uint32),
                ('every', ctypes.c_uint32), ('seed', ctypes.c_uint64),
                ('tag', ctypes.c_uint64), ('stat_count', ctypes.c_size_t),
                ('name', ctypes.c_char_p), ('deadline_ms', ctypes.c_uint32)]


class Optimizer(Options):
    _fields_ = [('size', ctypes.c_size_t), ('kind', ctypes.c_int)] + [
        (name, ctypes.c_float)
        for name in ('rate', 'momentum', 'beta2', 'epsilon', 'decay')] + [
        ('name', ctypes.c_char_p)]


class Diloco(Options):
    _fields_ = [('size', ctypes.c_size_t), ('rate', ctypes.c_float),
                ('momentum', ctypes.c_float), ('stat_count', ctypes.c_size_t),
                ('tag', ctypes.c_uint64), ('quantization', ctypes.c_int * 2),
                ('name', ctypes.c_char_p), ('goes_on_alone', ctypes.c_bool)]


class Library:
    def __init__(self, folder):
        mode = ctypes.RTLD_GLOBAL
        self.pccl = ctypes.CDLL(f'{folder}/libpccl.so', mode)
        self.train = ctypes.CDLL(f'{folder}/libpccl_train.so', mode)
        self.tensors = (Tensor * len(SHAPES))(
            *[Tensor(name.encode(), m, n) for name, m, n in SHAPES])
        self.comm = ctypes.c_void_p()
        self.check(self.pccl.pcclInit())
        self.check(self.pccl.pcclConnectFromEnv(None,
                                                ctypes.byref(self.comm)))

    def check(self, result):
        if result == 0:
            return
        text = ctypes.create_string_buffer(256)
        self.train.pcclTrainGetLastError(text, len(text))
        sys.exit(f'result {result}: {text.value.decode()}')

    def create(self, name, options, *more):
        made = ctypes.c_void_p()
        self.check(getattr(self.train, name)(
            self.tensors, ctypes.c_size_t(len(SHAPES)), *more,
            ctypes.byref(options), ctypes.byref(made)))
        return made

    def rank(self):
        rank, size = ctypes.c_int(), ctypes.c_int()
        while size.value < MEMBERS:
            self.check(self.pccl.pcclGetView(
                self.comm, None, ctypes.byref(rank), ctypes.byref(size), None,
                ctypes.c_size_t(0)))
            if size.value < MEMBERS:
                self.check(self.pccl.pcclUpdateTopology(self.comm))
        return rank.value


def pointers(arrays):
    return (ctypes.c_void_p * len(arrays))(*[a.ctypes.data for a in arrays])


# ----------------------------------------------------------- the reference
def mix(x):
    """SplitMix64, of numbers of any type modulo 2^64."""
    import numpy
    with numpy.errstate(over='ignore'):
        x = numpy.asarray(x, numpy.uint64) + numpy.uint64(0x9e3779b97f4a7c15)
        x = (x ^ (x >> numpy.uint64(30))) * numpy.uint64(0xbf58476d1ce4e5b9)
        x = (x ^ (x >> numpy.uint64(27))) * numpy.uint64(0x94d049bb133111eb)
        return x ^ (x >> numpy.uint64(31))


def random(step, member, float_type):
    """The gradients of a member, with a few directions that stay."""
    import numpy
    out = []
    for index, (_, m, n) in enumerate(SHAPES):
        still = numpy.random.default_rng([index, 7])
        base = still.normal(size=(m, 2)) @ still.normal(size=(2, n))
        noise = numpy.random.default_rng([step, member, index])
        out.append((base + noise.normal(size=(m, n))).astype(float_type))
    return out


def compressed(m, n):
    return m > 1 and n > 1 and 2 * RANK * (m + n) <= m * n


def orthonormal(p):
    """QR with a positive diagonal, which is what Gram-Schmidt makes."""
    import numpy
    q, r = numpy.linalg.qr(p)
    return q * numpy.sign(numpy.diag(r))


class PowerSgdReference:
    def __init__(self):
        import numpy
        self.q, self.errors = [], []
        with numpy.errstate(over='ignore'):
            for index, (_, m, n) in enumerate(SHAPES):
                key = mix(numpy.uint64(SEED) ^ mix(
                    numpy.uint64(index) ^ mix(numpy.uint64(0))))
                places = numpy.arange(n * RANK, dtype=numpy.uint64)
                bits = mix(key + places) >> numpy.uint64(40)
                self.q.append((bits / 2.0 ** 23 - 1).reshape(n, RANK))
                self.errors.append([numpy.zeros((m, n))] * MEMBERS)

    def reduce(self, gradients):
        """Of all members, to the mean."""
        import numpy
        out = []
        for index, (_, m, n) in enumerate(SHAPES):
            mine = [g[index].astype(float) for g in gradients]
            if not compressed(m, n):
                out.append(numpy.mean(mine, axis=0))
                continue
            whole = [e + g for e, g in zip(self.errors[index], mine)]
            p = orthonormal(numpy.mean([x @ self.q[index] for x in whole],
                                       axis=0))
            parts = [x.T @ p for x in whole]
            self.errors[index] = [x - p @ q.T for x, q in zip(whole, parts)]
            self.q[index] = numpy.mean(parts, axis=0)
            out.append(p @ self.q[index].T)
        return out


def check_powersgd(library, rank):
    import numpy
    sgd = library.create('pcclPowerSgdCreate',
                         PowerSgd(rank=RANK, seed=SEED, tag=1))
    reference, worst = PowerSgdReference(), 0
    for step in range(STEPS):
        gradients = [random(step, member, 'f4') for member in range(MEMBERS)]
        mine = gradients[rank]
        expected = reference.reduce(gradients)
        library.check(library.train.pcclPowerSgdReduce(
            sgd, pointers(mine), ctypes.c_float(1), library.comm, None))
        for got, want in zip(mine, expected):
            worst = max(worst, numpy.abs(got - want).max() /
                        numpy.abs(want).max())
    library.check(library.train.pcclPowerSgdDestroy(sgd))
    return 'PowerSGD', worst, 1e-4


def part_members(count, tensor, cycle, number):
    """The elements of a part, in ascending order of their blocks."""
    import numpy
    with numpy.errstate(over='ignore'):
        key = mix(numpy.uint64(SEED) ^ mix(
            numpy.uint64(tensor) ^ mix(numpy.uint64(cycle))))
        blocks = numpy.arange(-(-count // PARTS), dtype=numpy.uint64)
        turn = mix(key + blocks) % numpy.uint64(PARTS)
    places = (number - turn.astype(int)) % PARTS + blocks.astype(int) * PARTS
    return places[places < count]


def check_sparta(library, rank):
    import numpy
    sparta = library.create('pcclSpartaCreate', Sparta(
        parts=PARTS, every=EVERY, seed=SEED, tag=2, stat_count=1))
    members = [random(0, member, 'f4') for member in range(MEMBERS)]
    mine = [x.copy() for x in members[rank]]
    mean = [numpy.mean([x[i].astype(float) for x in members], axis=0)
            for i in range(len(SHAPES))]
    expected = [x.astype(float).ravel() for x in mine]
    worst = 0
    for step in range(2 * PARTS * EVERY):
        stats = numpy.full(1, rank, numpy.float32)
        library.check(library.train.pcclSpartaStep(
            sparta, pointers(mine), ctypes.c_void_p(stats.ctypes.data),
            library.comm, None))
        if (step + 1) % EVERY == 0:
            cycle, number = divmod(step // EVERY, PARTS)
            for i, x in enumerate(expected):
                at = part_members(x.size, i, cycle, number)
                x[at] = mean[i].ravel()[at]
            assert stats[0] == (MEMBERS - 1) / 2
        for got, want in zip(mine, expected):
            worst = max(worst, numpy.abs(got.ravel() - want).max())
    for got, want in zip(mine, mean):  # and all are equal in the end
        worst = max(worst, numpy.abs(got - want).max())
    library.check(library.train.pcclSpartaDestroy(sparta))
    return 'SPARTA', worst, 3e-6


class AdamReference:
    def __init__(self):
        import numpy
        self.m, self.v = ([numpy.zeros((m, n)) for _, m, n in SHAPES]
                          for _ in range(2))
        self.steps = 0

    def step(self, weights, gradients):
        import numpy
        self.steps += 1
        for i, g in enumerate(gradients):
            g = g.astype(float)
            self.m[i] = 0.9 * self.m[i] + 0.1 * g
            self.v[i] = 0.99 * self.v[i] + 0.01 * g * g
            size = numpy.sqrt(self.v[i] / (1 - 0.99 ** self.steps)) + 1e-8
            weights[i] = weights[i] * (1 - 3e-3 * 0.01) - (
                3e-3 * self.m[i] / (1 - 0.9 ** self.steps) / size)


def check_diloco(library, rank):
    """Weighted outer steps over inner steps of AdamW."""
    import numpy
    mine = random(1000, 0, 'f4')
    adam = library.create('pcclOptimizerCreate', Optimizer(
        kind=0, rate=3e-3, momentum=0.9, beta2=0.99, epsilon=1e-8,
        decay=0.01))
    diloco = library.create('pcclDilocoCreate', Diloco(
        rate=0.5, momentum=0.7, tag=3), pointers(mine))
    outer = [x.astype(float) for x in mine]
    momentum = [numpy.zeros_like(x) for x in outer]
    adams, worst = [AdamReference() for _ in range(MEMBERS)], 0
    for step in range(8):
        copies = [[x.copy() for x in outer] for _ in range(MEMBERS)]
        for i in range(10):
            for member in range(MEMBERS):
                gradients = random(10 * step + i, member, 'f4')
                adams[member].step(copies[member], gradients)
                if member == rank:
                    library.check(library.train.pcclOptimizerStep(
                        adam, pointers(mine), pointers(gradients)))
        library.check(library.train.pcclDilocoStep(
            diloco, pointers(mine), None, ctypes.c_float(1 + rank),
            library.comm, None))
        for i, x in enumerate(outer):
            delta = sum((1 + member) * (x - copies[member][i])
                        for member in range(MEMBERS)) / 6
            momentum[i] = 0.7 * momentum[i] + delta
            outer[i] = x - 0.5 * (delta + 0.7 * momentum[i])
            worst = max(worst, numpy.abs(mine[i] - outer[i]).max())
    library.check(library.train.pcclDilocoDestroy(diloco))
    library.check(library.train.pcclOptimizerDestroy(adam))
    return 'DiLoCo and AdamW', worst, 1e-5


def be_rank(folder):
    library = Library(folder)
    rank = library.rank()
    failed = False
    for check in check_powersgd, check_sparta, check_diloco:
        name, worst, limit = check(library, rank)
        print(f'rank {rank}: {name}: worst deviation {worst:.2g}', flush=True)
        failed |= not worst <= limit
    library.check(library.pccl.pcclDestroyCommunicator(library.comm))
    sys.exit(failed)


def main():
    if sys.argv[1] == '--rank':
        be_rank(sys.argv[2])
    if not importlib.util.find_spec('numpy'):
        print('skipped: no numpy')
        sys.exit(77)
    programs, folder = sys.argv[1:]
    ended = subprocess.run([
        pathlib.Path(programs) / 'pccl-master', '--timeout', '300', '-n',
        str(MEMBERS), sys.executable, __file__, '--rank', folder],
        check=False)
    sys.exit(ended.returncode)


if __name__ == '__main__':
    main()
