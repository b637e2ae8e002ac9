#!/usr/bin/env python3
"""tidy.py ROOT - style rules that a machine can check, for every C file.

tidy.py --self-test breaks each rule once and checks that it is noticed.
"""
import pathlib
import re
import sys

FOLDERS = ("include", "src", "kernels", "tests", "examples")
FILE_LINES = 700
FUNCTION_LINES = 100
COLUMNS = 80

# A contract that its reader has in one place may be long.
CONTRACTS = ("include/pccl.h",)

# Written by a program, for nobody to read: any length and width.
GENERATED = ("src/mpi/stubs.c",)

# File, by longest prefix -> the project's files that it may include, by
# prefix. Arrows point down only; "" is anything.
SHARED = ["src/base.h", "src/dtype", "src/wire", "src/cursor.h", "src/pool"]
LAYERS = {
    "include/": ["include/"],
    "src/base.h": [],
    "src/dtype": ["src/base.h", "src/dtype"],
    "src/status": ["src/status", "include/pccl.h"],
    "src/log": ["src/log"],
    "src/env": ["src/env"],
    "src/cursor.h": ["src/base.h"],
    "src/pool": ["src/base.h", "src/pool"],
    "src/wire": ["src/base.h", "src/wire", "src/cursor.h"],
    "src/ring/": SHARED + ["src/ring/", "include/pccl.h"],
    "src/ring/state_": SHARED + ["src/ring/", "src/hash/hash.h"],
    "src/elastic/": SHARED + ["src/elastic/"],
    "src/master/": SHARED + ["src/master/"],
    # The peer's core is where membership and ring meet.
    "src/session": SHARED + ["src/session", "src/elastic/", "src/ring/engine.h",
                             "include/pccl.h"],
    "src/hash/": ["src/hash/"],
    "kernels/": ["src/hash/", "src/ring/quant", "src/dtype.h", "src/base.h"],
    # Drivers.
    "src/io_": ["src/io_", "src/base.h", "src/wire", "src/log.h"],
    "src/share": ["src/share", "src/base.h", "src/ring/channel.h"],
    "src/comm": SHARED + ["src/comm", "src/session.h", "src/io_", "src/share",
                           "src/log.h", "src/env.h", "include/pccl.h"],
    "src/comm_device": ["src/comm", "src/hash/hash_cuda.h"],
    "src/api_message.c": ["src/api.h"],
    "src/api.h": ["src/comm.h"],
    "src/api_collective.c": ["src/api.h"],
    "src/api.c": ["src/api.h", "src/comm.h", "src/comm_device.h", "src/env.h", "src/log.h", "src/status.h",
                  "include/pccl.h"],
    "src/master/master_": SHARED + ["src/master/master", "src/io_",
                                    "src/log.h"],
    "src/master/master_api.c": ["src/base.h", "src/master/master_server.h",
                                "src/io_", "src/log.h", "src/env.h",
                                "include/pccl.h"],
    "src/master/launch/": ["src/base.h", "src/env.h", "src/master/launch/",
                           "src/master/master_server.h"],
    "src/master/main.c": ["src/master/launch/launch.h"],
    # The MPI facade is a client like any other.
    "src/mpi/": ["include/", "src/mpi/"],
    "examples/": ["include/", "examples/"],
    "tests/": [""],
}

# Cores decide; they do no I/O, read no clock and start no thread, so these
# are all the system headers they may see. Allocation at start needs stdlib.h.
CORE = ("src/base.h", "src/dtype", "src/wire", "src/cursor.h", "src/pool",
        "src/session", "src/elastic/", "src/ring/", "src/hash/hash.",
        "src/hash/hash_core.h", "src/master/master.", "src/master/round.",
        "src/master/order.", "src/master/state_vote.",
        "src/master/conflict.", "src/master/optimize.", "src/master/edges.",
        "src/master/topology", "src/master/bandwidth")
CORE_HEADERS = {"assert.h", "limits.h", "math.h", "stdbool.h", "stddef.h",
                "stdint.h", "stdlib.h", "string.h"}
CORE_HEADERS_ALLOWED = {
    ("src/ring/reduce", "immintrin.h"): "vector instructions",
    ("src/ring/stream.h", "emmintrin.h"): "stores past the caches",
    ("src/ring/isa.c", "cpuid.h"): "which of them this machine has",
    ("src/ring/reduce.c", "stdatomic.h"): "that choice, made once",
    ("src/ring/quant.c", "stdatomic.h"): "the same",
    ("src/ring/quant_core.h", "float.h"): "the largest numbers",
    ("src/pool.c", "sys/mman.h"): "huge pages for the buffers",
    ("src/ring/channel", "stdatomic.h"): "what two processes share",
}

BANNED = {  # call -> what to use
    "strcpy": "snprintf or memcpy", "strcat": "snprintf",
    "sprintf": "snprintf", "vsprintf": "vsnprintf", "gets": "fgets",
    "system": "posix_spawn",
}
BANNED_OUTSIDE_TESTS = {
    "atoi": "strtol", "atol": "strtol", "atof": "strtod", "strtok": "strcspn",
    "sleep": "a timer", "usleep": "a timer",
}


def longest(table, path):
    """The value of the longest key that path begins with, or None."""
    keys = [key for key in table if path.startswith(key)]
    return table[max(keys, key=len)] if keys else None


def code_only(text):
    """Comments and literals blanked out, newlines kept."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group())
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'
                  r"'(?:\\.|[^'\\\n])*'", blank, text, flags=re.S)


def check_text(path, lines):
    name = path.rsplit("/", 1)[-1]
    if not lines or not re.match(r"/[/*] " + re.escape(name) + r"\b", lines[0]):
        yield 1, f"the first line does not name the file: /* {name} - ..."
    if path in GENERATED:
        return
    if len(lines) > FILE_LINES and path not in CONTRACTS:
        yield len(lines), f"{len(lines)} lines, more than {FILE_LINES}"
    for number, line in enumerate(lines, 1):
        if len(line) > COLUMNS:
            yield number, f"{len(line)} columns"
        if "\t" in line:
            yield number, "tab"
        if line != line.rstrip():
            yield number, "blanks at the end of the line"
        if re.search(r"\b(TODO|FIXME|XXX)\b", line):
            yield number, "unfinished business"


def check_functions(lines):
    """With Linux braces a function is what lies between { and } in column 0."""
    start = None
    for number, line in enumerate(lines, 1):
        if line == "{":
            start = number
        elif line.startswith("}") and start:
            if number - start - 1 > FUNCTION_LINES:
                yield start, f"function of {number - start - 1} lines"
            start = None


def check_calls(path, lines):
    banned = dict(BANNED)
    if not path.startswith("tests/"):
        banned.update(BANNED_OUTSIDE_TESTS)
    pattern = re.compile(r"(?<![\w.>])(" + "|".join(banned) + r")\s*\(")
    for number, line in enumerate(lines, 1):
        for match in pattern.finditer(line):
            call = match.group(1)
            yield number, f"{call}(): use {banned[call]}"


def resolve(path, include):
    """The path from the root of an include in quotes."""
    parts = path.split("/")[:-1]
    for part in include.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def check_includes(path, lines, public):
    allowed = longest(LAYERS, path)
    if allowed is None:
        yield 1, "no layer for this file: add it to LAYERS"
        return
    core = path.startswith(CORE)
    for number, line in enumerate(lines, 1):
        match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)', line)
        if not match:
            continue
        kind, header = match.groups()
        target = None
        if kind == '"':
            target = resolve(path, header)
        elif header in public:
            target = "include/" + header
        if target:
            if not target.startswith(tuple(allowed)):
                yield number, f"{path} may not include {target}"
        elif core and header not in CORE_HEADERS and not any(
                path.startswith(prefix) and header == name
                for prefix, name in CORE_HEADERS_ALLOWED):
            yield number, f"a core may not include <{header}>"


def check(path, text, public=("pccl.h", "mpi_pccl.h")):
    """All faults of one file: (line number, what is wrong)."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    code = code_only(text).split("\n")
    faults = list(check_text(path, lines))
    faults += check_functions(lines)
    faults += check_calls(path, code)
    faults += check_includes(path, lines, public)
    return sorted(faults)


def self_test():
    head = "/* a.c - x. */\n"
    cases = [  # path, text, part of the fault, or None for a good file
        ("src/ring/a.c", head + "#include <string.h>\n", None),
        ("src/ring/a.c", head + '#include "../base.h"\n', None),
        ("src/ring/a.c", "int x;\n", "does not name the file"),
        ("src/ring/a.c", "/* b.c - x. */\n", "does not name the file"),
        ("src/ring/a.c", head + "\n" * 700, "701 lines, more than"),
        ("src/ring/a.c", head + "\n" * 699, None),
        ("src/mpi/stubs.c", "/* stubs.c - x. */\n" + "\n" * 700, None),
        ("src/ring/a.c", head + "x" * 81 + "\n", "81 columns"),
        ("src/ring/a.c", head + "x" * 80 + "\n", None),
        ("src/ring/a.c", head + "\tx\n", "tab"),
        ("src/ring/a.c", head + "x \n", "blanks at the end"),
        ("src/ring/a.c", head + "/* TO" "DO */\n", "unfinished"),
        ("src/ring/a.c", head + "/* FIX" "ME */\n", "unfinished"),
        ("src/ring/a.c", head + "{\n" + "x;\n" * 101 + "}\n", "of 101 lines"),
        ("src/ring/a.c", head + "{\n" + "x;\n" * 100 + "}\n", None),
        ("src/ring/a.c", head + "/* system(x) */ char *s = \"gets(\";\n", None),
        ("src/comm_a.c", "/* comm_a.c - x. */\nx.sleep(1);\n", None),
        ("tests/a.c", head + "sleep(1);\n", None),
        ("src/ring/a.c", head + "#include <time.h>\n", "a core may not"),
        ("src/ring/a.c", head + "#include <sys/mman.h>\n", "a core may not"),
        ("src/pool.c", "/* pool.c - x. */\n#include <sys/mman.h>\n", None),
        ("src/ring/a.c", head + '#include "../log.h"\n', "may not include"),
        ("src/ring/a.c", head + '#include "../master/round.h"\n',
         "may not include src/master/round.h"),
        ("src/master/a.c", head + '#include "../ring/plan.h"\n',
         "may not include src/ring/plan.h"),
        ("src/mpi/a.c", head + '#include "../base.h"\n', "may not include"),
        ("src/mpi/a.c", head + "#include <pccl.h>\n", None),
        ("src/elastic/a.c", head + "#include <pccl.h>\n",
         "may not include include/pccl.h"),
        ("src/master/main.c", '/* main.c - x. */\n#include "order.h"\n',
         "may not include src/master/order.h"),
        ("elsewhere/a.c", head, "no layer"),
    ]
    cases += [("tests/a.c", head + f"  {call}(x);\n", f"{call}(): use")
              for call in BANNED]
    cases += [("examples/a.c", head + f"  {call}(x);\n", f"{call}(): use")
              for call in BANNED_OUTSIDE_TESTS]
    for path, text, expected in cases:
        faults = [fault for _, fault in check(path, text)]
        good = not faults if expected is None else any(
            expected in fault for fault in faults)
        if not good:
            sys.exit(f"self-test: {path!r} {text[:60]!r} -> {faults}")
    print(f"{len(cases)} cases of the self-test passed")


def main(root):
    files = [file for folder in FOLDERS
             for file in sorted((root / folder).rglob("*"))
             if file.suffix in (".c", ".h", ".cu") and file.is_file()]
    if not files:
        sys.exit(f"no C files below {root}")
    count = 0
    for file in files:
        path = file.relative_to(root).as_posix()
        for number, fault in check(path, file.read_text(encoding="utf-8")):
            print(f"{path}:{number}: {fault}")
            count += 1
    print(f"{len(files)} files, {count} faults")
    sys.exit(1 if count else 0)


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        self_test()
    elif len(sys.argv) == 2:
        main(pathlib.Path(sys.argv[1]))
    else:
        sys.exit(__doc__)
