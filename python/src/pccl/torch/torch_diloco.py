# torch_diloco.py - trainings that average seldom, in a world that changes.
"""DiLoCo over an elastic group: pccl.train.DiLoCo for a module of torch."""
import functools

import torch

from pccl import train

from .torch_elastic import our_group, update
from .torch_errors import TooFewMembers, calling
from .torch_state import synchronize


class DiLoCo:
    """Members train alone for `every` steps; then the mean of what they have
    changed is one outer step (Douillard et al., 2024).

        outer = pccl.torch.DiLoCo(net, every=100)
        while outer.outer_steps < 50:
            loss(net(x), y).backward()
            optimizer.step()                # each member's own
            optimizer.zero_grad()
            outer.step(loss.item())         # the 100th one communicates

    Newcomers are admitted between two outer steps, and begin with the outer
    weights. A member that dies costs nothing but its part of the mean. Where
    the run has too few members (pccl-master --min-ranks), or a member is alone
    that was not, its inner steps are discarded and it waits for others.

    module   the same on all members: parameters of float32 on the CPU.
             Buffers are each member's own; newcomers get those of a member.
    every    inner steps
    rate, momentum, quantize  of the outer steps, as pccl.train.DiLoCo has them
    weight   what this member counts in the mean; the attribute may be set
    """

    def __init__(self, module, *, every=100, rate=0.7, momentum=0.9,
                 quantize=None, weight=1.0, process_group=None):
        self.module, self.every, self.weight = module, every, weight
        self.group = our_group(process_group)
        if not self.group.elastic:
            raise ValueError(f"{self.group} is fixed: start the program with "
                             "pccl-master")
        self.inner_steps = 0  # since the last outer step
        self._weights = {name: p.detach()
                         for name, p in module.named_parameters()}
        self._outer = train.DiLoCo(self._weights, rate=rate, tag=1 << 60,
                                   momentum=momentum, quantize=quantize,
                                   stat_count=1)
        self._state = {name: torch.frombuffer(x, dtype=torch.uint8)
                       for name, x in self._outer.state.items()}
        self._revision = -1
        self._share()

    @property
    def outer_steps(self):
        """Of the run."""
        return self._outer.progress.step

    @property
    def contributors(self):
        """Members of the last outer step."""
        return self._outer.progress.contributors

    @property
    def loss(self):
        """The mean of what the members gave step() last, or None."""
        stats = self._outer.progress.stats
        return stats[0] if self.outer_steps else None

    def _save(self):
        return {"outer": self._state, "buffers": dict(
            self.module.named_buffers())}

    def _load(self, state):
        for name, mine in self._save()["buffers"].items():
            mine.copy_(state["buffers"][name])
        for name, mine in self._state.items():
            mine.copy_(state["outer"][name])

    def _share(self):
        """All members have the outer state, and go on from its weights."""
        world = self.group.world
        self._revision, _ = synchronize(
            world, self._save, self._load, self._revision,
            functools.partial(update, self.group))
        self._outer.get_weights(self._weights)

    def step(self, loss=0.0):
        """Counts an inner step; the `every`-th one is followed by an outer
        step, collective, and by the admission of newcomers. Returns whether
        there was an outer step."""
        self.inner_steps += 1
        if self.inner_steps < self.every:
            return False
        self.inner_steps = 0
        stats = torch.tensor([float(loss)], dtype=torch.float32)
        done = True
        try:
            with calling("outer step"):
                self._outer.step(self.group.world.comm, self._weights, stats,
                                 self.weight)
        except TooFewMembers:
            done = False
        self.group.world.forget_view()
        if update(self.group):
            self._share()
        elif not done:
            self._outer.get_weights(self._weights)
        return done
