# faces.cmake - makes of table/functions.txt, when the build is configured, what
# the two libraries differ in:
#   FACE_stubs.c   functions that no source defines (entries.cmake)
#   bodies.h       what the sources define for them
#   FACE.symbols   what the library exports, for the linker
#   face_abi.h     MPICH's functions that the sources define and the standard ABI
#                  lacks
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
    table/functions.txt table/mpich_internal.txt)

# The body of a function that raises MPI_ERR_UNSUPPORTED_OPERATION.
function(stub_body to name kind parameters)
    if(name MATCHES "^QMPI_")
        set(body "MPI_ERR_UNSUPPORTED_OPERATION")
    elseif(name MATCHES "^MPI_T_")
        # The tools interface has no error handlers.
        set(body "MPI_T_ERR_NOT_SUPPORTED")
    elseif(kind STREQUAL "MPI_Fint ")
        set(body "0")
    elseif(kind STREQUAL "void *")
        set(body "NULL")
    elseif(kind STREQUAL "MPI_File ")
        set(body "MPI_FILE_NULL")
    elseif(parameters MATCHES "[( ]MPI_Comm ([A-Za-z0-9_]+)[,)]")
        set(body "unsupported_comm(${CMAKE_MATCH_1}, \"${name}\")")
    elseif(name MATCHES "^MPIX?_File_")
        # The handler of files is MPI_ERRORS_RETURN unless changed.
        set(body "error_note(MPI_ERR_UNSUPPORTED_OPERATION, \"%s: not offered\", \
\"${name}\")")
    else()
        set(body "unsupported(\"${name}\")")
    endif()
    set(${to} "${body}" PARENT_SCOPE)
endfunction()

include(entries.cmake)

set(head "/* Made by faces.cmake of table/functions.txt. */\n")
set(mpich_stubs "${head}#include \"entry.h\"\n
#pragma GCC diagnostic ignored \"-Wunused-parameter\"
#pragma GCC diagnostic ignored \"-Wdeprecated-declarations\"\n\n")
set(abi_stubs "${mpich_stubs}")
set(lacks "${head}#ifndef FACE_ABI_H\n#define FACE_ABI_H\n\n#include <mpi.h>\n
typedef MPI_Status MPI_F08_status;
#define MPI_LB MPI_DATATYPE_NULL
#define MPI_UB MPI_DATATYPE_NULL
#define MPIX_COMM_TYPE_NEIGHBORHOOD (-5)\n\n")
set(abi_symbols "{\nglobal:\n    PCCL_*;\n")
file(STRINGS table/mpich_internal.txt internal REGEX "^[^#]")
string(REPLACE ";" ";\n    " internal "${internal}")
set(mpich_symbols "${abi_symbols}    ${internal};\n")

file(STRINGS table/functions.txt lines REGEX "^[^#]")
entries_read("${lines}")
foreach(line IN LISTS lines)
    if(NOT line MATCHES
            "^(both|mpich) ((absent|made|self|form|call|coll) )?(as ([A-Za-z_]+) )?([^(]*[ *])\
([A-Za-z0-9_]+)(\\(.*\\))$")
        message(FATAL_ERROR "functions.txt: cannot read: ${line}")
    endif()
    set(face ${CMAKE_MATCH_1})
    set(how "${CMAKE_MATCH_3}")
    set(body "${CMAKE_MATCH_5}")
    set(kind "${CMAKE_MATCH_6}")
    set(name ${CMAKE_MATCH_7})
    set(parameters "${CMAKE_MATCH_8}")
    set(symbols "    ${name};\n    P${name};\n")
    set(public "")
    set(defined "P${name}")
    if(name MATCHES "^(MPIX?)_(.*)$")
        set(public "${CMAKE_MATCH_1}_PUBLIC(${CMAKE_MATCH_2});\n")
    else() # QMPI_X has no second name
        set(symbols "    ${name};\n")
        set(defined ${name})
    endif()
    string(APPEND mpich_symbols "${symbols}")
    if(face STREQUAL both)
        string(APPEND abi_symbols "${symbols}")
    endif()
    if(how)
        if(how STREQUAL absent)
            stub_body(lines_of ${name} "${kind}" "${parameters}")
            set(lines_of "    return ${lines_of};\n")
        else()
            entry_body(lines_of ${name} "${how}" "${body}" "${parameters}")
        endif()
        set(stub "${public}${kind}${defined}${parameters}\n{\n${lines_of}}\n\n")
        string(APPEND mpich_stubs "${stub}")
        if(face STREQUAL both)
            string(APPEND abi_stubs "${stub}")
        endif()
    endif()
    if(face STREQUAL mpich AND NOT how)
        string(APPEND lacks "${kind}${name}${parameters};\n"
            "${kind}${defined}${parameters};\n")
    endif()
endforeach()
string(APPEND lacks "\n#endif\n")

set(made ${CMAKE_CURRENT_BINARY_DIR})
get_property(prototypes GLOBAL PROPERTY ENTRY_PROTOTYPES)
file(CONFIGURE OUTPUT ${made}/bodies.h CONTENT
    "${head}#ifndef BODIES_H\n#define BODIES_H\n\n${prototypes}\n#endif\n" @ONLY)
file(CONFIGURE OUTPUT ${made}/face_abi.h CONTENT "${lacks}" @ONLY)
foreach(face mpich abi)
    file(CONFIGURE OUTPUT ${made}/${face}_stubs.c
        CONTENT "${${face}_stubs}" @ONLY)
    file(CONFIGURE OUTPUT ${made}/${face}.symbols
        CONTENT "${${face}_symbols}local:\n    *;\n};\n" @ONLY)
endforeach()
