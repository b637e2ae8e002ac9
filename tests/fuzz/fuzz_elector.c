/* fuzz_elector.c - an elector whose etcd answers anything, or not at all, and
 * whose coordinator and clock are not real: the coordinator runs only while
 * answers say that it may. And rights that are none, for a coordinator. */
#include "../../src/base/base.h"

#include <stdlib.h>
#include <unistd.h>

/* The outside of elect.c and elect_right.c. */
static pccl_ns fuzz_time(void);
static void fuzz_exit(int status);
#define host_time fuzz_time
#define _exit fuzz_exit
#include "../../src/launch/elect.c"
#include "../../src/launch/elect_right.c"
#undef _exit
#include "fuzz.h"

#include <assert.h>

enum { TURNS_MAX = 2000 };

struct elect_http {
    const struct elect_http_options *options;
};

static struct {
    struct fuzz_input in;
    pccl_ns now;
    uint32_t turns;
    uint64_t ttl_most; /* s, of all answers */
    bool exits;        /* the right was over */
} u;

static FILE *quiet;

static pccl_ns fuzz_time(void)
{
    return u.now;
}

static void fuzz_exit(int status)
{
    assert(status == EXIT_UNELECTED);
    u.exits = true;
}

/* ------------------------------------------------------------------- child */

static struct elect_right *right;
static int right_fd = -1;

bool child_open(struct elect_child *c, char **argv, bool hangs_up)
{
    (void)hangs_up;
    assert(argv && argv[0]);
    *c = (struct elect_child){.argv = argv, .right = right};
    return fuzz_u8(&u.in) != 255;
}

/* It may run for as long as a lease lasts. */
static void assert_until(pccl_ns until)
{
    assert(until > u.now && until <= u.now + (pccl_ns)u.ttl_most * PCCL_S);
}

bool child_start(struct elect_child *c, pccl_ns until, pccl_ns pace)
{
    assert(c->pid == 0 && pace > 0);
    assert_until(until);
    right_grant(right, until, pace);
    c->until = until;
    c->killed = false;
    c->status = 0;
    if (fuzz_u8(&u.in) > 250) return false;
    c->pid = 7;
    return true;
}

void child_extend(struct elect_child *c, pccl_ns until)
{
    assert(c->pid > 0 && until <= u.now + (pccl_ns)u.ttl_most * PCCL_S);
    c->until = until;
    right_extend(right, until);
}

void child_kill(struct elect_child *c)
{
    right_extend(right, 0);
    if (c->pid == 0) return;
    c->pid = 0;
    c->killed = true;
    c->status = SIGKILL;
}

/* Signals, and the end of the coordinator. */
void child_look(struct elect_child *c)
{
    uint8_t what = fuzz_u8(&u.in);
    if (++u.turns > TURNS_MAX || u.in.left == 0 || what > 252)
        c->stopping = true;
    if (c->pid > 0 && what < 24) {
        static const int statuses[] = {0, 1 << 8, EXIT_UNELECTED << 8, SIGSEGV};
        c->pid = 0;
        c->status = statuses[what % 4];
    }
    if (what & 1) atomic_store(&right->seen, u.now);
    if (what & 2) atomic_store(&right->begun, true);
    if (c->pid > 0 && u.now >= c->until) child_kill(c);
}

void child_wait(struct elect_child *c, pccl_ns until)
{
    bool runs = c->pid > 0, stopping = c->stopping;
    do {
        child_look(c);
        if (u.now >= until || (runs && c->pid == 0) || stopping != c->stopping)
            return;
        u.now = c->pid > 0 && c->until < until ? c->until : until;
    } while (true);
}

void child_close(struct elect_child *c)
{
    c->right = NULL;
}

/* -------------------------------------------------------------------- etcd */

struct elect_http *elect_http_open(const struct elect_http_options *options,
                                   char why[static HTTP_WHY_SIZE])
{
    static struct elect_http h;
    h.options = options;
    (void)snprintf(why, HTTP_WHY_SIZE, "there is none");
    return fuzz_u8(&u.in) == 255 ? NULL : &h;
}

void elect_http_close(struct elect_http *h)
{
    h->options = NULL;
}

static const char head[] = "\"header\":{\"a\":\"1\"}";

/* An answer that is right for the question, with a lease and a time of the
 * input's. */
static int answer_right(const char *url, char *text, size_t room)
{
    const char *lease = fuzz_u8(&u.in) < 220 ? "77" : "5";
    uint8_t bits = fuzz_u8(&u.in);
    uint32_t ttl = bits < 250 ? 1 + bits % 16u : 3600;
    char one[80] = "";
    if (bits < 128)
        (void)snprintf(one, sizeof one, "{\"lease\":\"%s\",\"value\":\"QQ==\"}",
                       lease);
    if (strstr(url, "/auth/"))
        return snprintf(text, room, "{%s,\"token\":\"ab.12\"}", head);
    if (strstr(url, "/lease/grant"))
        return snprintf(text, room, "{%s,\"ID\":\"%s\",\"TTL\":\"%u\"}", head,
                        lease, ttl);
    if (strstr(url, "/lease/keepalive"))
        return snprintf(text, room,
                        "{\"result\":{%s,\"ID\":\"%s\",\"TTL\":\"%u\"}}", head,
                        lease, bits == 3 ? 0 : ttl);
    if (strstr(url, "/kv/range"))
        return snprintf(text, room, "{%s,\"kvs\":[%s]}", head, one);
    if (strstr(url, "/kv/txn"))
        return snprintf(text, room,
                        "{%s,\"succeeded\":%s,\"responses\":[{"
                        "\"response_range\":{\"kvs\":[%s]}}]}",
                        head, bits & 3 ? "true" : "false", one);
    return snprintf(text, room, "{%s}", head);
}

static void answer_any(struct http_answer *a)
{
    size_t size = fuzz_u8(&u.in);
    if (size > u.in.left) size = u.in.left;
    memcpy(a->text, u.in.at, size);
    a->size = size;
    u.in.at += size;
    u.in.left -= size;
}

bool elect_http_post(struct elect_http *h, const char *url, const char *token,
                     const char *body, double seconds,
                     struct http_answer *answer, char why[static HTTP_WHY_SIZE])
{
    static const long statuses[] = {401, 503, 200, 400};
    uint8_t what = fuzz_u8(&u.in);
    assert(strncmp(url, "http", 4) == 0 && token && *body == '{');
    assert(seconds > 0);
    answer->status = 200;
    answer->size = 0;
    u.now += (pccl_ns)(what % 8) * PCCL_S / 4;
    if (!h->options->look(h->options->user)) {
        (void)snprintf(why, HTTP_WHY_SIZE, "was broken off");
        return false;
    }
    if (what < 16) {
        (void)snprintf(why, HTTP_WHY_SIZE, "nobody answers");
        return false;
    }
    if (what < 40) {
        answer->status = statuses[what % 4];
        answer->size = (size_t)snprintf(answer->text, sizeof answer->text,
                                        "{\"error\":\"denied\",\"code\":7}");
    } else if (what < 56) {
        answer_any(answer);
    } else {
        answer->size =
            (size_t)answer_right(url, answer->text, sizeof answer->text);
    }
    /* A time that the answer may have, if it was read at all. */
    u.ttl_most = (uint64_t)ETCD_TTL_MAX * 2;
    return true;
}

/* ------------------------------------------------------------------ rights */

/* What an operator, or anybody, has at that descriptor. */
static void take(struct fuzz_input *in)
{
    uint8_t bits = fuzz_u8(in);
    int fd = memfd_create("right", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    struct elect_right made = {.mark = RIGHT_MARK, .until = fuzz_u16(in)};
    if (bits & 1) made.mark = fuzz_u64(in);
    assert(fd >= 0);
    (void)!write(fd, &made, bits & 2 ? sizeof made : sizeof made - 1);
    if (bits & 4) (void)fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK);
    bool taken = right_take(bits & 8 ? fd : -1);
    assert(!taken || (bits & 2 && bits & 4 && made.mark == RIGHT_MARK));
    if (fcntl(fd, F_GETFD) != -1) (void)close(fd);
    if (!taken) return;
    struct ev_loop *loop = ev_default_loop(0);
    static bool begun;
    u.exits = false;
    if (!begun) right_begin(loop);
    begun = true;
    u.now = fuzz_u16(in);
    on_time(NULL, NULL, 0);
    right_check(NULL);
    assert(u.exits == (u.now >= atomic_load(&held->until)));
    ev_run(loop, EVRUN_NOWAIT);
    (void)munmap(held, sizeof *held);
    held = NULL;
}

static char account[32]; /* a file */

static void begin(void)
{
    static const char text[] = "user me\npassword it is\n";
    int fd = memfd_create("account", MFD_CLOEXEC);
    if (fchmod(fd, 0600) != 0) abort();
    if (write(fd, text, sizeof text - 1) != (ssize_t)sizeof text - 1) abort();
    (void)snprintf(account, sizeof account, "/proc/self/fd/%d", fd);
    quiet = fopen("/dev/null", "w");
    right = right_make(&right_fd);
    if (!quiet || !right) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const char *const places[] = {"http://a:1/run", "https://a:1,b:2/r",
                                         "http://a:1,b:2,c:3/run-7", "a/b",
                                         "http://a:1"};
    char word[] = "pccl-master", *argv[] = {word, NULL};
    struct options o = {.elect = NULL};
    int status = -1;
    if (!quiet) begin();
    u.in = (struct fuzz_input){bytes, size};
    u.turns = 0;
    uint8_t bits = fuzz_u8(&u.in);
    if (bits % 8 == 7) {
        take(&u.in);
        return 0;
    }
    u.now = 1000 * PCCL_S;
    u.ttl_most = 0;
    o.elect = places[bits / 8 % ARRAY_COUNT(places)];
    o.elect_ttl = bits & 1 ? 0 : ETCD_TTL_MIN + bits;
    o.listen.port = bits;
    o.elect_auth = bits & 2 ? account : NULL;
    if (bits & 4) (void)snprintf(o.listen.host, sizeof o.listen.host, "h");
    FILE *error = stderr;
    stderr = quiet;
    o.elected = bits == 8;
    o.elected_fd = -1;
    bool ends = elect_ends(&o, argv, &status);
    stderr = error;
    assert(ends && status >= 0 && status < 256);
    return 0;
}
