#!/usr/bin/env python3
"""Compares the symbols of our MPI library with MPICH's.

    check_symbols.py OUR_LIBRARY INCLUDE_DIR [MPICH_LIBRARY]

Fails if a function of MPICH's header or a symbol of its library is missing, if
MPI_X is not a weak alias of PMPI_X, or if we export more than we mean to.
Exits 77 without nm."""
import os
import re
import shutil
import subprocess
import sys

FAMILY = re.compile(r"^(P?MPIX?_|MPII_|MPIR_|QMPI_)")
# In the header but in libmpichfort, not in libmpich.
OURS = re.compile(r"^(P?MPI_Status_(c2f08|f082c|f082f|f2f08)"
                  r"|P?MPIX_Comm_(is_revoked|get_failed|ack_failed|iagree|ishrink)"
                  r"|PCCL_\w+|pccl[A-Z]\w+)$")


def symbols(path):
    """{name: (address, kind)} of what a library defines."""
    text = subprocess.run(["nm", "-D", "--defined-only", path], check=True,
                          capture_output=True, text=True).stdout
    rows = (line.split() for line in text.splitlines())
    return {row[2].split("@")[0]: (row[0], row[1]) for row in rows
            if len(row) == 3}


def declared(include_dir):
    names = set()
    for header in ("mpi.h", "mpi_proto.h", "mpio.h"):
        path = os.path.join(include_dir, header)
        if os.path.exists(path):
            text = re.sub(r"/\*.*?\*/", "", open(path).read(), flags=re.S)
            text = re.sub(r"^\s*#.*$", "", text, flags=re.M)
            names |= set(re.findall(r"^\w[\w ]*\W\**(P?MPIX?_\w+)\s*\(", text,
                                    flags=re.M))
    # A macro, a cast, and what mpio.h declares where handles are not integers.
    return names - {"MPI_DUP_FN", "MPI_Aint", "MPI_Info_c2f", "MPI_Info_f2c",
                    "PMPI_Info_c2f", "PMPI_Info_f2c"}


def main():
    if not shutil.which("nm"):
        sys.exit(77)
    ours = symbols(sys.argv[1])
    problems = []
    header = declared(sys.argv[2])
    if len(header) < 1000:
        problems.append(f"only {len(header)} functions found in the header")
    problems += [f"missing, declared: {name}"
                 for name in sorted(header - set(ours))]
    if len(sys.argv) > 3:
        theirs = {name for name in symbols(sys.argv[3]) if FAMILY.match(name)}
        problems += [f"missing, in MPICH's library: {name}"
                     for name in sorted(theirs - set(ours))]
        problems += [f"exported, not MPICH's: {name}"
                     for name in sorted(set(ours) - theirs)
                     if not OURS.match(name)]
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
