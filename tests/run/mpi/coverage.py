"""coverage.py ROOT - every function that the table offers is called by a
conformance program. Prints those that are not, and fails."""
import pathlib
import re
import sys

# Calls that end the program, or that need a launcher or a device.
ELSEWHERE = {
    "MPI_Abort",  # abort.sh
    # Converted by the Fortran library, which is not linked here.
    "MPI_Status_c2f08", "MPI_Status_f082c", "MPI_Status_f082f",
    "MPI_Status_f2f08",
    # Not declared in the C header.
    "MPI_Type_create_f90_complex", "MPI_Type_create_f90_integer",
    "MPI_Type_create_f90_real",
}
SUFFIXES = "", "_c"


def called(root):
    text = "".join(path.read_text() for path in
                   sorted((root / "tests/run/mpi").glob("*.[chf]*")))
    names = set(re.findall(r"\bP?(MPIX?_\w+)", text))
    # The macros that call all variants of a collective.
    for macro in re.finditer(r"\b(?:RUN|RUN_BOTH|WIDE)\((?:how, )?(\w+),\s*(\w+),",
                             text):
        name, lower = macro.groups()
        for suffix in SUFFIXES:
            names |= {f"MPI_{name}{suffix}", f"MPI_I{lower}{suffix}",
                      f"MPI_{name}_init{suffix}"}
    for macro in re.finditer(r"\bBOTH\((MPI_\w+),", text):
        names.add(macro.group(1) + "_c")
    # Handles as integers, there and back.
    for macro in re.finditer(r"\bROUND\((\w+),", text):
        names |= {f"MPI_{macro.group(1)}_{way}"
                  for way in ("toint", "fromint", "c2f", "f2c")}
    return names


def main():
    root = pathlib.Path(sys.argv[1])
    table = (root / "src/mpi/FUNCTIONS.md").read_text()
    offered = re.findall(r"^\| (MPIX?_\w+) \| yes", table, re.M)
    # Most calls of the tools interface have no object to work on.
    tools = {name for name in offered if name.startswith("MPI_T_")}
    missing = sorted(set(offered) - called(root) - ELSEWHERE - tools)
    for name in missing:
        print(f"{name}: no conformance program calls it")
    print(f"{len(offered)} offered, {len(missing)} not called")
    return 1 if missing else 0


sys.exit(main())
