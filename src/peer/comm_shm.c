/* comm_shm.c - connections between processes of one host. Their bytes go
 * through shared memory. Their sockets carry doorbells, and the end of a
 * socket is the death of the other process. See comm.h; rules L1 to L5 of
 * LINKS.md. */
#include "comm.h"

#include "../base/log.h"
#include "../reduce/stream.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    PIECE = 64 * 1024, /* copied before the other end sees any of it */
    PIECES_MAX = 16,   /* bytes in one pass, as other connections wait */
    RINGS_MAX = 16,    /* reads of doorbell bytes in one pass, likewise */
};

/* ------------------------------------------------------------ negotiation */

/* Bytes then go through the socket; nothing but time is lost. */
static void report_tcp(const pcclComm_t *c, const char *why)
{
    bool asked_for = c->io.transport == TRANSPORT_SHM;
    LOG(asked_for ? LOG_WARN : LOG_DEBUG,
        "no shared memory with a member of this host: %s", why);
}

/* The queues of a pair are so long that the part written next has left the
 * reader's caches. The queues of many members would not fit there together. */
static uint32_t queue_size(const pcclComm_t *c, uint32_t number)
{
    const struct session *s = c->session;
    const struct view *view = s->next ? s->next : s->view;
    uint64_t host = links_host(s->links);
    uint32_t here = 0;
    if (conn_is_p2p(s->links, number)) return CHANNEL_SIZE; /* messages */
    for (uint32_t i = 0; i < view->size; i++)
        here += view->members[i].host == host;
    return here == 2 ? CHANNEL_SIZE_PAIR : CHANNEL_SIZE;
}

static bool has_ended(int fd)
{
    char first;
    ssize_t n = recv(fd, &first, 1, MSG_PEEK | MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

struct channel *comm_shm_make(void *comm, uint32_t number,
                              struct channel_offer *offer)
{
    pcclComm_t *c = comm;
    struct shared_memory *share = &c->io.sockets[number].share;
    if (shared_memory_make(share, queue_size(c, number), offer))
        return &share->channel;
    report_tcp(c, "it cannot be made here");
    return NULL;
}

struct channel *comm_shm_join(void *comm, uint32_t number,
                              const struct channel_offer *offer)
{
    pcclComm_t *c = comm;
    struct shared_memory *share = &c->io.sockets[number].share;
    if (shared_memory_open(share, offer)) return &share->channel;
    /* A dialer that has given up meanwhile has removed its memory. */
    if (!has_ended(c->io.sockets[number].fd))
        report_tcp(c, "what it offers cannot be opened here");
    return NULL;
}

void comm_shm_settled(void *comm, uint32_t number, bool taken)
{
    pcclComm_t *c = comm;
    struct shared_memory *share = &c->io.sockets[number].share;
    if (taken) {
        shared_memory_settle(share);
        return;
    }
    shared_memory_free(share);
    report_tcp(c, "it does not take it");
}

uint8_t *comm_shm_region_export(void *comm, struct channel_offer *offer)
{
    pcclComm_t *c = comm;
    if (!c->io.region.memory &&
        !shared_region_make(&c->io.region, REGION_SIZE)) {
        LOG(LOG_DEBUG, "no memory that all members of this host read: large "
                       "collectives go through the queues of pairs");
        return NULL;
    }
    *offer = c->io.region.offer;
    return c->io.region.memory;
}

const uint8_t *comm_shm_region_attach(void *comm, uint32_t number,
                                      const struct channel_offer *offer)
{
    pcclComm_t *c = comm;
    struct shared_region *region = &c->io.sockets[number].share.lent;
    return shared_region_open(region, offer) ? region->memory : NULL;
}

bool comm_shm_receives(const pcclComm_t *c, uint32_t number)
{
    return conn_channel(c->session->links, number) != NULL;
}

bool comm_shm_sends(const pcclComm_t *c, uint32_t number)
{
    return conn_sends_shared(c->session->links, number);
}

/* --------------------------------------------------------------- doorbell */

static void wake(const struct comm_socket *s)
{
    /* A socket without room has bytes that the other end has not read yet.
     * They wake it as well. */
    while (send(s->fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 &&
           errno == EINTR)
        continue;
}

void comm_shm_ring(pcclComm_t *c, uint32_t number, uint32_t what)
{
    struct comm_socket *s = &c->io.sockets[number];
    if (channel_ring(&s->share.channel, what)) wake(s);
}

void comm_shm_ring_many(pcclComm_t *c, const uint32_t *numbers, uint32_t count)
{
    if (count > 0) atomic_thread_fence(memory_order_seq_cst);
    for (uint32_t i = 0; i < count; i++) {
        struct comm_socket *s = &c->io.sockets[numbers[i]];
        if (channel_wakes(&s->share.channel, CHANNEL_WANTS_DATA)) wake(s);
    }
}

/* The bytes have no meaning. The caller needs to know only whether the socket
 * has ended. */
static void read_socket(struct comm_socket *s)
{
    uint8_t rings[256];
    s->event_pending = false;
    for (int i = 0; i < RINGS_MAX; i++) {
        ssize_t n = recv(s->fd, rings, sizeof rings, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) return;
        if (n <= 0) s->ended = true;
        if (n < (ssize_t)sizeof rings) return;
    }
    s->event_pending = true; /* it rings as fast as this end reads */
}

bool comm_shm_arm(pcclComm_t *c, uint32_t number)
{
    struct comm_socket *s = &c->io.sockets[number];
    struct channel *channel = &s->share.channel;
    uint8_t *to;
    uint32_t what = CHANNEL_AWAKE;
    /* Until the HELLO has left, it is the socket that has no room. */
    if (s->blocked && comm_shm_sends(c, number)) what = CHANNEL_WANTS_ROOM;
    if (engine_rx_window(c->session->engine, number, &to) > 0)
        what |= CHANNEL_WANTS_DATA;
    s->armed = true;
    bool there = channel_arm(channel, what);
    /* The other end may sleep for room that the fast path has made. */
    comm_shm_ring(c, number, CHANNEL_WANTS_ROOM);
    return there || channel->broken;
}

void comm_shm_disarm(pcclComm_t *c, uint32_t number)
{
    struct comm_socket *s = &c->io.sockets[number];
    if (s->armed) channel_disarm(&s->share.channel);
    s->armed = false;
}

/* ------------------------------------------------------------------ moving */

static size_t turn_size(const pcclComm_t *c)
{
    return c->io.brief ? LAUNCH_MAX : (size_t)PIECE * PIECES_MAX;
}

/* The queue's lines are in the reader's caches, from its last turn. Stores that
 * bypass the caches need not fetch them from there first; but then the reader
 * may have to fetch them from memory. What takes longer is measured. */
static void write_body(struct comm_socket *s, uint8_t *to,
                       const struct conn_part *part, size_t size, bool first)
{
    if (copy_choose(&s->copy, part->size, first, comm_now) == COPY_SECOND)
        memcpy(to, part->from, size);
    else
        stream_copy(to, part->from, size);
    copy_moved(&s->copy, size, comm_now);
}

void comm_shm_fill(void *comm, uint32_t number, void *to, const void *from,
                   size_t size, size_t left, bool first)
{
    pcclComm_t *c = comm;
    const struct conn_part part = {.from = from, .size = (uint32_t)left};
    write_body(&c->io.sockets[number], to, &part, size, first);
    c->counters.shared_sent += size;
}

/* Copies the bytes that may leave now into the channel, at most `limit`;
 * returns how many could. */
static size_t put(pcclComm_t *c, uint32_t number, size_t limit)
{
    struct engine *e = c->session->engine;
    struct comm_socket *s = &c->io.sockets[number];
    struct channel *channel = &s->share.channel;
    struct conn_part parts[2];
    uint32_t count = engine_tx_window(e, number, parts);
    size_t done = 0;
    uint8_t *to = NULL;
    size_t most = channel_room(channel, &to);
    bool message = conn_is_p2p(c->session->links, number);
    size_t piece = message ? MESSAGE_PORTION : PIECE;
    if (most > piece) most = piece;
    if (most > limit) most = limit;
    /* The first bytes of a large frame alone are of no use. */
    size_t whole = 0;
    for (uint32_t i = 0; i < count; i++) whole += parts[i].size;
    if (c->io.brief && whole > most) return 0;
    for (uint32_t i = 0; i < count && done < most; i++) {
        size_t part = parts[i].size;
        if (part > most - done) part = most - done;
        if (message && i + 1 == count)
            write_body(s, to + done, &parts[i], part, i > 0);
        else
            memcpy(to + done, parts[i].from, part);
        done += part;
    }
    if (done == 0) return 0;
    channel_write(channel, done);
    c->counters.shared_sent += done;
    engine_tx(e, number, done);
    return done;
}

bool comm_shm_transmit(pcclComm_t *c, uint32_t number)
{
    struct engine *e = c->session->engine;
    struct comm_socket *s = &c->io.sockets[number];
    struct channel *channel = &s->share.channel;
    struct conn_part parts[2];
    size_t done = 0, part = 1, turn = turn_size(c);
    engine_clear_dirty(e, number);
    int most = conn_is_p2p(c->session->links, number)
                   ? PIECES_MAX * (PIECE / MESSAGE_PORTION)
                   : PIECES_MAX;
    for (int i = 0; i < most && done < turn && part > 0; i++) {
        part = put(c, number, turn - done);
        done += part;
    }
    s->blocked = engine_tx_window(e, number, parts) > 0;
    c->io.cut |= s->blocked;
    comm_io_note(c, number);
    if (done > 0) comm_shm_ring(c, number, CHANNEL_WANTS_DATA);
    if (channel->broken) comm_io_lost(c, number);
    return done > 0;
}

/* The other end has read all that this one has written. */
static bool has_read_all(const struct channel *channel)
{
    return atomic_load_explicit(&channel->other->read, memory_order_relaxed) ==
           channel->written;
}

bool comm_shm_receive(pcclComm_t *c, uint32_t number)
{
    struct engine *e = c->session->engine;
    struct comm_socket *s = &c->io.sockets[number];
    struct channel *channel = &s->share.channel;
    const uint8_t *from;
    size_t done = 0, turn = turn_size(c);
    bool moved = false;
    if (s->event_pending) read_socket(s);
    for (int i = 0; i < PIECES_MAX && done < turn; i++) {
        size_t size = channel_ready(channel, &from);
        if (channel->broken) {
            comm_io_lost(c, number);
            return true;
        }
        if (size == 0) {
            engine_rx_dry(e, number);
            break;
        }
        if (s->copy.runs && has_read_all(channel))
            copy_over(&s->copy, comm_now());
        if (size > PIECE) size = PIECE;
        if (size > turn - done) size = turn - done;
        size = engine_rx_from(e, number, from, size);
        if (!comm_shm_receives(c, number)) return true; /* closed */
        if (size == 0) {
            c->io.cut = true; /* it is left where it is */
            break;
        }
        channel_read(channel, size);
        c->counters.shared_received += size;
        done += size;
        moved = true;
    }
    c->io.cut |= done >= turn;
    if (!comm_shm_receives(c, number)) return true;
    if (moved) comm_shm_ring(c, number, CHANNEL_WANTS_ROOM);
    if (s->ended && !channel->broken && channel_ready(channel, &from) == 0) {
        comm_io_lost(c, number);
        return true;
    }
    return moved;
}

/* A member of this host and this user. Its number comes from the other end,
 * through the master. */
static bool is_own_process(const pcclComm_t *c, uint32_t number,
                           const struct wire_member *member)
{
    struct comm_socket *s = &c->io.sockets[number];
    if (!comm_shm_receives(c, number)) return false;
    if (!s->own_process) s->own_process = shared_memory_is_own(member->pid);
    return s->own_process;
}

/* Whether the process may be read is decided before the address, where nothing
 * is. */
bool comm_shm_cma_works(void *comm, uint32_t number,
                        const struct wire_member *member)
{
    char byte;
    struct iovec here = {&byte, 1}, there = {NULL, 1};
    return is_own_process(comm, number, member) &&
           process_vm_readv((pid_t)member->pid, &here, 1, &there, 1, 0) < 0 &&
           errno == EFAULT;
}

/* It refuses memory of devices, which this process can read itself. */
bool comm_shm_cma_lends(void *comm, const void *bytes, size_t size)
{
    char *first = (char *)(uintptr_t)bytes, ends[2];
    struct iovec here[2] = {{ends, 1}, {ends + 1, 1}};
    struct iovec there[2] = {{first, 1}, {first + size - 1, 1}};
    (void)comm;
    return process_vm_readv(getpid(), here, 2, there, 2, 0) == 2;
}

/* Rule P2P-9: cross-memory attach. The kernel copies, once. If the socket has
 * not ended after all was read, the process was the right one, and alive. */
bool comm_shm_cma_read(void *comm, uint32_t number,
                       const struct wire_member *member, uint64_t address,
                       void *to, size_t size)
{
    pcclComm_t *c = comm;
    struct comm_socket *s = &c->io.sockets[number];
    if (!is_own_process(c, number, member)) return false;
    for (size_t done = 0; done < size;) {
        struct iovec here = {(char *)to + done, size - done};
        struct iovec there = {(void *)(uintptr_t)(address + done), size - done};
        ssize_t n =
            process_vm_readv((pid_t)member->pid, &here, 1, &there, 1, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        done += (size_t)n;
    }
    c->counters.cma_received += size;
    read_socket(s);
    return !s->ended;
}

bool comm_shm_cma_prefers(void *comm, uint32_t number, size_t size, bool alone)
{
    pcclComm_t *c = comm;
    struct comm_socket *s = &c->io.sockets[number];
    if (!comm_shm_receives(c, number)) return false;
    if (!alone) return copy_best(&s->pull, size) == COPY_SECOND;
    s->pull.runs = false; /* of one that was cancelled */
    return copy_choose(&s->pull, size, true, comm_now) == COPY_SECOND;
}

void comm_shm_cma_compared(void *comm, uint32_t number, size_t size)
{
    pcclComm_t *c = comm;
    struct comm_socket *s = &c->io.sockets[number];
    copy_moved(&s->pull, size, comm_now);
    copy_over(&s->pull, comm_now());
}
