#!/usr/bin/env python3
"""inventory.py ROOT - what the fuzzers owe: each source of src/ is on the list
of coverage.sh, or in inventory.txt with a reason, and in one of them only.

inventory.txt has paragraphs: a reason, then, each with two blanks before it,
lines of names.
"""
import pathlib
import re
import sys


def listed(folder):
    text = (folder / "coverage.sh").read_text()
    return re.search(r"^files='(.*?)'", text, re.S | re.M)[1].split()


def excused(folder):
    lines = (folder / "inventory.txt").read_text().splitlines()
    return [name for line in lines if line.startswith("  ")
            for name in line.split()]


def main():
    root = pathlib.Path(sys.argv[1])
    folder = root / "tests" / "fuzz"
    names = listed(folder) + excused(folder)
    there = {str(p.relative_to(root / "src"))
             for p in (root / "src").rglob("*.[ch]")}
    # A header is listed where it has code that reads foreign bytes.
    sources = {name for name in there if name.endswith(".c")}
    wrong = [f"{name}: neither measured nor excused"
             for name in sorted(sources - set(names))]
    wrong += [f"{name}: no such file" for name in names if name not in there]
    wrong += [f"{name}: twice" for name in sorted(set(names))
              if names.count(name) > 1]
    print("\n".join(wrong) or f"{len(names)} files")
    return bool(wrong)


sys.exit(main())
