"""Checkpoints: save(), load(), and what other programs read of them."""
from __future__ import annotations

import json
from pathlib import Path

import pytest

import pccl
from conftest import join, together

numpy = pytest.importorskip("numpy")


def fresh() -> dict[str, object]:
    return {"weights": numpy.zeros((3, 4), numpy.float32),
            "optimizer": [{"step": 0, "momentum": numpy.zeros(7)}],
            "rate": 0.5, "name": "stays"}


def trained(step: int) -> dict[str, object]:
    state = fresh()
    state["weights"][:] = step  # type: ignore[index]
    state["optimizer"][0]["momentum"][:] = numpy.arange(7) * step  # type: ignore[index]
    state["optimizer"][0]["step"] = step  # type: ignore[index]
    return state


def same(a: dict[str, object], b: dict[str, object]) -> bool:
    return (numpy.array_equal(a["weights"], b["weights"])
            and numpy.array_equal(a["optimizer"][0]["momentum"],  # type: ignore[index]
                                  b["optimizer"][0]["momentum"])  # type: ignore[index]
            and a["optimizer"][0]["step"] == b["optimizer"][0]["step"]  # type: ignore[index]
            and a["rate"] == b["rate"])


def test_a_run_saves_and_another_one_loads(tmp_path: Path) -> None:
    with pccl.Master() as master:
        a = pccl.connect(master.address)
        b = join(a, master.address)
        for step in range(1, 4):
            state = [trained(step), trained(step)]
            together(lambda: a.sync(state[0]), lambda: b.sync(state[1]))
            for run, its in zip((a, b), state):
                run.save(tmp_path, its)
        saved, nothing = a.await_save(), b.await_save()
        assert saved is not None and nothing is None
        assert (saved.revision, saved.world_size) == (2, 2)
        a.close()
        b.close()
    assert len(list(tmp_path.iterdir())) == 4
    with pccl.Master() as master, pccl.connect(master.address) as run:
        state = fresh()
        found = run.load(tmp_path, state)
        assert found is not None
        assert (found.revision, found.time_ns) == (2, saved.time_ns)
        assert same(state, trained(3)) and run.revision == 2
        assert run.sync(state).revision == 2
        assert run.sync(state).revision == 3
        state = fresh()
        assert run.load(tmp_path, state, revision=1) is not None
        assert same(state, trained(2))
        assert run.load(tmp_path, state, revision=7) is None
        assert run.load(tmp_path, state, time_ns=1) is not None


def test_what_is_wrong_is_named(master: pccl.Master, tmp_path: Path) -> None:
    with pccl.connect(master.address) as run:
        assert run.load(tmp_path, fresh()) is None
        with pytest.raises(pccl.FileError, match="No such file"):
            run.load(tmp_path / "nowhere", fresh())
        with pytest.raises(OSError, match="No such file"):
            run.save(tmp_path / "nowhere", fresh())
        state = trained(5)
        run.sync(state)
        run.save(tmp_path, state, wait=True)
        other = fresh()
        other["weights"] = numpy.zeros(13, numpy.float32)
        with pytest.raises(pccl.InvalidArgument, match='"weights" .12 x f32'):
            run.load(tmp_path, other)
        file, = tmp_path.glob("*.safetensors")
        edited = bytearray(file.read_bytes())
        edited[-1] ^= 1
        file.write_bytes(edited)
        state = trained(1)
        with pytest.raises(pccl.FileError, match="damaged, or edited"):
            run.load(tmp_path, state)
        assert same(state, trained(1))


def test_others_read_it(master: pccl.Master, tmp_path: Path) -> None:
    reader = pytest.importorskip("safetensors.numpy")
    with pccl.connect(master.address) as run:
        state = trained(3)
        run.sync(state)
        run.save(tmp_path, state)
        run.await_save()
    file, = tmp_path.glob("*.safetensors")
    found = reader.load_file(file)
    assert numpy.array_equal(found["weights"].reshape(3, 4), state["weights"])
    assert found["optimizer.0.step"] == [3]
    manifest = json.loads(file.with_suffix(".json").read_text())
    assert [entry["name"] for entry in manifest["tensors"]] == [
        "weights", "optimizer.0.step", "optimizer.0.momentum", "rate"]
