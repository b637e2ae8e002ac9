# conftest.py - leaves the tests of pccl.torch out where torch is missing.
import importlib.util

if importlib.util.find_spec("torch"):
    from torch_ranks import jobs, ranks, run_script  # noqa: F401
else:
    collect_ignore_glob = ["test_torch_*.py"]


def pytest_report_header():
    if not importlib.util.find_spec("torch"):
        return "pccl.torch: not tested, there is no torch here"
    return None
