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

struct room **session_room_slot(struct session_room *room)
{
    return &room->room;
}

int room_attach(struct room **slot, void *base, MPI_Count size)
{
    if (size < 0 && base != MPI_BUFFER_AUTOMATIC)
        return error_note(MPI_ERR_ARG, "negative size");
    struct room *room = room_new(base, size);
    if (!room) return note_no_memory();
    pthread_mutex_lock(&lock);
    bool taken = *slot != NULL;
    if (!taken) *slot = room;
    pthread_mutex_unlock(&lock);
    if (!taken) return MPI_SUCCESS;
    free(room);
    return error_note(MPI_ERR_BUFFER, "a buffer is attached already");
}

int room_detach(struct room **slot, void *base, MPI_Count *size)
{
    if (!base) return note_argument("null buffer");
    pthread_mutex_lock(&lock);
    struct room *room = *slot;
    bool automatic = room && room->base == MPI_BUFFER_AUTOMATIC;
    *size = room && !automatic ? room->size : 0;
    *(void **)base = room ? room->base : NULL;
    *slot = NULL;
    release(room);
    pthread_mutex_unlock(&lock);
    return MPI_SUCCESS;
}

/* A message that was sent needs the program's memory no more, so all of it is
 * free again at once: messages under way stay charged to the room that was. */
int room_flush(struct room **slot, MPI_Request *request)
{
    pthread_mutex_lock(&lock);
    struct room *old = *slot;
    struct room *fresh = old ? room_new(old->base, old->size) : NULL;
    if (fresh) {
        *slot = fresh;
        release(old);
    }
    pthread_mutex_unlock(&lock);
    if (old && !fresh) return note_no_memory();
    if (request) *request = request_over();
    return MPI_SUCCESS;
}

int mpi_Buffer_attach(void *base, MPI_Count size)
{
    return room_attach(&room_of_all, base, size);
}

int mpi_Buffer_detach(void *base, MPI_Count *size)
{
    return room_detach(&room_of_all, base, size);
}

int mpi_Buffer_flush(void)
{
    return room_flush(&room_of_all, NULL);
}

int mpi_Buffer_iflush(MPI_Request *request)
{
    return room_flush(&room_of_all, request);
}

int mpi_Comm_attach_buffer(struct comm *comm, void *base, MPI_Count size)
{
    return room_attach(&comm->room, base, size);
}

int mpi_Comm_detach_buffer(struct comm *comm, void *base, MPI_Count *size)
{
    return room_detach(&comm->room, base, size);
}

int mpi_Comm_flush_buffer(struct comm *comm)
{
    return room_flush(&comm->room, NULL);
}

int mpi_Comm_iflush_buffer(struct comm *comm, MPI_Request *request)
{
    return room_flush(&comm->room, request);
}
