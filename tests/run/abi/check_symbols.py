#!/usr/bin/env python3
"""Compares the symbols of our MPI library with the committed list of names.

    check_symbols.py OUR_LIBRARY LIST [MPICH_LIBRARY]

LIST is a version script of src/mpi/table. Fails if a name is missing or too
much, if MPI_X is not a weak alias of PMPI_X, or if an installed library of MPICH
has a symbol of MPI that we lack. Exits 77 without nm."""
import re
import shutil
import subprocess
import sys

FAMILY = re.compile(r"^(P?MPIX?_|MPII_|MPIR_|QMPI_)")


def symbols(path):
    """{name: (address, kind)} of what a library defines."""
    text = subprocess.run(["nm", "-D", "--defined-only", path], check=True,
                          capture_output=True, text=True).stdout
    rows = (line.split() for line in text.splitlines())
    return {row[2].split("@")[0]: (row[0], row[1]) for row in rows
            if len(row) == 3}


def main():
    if not shutil.which("nm"):
        sys.exit(77)
    ours = symbols(sys.argv[1])
    listed = set(re.findall(r"^    (\w+);$", open(sys.argv[2]).read(),
                            flags=re.M))
    problems = []
    if len(listed) < 1000:
        problems.append(f"only {len(listed)} names are listed")
    problems += [f"missing: {name}" for name in sorted(listed - set(ours))]
    problems += [f"exported, not listed: {name}"
                 for name in sorted(set(ours) - listed)
                 if not name.startswith("PCCL_")]
    if len(sys.argv) > 3:
        theirs = {name for name in symbols(sys.argv[3]) if FAMILY.match(name)}
        problems += [f"missing, in MPICH's library: {name}"
                     for name in sorted(theirs - set(ours))]
    for name, (address, kind) in sorted(ours.items()):
        if not re.match(r"^MPIX?_", name) or kind not in "TW":
            continue
        profiled = ours.get("P" + name)
        if kind != "W" or not profiled or profiled[0] != address:
            problems.append(f"not a weak alias: {name}")
    print("\n".join(problems) or f"{len(ours)} symbols agree")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
