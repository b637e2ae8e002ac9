#!/usr/bin/env python3
"""constants.py TABLE mpich|abi - a C file that compiles where an <mpi.h> has the
values of our table and the types of that interface."""
import sys

column = {"mpich": 2, "abi": 3}[sys.argv[2]]
# Ours, or of MPICH beside its ABI.
SKIP = ("MPIX_", "MPICH_", "MPI_T_", "MPI_COMBINER_")

print("#include <mpi.h>\n#include <stdint.h>")
count = 0
for line in open(sys.argv[1], encoding="utf-8"):
    words = line.split()
    if not words or line[0] == "#" or words[0].startswith(SKIP):
        continue
    name, kind, value = words[0], words[1], words[-1]
    if kind == "=":
        print(f'_Static_assert((intptr_t){name} == (intptr_t){value}, "");')
    elif words[column] != "-":
        wide = "int" if words[column].startswith("0x") else "intptr_t"
        print(f"_Static_assert(({wide})(intptr_t){name} == "
              f'({wide}){words[column]}, "{name}");')
    count += 1
print("_Static_assert(sizeof(MPI_Status) == "
      f"{ {'mpich': 20, 'abi': 32}[sys.argv[2]] }, \"\");")
if count < 250:
    sys.exit("the table is short")
