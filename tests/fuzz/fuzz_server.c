/* fuzz_server.c - plays a tape on the coordinator's driver: sockets of
 * loopback, its loop, its journal, its thread that searches rings; the time is
 * the tape's. The other ends are members, strangers, and those who have a key.
 *
 * Nothing that one of them says ends the server, or breaks what another one is
 * told: all that arrives can be decoded. */
#include "server_clients.h"

#include "../../src/base/host.h"
#include "../../src/base/secure_token.h"

#include <assert.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    BEGUN = 1 << 20, /* s since 1970: tokens hold */
    HOLDS = 1000,    /* s: a token that ends */
};

/* A record of the coordinator's tapes (tape.h), or one of these. */
enum server_kind {
    SERVER_WORDS = COORD_RECORDED, /* of a stranger; argument: which ones */
    SERVER_AGAIN,                  /* another one with the same journal */
    SERVER_ANSWER, /* of the hook; argument: whether; else the names revoked */
    SERVER_CROWD,  /* members that answer what they are told, all at once;
                      argument: their number */
    SERVER_VOTE,   /* of all of them; argument: kind, or 128 and more: they
                      lack links */
    SERVER_DISK,   /* argument: 0: full, 1: not, 2: another one has the journal,
                      3: there is no such folder, 4: it has no name */
    SERVER_WAIT,   /* the crowd but its first member waits; argument: in what */
    SERVER_KIND_COUNT,
};

static struct client clients[CLIENTS];
uint8_t server_key[SECURE_KEY_SIZE] = {1};
struct secure_psk server_tokens[2];

static uint8_t seed[TOKEN_SEED_SIZE] = {2};
static uint8_t issuer[TOKEN_PUBLIC_SIZE];
static char journal[64], revoked[64];
static pccl_ns fuzz_now;

pccl_ns __wrap_host_time(void);
pccl_ns __wrap_host_time(void)
{
    return fuzz_now;
}

time_t __wrap_time(time_t *at);
time_t __wrap_time(time_t *at)
{
    time_t now = BEGUN + fuzz_now / PCCL_S;
    if (at) *at = now;
    return now;
}

/* -------------------------------------------------------------- the server */

static void on_line(void *user, const char *line)
{
    (void)user;
    assert(line[0] != '\0' && !strchr(line, '\n'));
}

static void on_abort(void *user, int code, int rank)
{
    struct universe *u = user;
    (void)code;
    (void)rank;
    u->aborted = true;
}

static bool ask(void *hook, const struct master_guest *guest, char *why,
                size_t size)
{
    struct universe *u = hook;
    u->ticket = guest->ticket;
    if (guest->group != 13) return true;
    snprintf(why, size, "no group has that number");
    return false;
}

static void told(void *hook, const struct master_guest *guest,
                 const char *event)
{
    (void)hook;
    assert(guest->address[0] != '\0' && event[0] != '\0');
}

static void open_server(struct universe *u)
{
    char error[512] = "";
    u->options.loop = u->loop;
    u->server = master_server_open(&u->options, error, sizeof error);
    /* It names what is wrong with a journal, or the machine lacks memory. */
    assert(u->server || error[0] != '\0');
}

enum bits { /* of a configuration; the first three are recorded */
            BIT_JOB = 1,
            BIT_RELAYS = 2,
            BIT_GRACE = 4,
            BIT_KEY = 8,
            BIT_TOKENS = 16,
            BIT_HOOK = 32,
            BIT_JOURNAL = 64,
            BIT_MINIMUM = 128,
            BITS_AT = 19, /* byte of its record */
};

static void configure(struct universe *u, const struct tape_record *config)
{
    struct fuzz_input in = {config->bytes, config->size};
    for (int i = 0; i < 17; i++) (void)fuzz_u8(&in);
    pccl_ns deadline = (fuzz_u16(&in) + 1) * PCCL_MS;
    uint8_t bits = fuzz_u8(&in);
    bool tokens_asked = (bits & BIT_KEY) && (bits & BIT_TOKENS);
    u->options = (struct master_server_options){
        .host = config->arg & 64 ? NULL : "127.0.0.1",
        .deadline = deadline,
        .quorum = config->arg % 8u,
        .minimum = bits & BIT_MINIMUM ? config->arg % 8u : 0,
        .reserve = config->arg >= 128 ? 1 << 24 : 0, /* there are too few */
        .key = bits & BIT_KEY ? server_key : NULL,
        .issuer = tokens_asked ? issuer : NULL,
        .revoked = tokens_asked ? revoked : NULL,
        .hook = u,
        .ask = bits & BIT_HOOK ? ask : NULL,
        .told = told,
        .journal = bits & BIT_JOURNAL ? journal : NULL,
        .relays = bits & BIT_RELAYS,
        .job = bits & BIT_JOB,
        .grace = bits & BIT_GRACE ? 2 * deadline : 0,
        .user = u,
        .report = on_line,
        .aborted = on_abort,
        .warn_after = PCCL_S};
}

/* ------------------------------------------------------------------ records */

static void pass_time(struct universe *u, pccl_ns by)
{
    struct master_server *s = u->server;
    fuzz_now += by;
    ev_timer *timers[] = {&s->tick, &s->recheck, &s->patience};
    for (size_t i = 0; i < ARRAY_COUNT(timers); i++) {
        bool due = i > 0 || s->clock.due <= fuzz_now;
        if (!ev_is_active(timers[i]) || !due) continue;
        if (i == 0) ev_timer_stop(u->loop, timers[i]);
        ev_invoke(u->loop, timers[i], EV_TIMER);
    }
}

static void stranger(struct client *c, uint8_t which)
{
    static const char *const words[] = {
        "GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\x00\x05hello",
        "SSH-2.0-OpenSSH_9.2\r\n", "\x15\x03\x03\x00\x02\x02\x28",
        "POST /status HTTP/1.0\r\n\n"};
    struct wire_msg msg = {.type = WIRE_STATUS_GET};
    if (which < ARRAY_COUNT(words)) {
        const uint8_t *text = (const uint8_t *)words[which];
        client_write(c, text, strlen(words[which]));
        return;
    }
    msg.status.json = which & 1;
    if (which % 4 == 2) msg.type = WIRE_OFFERS_GET;
    if (which % 4 == 3) msg.type = WIRE_ABORT;
    client_say(c, &msg);
}

static void close_server(struct universe *u)
{
    if (u->server) master_server_close(u->server);
    u->server = NULL;
    for (int i = 0; i < CLIENTS; i++) client_close(&u->clients[i]);
}

/* Somebody else has written into the journal. */
static void spoil(const struct tape_record *r)
{
    int fd = r->size > 0 ? open(journal, O_WRONLY | O_CLOEXEC) : -1;
    if (fd < 0) return;
    (void)!pwrite(fd, r->bytes, r->size, 16 * r->arg);
    close(fd);
}

static void decide(struct universe *u, const struct tape_record *r)
{
    char error[256] = "";
    if (r->arg < 128) {
        master_server_answer(u->server, u->ticket, r->arg & 1, "not today");
        return;
    }
    FILE *file = fopen(revoked, "w");
    assert(file);
    if (r->arg & 1) fputs("# who has left\nalice\n", file);
    (void)fwrite(r->bytes, 1, r->size, file);
    fclose(file);
    if (u->options.issuer &&
        !master_server_revoke(u->server, revoked, error, sizeof error))
        assert(error[0] != '\0');
}

static void fill_disk(bool full)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0) abort();
    limit.rlim_cur = full ? 0 : limit.rlim_max;
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) abort();
}

static void disk(struct universe *u, uint8_t how)
{
    struct master_server_options options = u->options;
    char error[512] = "";
    options.reserve = 0;
    options.revoked = NULL;
    fill_disk(how == 0);
    if (how < 2) return;
    if (how == 3) options.journal = "/proc/no-such-folder/journal";
    if (how == 4) options.journal = "/";
    if (!options.journal) return;
    assert(!master_server_open(&options, error, sizeof error));
    assert(strncmp(error, "journal ", 8) == 0);
}

/* The thread that searches rings may have an answer. */
static void await_search(struct universe *u)
{
    for (int i = 0; i < 50; i++) {
        sched_yield();
        ev_run(u->loop, EVRUN_NOWAIT);
    }
}

static void play(struct universe *u, const struct tape_record *r)
{
    struct fuzz_input in = {r->bytes, r->size};
    struct client *c = &u->clients[r->arg % CLIENTS];
    switch (r->kind % SERVER_KIND_COUNT) {
    case COORD_CONNECTED:
        client_open(u, c, fuzz_u8(&in));
        return;
    case COORD_RECEIVED:
        if (c->fd <= 0) client_open(u, c, 0);
        client_write(c, r->bytes, r->size);
        return;
    case COORD_CLOSED:
        client_close(c);
        return;
    case COORD_TICK:
        pass_time(u, fuzz_u32(&in));
        return;
    case COORD_QUORUM:
        master_server_set_quorum(u->server, r->arg % 8u);
        return;
    case COORD_SEARCHED:
        await_search(u);
        return;
    case COORD_EVIDENCE:
        master_server_evidence(u->server, fuzz_u64(&in),
                               r->arg % EVIDENCE_COUNT);
        return;
    case SERVER_WORDS:
        if (c->fd <= 0) client_open(u, c, 7);
        stranger(c, fuzz_u8(&in) % 12);
        return;
    case SERVER_AGAIN:
        close_server(u);
        spoil(r);
        open_server(u);
        return;
    case SERVER_ANSWER:
        decide(u, r);
        return;
    case SERVER_WAIT:
        crowd_waits(u, r);
        return;
    case SERVER_DISK:
        disk(u, r->arg % 5);
        return;
    case SERVER_CROWD:
        crowd_join(u, r);
        return;
    case SERVER_VOTE:
        if (r->arg < 128)
            crowd_vote(u, r->arg);
        else
            crowd_lacks_links(u);
        clients_settle(u);
        await_search(u);
        return;
    default:
        return;
    }
}

static void prepare(void)
{
    struct token token = {
        .grant = {.name = "alice", .rights = GRANT_JOIN | GRANT_OBSERVE},
        .issued = BEGUN};
    const char *folder = getenv("TMPDIR");
    snprintf(journal, sizeof journal, "%s/fuzz-server-journal.%d",
             folder && strlen(folder) < 20 ? folder : "/tmp", (int)getpid());
    snprintf(revoked, sizeof revoked, "%s/fuzz-server-revoked.%d",
             folder && strlen(folder) < 20 ? folder : "/tmp", (int)getpid());
    if (!token_public(seed, issuer)) abort();
    if (!token_issue(&token, seed, server_key, &server_tokens[0])) abort();
    snprintf(token.grant.name, sizeof token.grant.name, "bob");
    token.grant.rights = GRANT_OBSERVE;
    token.expires = BEGUN + HOLDS;
    if (!token_issue(&token, seed, server_key, &server_tokens[1])) abort();
    (void)setenv("PCCL_LOG_LEVEL", "NONE", 1);
    (void)signal(SIGXFSZ, SIG_IGN);
}

static void write_empty(const char *path)
{
    FILE *file = fopen(path, "w");
    assert(file);
    fclose(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct universe u;
    static bool prepared;
    struct fuzz_input in = {bytes, size};
    struct tape_record r = {.arg = 2, .size = 0};
    if (!prepared) prepare();
    prepared = true;
    struct ev_loop *loop = u.loop;
    if (!loop) loop = ev_loop_new(EVFLAG_AUTO);
    u = (struct universe){.loop = loop, .clients = clients};
    assert(loop);
    fuzz_now = PCCL_S;
    write_empty(revoked);
    (void)unlink(journal);
    if (in.left >= TAPE_HEAD && in.at[0] == COORD_CONFIG) tape_next(&in, &r);
    configure(&u, &r);
    open_server(&u);
    while (u.server && tape_next(&in, &r)) {
        play(&u, &r);
        clients_settle(&u);
    }
    for (int form = 0; u.server && form < STATUS_FORMS; form++) {
        struct status_writing w;
        master_server_write(u.server, (enum status_form)form, &w);
        assert(w.text);
        free(w.text);
    }
    close_server(&u);
    fill_disk(false);
    (void)unlink(journal);
    (void)unlink(revoked);
    return 0;
}

/* ------------------------------------------------------------- for mutate.c */

const uint8_t tape_kinds = SERVER_KIND_COUNT;

size_t tape_make(uint8_t kind, uint64_t *random, uint8_t *to)
{
    static const uint8_t often[] = {COORD_CONNECTED, SERVER_WORDS, COORD_TICK,
                                    SERVER_ANSWER,   SERVER_CROWD, SERVER_VOTE};
    uint8_t body[32];
    uint8_t arg = (uint8_t)tape_random(random);
    size_t size = tape_pick(random, sizeof body);
    if (tape_pick(random, 2)) kind = often[tape_pick(random, sizeof often)];
    for (size_t i = 0; i < size; i++) body[i] = (uint8_t)tape_random(random);
    if (kind == COORD_TICK) body[3] &= 0x3f;
    return tape_put(to, kind, arg, body, (uint16_t)size);
}

void tape_vary(uint8_t kind, uint64_t *random, uint8_t *bytes, size_t size)
{
    if (kind == COORD_CONFIG && size > BITS_AT)
        bytes[BITS_AT] ^= (uint8_t)(1 << tape_pick(random, 8));
    else if (size > 0)
        bytes[tape_pick(random, (uint32_t)size)] = (uint8_t)tape_random(random);
}
