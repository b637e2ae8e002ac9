"""Masters, pairs of members in one process, and scripts in processes."""
from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import pccl

# What a test waits before it says that something hangs; never a measure.
PATIENCE = 300


@pytest.fixture
def master() -> Iterator[pccl.Master]:
    with pccl.Master() as running:
        yield running


def join(first: pccl.Run, address: str, **keywords: object) -> pccl.Run:
    """Another member in this process, admitted by the first one."""
    joined: list[pccl.Run | BaseException] = []

    def connect() -> None:
        try:
            joined.append(pccl.connect(address, **keywords))
        except BaseException as error:  # handed to the test
            joined.append(error)

    thread = threading.Thread(target=connect)
    thread.start()
    world = first.world_size
    while first.world_size == world and not joined:
        first.update()  # not once more: the other one calls nothing yet
    thread.join()
    assert isinstance(joined[0], pccl.Run), joined
    return joined[0]


def together(*calls: Callable[[], object]) -> list[object]:
    """Runs the calls at the same time; raises what one of them raised."""
    results: list[object] = [None] * len(calls)

    def run(place: int) -> None:
        try:
            results[place] = calls[place]()
        except BaseException as error:  # handed to the test
            results[place] = error

    threads = [threading.Thread(target=run, args=(place,))
               for place in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive(), "a call hangs"
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


@pytest.fixture
def pair(master: pccl.Master) -> Iterator[tuple[pccl.Run, pccl.Run]]:
    with pccl.connect(master.address) as first:
        with join(first, master.address) as second:
            yield first, second


class Script:
    """A Python program in a process of its own."""

    def __init__(self, code: str, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-X", "faulthandler", "-c", code, *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.out = self.process.stdout

    def wait_for(self, line: str) -> None:
        for got in self.out:
            if got.strip() == line:
                return
        raise AssertionError(f"no line '{line}': {self.end()}")

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        self.process.kill()

    def end(self) -> tuple[int, str, str]:
        out, err = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, out, err

    def succeed(self) -> str:
        status, out, err = self.end()
        assert status == 0, (status, out, err)
        return out


@pytest.fixture
def script() -> Iterator[Callable[..., Script]]:
    started: list[Script] = []

    def start(code: str, *arguments: str) -> Script:
        started.append(Script(code, *arguments))
        return started[-1]

    yield start
    for one in started:
        one.process.kill()
        one.process.communicate()


def launcher() -> str:
    """The pccl-master of this package."""
    from pccl._programs import program
    try:
        return program("pccl-master")
    except FileNotFoundError:
        pytest.skip("this build has no pccl-master")


def launch(*arguments: str, **environment: str
           ) -> subprocess.CompletedProcess[str]:
    """Runs pccl-master to its end."""
    return subprocess.run(
        [launcher(), *arguments], capture_output=True, text=True,
        timeout=PATIENCE, env={**os.environ, **environment})


EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
