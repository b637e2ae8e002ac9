#!/usr/bin/env python3
"""foreign.py TEST_SAVE [PYTHON]: the package safetensors reads a checkpoint.

TEST_SAVE writes one of all types. PYTHON is an interpreter that may have the
package where this one has not. Exits 77, with a word, where none has it."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

TYPES = ["U8", "I8", "I16", "U16", "U32", "I32", "U64", "I64", "F16", "BF16",
         "F32", "F64"]
WIDTHS = [1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8]

try:
    import safetensors
except ImportError:
    others = [path for path in sys.argv[2:] if os.path.exists(path)]
    if others:
        os.execv(others[0], [others[0], "-B", __file__, sys.argv[1]])
    print("skipped: no Python package safetensors")
    sys.exit(77)

with tempfile.TemporaryDirectory() as folder:
    subprocess.run([sys.argv[1]], check=True, timeout=300,
                   env={**os.environ, "TEST_SAVE_INTO": folder})
    tensors, = pathlib.Path(folder).glob("*.safetensors")
    manifest, = pathlib.Path(folder).glob("*.json")
    found = dict(safetensors.deserialize(tensors.read_bytes()))
    said = json.loads(manifest.read_text())

assert len(found) == len(said["tensors"]) == len(TYPES), found
for place, (code, width) in enumerate(zip(TYPES, WIDTHS)):
    name = "#3" if place == 3 else f"tensor {place}"
    count = place % 5
    tensor = found[name]
    assert tensor["dtype"] == code, (name, tensor)
    assert list(tensor["shape"]) == [count], (name, tensor)
    assert bytes(tensor["data"]) == b"\x03" * (count * width), (name, tensor)
    entry = said["tensors"][place]
    assert (entry["name"], entry["count"]) == (name, count), entry
assert (said["format"], said["revision"], said["group"]) == (1, 41, 0), said
print(f"safetensors {safetensors.__version__} reads {len(found)} tensors")
