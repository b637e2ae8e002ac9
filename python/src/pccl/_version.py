"""The version of this package."""
from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("pccl-mpi")
except PackageNotFoundError:
    __version__ = "dev"
