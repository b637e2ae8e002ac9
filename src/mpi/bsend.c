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

struct session_room {
    struct object object;
    struct room *room;
};
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
    struct room *room = comm->room;
    if (!room && comm->session) room = comm->session->room;
    if (!room) room = room_of_all;
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
    session_room_release(comm->session);
}

static void session_room_destroy(struct object *object)
{
    struct session_room *room = (struct session_room *)object;
    pthread_mutex_lock(&lock);
    release(room->room);
    pthread_mutex_unlock(&lock);
    free(room);
}

struct session_room *session_room_new(void)
{
    struct session_room *room = calloc(1, sizeof *room);
    if (room) object_init(&room->object, session_room_destroy);
    return room;
}

struct session_room *session_room_retain(struct session_room *room)
{
    if (room) object_retain(&room->object);
    return room;
}

void session_room_release(struct session_room *room)
{
    if (room) object_release(&room->object);
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

/* Returns a noted class, as all of these do. */
static int attach(struct room **slot, void *base, MPI_Count size)
{
    if (size < 0 && base != MPI_BUFFER_AUTOMATIC)
        return error_note(MPI_ERR_ARG, "negative size");
    struct room *room = room_new(base, size);
    if (!room) return error_note(MPI_ERR_NO_MEM, "out of memory");
    pthread_mutex_lock(&lock);
    bool taken = *slot != NULL;
    if (!taken) *slot = room;
    pthread_mutex_unlock(&lock);
    if (!taken) return MPI_SUCCESS;
    free(room);
    return error_note(MPI_ERR_BUFFER, "a buffer is attached already");
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

/* A message that was sent needs the program's memory no more, so all of it is
 * free again at once: messages under way stay charged to the room that was. */
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

static int flush_now(struct room **slot)
{
    if (flush(slot)) return MPI_SUCCESS;
    return error_note(MPI_ERR_NO_MEM, "out of memory");
}

static bool flushed(struct request *request)
{
    (void)request;
    return true;
}

static const struct request_kind flush_kind = {.progress = flushed};

static int flush_later(struct comm *comm, struct room **slot, MPI_Request *out)
{
    if (!out) return error_note(MPI_ERR_ARG, "null request");
    struct request *request =
        flush(slot) ? request_new(&flush_kind, comm, NULL) : NULL;
    if (!request) return error_note(MPI_ERR_NO_MEM, "out of memory");
    request->active = true;
    return request_publish(request, out);
}

int session_room_attach(struct session_room *room, void *base, MPI_Count size)
{
    return attach(&room->room, base, size);
}

MPI_Count session_room_detach(struct session_room *room, void *base)
{
    return detach(&room->room, base);
}

int session_room_flush(struct session_room *room, MPI_Request *request)
{
    return request ? flush_later(NULL, &room->room, request)
                   : flush_now(&room->room);
}

static int raise(struct comm *comm, int result, const char *function)
{
    if (result == MPI_SUCCESS) return result;
    return error_raise_noted(comm, result, function);
}

/* The calls for any communicator, with int and with MPI_Count. */
#define BUFFER_VARIANT(name, count_t)                                          \
    MPI_PUBLIC(name);                                                          \
    int PMPI_##name(void *base, count_t size)                                  \
    {                                                                          \
        return raise(NULL, attach(&room_of_all, base, size), __func__);        \
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
    return raise(NULL, flush_now(&room_of_all), __func__);
}

MPI_PUBLIC(Buffer_iflush);
int PMPI_Buffer_iflush(MPI_Request *request)
{
    return raise(NULL, flush_later(NULL, &room_of_all, request), __func__);
}

#define COMM_BUFFER_VARIANT(name, count_t)                                     \
    MPI_PUBLIC(name);                                                          \
    int PMPI_##name(MPI_Comm handle, void *base, count_t size)                 \
    {                                                                          \
        COMM_OR_RETURN(comm, handle);                                          \
        return raise(comm, attach(&comm->room, base, size), __func__);         \
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
    return raise(comm, flush_now(&comm->room), __func__);
}

MPI_PUBLIC(Comm_iflush_buffer);
int PMPI_Comm_iflush_buffer(MPI_Comm handle, MPI_Request *request)
{
    COMM_OR_RETURN(comm, handle);
    return raise(comm, flush_later(comm, &comm->room, request), __func__);
}
