/* data.c - data symbols of MPICH's ABI, which programs and libmpichfort bind at
 * load time, and internal functions that its wrappers import. */
#include "mpi_comm.h"

#include <stdarg.h>

#define EXPORT __attribute__((visibility("default")))

/* Only their addresses matter. */
EXPORT extern int MPIR_C_MPI_UNWEIGHTED, MPIR_C_MPI_WEIGHTS_EMPTY;
int MPIR_C_MPI_UNWEIGHTED, MPIR_C_MPI_WEIGHTS_EMPTY;
int *const MPI_UNWEIGHTED = &MPIR_C_MPI_UNWEIGHTED;
int *const MPI_WEIGHTS_EMPTY = &MPIR_C_MPI_WEIGHTS_EMPTY;

/* Set by libmpichfort to the addresses of its common blocks. */
MPI_Fint *MPI_F_STATUS_IGNORE, *MPI_F_STATUSES_IGNORE;
EXPORT extern int MPIR_F08_MPI_BOTTOM, MPIR_F08_MPI_IN_PLACE;
EXPORT extern MPI_F08_status MPIR_F08_MPI_STATUS_IGNORE_OBJ;
EXPORT extern MPI_F08_status MPIR_F08_MPI_STATUSES_IGNORE_OBJ[1];
int MPIR_F08_MPI_BOTTOM, MPIR_F08_MPI_IN_PLACE;
MPI_F08_status MPIR_F08_MPI_STATUS_IGNORE_OBJ;
MPI_F08_status MPIR_F08_MPI_STATUSES_IGNORE_OBJ[1];
MPI_F08_status *MPI_F08_STATUS_IGNORE = &MPIR_F08_MPI_STATUS_IGNORE_OBJ;
MPI_F08_status *MPI_F08_STATUSES_IGNORE = MPIR_F08_MPI_STATUSES_IGNORE_OBJ;

/* Set by MPICH's Fortran library. */
EXPORT extern int MPIR_fortran_true, MPIR_fortran_false;
int MPIR_fortran_true = 1, MPIR_fortran_false;

struct MPIR_T_pvar_handle_s *const MPI_T_PVAR_ALL_HANDLES = NULL;

/* Printed by mpichversion, and found in a binary by `what`. */
#define VERSION_TEXT(name, text)                                               \
    EXPORT extern const char MPII_Version_##name[];                            \
    const char MPII_Version_##name[] = text
VERSION_TEXT(string, "PCCL/MPI " PCCL_MPI_VERSION);
VERSION_TEXT(date, "");
VERSION_TEXT(ABI, "14:2:2");
VERSION_TEXT(device, "pccl");
VERSION_TEXT(configure, "");
VERSION_TEXT(CC, "");
VERSION_TEXT(CXX, "");
VERSION_TEXT(F77, "");
VERSION_TEXT(FC, "");
VERSION_TEXT(custom, "");

/* Imported by MPICH's I/O and Fortran parts. */
EXPORT int MPIR_Err_create_code(int last, int fatal, const char function[],
                                int line, int error_class, const char generic[],
                                const char specific[], ...);
EXPORT int MPIR_Err_return_comm(void *comm, const char function[], int code);
EXPORT int MPIR_Err_return_win(void *win, const char function[], int code);
EXPORT int MPIR_Err_return_group(void *group, const char function[], int code);
EXPORT int MPIR_Err_return_session(void *session, const char function[],
                                   int code);
EXPORT int MPIR_Err_return_session_init(void *handler, const char function[],
                                        int code);
EXPORT int MPIR_Err_return_comm_create_from_group(void *handler,
                                                  const char function[],
                                                  int code);
EXPORT void MPII_Grequest_set_lang_f77(MPI_Request request);
EXPORT void MPII_Op_set_cxx(MPI_Op op, void (*function)(void));
EXPORT void MPII_Errhandler_set_cxx(MPI_Errhandler handler,
                                    void (*function)(void));

int MPIR_Err_create_code(int last, int fatal, const char function[], int line,
                         int error_class, const char generic[],
                         const char specific[], ...)
{
    (void)last;
    (void)fatal;
    (void)line;
    (void)specific;
    return error_note(error_class, "%s: %s", function ? function : "",
                      generic ? generic : "");
}

#define RETURN(name)                                                           \
    int MPIR_Err_return_##name(void *object, const char function[], int code)  \
    {                                                                          \
        (void)object;                                                          \
        return error_raise_noted(NULL, code, function ? function : "MPI");     \
    }
RETURN(comm)
RETURN(win)
RETURN(group)
RETURN(session)
RETURN(session_init)
RETURN(comm_create_from_group)

/* Fortran's callbacks have the same argument conventions. */
void MPII_Grequest_set_lang_f77(MPI_Request request)
{
    (void)request;
}

/* The C++ bindings, removed from MPI in 2012, are not offered. */
void MPII_Op_set_cxx(MPI_Op op, void (*function)(void))
{
    (void)op;
    (void)function;
}

void MPII_Errhandler_set_cxx(MPI_Errhandler handler, void (*function)(void))
{
    (void)handler;
    (void)function;
}
