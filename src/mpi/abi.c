/* abi.c - inquiry about the binary interface (MPI 5.0, chapter 20). */
#include "facade.h"
#include "info.h"

#include <stdio.h>
#include <string.h>

int mpi_Abi_get_version(int *major, int *minor)
{
#ifdef PCCL_MPI_FACE_ABI
    *major = MPI_ABI_VERSION;
    *minor = MPI_ABI_SUBVERSION;
#else
    *major = *minor = -1; /* not the standard ABI */
#endif
    return MPI_SUCCESS;
}

struct abi_row {
    const char *key;
    const char *value;
};

static int publish(const struct abi_row *rows, size_t count, MPI_Info *out)
{
    struct info *info = info_copy(NULL);
    for (size_t i = 0; info && i < count; i++) {
        if (info_put(info, rows[i].key, rows[i].value)) continue;
        info_release(info);
        info = NULL;
    }
    return info_publish(info, out);
}

#define ROWS(rows) rows, sizeof(rows) / sizeof *(rows)

_Static_assert(sizeof(MPI_Aint) == 8 && sizeof(MPI_Count) == 8 &&
                   sizeof(MPI_Offset) == 8,
               "these are told by MPI_Abi_get_info");

int mpi_Abi_get_info(MPI_Info *out)
{
    static const struct abi_row rows[] = {{"mpi_aint_size", "8"},
                                          {"mpi_count_size", "8"},
                                          {"mpi_offset_size", "8"}};
    return publish(ROWS(rows), out);
}

/* What type.c assumes of a Fortran compiler. */
static const struct abi_row fortran[] = {
    {"mpi_logical_size", "4"},
    {"mpi_integer_size", "4"},
    {"mpi_real_size", "4"},
    {"mpi_double_precision_size", "8"},
    {"mpi_logical1_supported", "true"},
    {"mpi_logical2_supported", "true"},
    {"mpi_logical4_supported", "true"},
    {"mpi_logical8_supported", "true"},
    {"mpi_logical16_supported", "true"},
    {"mpi_integer1_supported", "true"},
    {"mpi_integer2_supported", "true"},
    {"mpi_integer4_supported", "true"},
    {"mpi_integer8_supported", "true"},
    {"mpi_integer16_supported", "true"},
    {"mpi_real2_supported", "true"},
    {"mpi_real4_supported", "true"},
    {"mpi_real8_supported", "true"},
    {"mpi_real16_supported", "true"},
    {"mpi_complex4_supported", "true"},
    {"mpi_complex8_supported", "true"},
    {"mpi_complex16_supported", "true"},
    {"mpi_complex32_supported", "true"},
    {"mpi_double_complex_supported", "true"}};

int mpi_Abi_get_fortran_info(MPI_Info *out)
{
    return publish(ROWS(fortran), out);
}

/* Sizes other than these would change the datatypes of Fortran: refused. */
int mpi_Abi_set_fortran_info(MPI_Info handle)
{
    struct info *info = info_find(handle);
    if (!info) return error_note(MPI_ERR_INFO, "invalid info");
    for (size_t i = 0; i < sizeof fortran / sizeof *fortran; i++) {
        char value[16];
        int found, length = sizeof value;
        const char *key = fortran[i].key;
        if (!strstr(key, "_size")) continue;
        int result = mpi_Info_get_string(info, key, &length, value, &found);
        if (result != MPI_SUCCESS) return result;
        if (found && strcmp(value, fortran[i].value) != 0)
            return error_note(MPI_ERR_ABI,
                              "%s is %s here, and cannot become %.16s", key,
                              fortran[i].value, value);
    }
    return MPI_SUCCESS;
}

/* The representation of Fortran's .TRUE. and .FALSE.; no operator needs it,
 * since 0 is false with every compiler. */
static struct {
    bool set;
    int size;
    unsigned char yes[16], no[16];
} booleans; /* guarded by facade_lock */

int mpi_Abi_set_fortran_booleans(int size, void *yes, void *no)
{
    if (!yes || !no || size < 1 || size > (int)sizeof booleans.yes)
        return note_argument("null value, or a size that is none of LOGICAL");
    size_t bytes = (size_t)size;
    facade_lock();
    bool differs = booleans.set && (booleans.size != size ||
                                    memcmp(booleans.yes, yes, bytes) != 0 ||
                                    memcmp(booleans.no, no, bytes) != 0);
    if (!booleans.set) {
        memcpy(booleans.yes, yes, bytes);
        memcpy(booleans.no, no, bytes);
        booleans.size = size;
        booleans.set = true;
    }
    facade_unlock();
    if (!differs) return MPI_SUCCESS;
    return error_note(MPI_ERR_ABI, "other values have been set already");
}

int mpi_Abi_get_fortran_booleans(int size, void *yes, void *no, int *is_set)
{
    if (!yes || !no) return note_argument("null value");
    facade_lock();
    *is_set = booleans.set && booleans.size == size;
    if (*is_set) {
        memcpy(yes, booleans.yes, (size_t)size);
        memcpy(no, booleans.no, (size_t)size);
    }
    facade_unlock();
    return MPI_SUCCESS;
}
