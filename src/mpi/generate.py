#!/usr/bin/env python3
"""Makes of the two tables (table/functions.txt, table/constants.txt) what MPI's
two binary interfaces have in common and apart:

    include/mpich/mpi.h       MPICH's ABI
    include/mpi_abi/mpi.h     the standard ABI of MPI 5.0
    FUNCTIONS.md              the list for people

The build makes the rest of them (faces.cmake).

    generate.py             write
    generate.py --check     compare, exit 1 if they are out of date
"""
import os
import re
import sys
import textwrap

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def read(name):
    with open(os.path.join(HERE, "table", name), encoding="utf-8") as file:
        return [line.strip() for line in file
                if line.strip() and line[0] != "#"]


def functions():
    """{name: (face, return type, parameter list)}, and the names of those that
    are offered"""
    found, offered = {}, set()
    for line in read("functions.txt"):
        match = re.fullmatch(r"(both|mpich) (?:(absent|made|self|form|call|coll) )?"
                             r"(?:as \w+ )?(.*?)(\w+)(\(.*\))", line)
        if not match:
            sys.exit("functions.txt: cannot read: " + line)
        face, how, kind, name, parameters = match.groups()
        found[name] = (face, kind.strip(), parameters)
        if how != "absent":
            offered.add(name)
    return found, offered


def constants():
    """[(name, type, value in MPICH's ABI, value in the standard one)]; of an
    alias the type is None and both values are the other name."""
    found = []
    for line in read("constants.txt"):
        words = line.split()
        if words[1] == "=":
            found.append((words[0], None, words[2], words[2]))
        else:
            found.append(tuple(words))
    return found


# ------------------------------------------------------------------ headers

HANDLES = ("Comm", "Datatype", "Errhandler", "File", "Group", "Info", "Message",
           "Op", "Request", "Session", "Win")
CALLBACKS = """\
typedef void(MPI_User_function)(void *invec, void *inoutvec, int *len,
                                MPI_Datatype *datatype);
typedef void(MPI_User_function_c)(void *invec, void *inoutvec, MPI_Count *len,
                                  MPI_Datatype *datatype);
typedef int(MPI_Grequest_query_function)(void *extra_state, MPI_Status *status);
typedef int(MPI_Grequest_free_function)(void *extra_state);
typedef int(MPI_Grequest_cancel_function)(void *extra_state, int complete);
typedef int(MPI_Datarep_extent_function)(MPI_Datatype datatype,
                                         MPI_Aint *extent, void *extra_state);
typedef int(MPI_Datarep_conversion_function)(void *userbuf,
                                             MPI_Datatype datatype, int count,
                                             void *filebuf, MPI_Offset position,
                                             void *extra_state);
typedef int(MPI_Datarep_conversion_function_c)(
    void *userbuf, MPI_Datatype datatype, MPI_Count count, void *filebuf,
    MPI_Offset position, void *extra_state);
typedef void(MPIX_User_function_x)(void *invec, void *inoutvec, MPI_Count len,
                                   MPI_Datatype datatype, void *extra_state);
typedef void(MPIX_Destructor_function)(void *extra_state);
"""
COPY = """\
typedef int(MPI_{0}copy_{1}function)(MPI_{2} object, int keyval,
    void *extra_state, void *value_in, void *value_out, int *flag);
typedef int(MPI_{0}delete_{1}function)(MPI_{2} object, int keyval, void *value,
    void *extra_state);
"""
HANDLER = """\
typedef void(MPI_{0}_errhandler_function)(MPI_{0} *object, int *code, ...);
typedef MPI_{0}_errhandler_function MPI_{0}_errhandler_fn;
typedef void(MPIX_{0}_errhandler_function_x)(MPI_{0} object, int code,
                                             void *extra_state);
"""
TOOL_CALLBACKS = """\
typedef void(MPI_T_event_cb_function)(MPI_T_event_instance instance,
                                      MPI_T_event_registration registration,
                                      MPI_T_cb_safety cb_safety,
                                      void *user_data);
typedef void(MPI_T_event_free_cb_function)(
    MPI_T_event_registration registration, MPI_T_cb_safety cb_safety,
    void *user_data);
typedef void(MPI_T_event_dropped_cb_function)(
    MPI_Count count, MPI_T_event_registration registration, int source_index,
    MPI_T_cb_safety cb_safety, void *user_data);
"""
TOOLS = ("enum", "cvar_handle", "pvar_handle", "pvar_session",
         "event_registration", "event_instance")
ENUMS = (("cb_safety", "MPI_T_CB_"), ("source_order", "MPI_T_SOURCE_"))
MPICH_TYPES = """\
#define MPICH 1
#define MPICH_NAME 5
#define MPICH_HAS_C2F 1
#define MPICH_VERSION "5.0.2"
#define MPICH_NUMVERSION 50002300
#define MPICH_CALC_VERSION(MAJOR, MINOR, REVISION, TYPE, PATCH)                \\
    (((MAJOR)*10000000) + ((MINOR)*100000) + ((REVISION)*1000) +               \\
     ((TYPE)*100) + (PATCH))
#define PCCL_MPI_FACE_MPICH 1

typedef int MPI_Comm, MPI_Datatype, MPI_Errhandler, MPI_Group, MPI_Info;
typedef int MPI_Message, MPI_Op, MPI_Request, MPI_Session, MPI_Win;
typedef int MPIX_Stream, MPIX_Grequest_class;
typedef struct ADIOI_FileD *MPI_File;
typedef long MPI_Aint;
typedef long MPI_Count, MPI_Offset;
typedef int MPI_Fint;

typedef struct MPI_Status {
    int count_lo, count_hi_and_cancelled;
    int MPI_SOURCE, MPI_TAG, MPI_ERROR;
} MPI_Status;
typedef struct {
    MPI_Fint count_lo, count_hi_and_cancelled;
    MPI_Fint MPI_SOURCE, MPI_TAG, MPI_ERROR;
} MPI_F08_status;
typedef struct MPIX_Iov {
    void *iov_base;
    MPI_Aint iov_len;
} MPIX_Iov;
typedef struct {
    void **storage_stack;
} QMPI_Context;
#define QMPI_MAX_TOOL_NAME_LENGTH 256
typedef struct MPIR_Async_thing *MPIX_Async_thing;
typedef int(MPIX_Async_poll_function)(MPIX_Async_thing thing);
typedef int(MPIX_Grequest_poll_function)(void *extra_state, MPI_Status *status);
typedef int(MPIX_Grequest_wait_function)(int count, void **states,
                                         double timeout, MPI_Status *status);
typedef void(MPI_Handler_function)(MPI_Comm *comm, int *code, ...);

extern MPI_Fint *MPI_F_STATUS_IGNORE PCCL_MPI_PUBLIC;
extern MPI_Fint *MPI_F_STATUSES_IGNORE PCCL_MPI_PUBLIC;
extern MPI_F08_status *MPI_F08_STATUS_IGNORE PCCL_MPI_PUBLIC;
extern MPI_F08_status *MPI_F08_STATUSES_IGNORE PCCL_MPI_PUBLIC;
extern int *const MPI_UNWEIGHTED PCCL_MPI_PUBLIC;
extern int *const MPI_WEIGHTS_EMPTY PCCL_MPI_PUBLIC;
extern struct MPIR_T_pvar_handle_s *const MPI_T_PVAR_ALL_HANDLES PCCL_MPI_PUBLIC;
"""
ABI_TYPES = """\
#define MPI_ABI_VERSION 1
#define MPI_ABI_SUBVERSION 0
#define PCCL_MPI_FACE_ABI 1

typedef intptr_t MPI_Aint;
typedef int64_t MPI_Offset, MPI_Count;
typedef int MPI_Fint;

typedef struct {
    int MPI_SOURCE, MPI_TAG, MPI_ERROR;
    int MPI_internal[5];
} MPI_Status;

#define MPI_UNWEIGHTED ((int *)10)
#define MPI_WEIGHTS_EMPTY ((int *)11)
#define MPI_T_PVAR_ALL_HANDLES ((MPI_T_pvar_handle)1)
"""
ABI_STATUS = """\
/* A status of Fortran has the layout of MPI_Status. */
static inline int PCCL_MPI_Status_c2f(const MPI_Status *from, MPI_Fint *to)
{
    for (int i = 0; i < MPI_F_STATUS_SIZE; i++) to[i] = ((const int *)from)[i];
    return MPI_SUCCESS;
}
static inline int PCCL_MPI_Status_f2c(const MPI_Fint *from, MPI_Status *to)
{
    for (int i = 0; i < MPI_F_STATUS_SIZE; i++) ((int *)to)[i] = from[i];
    return MPI_SUCCESS;
}
#define MPI_Status_c2f PCCL_MPI_Status_c2f
#define MPI_Status_f2c PCCL_MPI_Status_f2c
"""
HEAD = """\
/* mpi.h - {title}; made by
 * src/mpi/generate.py of src/mpi/table, do not edit.
 *
{text}
 */
#ifndef {guard}
#define {guard}

#include <stddef.h>
#include <stdint.h>

#ifdef PCCL_MPI_BUILD
#define PCCL_MPI_PUBLIC __attribute__((visibility("default")))
#else
#define PCCL_MPI_PUBLIC
#endif

#ifdef __cplusplus
extern "C" {{
#endif

#define MPI_VERSION 5
#define MPI_SUBVERSION 0
"""
ABOUT = {
    "mpich": " * A program built with it runs with any library of MPICH's ABI "
             "(MPICH, Intel\n * MPI, PCCL/MPI). The functions of MPI 4 and 5 "
             "need one that has them.",
    "abi": " * A program built with it runs with any library of the standard "
           "ABI, under the\n * name libmpi_abi.so.1.",
}
TITLE = {"mpich": "MPI in MPICH's ABI",
         "abi": "MPI in the standard ABI of MPI 5.0"}


def value(kind, text):
    """A constant's replacement text."""
    if kind == "int":
        return f"({text})" if text.startswith("-") else text
    if kind in HANDLES or kind == "Offset" or kind.startswith("Status"):
        kind = "MPI_" + kind
    name = kind.rstrip("*")
    stars = kind[len(name):]
    return f"(({name}{' ' if stars else ''}{stars}){text})"


def define(name, text):
    return f"#define {name} {text}"


def wrap(text, last=";"):
    """A declaration in lines of at most 80 columns."""
    return textwrap.fill(text + last, 80, subsequent_indent="    ",
                         break_long_words=False, break_on_hyphens=False)


def header(face):
    column = 2 if face == "mpich" else 3
    abi = face == "abi"
    guard = "PCCL_MPI_ABI_H" if abi else "PCCL_MPICH_MPI_H"
    out = [HEAD.format(title=TITLE[face], text=ABOUT[face], guard=guard)]
    if abi:
        out += [f"typedef struct MPI_ABI_{kind} *MPI_{kind};"
                for kind in HANDLES]
    out.append(ABI_TYPES if abi else MPICH_TYPES)
    out += [f"typedef struct MPI{'' if abi else 'R'}_T_{kind}_"
            f"{'t' if abi else 's'} *MPI_T_{kind};" for kind in TOOLS]
    table = constants()
    in_enum = set()
    for kind, prefix in ENUMS:
        members = [row for row in table if row[0].startswith(prefix)]
        in_enum |= {row[0] for row in members}
        out.append(f"typedef enum MPI_T_{kind} {{\n" + ",\n".join(
            f"    {row[0]} = {row[column]}" for row in members) +
            f"\n}} MPI_T_{kind};")
    out.append("")
    for row in table:
        if row[0] in in_enum or row[column] == "-":
            continue
        out.append(define(row[0], row[2] if row[1] is None
                          else value(row[1], row[column])))
    out.append("")
    out.append(CALLBACKS)
    for kind, handle in (("Comm_", "Comm"), ("Type_", "Datatype"),
                         ("Win_", "Win")):
        out.append(COPY.format(kind, "attr_", handle))
    out += ["typedef MPI_Comm_copy_attr_function MPI_Copy_function;",
            "typedef MPI_Comm_delete_attr_function MPI_Delete_function;"]
    out += [HANDLER.format(kind) for kind in
            ("Comm", "File", "Session", "Win")]
    out.append(TOOL_CALLBACKS)
    if not abi:
        out.append("int MPIR_Dup_fn(MPI_Comm comm, int keyval, void *extra, "
                   "void *value,\n                void *out, int *flag) "
                   "PCCL_MPI_PUBLIC;")
    for kind in ("COMM", "TYPE", "WIN"):
        word = kind.capitalize()
        cast = f"(MPI_{word}_copy_attr_function *)"
        dup = f"({cast}1)" if abi else f"({cast}MPIR_Dup_fn)"
        out += [define(f"MPI_{kind}_NULL_COPY_FN", f"({cast}0)"),
                define(f"MPI_{kind}_NULL_DELETE_FN",
                       f"((MPI_{word}_delete_attr_function *)0)"),
                define(f"MPI_{kind}_DUP_FN", dup)]
    for name in ("NULL_COPY_FN", "NULL_DELETE_FN", "DUP_FN"):
        out.append(define("MPI_" + name, "MPI_COMM_" + name))
    for suffix, kind in (("", ""), ("_C", "_c")):
        out.append(define("MPI_CONVERSION_FN_NULL" + suffix,
                          f"((MPI_Datarep_conversion_function{kind} *)0)"))
    out.append("")
    known, _ = functions()
    for name in sorted(known):
        where, kind, parameters = known[name]
        if abi and where != "both":
            continue
        gap = "" if kind.endswith("*") else " "
        for prefix in ("",) if name.startswith("QMPI") else ("", "P"):
            out.append(wrap(f"{kind}{gap}{prefix}{name}{parameters} "
                            "PCCL_MPI_PUBLIC"))
    out.append("\n/* Handles of Fortran are integers of the same value. */\n"
               "#ifndef PCCL_MPI_BUILD")
    for prefix in ("", "P"):
        for kind in HANDLES:
            name = prefix + "MPI_" + ("Type" if kind == "Datatype" else kind)
            if abi:
                out += [define(f"{name}_c2f", f"{name}_toint"),
                        define(f"{name}_f2c", f"{name}_fromint")]
            elif kind != "File":
                out += [define(f"{name}_c2f(handle)", "(MPI_Fint)(handle)"),
                        define(f"{name}_f2c(handle)", f"(MPI_{kind})(handle)")]
    if abi:
        out.append(ABI_STATUS)
    out.append("#endif\n\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n")
    return "\n".join(out)


def table_of(known, have):
    rows = []
    for name in sorted(known):
        face = "" if known[name][0] == "both" else "MPICH's ABI only"
        rows.append(f"| {name} | {'yes' if name in have else 'unsupported'} "
                    f"| {face} |")
    offered = len(set(known) & have)
    return ("# Functions of PCCL/MPI\n\n"
            "Made by generate.py; do not edit. Unsupported functions exist and "
            "raise\n`MPI_ERR_UNSUPPORTED_OPERATION` with their name in the "
            "text.\n\n"
            f"{offered} of {len(known)} are offered.\n\n"
            "| function | offered | where |\n|---|---|---|\n" +
            "\n".join(rows) + "\n")


def generate():
    known, have = functions()
    here = os.path.relpath(HERE, ROOT)
    return {
        "include/mpich/mpi.h": header("mpich"),
        "include/mpi_abi/mpi.h": header("abi"),
        f"{here}/FUNCTIONS.md": table_of(known, have),
    }


def main():
    if len(sys.argv) > 1 and sys.argv[1:] != ["--check"]:
        sys.exit(__doc__)
    stale = []
    for name, text in generate().items():
        path = os.path.join(ROOT, name)
        old = open(path, encoding="utf-8").read() if os.path.exists(path) else ""
        if old == text:
            continue
        stale.append(name)
        if "--check" not in sys.argv:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as out:
                out.write(text)
    if stale and "--check" in sys.argv:
        sys.exit("out of date: " + ", ".join(stale) +
                 "; run src/mpi/generate.py")


if __name__ == "__main__":
    main()
