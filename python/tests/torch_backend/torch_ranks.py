# torch_ranks.py - ranks for the tests of pccl.torch.
"""Ranks are forked from the test process, which has imported torch already.
"""
import contextlib
import gc
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import traceback

import pytest
import torch
import torch._dynamo  # noqa: F401 before the forks: it takes seconds
import torch.distributed as dist
import torch.distributed.fsdp  # noqa: F401

import pccl._programs
import pccl.torch  # noqa: F401

torch.set_num_threads(1)
LIMIT = 280  # seconds of a job, however busy the machine is


def program():
    """pccl-master, of the tree or the wheel that the package is of."""
    try:
        return pccl._programs.program("pccl-master")
    except FileNotFoundError as error:
        pytest.skip(str(error))


class Job:
    """Ranks that run functions of a test, and what they returned."""

    def __init__(self, environment):
        self.environment = environment
        self.folder = tempfile.TemporaryDirectory()
        self.children = []  # [pid, result file]
        self.status = {}

    def start(self, function, *arguments, **environment):
        """Forks a rank; its number among those started."""
        path = os.path.join(self.folder.name, str(len(self.children)))
        pid = os.fork()
        if pid == 0:
            # What the parent left, a server of torch's store above all, waits
            # in its destructor for threads that were not forked.
            gc.freeze()
            os.environ.update(self.environment, **environment)
            _rank(function, arguments, path)
        self.children.append((pid, path))
        return len(self.children) - 1

    def mark(self, name):
        """A path for ranks to tell something by creating it."""
        return os.path.join(self.folder.name, name)

    def wait_mark(self, name):
        end = time.monotonic() + LIMIT
        while not os.path.exists(self.mark(name)):
            assert time.monotonic() < end and not self.failed(), \
                f"no rank has reached {name}; {self.failed()}"
            time.sleep(0.01)

    def failed(self):
        """What ranks that have ended with an exception say."""
        return [text for text in (_text(path) for _, path in self.children)
                if text.startswith("Traceback")]

    def results(self, killed=()):
        """What the ranks returned, when all have ended. Those in `killed` have
        to be dead by SIGKILL."""
        end = time.monotonic() + LIMIT
        while len(self.status) < len(self.children):
            for rank, (pid, _) in enumerate(self.children):
                if rank not in self.status:
                    found, status = os.waitpid(pid, os.WNOHANG)
                    if found:
                        self.status[rank] = os.waitstatus_to_exitcode(status)
            assert time.monotonic() < end, f"hangs; ended: {self.status}"
            time.sleep(0.005)
        answers = []
        for rank, (_, path) in enumerate(self.children):
            if rank in killed:
                assert self.status[rank] == -signal.SIGKILL, _text(path)
                answers.append(None)
                continue
            assert self.status[rank] == 0, f"rank {rank}: " + \
                _text(path) + f"status {self.status[rank]}"
            answers.append(json.loads(_text(path)))
        return answers

    def close(self):
        for rank, (pid, _) in enumerate(self.children):
            if rank not in self.status:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
        self.folder.cleanup()


def _text(path):
    with contextlib.suppress(OSError), open(path) as file:
        return file.read()
    return ""


def _rank(function, arguments, path):
    code = 1
    try:
        answer = function(*arguments)
        if dist.is_initialized():
            dist.destroy_process_group()
        text, code = json.dumps(answer), 0
    except BaseException:
        text = traceback.format_exc()
    with open(path, "w") as file:
        file.write(text)
    os._exit(code)


@contextlib.contextmanager
def _store():
    """The port of torch's store, which a process of its own serves: a thread
    of this one may hold a lock of the C library while a rank is forked."""
    port, tell = os.pipe()
    hold, release = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(release)
        server = dist.TCPStore("127.0.0.1", 0, None, True,
                               wait_for_workers=False)
        os.write(tell, str(server.port).encode())
        os.read(hold, 1)
        os._exit(0)
    os.close(tell)
    os.close(hold)
    try:
        yield os.read(port, 16).decode()
    finally:
        os.close(port)
        os.close(release)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


@pytest.fixture
def jobs():
    """Makes jobs; ends what a test has left."""
    with contextlib.ExitStack() as stack:
        def elastic(quorum, deadline="3", options=()):
            master = subprocess.Popen(
                [program(), "--listen", "127.0.0.1:0", "--quorum",
                 str(quorum), "-v", *options], stderr=subprocess.STDOUT,
                stdout=subprocess.PIPE, text=True,
                env=dict(os.environ, PCCL_DEADLINE=deadline))
            stack.callback(master.wait)
            stack.callback(master.kill)
            line = master.stdout.readline()
            where = re.search(r"127\.0\.0\.1:\d+", line)
            assert where, line
            job = Job({"PCCL_MASTER": where[0]})
            job.master = master
            stack.callback(job.close)
            return job

        def fixed(size):
            job = Job({"MASTER_ADDR": "127.0.0.1",
                       "MASTER_PORT": stack.enter_context(_store()),
                       "TORCHELASTIC_USE_AGENT_STORE": "True",
                       "WORLD_SIZE": str(size)})
            stack.callback(job.close)
            return job
        yield type("Jobs", (), {"elastic": staticmethod(elastic),
                                "fixed": staticmethod(fixed)})


@pytest.fixture(params=["elastic", "fixed"])
def ranks(jobs, request):
    """run(size, function): the function on `size` ranks, both ways in."""
    def run(size, function, *arguments):
        job = getattr(jobs, request.param)(size)
        for rank in range(size):
            job.start(_connected, function, arguments, RANK=str(rank),
                      PCCL_RANK=str(rank))
        return job.results()
    return run


def _connected(function, arguments):
    dist.init_process_group("pccl")
    return function(*arguments)


def script(text, *arguments, **environment):
    """A program of its own, for what happens at its exit."""
    return subprocess.run([sys.executable, "-c", text, *arguments],
                          capture_output=True, text=True, timeout=LIMIT,
                          env=dict(os.environ, **environment))


@pytest.fixture
def run_script():
    return script
