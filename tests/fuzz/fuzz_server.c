/* fuzz_server.c - the process of the coordinator on real sockets, one thread
 * with its clients: strangers and members that say anything, with and without
 * a key, close, and come again; a coordinator that begins again with its
 * journal. A member that does what the rules say stays, as long as nobody joins
 * its group or aborts the run, and in the end nothing is left. */
#include "server_client.h"

#include "../../src/base/address.h"
#include "../../src/base/io_addr.h"
#include "../../src/master/succession/journal_form.h"

#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { TURNS = 2, TURNS_END = 2000, GOOD = 0, GOOD_GROUP = 7 };

/* The argument is a client, unless it says otherwise. */
enum server_kind {
    SERVER_CONFIG,  /* argument: quorum; bits, more bits */
    SERVER_CONNECT, /* how: enum client_way; for how long its token holds */
    SERVER_BYTES,   /* 128: past its channel */
    SERVER_SAY,     /* a message that fits; 128: then some bytes change */
    SERVER_DUE,     /* what it owes; mood */
    SERVER_PARTIAL,
    SERVER_RELAY,
    SERVER_RESUME,   /* with its own id and secret, or somebody's */
    SERVER_CLOSE,    /* 128: at once */
    SERVER_TIME,     /* argument: timers; ms (2) */
    SERVER_RESTART,  /* argument: 1: nobody is left; bytes of the journal that
                        change */
    SERVER_ANSWER,   /* argument: the hook's answer */
    SERVER_OPERATOR, /* argument: what an operator or a launcher asks */
    SERVER_ADDRESS,  /* of anybody: a text, or as it is on the wire */
    SERVER_KIND_COUNT,
};

static struct universe u;
static char folder[] = "/tmp/pccl-fuzz-server-XXXXXX", journal[64], names[64];
static uint8_t run_key[SECURE_KEY_SIZE] = {1}, issuer[TOKEN_PUBLIC_SIZE];

/* ------------------------------------------------------------------- hooks */

/* The port of its address. */
static bool is_good(const struct master_guest *guest)
{
    const char *port = strrchr(guest->address, ':');
    return port && strtoul(port + 1, NULL, 10) == u.clients[GOOD].port;
}

static bool ask(void *hook, const struct master_guest *guest, char *why,
                size_t size)
{
    (void)hook;
    bool good = is_good(guest);
    if (good) u.good_ticket = guest->ticket;
    if (good || !u.refuses) u.ticket = guest->ticket;
    if (!good && u.refuses) (void)snprintf(why, size, "not today");
    return good || !u.refuses;
}

static void told(void *hook, const struct master_guest *guest,
                 const char *event)
{
    (void)hook;
    assert(guest->address[0] && *event);
}

static void report(void *user, const char *line)
{
    (void)user;
    for (; *line; line++) assert((uint8_t)*line >= ' ');
}

static void aborted(void *user, int code, int rank)
{
    (void)user, (void)code, (void)rank;
    u.spoiled = true;
}

static void look(void *user, uint64_t id, uint64_t host, uint32_t pid)
{
    (void)user, (void)host, (void)pid;
    u.looked = id;
}

/* ------------------------------------------------------------------- server */

static struct master_server *server_open(void)
{
    char error[512] = "";
    struct master_server_options o = {.loop = u.loop,
                                      .host = u.bits & 256 ? NULL : "127.0.0.1",
                                      .deadline = 2 * PCCL_S,
                                      .quorum = u.quorum,
                                      .minimum = u.bits & 512 ? 2 : 0,
                                      .key = u.bits & 1 ? run_key : NULL,
                                      .issuer = u.bits & 2 ? issuer : NULL,
                                      .ask = u.bits & 4 ? ask : NULL,
                                      .told = u.bits & 4 ? told : NULL,
                                      .journal = u.bits & 8 ? journal : NULL,
                                      .grace = u.bits & 16 ? 4 * PCCL_S : 0,
                                      .relays = u.bits & 32,
                                      .job = u.bits & 64,
                                      .report = report,
                                      .aborted = aborted,
                                      .look = look,
                                      .warn_after =
                                          u.bits & 1024 ? PCCL_S / 10 : 0};
    (void)setenv("PCCL_INSECURE", u.bits & 128 ? "1" : "0", 1);
    u.server = master_server_open(&o, error, sizeof error);
    return u.server;
}

/* Nothing can be written meanwhile. */
static void fill_disk(bool full)
{
    struct rlimit limit = {full ? 0 : RLIM_INFINITY, RLIM_INFINITY};
    (void)signal(SIGXFSZ, SIG_IGN);
    (void)setrlimit(RLIMIT_FSIZE, &limit);
}

/* As if it had run out: a timer that has is not active any more. */
static void run_out(ev_timer *timer, bool once)
{
    if (once) ev_timer_stop(u.loop, timer);
    ev_feed_event(u.loop, timer, EV_TIMER);
}

/* What its clients had is gone: at once, or when it has waited long enough for
 * the other end of a relayed pair. */
static void server_end(void)
{
    struct master_server *s = u.server;
    fill_disk(false);
    for (uint32_t i = 0; i < CLIENTS; i++) client_close(&u.clients[i], true);
    for (uint32_t i = 0; i < TURNS_END && s->board.conn_count > 0; i++) {
        ev_run(u.loop, EVRUN_NOWAIT);
        if (i % 8 != 7) continue;
        server_now += PCCL_S / 5;
        run_out(&s->tick, true);
    }
    assert(s->board.conn_count == 0 && s->board.leg_count == 0);
    master_server_close(s);
}

static void good_connect(void)
{
    struct client *good = &u.clients[GOOD];
    enum client_way way = u.bits & 2 ? WAY_TOKEN : WAY_KEY;
    client_open(&u, good, way, 0, (u.bits & 256) != 0);
    assert(good->fd >= 0);
}

static void change_journal(int fd, struct fuzz_input *in)
{
    off_t size = lseek(fd, 0, SEEK_END);
    while (size > 0 && in->left > 2) {
        off_t at = fuzz_u16(in) % size;
        uint8_t byte = fuzz_u8(in);
        assert(pwrite(fd, &byte, 1, at) == 1);
    }
}

static void write_journal(int fd, const struct fuzz_input *in)
{
    uint8_t head[JOURNAL_HEAD_SIZE + JOURNAL_FRAME_SIZE];
    journal_form_head(head, 77);
    journal_form_frame(head + JOURNAL_HEAD_SIZE, JOURNAL_RECORD, 1, 77, in->at,
                       in->left);
    assert(ftruncate(fd, 0) == 0);
    assert(pwrite(fd, head, sizeof head, 0) == sizeof head);
    assert(pwrite(fd, in->at, in->left, sizeof head) == (ssize_t)in->left);
}

/* A journal that somebody has changed is refused, with a reason, or read. */
static void server_restart(const struct tape_record *r)
{
    struct fuzz_input in = {r->bytes, r->size};
    server_end();
    int fd = open(journal, O_RDWR | O_CLOEXEC);
    if (fd >= 0 && r->arg & 2)
        write_journal(fd, &in);
    else if (fd >= 0)
        change_journal(fd, &in);
    if (fd >= 0) (void)close(fd);
    if (!server_open()) {
        (void)unlink(journal);
        assert(server_open());
    }
    good_connect();
}

/* Another one beside it, as somebody configured it: it says why it cannot. */
static void server_second(struct fuzz_input *in)
{
    static const char *const hosts[] = {"127.0.0.1", "no address", "192.0.2.1"};
    char paths[][80] = {"", "/", "", ""}, error[512] = "";
    uint8_t bits = fuzz_u8(in);
    (void)snprintf(paths[0], sizeof paths[0], "%s", journal); /* in use */
    (void)snprintf(paths[2], sizeof paths[2], "%s/none/here", folder);
    struct master_server_options o = {.loop = u.loop,
                                      .host = hosts[bits % 3],
                                      .reserve = bits & 64 ? UINT32_MAX : 0,
                                      .quorum = bits,
                                      .revoked = bits & 128 ? folder : NULL,
                                      .journal = paths[bits >> 4 & 3]};
    struct master_server *s = master_server_open(&o, error, sizeof error);
    assert(s || error[0]);
    if (s) master_server_close(s);
}

/* -------------------------------------------------------------------- turns */

/* Others of its group may part with it. */
static void look_for_company(void)
{
    const struct master *m = &u.server->machine;
    uint32_t self = client_link(&u, &u.clients[GOOD]);
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        bool in = p->state == PEER_REGISTERED || p->state == PEER_MEMBER ||
                  p->state == PEER_DEAD;
        if (i != self && in && m->groups[p->group].number == GOOD_GROUP)
            u.spoiled = true;
    }
}

static bool anybody_waits(void)
{
    const struct master *m = &u.server->machine;
    for (uint32_t i = 0; i < m->link_end; i++)
        if (m->peers[i].state == PEER_REGISTERED ||
            m->peers[i].voted[VOTE_UPDATE])
            return true;
    return false;
}

static void good_turn(void)
{
    struct client *good = &u.clients[GOOD];
    struct crowd_mood mood = {.group = GOOD_GROUP, .votes = anybody_waits()};
    client_read(good);
    if (good->ended && !u.spoiled) {
        (void)fprintf(stderr, "the well-behaved member has ended: %s\n",
                      good->why);
        abort();
    }
    if (!good->ended) client_say_due(&u, good, &mood);
}

static void pump(void)
{
    for (uint32_t i = 0; i < TURNS; i++) {
        ev_run(u.loop, EVRUN_NOWAIT);
        if (u.good_ticket > 0)
            master_server_answer(u.server, u.good_ticket, true, "");
        u.good_ticket = 0;
        server_search();
        look_for_company();
        good_turn();
        for (uint32_t k = 1; k < CLIENTS; k++) client_read(&u.clients[k]);
    }
    assert(u.server->board.conn_count <= 2 * u.opened);
}

static void pass(const struct tape_record *r)
{
    static const struct wire_msg alive = {.type = WIRE_HEARTBEAT};
    struct fuzz_input in = {r->bytes, r->size};
    struct master_server *s = u.server;
    if (u.clients[GOOD].id != 0) client_send(&u.clients[GOOD], &alive);
    pump();
    server_now += fuzz_u16(&in) * PCCL_MS;
    if (server_now >= s->clock.due) run_out(&s->tick, true);
    if (r->arg & 1 && ev_is_active(&s->recheck)) run_out(&s->recheck, false);
    if (r->arg & 2 && ev_is_active(&s->patience)) run_out(&s->patience, false);
    fill_disk(r->arg & 4);
}

/* --------------------------------------------------------------- operators */

static void read_status(enum status_form form)
{
    struct status_writing w = {.text = NULL};
    master_server_write(u.server, form, &w);
    assert(w.text);
    for (size_t i = 0; i < w.size; i++)
        assert(w.text[i] == '\n' || (uint8_t)w.text[i] >= ' ');
    free(w.text);
}

static void revoke_names(struct fuzz_input *in)
{
    char error[200];
    FILE *file = fopen(names, "we");
    assert(file);
    for (int i = 0; i < 3; i++)
        if (fuzz_u8(in) & 1) (void)fprintf(file, "%c\n", 'a' + i);
    (void)fclose(file);
    assert(master_server_revoke(u.server, names, error, sizeof error));
}

static void operate(const struct tape_record *r)
{
    struct fuzz_input in = {r->bytes, r->size};
    switch (r->arg % 8) {
    case 0:
        master_server_set_quorum(u.server, fuzz_below(&in, 4));
        return;
    case 1:
        if (u.bits & 2) revoke_names(&in);
        return;
    case 2:
        master_server_evidence(u.server, u.looked,
                               fuzz_u8(&in) % EVIDENCE_COUNT);
        return;
    case 3:
        assert(master_server_members(u.server) +
                   master_server_pending(u.server) <=
               u.opened);
        (void)master_server_has_ended(u.server);
        (void)master_server_loss(u.server);
        return;
    case 4:
        fill_disk(false);
        server_second(&in);
        return;
    default:
        read_status((enum status_form)(r->arg % STATUS_FORMS));
    }
}

/* ----------------------------------------------------------------- addresses
 */

/* Only numeric ones: a name would be asked of others. */
static void read_address(const char *text)
{
    struct address a;
    struct io_addr addr;
    struct wire_addr wire;
    const char *why;
    if (!address_parse(text, 1, &a)) return;
    assert(strlen(a.host) < sizeof a.host);
    if (a.host[0] == '\0' || !io_addr_numeric(a.host, a.port, false, &addr))
        return;
    assert(io_addr_port(&addr) == a.port);
    (void)master_server_resolve(a.host, a.port, &wire, &why);
}

static void take_address(struct client *c, const struct tape_record *r)
{
    struct fuzz_input in = {r->bytes, r->size};
    char text[IO_ADDR_TEXT_SIZE + 64] = "";
    struct wire_addr wire = {.family = fuzz_u8(&in) % 12 / 2};
    struct io_addr addr;
    for (size_t i = 0; i < sizeof wire.ip; i++) wire.ip[i] = fuzz_u8(&in);
    wire.port = fuzz_u16(&in);
    read_address(io_addr_print(&wire, text));
    for (size_t i = 0; i < 40 && i < r->size; i++) text[i] = (char)r->bytes[i];
    text[r->size < 40 ? r->size : 40] = '\0';
    read_address(text);
    if (!io_addr_from_wire(&wire, &addr)) return;
    struct wire_addr back = io_addr_to_wire(&addr);
    assert(back.port == wire.port);
    if (c->fd < 0) return;
    io_addr_tune_early(c->fd, &addr);
    io_addr_tune(c->fd, &addr);
    io_addr_tune_high_rtt(c->fd);
    assert(io_addr_rtt(c->fd) >= 0);
    addr = io_addr_peer(c->fd);
}

/* ----------------------------------------------------------------- the tape */

static void play(const struct tape_record *r)
{
    struct fuzz_input in = {r->bytes, r->size};
    struct client *c = &u.clients[1 + r->arg % (CLIENTS - 1)];
    switch (r->kind % SERVER_KIND_COUNT) {
    case SERVER_CONNECT: {
        enum client_way way = fuzz_u8(&in) % WAY_COUNT;
        client_open(&u, c, way, fuzz_u8(&in), (u.bits & 256) && (r->arg & 128));
        return;
    }
    case SERVER_BYTES:
        client_bytes(c, r->bytes, r->size, r->arg & 128);
        return;
    case SERVER_SAY:
        client_say(&u, c, &in, r->arg & 128);
        return;
    case SERVER_DUE: {
        struct crowd_mood mood = crowd_mood(fuzz_u8(&in), &in);
        if (c->fd >= 0) client_say_due(&u, c, &mood);
        return;
    }
    case SERVER_PARTIAL:
        client_say_partial(&u, c, &in);
        return;
    case SERVER_RELAY:
        client_say_relay(&u, c, &in);
        return;
    case SERVER_RESUME:
        client_resume(&u, c, &in);
        return;
    case SERVER_CLOSE:
        client_close(c, r->arg & 128);
        return;
    case SERVER_TIME:
        pass(r);
        return;
    case SERVER_RESTART:
        server_restart(r);
        return;
    case SERVER_ANSWER:
        u.refuses = r->arg & 2;
        master_server_answer(u.server, u.ticket, r->arg & 1, "no");
        return;
    case SERVER_OPERATOR:
        operate(r);
        return;
    case SERVER_ADDRESS:
        take_address(c, r);
        return;
    default:
        return;
    }
}

static void begin(const struct tape_record *config)
{
    struct fuzz_input in = {config->bytes, config->size};
    const char *why;
    struct ev_loop *loop = u.loop;
    if (!loop) {
        assert(mkdtemp(folder));
        (void)snprintf(journal, sizeof journal, "%s/journal", folder);
        (void)snprintf(names, sizeof names, "%s/names", folder);
        loop = ev_loop_new(EVFLAG_AUTO);
        assert(loop);
    }
    memset(&u, 0, sizeof u);
    for (uint32_t i = 0; i < CLIENTS; i++) u.clients[i].fd = -1;
    u.loop = loop;
    u.quorum = 1 + config->arg % 3u;
    u.bits = fuzz_u16(&in);
    if (!secure_is_available(&why)) u.bits &= ~3u;
    if (!(u.bits & 1)) u.bits &= ~2u;
    if (u.bits & 2) assert(token_public(client_seed, issuer));
    u.run_key = run_key;
    u.spoiled = u.bits & 64; /* a job may end */
    server_now = PCCL_S;
    server_inside = true;
}

/* All that it makes lies in its folder, which goes with the process. */
static void sweep(void)
{
    char name[80];
    (void)unlink(journal);
    (void)unlink(names);
    (void)snprintf(name, sizeof name, "%s.lock", journal);
    (void)unlink(name);
    (void)snprintf(name, sizeof name, "%s.new", journal);
    (void)unlink(name);
}

static void remove_folder(void)
{
    (void)rmdir(folder);
}

/* The lowest free descriptor: the same if nothing stays open. */
static int descriptor(void)
{
    int fd = dup(STDIN_FILENO);
    if (fd >= 0) (void)close(fd);
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct fuzz_input in = {bytes, size};
    struct tape_record r = {.arg = 0, .size = 0};
    bool first = u.loop == NULL;
    if (in.left >= TAPE_HEAD && in.at[0] == SERVER_CONFIG) tape_next(&in, &r);
    begin(&r);
    if (first) (void)atexit(remove_folder);
    int before = descriptor();
    assert(server_open());
    good_connect();
    pump();
    while (tape_next(&in, &r)) {
        play(&r);
        pump();
    }
    for (int form = 0; form < STATUS_FORMS; form++)
        read_status((enum status_form)form);
    server_end();
    server_inside = false;
    sweep();
    assert(first || descriptor() == before);
    return 0;
}

/* ------------------------------------------------------------- for mutate.c */

const uint8_t tape_kinds = SERVER_KIND_COUNT;

size_t tape_make(uint8_t kind, uint64_t *random, uint8_t *to)
{
    static const uint8_t often[] = {SERVER_CONNECT, SERVER_SAY, SERVER_DUE,
                                    SERVER_DUE,     SERVER_SAY, SERVER_TIME};
    uint8_t body[64];
    uint8_t arg = (uint8_t)tape_random(random);
    size_t size = tape_pick(random, 40);
    if (tape_pick(random, 4)) kind = often[tape_pick(random, sizeof often)];
    for (size_t i = 0; i < size; i++) body[i] = (uint8_t)tape_random(random);
    if (kind == SERVER_RESTART) size = tape_pick(random, 2) * size;
    if (kind == SERVER_CONNECT) arg = (uint8_t)tape_pick(random, CLIENTS);
    if (kind == SERVER_DUE && size > 3 && tape_pick(random, 2)) body[2] %= 60;
    if (kind == SERVER_TIME && size > 1) body[1] %= 8;
    return tape_put(to, kind, arg, body, (uint16_t)size);
}

void tape_vary(uint8_t kind, uint64_t *random, uint8_t *bytes, size_t size)
{
    size_t at = tape_pick(random, (uint32_t)size);
    size_t width = (size_t)1 << tape_pick(random, 4);
    (void)kind;
    if (at + width > size) width = 1;
    tape_vary_number(random, bytes + at, width);
}
