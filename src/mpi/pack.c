/* pack.c - MPI_Pack and related calls. The packed form is the type's data
 * without holes; "external32" is the same in big-endian order with the
 * standard's sizes. */
#include "mpi_comm.h"
#include "type.h"

#include <limits.h>
#include <string.h>

static int type_get(MPI_Datatype handle, MPI_Count count, struct type **type)
{
    *type = type_find(handle);
    if (!*type || !(*type)->committed)
        return error_note(MPI_ERR_TYPE, "invalid or uncommitted datatype");
    if (count < 0) return error_note(MPI_ERR_COUNT, "negative count");
    return MPI_SUCCESS;
}

/* Packs or unpacks count elements; advances *position by their packed size. */
static int move(const void *in, void *out, MPI_Count count, MPI_Datatype handle,
                MPI_Count room, MPI_Count *position, bool packing)
{
    struct type *type = NULL;
    int result = type_get(handle, count, &type);
    if (result != MPI_SUCCESS) return result;
    MPI_Count size = count * type->size;
    if (*position < 0 || *position > room || size > room - *position)
        return error_note(MPI_ERR_ARG, "the packed buffer is too short");
    if (packing)
        type_pack(in, count, type, 0, (char *)out + *position, size);
    else
        type_unpack(out, count, type, 0, (const char *)in + *position, size);
    *position += size;
    return MPI_SUCCESS;
}

int mpi_Pack(const void *in, MPI_Count count, MPI_Datatype type, void *out,
             MPI_Count out_size, MPI_Count *position, struct comm *comm)
{
    (void)comm;
    return move(in, out, count, type, out_size, position, true);
}

int mpi_Unpack(const void *in, MPI_Count in_size, MPI_Count *position,
               void *out, MPI_Count count, MPI_Datatype type, struct comm *comm)
{
    (void)comm;
    return move(in, out, count, type, in_size, position, false);
}

int mpi_Pack_size(MPI_Count count, MPI_Datatype handle, struct comm *comm,
                  MPI_Count *size)
{
    struct type *type = NULL;
    (void)comm;
    int result = type_get(handle, count, &type);
    if (result == MPI_SUCCESS) *size = count * type->size;
    return result;
}

/* ---------------------------------------------------------------- external32
 */

/* Number of scalars in an element. */
static int parts_of(enum element element)
{
    switch (element) {
    case ELEMENT_FLOAT_COMPLEX:
    case ELEMENT_DOUBLE_COMPLEX:
    case ELEMENT_LONG_DOUBLE_COMPLEX:
    case ELEMENT_2INT:
    case ELEMENT_2FLOAT:
    case ELEMENT_2DOUBLE:
        return 2;
    default:
        return 1;
    }
}

struct external {
    char *packed;
    bool packing;
    bool counting;
    MPI_Count size;
};

static void reverse_copy(char *to, const char *from, MPI_Count size)
{
    for (MPI_Count i = 0; i < size; i++) to[i] = from[size - 1 - i];
}

/* Uses this machine's sizes. They differ from the standard's only for wchar_t
 * (2 there), which is refused, and for long double, whose bytes are not IEEE
 * quad here: only this machine can unpack them. */
static void external_visit(void *context, char *address,
                           const struct type *type, MPI_Count count)
{
    struct external *external = context;
    MPI_Count size = type->size / parts_of(type->element);
    MPI_Count numbers = count * parts_of(type->element);
    external->size += count * type->size;
    if (external->counting) return;
    for (MPI_Count i = 0; i < numbers; i++) {
        if (external->packing)
            reverse_copy(external->packed, address + i * size, size);
        else
            reverse_copy(address + i * size, external->packed, size);
        external->packed += size;
    }
}

static int external_check(const char *name, MPI_Count count,
                          MPI_Datatype handle, struct type **type)
{
    if (!name || strcmp(name, "external32") != 0)
        return error_note(MPI_ERR_ARG, "the only representation is external32");
    return type_get(handle, count, type);
}

static int external_move(const char *name, void *memory, MPI_Count count,
                         MPI_Datatype handle, void *packed, MPI_Count room,
                         MPI_Count *position, bool packing)
{
    struct type *type = NULL;
    int result = external_check(name, count, handle, &type);
    if (result != MPI_SUCCESS) return result;
    MPI_Count size = count * type->size;
    if (*position < 0 || *position > room || size > room - *position)
        return error_note(MPI_ERR_ARG, "the packed buffer is too short");
    struct external external = {(char *)packed + *position, packing, false, 0};
    type_walk(memory, count, type, external_visit, &external);
    *position += size;
    return MPI_SUCCESS;
}

int mpi_Pack_external(const char *name, const void *in, MPI_Count count,
                      MPI_Datatype type, void *out, MPI_Count out_size,
                      MPI_Count *position)
{
    return external_move(name, (void *)(uintptr_t)in, count, type, out,
                         out_size, position, true);
}

int mpi_Unpack_external(const char name[], const void *in, MPI_Count in_size,
                        MPI_Count *position, void *out, MPI_Count count,
                        MPI_Datatype type)
{
    return external_move(name, out, count, type, (void *)(uintptr_t)in, in_size,
                         position, false);
}

int mpi_Pack_external_size(const char *name, MPI_Count count,
                           MPI_Datatype handle, MPI_Count *size)
{
    struct type *type = NULL;
    int result = external_check(name, count, handle, &type);
    if (result == MPI_SUCCESS) *size = count * type->size;
    return result;
}
