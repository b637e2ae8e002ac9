# test_torch_types.py - the types that pccl.torch tells a checker.
import ast
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pccl.torch
import pccl.torch.ft

PACKAGE = Path(pccl.__file__).parent

# What a checker is to accept, and below what it is to refuse, line by line.
GOOD = """
import torch
import torch.distributed as dist
import pccl.torch
from pccl.torch import ft

net = torch.nn.Linear(2, 2)
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
model = pccl.torch.DistributedDataParallel(net, sgd, partial=2.0, weight=8)
done: bool = model.update() and model.discarded
share: float = model.coverage + model.step
outer = pccl.torch.DiLoCo(net, every=10, quantize="uint8")
stepped: bool = outer.step(1.5)
members: int = outer.contributors + pccl.torch.reconfigure()
manager = ft.Manager(load_state_dict=net.load_state_dict,
                     state_dict=net.state_dict, min_replica_size=2)
wrapped = ft.DistributedDataParallel(manager, net)
optimizer = ft.Optimizer(manager, sgd)
commits: bool = manager.should_commit()
try:
    dist.barrier()
except pccl.torch.MemberLost as lost:
    print(lost.result.name)
"""
BAD = """
pccl.torch.DistributedDataParallel("net")
model.coverage = 1.0
text: str = outer.loss
outer.step("1")
pccl.torch.update(3)
manager.start_quorums()
"""


def check(folder, *arguments):
    """mypy's errors, of the package as users have it: installed, typed."""
    environment = dict(os.environ, MYPYPATH=str(PACKAGE.parent))
    return subprocess.run(
        [sys.executable, "-m", *arguments], cwd=folder, env=environment,
        capture_output=True, text=True, check=False).stdout


def test_a_program(tmp_path):
    pytest.importorskip("mypy")
    program = tmp_path / "program.py"
    program.write_text(GOOD + BAD)
    said = check(tmp_path, "mypy", "--strict", "--cache-dir", "cache",
                 program.name)
    wrong = {int(line.split(":")[1]) for line in said.splitlines()
             if line.startswith("program.py:") and " error: " in line}
    first = len(GOOD.splitlines()) + 2
    assert wrong == set(range(first, first + len(BAD.splitlines()) - 1)), said
    assert (PACKAGE / "py.typed").exists()


def parameters(call):
    """Of a function in a stub: its parameters, by kind, and their defaults."""
    words = call.args
    plain = [a.arg for a in words.posonlyargs + words.args]
    optional = plain[len(plain) - len(words.defaults):] + [
        a.arg for a, default in zip(words.kwonlyargs, words.kw_defaults)
        if default is not None]
    return plain, {a.arg for a in words.kwonlyargs}, set(optional)


def real_parameters(thing):
    kinds = inspect.Parameter
    there = inspect.signature(thing).parameters.values()
    return ([p.name for p in there if p.kind == kinds.POSITIONAL_OR_KEYWORD],
            {p.name for p in there if p.kind == kinds.KEYWORD_ONLY},
            {p.name for p in there if p.default is not kinds.empty})


def field(cls, name):
    """What instances have though the class has not."""
    source = inspect.getsource(cls.__init__)
    return re.search(rf"self\.([\w, .]*\.)?{name}\b", source) is not None


def compare(where, real, nodes):
    """A module or class, and what its stub says of it."""
    names = set()
    for node in nodes:
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
            thing = getattr(real, node.name)
            if isinstance(thing, property):
                assert node.decorator_list, (where, node.name)
            else:
                assert parameters(node) == real_parameters(thing), \
                    (where, node.name)
        elif isinstance(node, ast.AnnAssign):
            names.add(node.target.id)
            assert hasattr(real, node.target.id) or \
                field(real, node.target.id), (where, node.target.id)
        elif isinstance(node, ast.Assign) and node.targets[0].id[0] != "_":
            names.add(node.targets[0].id)
            assert getattr(real, node.targets[0].id) is \
                getattr(real, node.value.id, None), (where, node.targets[0].id)
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            names.add(node.name)
            compare(f"{where}.{node.name}", getattr(real, node.name),
                    node.body)
    return names


@pytest.mark.parametrize("module", [pccl.torch, pccl.torch.ft])
def test_stubs_say_what_is_there(module):
    stub = Path(module.__file__).with_suffix(".pyi")
    names = compare(module.__name__, module, ast.parse(stub.read_text()).body)
    public = {name for name, thing in vars(module).items() if name[0] != "_"
              and getattr(thing, "__module__", "") == module.__name__}
    assert public <= names, public - names
    if module is pccl.torch:
        assert set(module.__all__) - {"Manager"} <= names


@pytest.mark.parametrize("cls", [
    pccl.torch.DistributedDataParallel, pccl.torch.DiLoCo,
    pccl.torch.ft.Manager])
def test_stubs_have_every_method(cls):
    place = pccl.torch.ft if cls is pccl.torch.ft.Manager else pccl.torch
    nodes = ast.parse(Path(place.__file__).with_suffix(".pyi").read_text())
    stub = next(node for node in nodes.body if
                isinstance(node, ast.ClassDef) and node.name == cls.__name__)
    there = {getattr(item, "name", None) or item.target.id
             for item in stub.body
             if isinstance(item, (ast.FunctionDef, ast.AnnAssign))}
    public = {name for name in vars(cls) if name[0] != "_"}
    assert public <= there, public - there
