# torch_partial.py - averages of gradients that wait for no straggler.
"""PartialAverage: buckets of DistributedDataParallel by partial all-reduces."""
import torch

from .torch_errors import calling
from .torch_tensors import AVG, check, host, reducible
from .torch_work import Work

TAG = 1 << 62  # rounds are numbered apart from other operations
IN_FLIGHT_MAX = 48  # the library has room for 64 rounds
SLICE = 0.1  # seconds: how often a wait takes messages that have come


class _Round:
    """A round under way."""

    def __init__(self, world, start):
        self._world, self._done = world, False
        with calling("partial average"):
            self._native = start()
        self.elements = self.count = 0

    def wait(self, timeout=None):
        if self._done:
            return
        with calling("partial average"):
            while not self._native.wait(SLICE):
                self._world.inbox.poll()
            self.count, self.elements = self._native.result()[1:3]
        self._done = True

    def done(self):
        return self._done


class PartialAverage:
    """The means of the buckets of a model, each a round of its own tag."""

    def __init__(self, group, deadline):
        self._group, self._deadline = group, deadline
        self._rounds = []

    @property
    def coverage(self):
        """Of the rounds of the last step: the share that is averaged."""
        for one in self._rounds:
            one.wait()
        count = sum(one.count for one in self._rounds)
        return sum(one.elements for one in self._rounds) / count if count \
            else 1.0

    def average(self, bucket, weight):
        """Starts the round of a bucket; its future is the bucket's tensor."""
        world, index = self._group.world, bucket.index()
        if index == 0:
            self._rounds.clear()
        elif len(self._rounds) >= IN_FLIGHT_MAX:
            self._rounds[-IN_FLIGHT_MAX].wait()
        tensor = check(bucket.buffer(), "partial average: the gradients")
        own = host(tensor)
        mean = torch.zeros_like(own)  # what missing parts are
        number, target = (reducible(x, AVG, "partial average: the gradients")
                          for x in (own, mean))
        one = _Round(world, lambda: world.comm._partial(
            number, target, op=AVG, weight=weight, deadline=self._deadline,
            tag=TAG + index))
        self._rounds.append(one)
        return Work(world, [one], tensor, lambda: tensor.copy_(mean),
                    self._group.timeout).get_future()
