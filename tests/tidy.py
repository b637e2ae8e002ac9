#!/usr/bin/env python3
"""tidy.py ROOT - style rules that a machine can check, for every C file.

tidy.py --self-test breaks each rule once and checks that it is noticed.
"""
import collections
import pathlib
import re
import sys

FOLDERS = ("include", "src", "kernels", "tests", "examples", "python")
FILE_LINES = 600
FUNCTION_LINES = 75
COLUMNS = 80
CIRCLE = 5  # files of src/master/ that call each other
PATIENCE = 300  # seconds; as in tests/patience.h

# A contract that its reader has in one place may be long.
CONTRACTS = ("include/pccl.h",)

# Written by a program, for nobody to read: any length and width.
GENERATED = ("include/mpich/mpi.h", "include/mpi_abi/mpi.h")

# File, by longest prefix -> the project's files that it may include, by
# prefix. Arrows point down only; "" is anything.
BASE = ["src/base/append.h", "src/base/arguments", "src/base/base.h",
        "src/base/buggify.h", "src/base/cursor.h", "src/base/dtype",
        "src/base/evidence.h", "src/base/fnv.h", "src/base/pool", "src/base/scope.h",
        "src/base/float_env.h", "src/base/limit",
        "src/base/wire", "src/base/keyed.h", "src/base/grant.h",
        "src/base/siphash.h", "src/base/grid_shape", "src/base/tree.",
        "src/base/host_id.h"]
# The coordinator: the headers of the agreement, and the faces of what stands
# around it.
AGREEMENT = ["src/master/" + name + ".h" for name in
             ("admission", "dispute", "grants", "master", "note",
              "peer_tally", "round_table", "votes")]
AROUND = ["src/master/" + name + ".h" for name in
          ("coverage/coverage", "coverage/step_samples", "search/bandwidth",
           "search/edges", "state/offers", "succession/memory",
           "succession/replicas", "succession/succession", "watch/peer_report")]
LAYERS = {
    "include/": ["include/"],
    "src/base/": BASE,
    "src/base/status": ["src/base/status", "include/pccl.h"],
    "src/base/quiet_write": ["src/base/quiet_write.h"],
    "src/base/slow_call": ["src/base/slow_call.h", "src/base/thread.h"],
    "src/base/log": ["src/base/log", "src/base/file_pattern.h",
                     "src/base/quiet_write.h", "src/base/slow_call.h",
                     "src/base/json_char.h"],
    "src/base/json_char": ["src/base/utf8.h"],
    "src/base/file_pattern": ["src/base/file_pattern.h"],
    "src/base/decimal": ["src/base/decimal"],
    "src/base/env": ["src/base/base.h", "src/base/decimal.h", "src/base/env"],
    "src/base/host": ["src/base/clock.h", "src/base/host",
                      "src/base/small_file.h"] + BASE,
    "src/base/descriptors": ["src/base/descriptors.h"],
    "src/base/lacking": ["src/base/lacking.h", "src/base/descriptors.h"],
    "src/base/memory_supply": ["src/base/memory_supply.h",
                               "src/base/small_file.h"],
    "src/base/small_file": ["src/base/small_file.h"],
    "src/base/same_user": ["src/base/io_addr.h", "src/base/same_user.h",
                           "src/base/small_file.h"],
    "src/base/secure": ["src/base/secure", "src/base/base.h",
                        "src/base/cursor.h", "src/base/grant.h",
                        "src/base/hex.h"],
    "src/base/run_key": ["src/base/run_key.h", "src/base/secure",
                         "src/base/hex.h",
                         "src/base/quiet_write.h",
                         "src/base/base.h"],
    "src/base/io_": ["src/base/clock.h", "src/base/io_", "src/base/log.h"] + BASE,
    "src/hash/": ["src/hash/"],
    "src/reduce/": ["src/reduce/"] + BASE,
    "kernels/": ["src/hash/", "src/reduce/quant", "src/base/dtype.h",
                 "src/base/base.h"],
    "src/link/": BASE + ["src/link/"],
    "src/link/shared_memory": ["src/base/base.h", "src/link/channel.h",
                               "src/link/shared_memory.h"],
    "src/link/send_window": ["src/base/base.h", "src/link/send_window.h"],
    "src/ring/": BASE + ["src/link/", "src/reduce/", "src/ring/",
                         "include/pccl.h"],
    "src/message/": BASE + ["src/link/", "src/message/", "include/pccl.h"],
    "src/elastic/": BASE + ["src/link/", "src/elastic/", "src/hash/hash.h",
                            "src/reduce/weighted.h", "include/pccl.h"],
    # Faces only: the structs of links and operations are their folders' own.
    "src/elastic/session": BASE + ["src/link/links.h", "src/link/probe.h",
                                   "src/link/view.h",
                                   "src/ring/ring.h",
                                   "src/message/message.h", "src/elastic/",
                                   "include/pccl.h"],
    # Checkpoints: files and their documents.
    "src/base/file_layer": ["src/base/base.h", "src/base/file_layer",
                            "src/base/quiet_write.h"],
    "src/checkpoint/": ["src/base/base.h", "src/base/dtype.h",
                        "src/base/file_layer.h",
                        "src/base/growing_text.h", "src/base/hex.h",
                        "src/base/utf8.h", "src/checkpoint/",
                        "src/hash/hash.h"],
    # The driver of a member.
    "src/base/address": ["src/base/address.h", "src/base/decimal.h"],
    "src/base/port_range": ["src/base/port_range.h"],
    "src/base/fork_guard": ["src/base/fork_guard"],
    "src/peer/": BASE + ["src/base/address.h", "src/base/clock.h",
                         "src/base/env.h", "src/base/fork_guard.h",
                         "src/base/thread.h",
                         "src/base/descriptors.h", "src/base/lacking.h",
                         "src/base/memory_supply.h",
                         "src/base/host.h", "src/base/io_", "src/base/log.h",
                         "src/base/port_range.h", "src/base/same_user.h",
                         "src/base/small_file.h",
                         "src/base/run_key.h", "src/base/secure",
                         "src/elastic/session.h", "src/link/send_window.h",
                         "src/link/shared_memory.h", "src/peer/comm",
                         "src/reduce/stream.h", "src/peer/copy_choice.h",
                         "src/peer/progress",
                         "src/peer/drain.", "src/peer/timeline.h",
                         "include/pccl.h"],
    "src/peer/timeline": ["src/base/base.h", "src/base/clock.h",
                       "src/base/file_pattern.h", "src/base/small_file.h",
                       "src/base/quiet_write.h", "src/base/slow_call.h",
                       "src/base/status.h", "src/peer/timeline"],
    "src/peer/comm_tell": ["src/base/base.h", "src/base/dtype.h",
                           "src/base/log.h", "src/base/status.h",
                           "src/peer/comm", "src/peer/timeline.h",
                           "src/ring/ring.h", "include/pccl.h"],
    "src/peer/progress_core.": ["src/base/base.h",
                                "src/peer/progress_core.h"],
    "src/peer/copy_choice.": ["src/base/base.h", "src/peer/copy_choice.h"],
    "src/peer/progress_policy.": ["src/base/base.h",
                                  "src/peer/progress_policy.h"],
    "src/peer/comm_prefetch.c": ["src/base/log.h", "src/elastic/prefetch.h",
                                 "src/peer/comm.h"],
    "src/peer/comm_save": ["src/base/clock.h", "src/base/file_layer.h",
                           "src/base/log.h", "src/base/thread.h",
                           "src/checkpoint/checkpoint.h",
                           "src/elastic/state_list.h", "src/peer/comm",
                           "include/pccl.h"],
    "src/peer/api_checkpoint": ["src/peer/api.h", "src/peer/comm_save.h"],
    "src/peer/comm_device": ["src/peer/comm", "src/hash/hash_cuda.h"],
    "src/peer/api": ["src/peer/api.h", "src/peer/comm.h"],
    "src/peer/api_collective.c": ["src/peer/api.h", "src/peer/collective_check.h"],
    "src/peer/collective_check.": ["src/base/base.h", "src/reduce/quant.h",
                                   "src/reduce/reduce.h", "src/ring/plan.h",
                                   "src/peer/collective_check.h",
                                   "include/pccl.h"],
    "src/peer/hold_view.h": ["src/link/view.h", "include/pccl.h"],
    "src/peer/api.c": ["src/peer/api.h", "src/peer/drain.", "src/peer/comm",
                       "src/peer/hold_view.h",
                       "src/base/env.h", "src/base/fork_guard.h",
                       "src/base/log.h", "src/base/status.h", "include/pccl.h"],
    "src/peer/api_env.c": ["src/peer/api.h", "src/peer/comm.h",
                           "src/base/address.h", "src/base/io_addr.h"],
    # The coordinator. The agreement is by itself: of the folders around it, it
    # sees a face each.
    "src/master/": BASE + AGREEMENT + AROUND,
    "src/master/search/": BASE + AGREEMENT + AROUND + ["src/master/search/"],
    "src/master/search/topology": ["src/base/base.h",
                                   "src/master/search/topology"],
    "src/master/search/bandwidth": ["src/base/base.h",
                                    "src/master/search/bandwidth",
                                    "src/master/search/topology.h"],
    "src/master/search/master_search": [
        "src/base/base.h", "src/base/io_", "src/base/thread.h",
        "src/master/master.h", "src/master/search/"],
    "src/master/succession/": BASE + AGREEMENT + AROUND +
                              ["src/master/succession/"],
    "src/master/succession/journal": ["src/base/base.h",
                                      "src/base/file_layer.h",
                                      "src/hash/hash.h",
                                      "src/master/succession/journal"],
    "src/master/succession/master_keep": [
        "src/base/base.h", "src/base/log.h", "src/base/slow_call.h",
        "src/master/master.h",
        "src/master/succession/"],
    "src/master/coverage/": BASE + AGREEMENT + AROUND +
                            ["src/master/coverage/"],
    "src/master/state/": BASE + AGREEMENT + AROUND + ["src/master/state/"],
    "src/master/watch/": BASE + AGREEMENT + AROUND + ["src/master/watch/"],
    "src/master/watch/run_": BASE + AGREEMENT + AROUND +
                             ["src/base/growing_text.h", "src/master/watch/"],
    "src/master/watch/master_": BASE + [
        "src/base/growing_text.h", "src/base/host.h", "src/base/log.h",
        "src/master/master.h",
        "src/master/server/master_server.h", "src/master/watch/"],
    # Its driver.
    "src/master/server/": BASE + [
        "src/base/clock.h", "src/base/descriptors.h", "src/base/fork_guard.h", "src/base/lacking.h",
        "src/base/growing_text.h", "src/base/hex.h", "src/base/host.h",
        "src/base/io_",
        "src/base/log.h", "src/base/run_key.h", "src/base/same_user.h",
        "src/base/secure", "src/master/grants.h", "src/master/master.h",
        "src/master/search/master_search.h", "src/master/server/",
        "src/master/succession/master_keep.h",
        "src/master/watch/master_report.h",
        "src/master/watch/master_status.h"],
    "src/master/server/switchboard": BASE + [
        "src/master/master.h", "src/master/server/master_conn.h",
        "src/master/server/switchboard.h"],
    "src/master/server/master_conn": BASE + [
        "src/master/server/master_conn.h"],
    "src/master/server/own_clock": ["src/base/base.h",
                                    "src/master/server/own_clock.h"],
    "src/master/server/master_api.c": [
        "src/base/base.h", "src/base/env.h", "src/base/fork_guard.h",
        "src/base/io_", "src/base/log.h", "src/base/run_key.h",
        "src/base/secure.h", "src/base/thread.h",
        "src/master/server/master_server.h", "include/pccl.h"],
    "src/base/growing_text": ["src/base/growing_text.h",
                              "src/base/json_char.h"],
    "src/launch/": ["src/base/address.h", "src/base/append.h", "src/base/base.h",
                    "src/base/cursor.h", "src/base/decimal.h",
                    "src/base/descriptors.h", "src/base/lacking.h", "src/base/memory_supply.h",
                    "src/base/env.h", "src/base/evidence.h",
                    "src/base/host.h", "src/base/io_addr.h",
                    "src/base/port_range.h", "src/base/small_file.h",
                    "src/base/quiet_write.h", "src/base/run_key.h", "src/base/secure.h",
                    "src/base/slow_call.h",
                    "src/base/secure_token.h", "src/base/grant.h",
                    "src/base/traits.h",
                    "src/launch/",
                    "src/master/server/master_http.h",
                    "src/master/server/master_server.h"],
    "src/trace/": ["src/base/fnv.h", "src/trace/"],
    # Its rules are those of the table, and of the plan of probes.
    "src/bench/": ["include/", "src/bench/"],
    "src/bench/bench_algorithms.c": ["src/bench/", "src/master/master.h",
                                     "src/ring/algorithm_table.h",
                                     "src/ring/choose.h"],
    "src/bench/borders.h": ["src/ring/algorithm_table.h"],
    "src/launch/main.c": ["src/launch/launch.h"],
    # The MPI facade is a client like any other.
    "src/mpi/": ["include/", "src/base/fnv.h", "src/base/limit.h",
                 "src/base/quiet_write.h", "src/base/thread.h",
                 "src/base/traits.h", "src/mpi/"],
    "src/mpi/world.c": ["include/", "src/mpi/", "src/base/host_id.h",
                        "src/base/quiet_write.h"],
    "src/mpi/mpi_op.c": ["include/", "src/mpi/", "src/base/float_env.h"],
    # The views, which it has in common with the session.
    "src/mpi/mpi_comm.h": ["include/", "src/mpi/", "src/peer/hold_view.h"],
    "src/train/": ["include/", "src/base/fnv.h", "src/train/"],
    "examples/": ["include/", "examples/"],
    "python/": ["include/", "python/"],
    "tests/": [""],
}

# Cores decide; they do no I/O, read no clock and start no thread, so these
# are all the system headers they may see. Allocation at start needs stdlib.h.
CORE = ("src/base/arguments", "src/base/base.h", "src/base/cursor.h", "src/base/dtype",
        "src/base/float_env.h",
        "src/base/pool", "src/base/wire", "src/base/keyed.h", "src/reduce/",
        "src/link/", "src/ring/", "src/message/", "src/elastic/",
        "src/hash/hash.", "src/hash/hash_core.h", "src/master/",
        "src/master/server/master_conn.", "src/master/server/own_clock.",
        "src/master/server/switchboard.", "src/peer/copy_choice.",
        "src/peer/progress_core.", "src/peer/progress_policy.",
        "src/peer/collective_check.")
# Drivers that stand beside a core in its folder; the longer name counts.
NOT_CORE = ("src/link/send_window.c", "src/link/shared_memory.",
            "src/master/server/", "src/master/search/master_search.",
            "src/master/succession/journal",
            "src/master/succession/master_keep.", "src/master/watch/master_",
            "src/master/watch/events.h")
CORE_HEADERS = {"assert.h", "limits.h", "math.h", "stdbool.h", "stddef.h",
                "stdint.h", "stdlib.h", "string.h"}
CORE_HEADERS_ALLOWED = {
    ("src/reduce/reduce", "immintrin.h"): "vector instructions",
    ("src/reduce/stream.h", "emmintrin.h"): "stores past the caches",
    ("src/reduce/isa.c", "cpuid.h"): "which of them this machine has",
    ("src/reduce/isa.c", "stdatomic.h"): "that choice, made once",
    ("src/reduce/quant_core.h", "float.h"): "the largest numbers",
    ("src/base/pool.c", "sys/mman.h"): "huge pages for the buffers",
    ("src/master/", "inttypes.h"): "texts",
    ("src/master/", "stdio.h"): "texts, by snprintf",
    ("src/master/", "stdarg.h"): "texts",
    ("src/link/channel", "stdatomic.h"): "what two processes share",
    ("src/link/board", "stdatomic.h"): "the same",
    ("src/link/view.h", "stdatomic.h"): "references of several threads",
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


# What a program links: none of its writes raises a signal there (contract C7). The
# bell of a thread is an eventfd, which raises none.
LIBRARY = tuple(f"src/{folder}/" for folder in
                ("base", "checkpoint", "elastic", "link", "master", "message", "mpi",
                 "peer", "ring", "train"))
LOUD = re.compile(r"(?<![\w.>])(?:(write|writev|pwrite|dprintf|perror)\s*\("
                  r"|(fprintf|fputs|fputc|vfprintf)\s*\(.*\bstderr\b)")
QUIET_FILE = "src/base/quiet_write.c"


# Functions of src/ that nothing in src/ calls, and why they are there.
NOT_CALLED = {
    "buggify": "by a macro, in the simulator's copy of the cores",
    "links_relays": "the simulator kills who relays",
    "product_use": "tests compare the instruction sets",
    "progress_core_rows": "its test has to have used each row of the table",
    "quant_cuda_encode": "no call takes vectors of a GPU yet",
    "quant_cuda_decode": "the same", "quant_cuda_combine": "the same",
}

# Where a call's way is chosen, sizes are limits of src/base/limit.h. These are
# sizes of what lies in memory or on the wire.
CHOOSING = ("src/ring/", "src/message/", "src/mpi/coll", "src/mpi/partner",
            "src/mpi/transport")
SIZES = {"INPUT_BLOCK", "SINGLE_COPY_BUFFER", "HUGE_PAGE", "MESSAGE_MAX",
         "MESSAGE_QUEUE_BYTES", "MESSAGE_INBOX_BYTES", "MESSAGE_ACK_BYTES",
         "MESSAGE_PORTION", "RNDV_PIECE", "EXPECTS_MAX"}

# Names under which code has what another process sent.
RECEIVED = r"\b(?:msg|hello|f|w)\s*->|[.>](?:rx|msg)\b"


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


def check_sizes(path, text):
    for found in re.finditer(r"\b(\w+) = \d+ (?:\* 1024|<< [12]\d)", text):
        if path.startswith(CHOOSING) and found.group(1) not in SIZES:
            yield (text.count("\n", 0, found.start()) + 1,
                   f"{found.group(1)}: a limit belongs into src/base/limit.h")


def check_guard(path, text):
    """An include guard is named after its file; a folder may stand before."""
    found = re.search(r"^#ifndef (\w+)\n#define \1$", text, re.M)
    wanted = re.sub(r"\W", "_", path.rsplit("/", 1)[-1]).upper()
    if found and not found.group(1).endswith(wanted):
        yield text.count("\n", 0, found.start()) + 1, (
            f"the include guard is not that of {wanted}")


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


def check_loud(path, code):
    """Whatever writes raises no SIGPIPE and no SIGXFSZ."""
    if not path.startswith(LIBRARY) or path == QUIET_FILE:
        return
    for number, line in enumerate(code, 1):
        match = LOUD.search(line)
        if match and "&one, sizeof one" not in line:
            call = match.group(1) or match.group(2)
            yield number, f"{call}(): use quiet_write() or quiet_print()"


def check_asserts(path, code):
    """PCCL_ASSERT where base.h may be included, and never of what came."""
    if not path.startswith("src/"):
        return
    wanted = ("src/base/base.h" in (longest(LAYERS, path) or ()) and
              path != "src/base/base.h")
    for match in re.finditer(r"\b(assert|PCCL_ASSERT)\s*\(([^;]*);", code):
        number = code.count("\n", 0, match.start()) + 1
        call, condition = match.groups()
        if call == "assert" and wanted:
            yield number, "assert(): use PCCL_ASSERT"
        if re.search(RECEIVED, condition):
            yield number, (f"{call}() of what another process sent: check it, "
                           "and refuse it")


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
    core = (longest(dict(zip(CORE, map(len, CORE))), path) or 0) > (
        longest(dict(zip(NOT_CORE, map(len, NOT_CORE))), path) or 0)
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


def check(path, text, public=("pccl.h", "mpi_pccl.h", "pccl_train.h")):
    """All faults of one file: (line number, what is wrong)."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    code = code_only(text).split("\n")
    faults = list(check_text(path, lines))
    faults += [] if path in GENERATED else check_guard(path, text)
    faults += check_sizes(path, "\n".join(code))
    faults += check_functions(lines)
    faults += check_calls(path, code)
    faults += check_loud(path, code)
    faults += check_asserts(path, "\n".join(code))
    faults += check_includes(path, lines, public)
    return sorted(faults)


def struct_names(text):
    """Names of the structs that are defined at file level."""
    return re.findall(r"^(?:typedef )?struct (\w+)\s*\{", code_only(text),
                      flags=re.M)


def check_names(files):
    """A file name or a struct of the library that stands twice: grep, ctags
    and a debugger are to answer with one place. `files` is path -> text."""
    names, structs = {}, {}
    for path, text in sorted(files.items()):
        name = path.rsplit("/", 1)[-1]
        if name in names and path not in GENERATED:
            yield path, f"{names[name]} has this file name"
        names.setdefault(name, path)
        if not path.startswith("src/"):
            continue
        for struct in struct_names(text):
            if struct in structs:
                yield path, f"struct {struct} is also in {structs[struct]}"
            structs.setdefault(struct, path)


def check_called(files):
    """A function that a header of src/ declares, and that no code of src/
    names beside its declaration and its definition."""
    words, declared = collections.Counter(), {}
    for path, text in files.items():
        if not path.startswith(("src/", "kernels/")):
            continue
        code = code_only(text)
        words.update(re.findall(r"\w+", code))
        if path.endswith(".h") and path not in GENERATED:
            for name in re.findall(r"^(?!static|typedef|extern)[a-z][\w ]*[ *]+"
                                   r"(\w+)\(", code, flags=re.M):
                declared.setdefault(name, path)
    for name, path in sorted(declared.items()):
        if words[name] <= 2 and not name.startswith(("MPIX", "PMPIX")) \
                and name not in NOT_CALLED:
            yield path, f"nothing in src/ calls {name}()"


def circles(files):
    """The circles of files that call each other's functions, larger first; a
    function belongs to the file that defines it and is visible outside."""
    codes = {path: code_only(text) for path, text in files.items()}
    where, inside = {}, {}
    for path, code in codes.items():
        for name in re.findall(r"^(?!static|typedef)[a-z_][\w\s*]*?\b(\w+)"
                               r"\([^;{}]*?\)\n\{", code, flags=re.M):
            where[name] = path
        inside[path] = set(re.findall(r"^static [\w\s*]*?\b(\w+)\(", code,
                                      flags=re.M))
    calls = {path: {where[word]
                    for word in set(re.findall(r"\w+", code)) - inside[path]
                    if word in where} - {path}
             for path, code in codes.items()}

    def reached(path):
        seen, left = set(), [path]
        while left:
            for other in calls[left.pop()] - seen:
                seen.add(other)
                left.append(other)
        return seen

    reach = {path: reached(path) for path in calls}
    found = {frozenset(other for other in reach[path] if path in reach[other])
             for path in calls if path in reach[path]}
    return sorted((sorted(circle) for circle in found), key=len, reverse=True)


def check_circles(files):
    """The files of the coordinator call each other in small circles; those of
    the agreement proper, by themselves, in none."""
    master = {path: text for path, text in files.items()
              if path.startswith("src/master/") and path.endswith(".c")}
    proper = {path: text for path, text in master.items()
              if re.match(r"src/master/(state/)?\w+\.c$", path)}
    for group, most in ((master, CIRCLE), (proper, 1)):
        for circle in circles(group):
            if len(circle) > most:
                yield circle[0], (f"a circle of {len(circle)} files, more than "
                                  f"{most}: " + " ".join(circle))


def check_patience(text):
    """Faults in a CMakeLists.txt, script or program of a test: a time limit
    that judges how busy the machine is."""
    return [(text.count("\n", 0, found.start()) + 1,
             f"a time limit of {found.group(1)} s: {PATIENCE} is the least")
            for found in re.finditer(
                r"\b(?:TIMEOUT |timeout |alarm\()(\d+)\b", text)
            if 0 < int(found.group(1)) < PATIENCE]


def self_test():
    hasty = [number for number, _ in check_patience(
        "PROPERTIES TIMEOUT 60\ntimeout 299 x\n"
        "alarm(100);\ntimeout 300 x; alarm(0);\n--timeout 0.2\n")]
    if hasty != [1, 2, 3]:
        sys.exit(f"self-test: time limits -> {hasty}")
    twice = [fault for _, fault in check_names(
        {"src/ring/a.c": "struct op {\n", "src/mpi/b.c": "struct op {\n",
         "tests/run/mpi/b.c": "struct op {\n"})]
    if len(twice) != 2:
        sys.exit(f"self-test: names that stand twice -> {twice}")
    unused = [fault for _, fault in check_called(
        {"src/ring/a.h": "int f(void);\nint g(void);\n",
         "src/ring/a.c": "int f(void)\n{\n}\nint g(void)\n{\n}\n",
         "src/mpi/b.c": "int b = f();\n", "tests/c.c": "int c = g();\n"})]
    if unused != ["nothing in src/ calls g()"]:
        sys.exit(f"self-test: functions that nothing calls -> {unused}")
    ring = {f"src/master/watch/{i}.c": f"int f{i}(void)\n{{\n    f{(i + 1) % 6}"
            "();\n}\n" for i in range(6)}
    round_ = {"src/master/a.c": "void a(int x)\n{\n    b();\n}\n",
              "src/master/state/b.c": "void\nb(void)\n{\n    a(1);\n}\n"}
    apart = {"src/master/a.c": "static void b(void)\n{\n}\nvoid a(void)\n{\n"
             "    b();\n}\n", "src/master/b.c": "void c(void)\n{\n    a();\n}"
             "\nvoid b(void)\n{\n}\n", "src/master/c.h": "void c(void);\n"}
    for files, wanted in ((ring, ["6 files, more than 5"]),
                          (dict(list(ring.items())[:5]), []),
                          (round_, ["2 files, more than 1"]), (apart, [])):
        found = [fault for _, fault in check_circles(files)]
        if len(found) != len(wanted) or not all(
                map(str.__contains__, found, wanted)):
            sys.exit(f"self-test: circles -> {found}")
    head = "/* a.c - x. */\n"
    cases = [  # path, text, part of the fault, or None for a good file
        ("src/ring/a.c", head + "#include <string.h>\n", None),
        ("src/ring/a.c", head + '#include "../base/base.h"\n', None),
        ("src/ring/a.c", "int x;\n", "does not name the file"),
        ("src/ring/a.c", "/* b.c - x. */\n", "does not name the file"),
        ("src/ring/a.h", "/* a.h - x. */\n#ifndef PCCL_A_H\n#define PCCL_A_H\n",
         None),
        ("src/ring/a.h", "/* a.h - x. */\n#ifndef PCCL_B_H\n#define PCCL_B_H\n",
         "the include guard is not that of A_H"),
        ("src/ring/a.c", head + "\n" * 600, "601 lines, more than"),
        ("src/ring/a.c", head + "\n" * 599, None),
        ("include/mpich/mpi.h", "/* mpi.h - x. */\n" + "\n" * 600, None),
        ("src/ring/a.c", head + "x" * 81 + "\n", "81 columns"),
        ("src/ring/a.c", head + "x" * 80 + "\n", None),
        ("src/ring/a.c", head + "\tx\n", "tab"),
        ("src/ring/a.c", head + "x \n", "blanks at the end"),
        ("src/ring/a.c", head + "/* TO" "DO */\n", "unfinished"),
        ("src/ring/a.c", head + "/* FIX" "ME */\n", "unfinished"),
        ("src/ring/a.c", head + "{\n" + "x;\n" * 76 + "}\n", "of 76 lines"),
        ("src/ring/a.c", head + "{\n" + "x;\n" * 75 + "}\n", None),
        ("src/ring/a.c", head + "/* system(x) */ char *s = \"gets(\";\n", None),
        ("src/peer/comm_a.c", "/* comm_a.c - x. */\nx.sleep(1);\n", None),
        ("tests/a.c", head + "sleep(1);\n", None),
        ("src/ring/a.c", head + "#include <time.h>\n", "a core may not"),
        ("src/ring/a.c", head + "#include <sys/mman.h>\n", "a core may not"),
        ("src/base/pool.c", "/* pool.c - x. */\n#include <sys/mman.h>\n", None),
        ("src/ring/a.c", head + '#include "../base/log.h"\n',
         "may not include"),
        ("src/ring/a.c", head + '#include "../master/round.h"\n',
         "may not include src/master/round.h"),
        ("src/master/a.c", head + '#include "../ring/plan.h"\n',
         "may not include src/ring/plan.h"),
        ("src/mpi/a.c", head + '#include "../base/base.h"\n',
         "may not include"),
        ("src/mpi/a.c", head + "#include <pccl.h>\n", None),
        ("src/train/a.c", head + "#include <pccl_train.h>\n", None),
        ("src/train/a.c", head + '#include "../base/base.h"\n',
         "may not include"),
        ("src/peer/a.c", head + "#include <pccl_train.h>\n",
         "may not include"),
        ("src/master/a.c", head + "#include <pccl.h>\n",
         "may not include include/pccl.h"),
        ("src/launch/main.c", '/* main.c - x. */\n#include "job.h"\n',
         "may not include src/launch/job.h"),
        ("src/master/a.c", head + "assert(x);\n", "use PCCL_ASSERT"),
        ("src/master/a.c", head + "PCCL_ASSERT(x);\n", None),
        ("src/mpi/a.c", head + "assert(x);\n", None),
        ("src/ring/a.c", head + "enum { LEAST = 64 * 1024 };\n",
         "LEAST: a limit belongs"),
        ("src/ring/a.c", head + "enum { HUGE_PAGE = 2 << 20 };\n", None),
        ("src/peer/a.c", head + "enum { ROOM = 64 * 1024 };\n", None),
        ("src/master/a.c", head + "PCCL_ASSERT(x &&\n  msg->size > 1);\n",
         "another process sent"),
        ("src/mpi/a.c", head + "assert(c->rx.size > 1);\n",
         "another process sent"),
        ("src/mpi/a.c", head + "  fprintf(stderr, x);\n", "use quiet_write()"),
        ("src/peer/a.c", head + "  n = write(fd, x, 1);\n",
         "use quiet_write()"),
        ("src/peer/a.c", head + "  n = write(fd, &one, sizeof one);\n", None),
        ("src/peer/a.c", head + "  f->write(fd, x, 1);\n", None),
        ("src/launch/a.c", head + "  fprintf(stderr, x);\n", None),
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
    texts = {file.relative_to(root).as_posix():
             file.read_text(encoding="utf-8") for file in files}
    for path, text in texts.items():
        for number, fault in check(path, text):
            print(f"{path}:{number}: {fault}")
            count += 1
    for path, fault in [*check_names(texts), *check_called(texts),
                        *check_circles(texts)]:
        print(f"{path}: {fault}")
        count += 1
    for file in sorted((root / "tests").rglob("*")):
        if file.name != "CMakeLists.txt" and file.suffix not in (".c", ".sh"):
            continue
        for number, fault in check_patience(file.read_text(encoding="utf-8")):
            print(f"{file.relative_to(root).as_posix()}:{number}: {fault}")
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
