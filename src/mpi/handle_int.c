/* handle_int.c - handles as integers, for Fortran: the integer has the value of
 * the handle. MPI_X_c2f and _f2c are what MPI called them before 5.0. */
#include "facade.h"

#define INTEGER(name, kind)                                                    \
    MPI_PUBLIC(name##_toint);                                                  \
    int PMPI_##name##_toint(MPI_##kind handle)                                 \
    {                                                                          \
        return (int)HANDLE_BITS(handle);                                       \
    }                                                                          \
    MPI_PUBLIC(name##_fromint);                                                \
    MPI_##kind PMPI_##name##_fromint(int number)                               \
    {                                                                          \
        return (MPI_##kind)HANDLE_OF(number);                                  \
    }                                                                          \
    MPI_PUBLIC(name##_c2f);                                                    \
    MPI_Fint PMPI_##name##_c2f(MPI_##kind handle)                              \
    {                                                                          \
        return (MPI_Fint)HANDLE_BITS(handle);                                  \
    }                                                                          \
    MPI_PUBLIC(name##_f2c);                                                    \
    MPI_##kind PMPI_##name##_f2c(MPI_Fint number)                              \
    {                                                                          \
        return (MPI_##kind)HANDLE_OF(number);                                  \
    }

INTEGER(Comm, Comm)
INTEGER(Errhandler, Errhandler)
INTEGER(Group, Group)
INTEGER(Info, Info)
INTEGER(Message, Message)
INTEGER(Op, Op)
INTEGER(Request, Request)
INTEGER(Session, Session)
INTEGER(Type, Datatype)
INTEGER(Win, Win)

/* Files are not offered, so there is only the null handle; in MPICH's ABI it is
 * a pointer. */
MPI_PUBLIC(File_toint);
int PMPI_File_toint(MPI_File file)
{
    return (int)HANDLE_BITS(file);
}

MPI_PUBLIC(File_fromint);
MPI_File PMPI_File_fromint(int number)
{
    (void)number;
    return MPI_FILE_NULL;
}

MPI_PUBLIC(File_c2f);
MPI_Fint PMPI_File_c2f(MPI_File file)
{
    return PMPI_File_toint(file);
}

MPI_PUBLIC(File_f2c);
MPI_File PMPI_File_f2c(MPI_Fint number)
{
    return PMPI_File_fromint(number);
}
