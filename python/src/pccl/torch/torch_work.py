# torch_work.py - the handle of a c10d call: one or more operations.
"""Work: what an asynchronous call of torch.distributed returns."""
import threading

import torch
import torch.distributed as dist


def seconds(timeout, default):
    """A timeout in seconds, or as c10d gives it: a timedelta, 0 for none."""
    given = getattr(timeout, "total_seconds", lambda: timeout or 0)()
    return given if given > 0 else default


class Work(dist.Work):
    """Operations under way, and what is to be done when all are over.

    world       the World that runs them, for get_future
    operations  have wait(timeout) and done()
    result      list of tensors of the future
    finish      called once, when all operations have succeeded, by the thread
                that notices it; or None
    timeout     seconds, unless wait() is given one
    """

    def __init__(self, world, operations, result, finish=None, timeout=None):
        super().__init__()
        self._world = world
        self._operations = operations
        self._result = result
        self._finish = finish
        self._timeout = timeout
        self._lock = threading.Lock()
        self._future = None
        self._failure = None

    def wait(self, timeout=None):
        limit = seconds(timeout, self._timeout)
        try:
            for operation in self._operations:
                operation.wait(limit)
            if self._finish:
                with self._lock:
                    finish, self._finish = self._finish, None
                    if finish:
                        finish()
        except Exception as failure:
            self._failure = failure
            raise
        return True

    def is_completed(self):
        if not all(operation.done() for operation in self._operations):
            return False
        try:
            self.wait()
        except Exception:  # exception() has it
            pass
        return True

    done = is_completed  # a Work can be an operation of another one

    def is_success(self):
        return self.is_completed() and self._failure is None

    def exception(self):
        return self._failure

    def result(self):
        return self._result

    def synchronize(self):
        self.wait()

    def source_rank(self):
        return self._operations[0].source_rank()

    _source_rank = source_rank

    def get_future(self):
        with self._lock:
            if self._future is None:
                self._future = torch.futures.Future()
                self._world.complete(self)
            return self._future

    def fulfil(self):
        """Waits and completes the future; called by the world's thread."""
        try:
            self.wait()
        except Exception as failure:
            self._future.set_exception(failure)
        else:
            self._future.set_result(self._result)
