"""Spack's recipe of PCCL/MPI.

    spack repo add packaging/spack
    spack install pccl-mpi

It builds what is committed in the checkout that it lies in."""
import os

from spack.package import *

CHECKOUT = os.path.realpath(
    os.path.join(os.path.dirname(__file__), *[os.pardir] * 4))


class PcclMpi(CMakePackage):
    """Collectives that survive the loss of processes and admit new ones while
    the program runs: an MPI library with MPICH's binary interface, a library
    with the C API of PCCL 1.0, and a launcher that takes the place of
    mpirun."""

    homepage = "file://" + CHECKOUT
    git = "file://" + CHECKOUT

    license("MIT")

    version("main", branch="main")

    variant("hwloc", default=True, description="Bind ranks by hwloc")
    variant("http", default=True, description="The status over HTTP")
    variant("cuda", default=False, description="Shared state on GPUs")
    variant("python", default=False, description="The Python package")

    depends_on("c", type="build")
    depends_on("cmake@3.20:", type="build")
    # The manual pages of the functions; with the package, its headers.
    depends_on("python@3.6:", type="build", when="~python")
    depends_on("python@3.11:", type=("build", "run"), when="+python")
    depends_on("libev")
    depends_on("openssl@3", type=("build", "run"))
    depends_on("hwloc@2:", when="+hwloc")
    depends_on("libmicrohttpd@0.9.71:", when="+http")
    depends_on("cuda", when="+cuda")

    def cmake_args(self):
        return [
            self.define("BUILD_TESTING", False),
            self.define("PCCL_MPI", "ON"),
            self.define_from_variant("PCCL_HWLOC", "hwloc"),
            self.define_from_variant("PCCL_HTTP", "http"),
            self.define_from_variant("PCCL_CUDA", "cuda"),
            self.define_from_variant("PCCL_PYTHON_PACKAGE", "python"),
        ]

    def setup_run_environment(self, env):
        # The compiler wrappers, in the place of another MPI's.
        env.prepend_path("PATH", self.prefix.lib.pccl.bin)
