/* fuzz_remote.c - any frames of an agent into the launcher, whose command that
 * reaches the agent is not real. */
#include "../../src/launch/proc.h"
#include "../../src/launch/rank_env.h"
#include "fuzz.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* The outside of remote.c. */
static int fuzz_start(struct proc *proc, const struct proc_request *request,
                      char *error, size_t error_size);
static void fuzz_kill(struct proc *proc);
static void fuzz_signal(const struct proc *proc, int number);
static void fuzz_wait(struct sink *sink, struct sink_waiter *waiter);
static void fuzz_wait_end(struct sink *sink, struct sink_waiter *waiter);

#define proc_start fuzz_start
#define proc_kill fuzz_kill
#define proc_signal fuzz_signal
#define sink_wait fuzz_wait
#define sink_wait_end fuzz_wait_end
#include "../../src/launch/remote.c"

enum { FRAME_ROOM = 4096 };

struct universe {
    struct remote *remote;
    struct proc *proc;
    struct sink sink;
    struct sink_waiter *waiter;
    int in, out; /* the ends of the command, or -1 */
    uint32_t ready, lost;
    bool full; /* the launcher has no room for a frame */
};

static struct universe u;

static int fuzz_start(struct proc *proc, const struct proc_request *request,
                      char *error, size_t error_size)
{
    assert(request->spawn.argc > 0 &&
           request->spawn.argv[request->spawn.argc] == NULL);
    for (int i = 0; i < request->spawn.argc; i++)
        assert(request->spawn.argv[i]);
    if (u.full) {
        snprintf(error, error_size, "no luck");
        return EXIT_FAILURE;
    }
    u.in = fcntl(request->spawn.in, F_DUPFD_CLOEXEC, 3);
    u.out = fcntl(request->spawn.out, F_DUPFD_CLOEXEC, 3);
    (void)fcntl(u.in, F_SETPIPE_SZ, 4096);
    (void)fcntl(u.in, F_SETFL, O_NONBLOCK);
    (void)fcntl(u.out, F_SETFL, O_NONBLOCK);
    proc->alive = true;
    u.proc = proc;
    return 0;
}

static void fuzz_kill(struct proc *proc)
{
    proc->alive = false;
}

static void fuzz_signal(const struct proc *proc, int number)
{
    (void)proc;
    (void)number;
}

static void fuzz_wait(struct sink *sink, struct sink_waiter *waiter)
{
    assert(sink == &u.sink && !u.waiter);
    u.waiter = waiter;
}

static void fuzz_wait_end(struct sink *sink, struct sink_waiter *waiter)
{
    assert(sink == &u.sink && waiter == u.waiter);
    u.waiter = NULL;
}

/* ------------------------------------------------------------- the launcher */

static void is_ready(void *user, const char *master)
{
    (void)user;
    assert(u.ready++ == 0 && u.lost == 0 && master);
}

static void is_lost(void *user, const char *why)
{
    (void)user;
    assert(u.lost++ == 0 && why);
}

static bool takes(void *user, const struct link_frame *frame)
{
    struct link_texts texts = {.bytes = (char *)(uintptr_t)frame->bytes,
                               .size = frame->size};
    (void)user;
    assert(u.lost == 0 && frame->size <= LINK_FRAME_MAX);
    if (u.full) {
        remote_wait(u.remote, &u.sink);
        return false;
    }
    while (link_get(&texts)) continue;
    return true;
}

static void has_room(void)
{
    struct sink_waiter *waiter = u.waiter;
    u.full = false;
    u.waiter = NULL;
    if (waiter) waiter->go(waiter);
}

/* Its calls, and what happens to the command. */
static void launcher(uint8_t what, struct ev_loop *loop)
{
    static const char input[100 * 1024];
    switch (what % 8) {
    case 0:
        remote_send(u.remote, LINK_INPUT, what, input, sizeof input);
        break;
    case 1:
        remote_send_number(u.remote, LINK_SIGNAL, what, what);
        break;
    case 2:
        beat(loop, &u.remote->beat, 0);
        break;
    case 3:
        u.full = true;
        break;
    case 4:
        has_room();
        break;
    case 5:
        u.proc->alive = false;
        u.proc->news = true;
        u.proc->wait_status = what & 8 ? EXIT_FAILURE << 8 : SIGKILL;
        remote_settle(u.remote);
        break;
    case 6:
        remote_finish(u.remote);
        break;
    default:
        remote_give_up(u.remote);
        break;
    }
    (void)remote_is_gone(u.remote);
}

/* ---------------------------------------------------------------- the agent */

static void reads(void)
{
    static char bytes[4096];
    ssize_t ignored = u.in < 0 ? 0 : read(u.in, bytes, sizeof bytes);
    (void)ignored;
}

static void end(int *fd)
{
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

static void writes(const void *bytes, size_t size)
{
    ssize_t ignored = u.out < 0 ? 0 : write(u.out, bytes, size);
    (void)ignored;
}

/* A frame of the kind that the next bytes choose. */
static void says(struct fuzz_input *in)
{
    char frame[FRAME_ROOM];
    uint8_t kind = fuzz_u8(in);
    uint8_t bits = fuzz_u8(in);
    size_t size = bits >> 2;
    if (bits == 255) size = FRAME_ROOM - LINK_HEADER;
    memset(frame, bits & 1 ? '1' : 0, sizeof frame);
    for (size_t i = 0; i < size && i < in->left && bits & 2; i++)
        frame[LINK_HEADER + i] = (char)in->at[i];
    if (size > 0 && kind & 64) frame[LINK_HEADER + size - 1] = '\0';
    unsigned type = kind & 128 ? kind % 32u : LINK_READY + kind % 11u;
    link_header(frame, (enum link_type)type, bits % 3, size);
    writes(frame, LINK_HEADER + size);
}

static void turn(struct fuzz_input *in, struct ev_loop *loop)
{
    static const char magic[] = LINK_MAGIC;
    uint8_t what = fuzz_u8(in);
    size_t size = what / 8 < in->left ? what / 8 : in->left;
    switch (what % 8) {
    case 0: /* anything */
        writes(in->at, size);
        in->at += size;
        in->left -= size;
        break;
    case 1:
        writes(magic, what < 128 ? sizeof magic - 1 : 5);
        break;
    case 2:
        launcher(what / 8, loop);
        break;
    case 3:
        reads();
        if (what / 8 == 31) end(&u.in);
        if (what / 8 == 30) end(&u.out);
        break;
    default:
        says(in);
        break;
    }
    ev_run(loop, EVRUN_NOWAIT);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct fuzz_input in = {bytes, size};
    struct ev_loop *loop = ev_default_loop(0);
    struct link_texts addresses = {0};
    struct options options = {.launcher_exec = "rsh -x"};
    char error[200];
    signal(SIGPIPE, SIG_IGN);
    link_put(&addresses, "127.0.0.1:80");
    uint8_t bits = fuzz_u8(&in);
    if (bits & 1) options.launcher_exec = NULL;
    if (bits & 2) options.launcher = LAUNCHER_SLURM;
    if (bits & 4) options.agent = "/opt/pccl-master";
    if (bits & 8) options.prefix = "/opt/a b";
    u = (struct universe){.in = -1, .out = -1, .full = bits == 255};
    const struct remote_setup setup = {
        .loop = loop,
        .guard_fd = -1,
        .host = "h",
        .options = &options,
        .err = &u.sink,
        .fixed = bits >> 4 & 1,
        .addresses = &addresses,
        .events = {.ready = is_ready, .lost = is_lost, .on_frame = takes}};
    u.remote = remote_open(&setup, error, sizeof error);
    while (u.remote && in.left > 0) turn(&in, loop);
    if (u.remote) remote_close(u.remote);
    assert(!u.waiter);
    end(&u.in);
    end(&u.out);
    free(addresses.bytes);
    return 0;
}
