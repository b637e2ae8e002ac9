/* bsend.c - the buffers that programs attach for buffered sends. Sends always
 * copy: the size of a buffer only limits the bytes that the program has sent
 * and receivers have not matched. */
#include "coll.h"
#include "p2p.h"
#include "request.h"

#include <pthread.h>
#include <stdlib.h>

/* An attached buffer. It outlives its detachment while messages refer to it. */
struct room {
    void *base;
    MPI_Count size, used;
    int references; /* 1 while attached, and one for each message */
};

static struct room *room_of_all; /* MPI_Buffer_attach */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The caller holds the lock. */
static void release(struct room *room)
{
    if (room && --room->references == 0) free(room);
}

bool bsend_charge(struct message *message, const struct comm *comm,
                  MPI_Count size)
{
    pthread_mutex_lock(&lock);
    struct room *room = comm->room ? comm->room : room_of_all;
    MPI_Count wanted = size + MPI_BSEND_OVERHEAD;
    bool fits = room && (room->base == MPI_BUFFER_AUTOMATIC ||
                         wanted <= room->size - room->used);
    if (fits) {
        message->room = room;
        message->roomed = wanted;
        room->used += wanted;
        room->references++;
    }
    pthread_mutex_unlock(&lock);
    return fits;
}

void bsend_discharge(const struct message *message)
{
    pthread_mutex_lock(&lock);
    message->room->used -= message->roomed;
    release(message->room);
    pthread_mutex_unlock(&lock);
}

void bsend_forget(struct comm *comm)
{
    pthread_mutex_lock(&lock);
    release(comm->room);
    comm->room = NULL;
    pthread_mutex_unlock(&lock);
}

static struct room *room_new(void *base, MPI_Count size)
{
    struct room *room = calloc(1, sizeof *room);
    if (!room) return NULL;
    room->base = base;
    room->size = size;
    room->references = 1;
    return room;
}

static int attach(struct comm *comm, struct room **slot, void *base,
                  MPI_Count size, const char *function)
{
    bool negative = size < 0 && base != MPI_BUFFER_AUTOMATIC;
    if (negative)
        return error_raise(comm, MPI_ERR_ARG, function, "negative size");
    struct room *room = room_new(base, size);
    if (!room)
        return error_raise(comm, MPI_ERR_NO_MEM, function, "out of memory");
    pthread_mutex_lock(&lock);
    bool taken = *slot != NULL;
    if (!taken) *slot = room;
    pthread_mutex_unlock(&lock);
    if (!taken) return MPI_SUCCESS;
    free(room);
    return error_raise(comm, MPI_ERR_BUFFER, function,
                       "a buffer is attached already");
}

static MPI_Count detach(struct room **slot, void *base)
{
    pthread_mutex_lock(&lock);
    struct room *room = *slot;
    bool automatic = room && room->base == MPI_BUFFER_AUTOMATIC;
    MPI_Count size = room && !automatic ? room->size : 0;
    *(void **)base = room ? room->base : NULL;
    *slot = NULL;
    release(room);
    pthread_mutex_unlock(&lock);
    return size;
}

/* What was sent needs the program's memory no more, so all of it is free again
 * at once: messages under way stay charged to the room that was. */
static bool flush(struct room **slot)
{
    pthread_mutex_lock(&lock);
    struct room *old = *slot, *fresh = NULL;
    if (old) {
        fresh = room_new(old->base, old->size);
        if (fresh) {
            *slot = fresh;
            release(old);
        }
    }
    pthread_mutex_unlock(&lock);
    return fresh || !old;
}

static int flush_now(struct comm *comm, struct room **slot,
                     const char *function)
{
    if (flush(slot)) return MPI_SUCCESS;
    return error_raise(comm, MPI_ERR_NO_MEM, function, "out of memory");
}

static bool flushed(struct request *request)
{
    (void)request;
    return true;
}

static const struct request_kind flush_kind = {.progress = flushed};

static int flush_later(struct comm *comm, struct room **slot, MPI_Request *out,
                       const char *function)
{
    if (!out) return error_raise(comm, MPI_ERR_ARG, function, "null request");
    struct request *request =
        flush(slot) ? request_new(&flush_kind, comm, NULL) : NULL;
    if (!request)
        return error_raise(comm, MPI_ERR_NO_MEM, function, "out of memory");
    request->active = true;
    int result = request_publish(request, out);
    return result == MPI_SUCCESS ? result
                                 : error_raise_noted(comm, result, function);
}

/* The calls for any communicator, with int and with MPI_Count. */
#define BUFFER_VARIANT(name, count_t)                                          \
    MPI_PUBLIC(name);                                                          \
    int PMPI_##name(void *base, count_t size)                                  \
    {                                                                          \
        return attach(NULL, &room_of_all, base, size, __func__);               \
    }
BUFFER_VARIANT(Buffer_attach, int)
BUFFER_VARIANT(Buffer_attach_c, MPI_Count)

#define DETACH_VARIANT(name, count_t)                                          \
    MPI_PUBLIC(name);                                                          \
    int PMPI_##name(void *base, count_t *size)                                 \
    {                                                                          \
        if (!base || !size) return RAISE_ARG(NULL, "null pointer");            \
        *size = (count_t)detach(&room_of_all, base);                           \
        return MPI_SUCCESS;                                                    \
    }
DETACH_VARIANT(Buffer_detach, int)
DETACH_VARIANT(Buffer_detach_c, MPI_Count)

MPI_PUBLIC(Buffer_flush);
int PMPI_Buffer_flush(void)
{
    return flush_now(NULL, &room_of_all, __func__);
}

MPI_PUBLIC(Buffer_iflush);
int PMPI_Buffer_iflush(MPI_Request *request)
{
    return flush_later(NULL, &room_of_all, request, __func__);
}

#define COMM_BUFFER_VARIANT(name, count_t)                                     \
    MPI_PUBLIC(name);                                                          \
    int PMPI_##name(MPI_Comm handle, void *base, count_t size)                 \
    {                                                                          \
        COMM_OR_RETURN(comm, handle);                                          \
        return attach(comm, &comm->room, base, size, __func__);                \
    }
COMM_BUFFER_VARIANT(Comm_attach_buffer, int)
COMM_BUFFER_VARIANT(Comm_attach_buffer_c, MPI_Count)

#define COMM_DETACH_VARIANT(name, count_t)                                     \
    MPI_PUBLIC(name);                                                          \
    int PMPI_##name(MPI_Comm handle, void *base, count_t *size)                \
    {                                                                          \
        COMM_OR_RETURN(comm, handle);                                          \
        if (!base || !size) return RAISE_ARG(comm, "null pointer");            \
        *size = (count_t)detach(&comm->room, base);                            \
        return MPI_SUCCESS;                                                    \
    }
COMM_DETACH_VARIANT(Comm_detach_buffer, int)
COMM_DETACH_VARIANT(Comm_detach_buffer_c, MPI_Count)

MPI_PUBLIC(Comm_flush_buffer);
int PMPI_Comm_flush_buffer(MPI_Comm handle)
{
    COMM_OR_RETURN(comm, handle);
    return flush_now(comm, &comm->room, __func__);
}

MPI_PUBLIC(Comm_iflush_buffer);
int PMPI_Comm_iflush_buffer(MPI_Comm handle, MPI_Request *request)
{
    COMM_OR_RETURN(comm, handle);
    return flush_later(comm, &comm->room, request, __func__);
}
