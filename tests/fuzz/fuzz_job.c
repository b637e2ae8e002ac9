/* fuzz_job.c - a job of the launcher: what its ranks print and how they end,
 * what agents of other hosts say, what it is asked, its own input, and readers
 * of its output that are slow or gone. Processes and the coordinator are not
 * real: job_outside.h. */
#include "../../src/launch/job_rank.h"
#include "../../src/launch/options.h"
#include "../../src/launch/reach.h"
#include "../../src/base/descriptors.h"
#include "fuzz.h"
#include "job_outside.h"

#include <assert.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The outside of the agents: their commands are seen here. */
#include "../../src/launch/remote.c"

enum { WORDS_MAX_HERE = 80, STARTS = 4, FRAME_ROOM = 70000 };

static char folder[] = "/dev/shm/pccl-job-XXXXXX"; /* of files of the ranks */
static bool is_over;

/* The loop is asked to end. */
void __wrap_ev_break(struct ev_loop *loop, int how);
void __wrap_ev_break(struct ev_loop *loop, int how)
{
    (void)loop, (void)how;
    is_over = true;
}

/* ----------------------------------------------------------- its options */

static char files[3][64]; /* patterns of files of ranks */

static const char *const choices[][4] = {
    {"-elastic", "1:6"},
    {"-respawn"},
    {"-spares", "1"},
    {"-restart", "2,0"},
    {"-l"},
    {"-merge-stderr-to-stdout"},
    {"-s", "all"},
    {"-s", "1"},
    {"-timeout", "5"},
    {"-outfile-pattern", files[0]},
    {"-errfile-pattern", files[1]},
    {"-output-filename", files[2]},
    {"-hosts", "localhost,far:2"},
    {"-hosts", "far,other:2"},
    {"-print-all-exitcodes"},
    {"-report-bindings"},
    {"-bind-to", "core"},
    {"-map-by", "ppr:1:core"},
    {"-timestamp-output"},
    {"-launcher", "fork"},
    {"-genv", "A", "1"},
    {"-genvnone"},
    {"-genvlist", "HOME,A"},
    {"-usize", "9"},
    {"--deadline", "2"},
    {"-prepend-pattern", "%r@%h%%: "},
    {"-path", "/bin"},
    {"-wdir", "/nonexistent"},
    {"-peer-ports", "1000-1010"},
    {"-elastic=force"},
    {"-quorum", "2"},
    {"-join", "127.0.0.1:1"},
};

static bool options_make(struct options *o, struct fuzz_input *in)
{
    static const char *const programs[] = {"true", "cat", "not-there",
                                           "/proc/self/exe", "./true"};
    static char *argv[WORDS_MAX_HERE]; /* the options refer to it */
    int argc = 0;
    uint32_t chosen = fuzz_u32(in);
    if (fuzz_u8(in) & 3) chosen &= fuzz_u32(in);
    uint8_t last = fuzz_u8(in);
    argv[argc++] = strdup("pccl-master");
    for (size_t i = 0; i < ARRAY_COUNT(choices); i++)
        for (int k = 0; chosen >> i & 1 && choices[i][k]; k++)
            argv[argc++] = strdup(choices[i][k]);
    argv[argc++] = strdup("-n");
    argv[argc++] = strdup(last & 1 ? "3" : "2");
    argv[argc++] = strdup(programs[last / 4 % ARRAY_COUNT(programs)]);
    if (last & 2) {
        argv[argc++] = strdup(":");
        argv[argc++] = strdup("-n");
        argv[argc++] = strdup("1");
        argv[argc++] = strdup("true");
    }
    struct options_environment none = {.srun = false};
    bool good = options_parse(o, argc, argv) && options_complete(o, &none) &&
                o->mode == MODE_LAUNCH;
    words_keep(argv, argc);
    return good;
}

/* -------------------------------------------------------------- processes */

static const char *const lines[] = {
    "a line\n",
    "half of one",
    "\n",
    "Abort(7) on node 1\n",
    "Fatal error in PMPI_Send: \n",
    "x\ny\nz",
    "",
};

static void print(struct fuzz_input *in, int fd)
{
    static char big[LINE_SIZE + 10];
    uint8_t which = fuzz_u8(in);
    if (fd < 0) return;
    if (which == 255) {
        memset(big, 'b', sizeof big);
        (void)!write(fd, big, sizeof big);
        return;
    }
    const char *line = lines[which % ARRAY_COUNT(lines)];
    (void)!write(fd, line, strlen(line));
}

static int status_take(struct fuzz_input *in)
{
    static const int statuses[] = {
        0, 0, 0, 1 << 8, 101 << 8, SIGKILL, SIGTERM, SIGSEGV | 128, 127 << 8};
    return statuses[fuzz_u8(in) % ARRAY_COUNT(statuses)];
}

static struct proc *proc_of(struct job *job, pid_t pid)
{
    for (uint32_t i = 0; i < job->count; i++) {
        struct rank *rank = &job->ranks[i];
        if (!rank->host || rank->host->remote) continue;
        if (rank->proc.alive && rank->proc.pid == pid) return &rank->proc;
    }
    for (uint32_t i = 0; i < job->host_count; i++) {
        struct remote *remote = job->hosts[i].remote;
        if (remote && remote->proc.alive && remote->proc.pid == pid)
            return &remote->proc;
    }
    return NULL;
}

static void process(struct job *job, struct fuzz_input *in)
{
    uint8_t what = fuzz_u8(in);
    struct outside_process *p = outside_process(what / 8u);
    if (!p) return;
    struct proc *proc = proc_of(job, p->pid);
    switch (what % 8) {
    case 0:
    case 1:
        if (!proc) break;
        proc->child.rstatus = status_take(in);
        ev_feed_event(job->setup.loop, &proc->child, EV_CHILD);
        outside_leave(p, !(what & 32)); /* else a child of it holds the pipes */
        break;
    case 2:
        if (p->in >= 0) (void)!read(p->in, (char[4096]){0}, 4096);
        break;
    case 3:
        if (p->in >= 0 && p->in != STDIN_FILENO) close(p->in);
        p->in = -1;
        break;
    default:
        print(in, what & 32 ? p->out : p->err);
        break;
    }
}

/* ----------------------------------------------------------------- agents */

static void texts(struct fuzz_input *in, struct link_texts *to)
{
    static const char *const some[] = {
        "0",         "1",  "256",          "9",
        "65536",     "-1", "127.0.0.1:80", "x",
        "143",       "",   "25728",        "9223372036854775807",
        "4294967298"};
    uint32_t count = fuzz_below(in, 4);
    for (uint32_t i = 0; i < count; i++)
        link_put(to, some[fuzz_below(in, ARRAY_COUNT(some))]);
}

static void send_frame(int fd, unsigned type, uint32_t rank,
                       const struct link_texts *body)
{
    static char frame[FRAME_ROOM];
    link_header(frame, (enum link_type)type, rank, body->size);
    if (body->size > 0) memcpy(frame + LINK_HEADER, body->bytes, body->size);
    (void)!write(fd, frame, LINK_HEADER + body->size);
}

static void begins(int fd)
{
    static const char magic[] = LINK_MAGIC;
    static const char address[] = "127.0.0.1:80";
    struct link_texts body = {.bytes = (char *)(uintptr_t)address,
                              .size = sizeof address};
    (void)!write(fd, magic, sizeof magic - 1);
    send_frame(fd, LINK_READY, 0, &body);
}

static void says(struct fuzz_input *in, int fd)
{
    struct link_texts body = {0};
    uint8_t kind = fuzz_u8(in), bits = fuzz_u8(in);
    if (fd < 0) return;
    if (kind < 8) {
        begins(fd);
        return;
    }
    unsigned type = LINK_READY + kind % 11u;
    if (type == LINK_OUT || type == LINK_ERR) {
        const char *line = lines[bits / 5 % ARRAY_COUNT(lines)];
        body.size = bits == 255 ? LINE_SIZE : strlen(line);
        body.bytes = memory_get(LINE_SIZE, 1);
        memcpy(body.bytes, line, strlen(line));
    } else {
        texts(in, &body);
    }
    send_frame(fd, type, bits % 5, &body);
    free(body.bytes);
}

static void agents_begin(const struct job *job)
{
    for (uint32_t i = 0; i < job->host_count; i++) {
        const struct remote *remote = job->hosts[i].remote;
        if (remote) begins(outside_by_pid(remote->proc.pid)->out);
    }
}

static void agent(struct job *job, struct fuzz_input *in)
{
    uint8_t which = fuzz_u8(in);
    for (uint32_t i = 0; i < job->host_count; i++) {
        struct remote *remote =
            job->hosts[(i + which) % job->host_count].remote;
        struct outside_process *p =
            remote ? outside_by_pid(remote->proc.pid) : NULL;
        if (!p) continue;
        if (which < 240) {
            says(in, p->out);
        } else if (which < 248) {
            remote->link.heartbeats = 5;
            remote->link.last_recv = 1;
        } else {
            beat(job->setup.loop, &remote->beat, 0);
        }
        return;
    }
}

/* ------------------------------------------------------------------- time */

static void timer(struct job *job, ev_timer *t)
{
    if (!ev_is_active(t)) return;
    if (t->repeat <= 0.) ev_timer_stop(job->setup.loop, t);
    ev_feed_event(job->setup.loop, t, EV_TIMER);
}

static void time_passes(struct job *job, struct fuzz_input *in)
{
    uint8_t what = fuzz_u8(in);
    if (what % 4 != 0) {
        timer(job, &job->timers[what / 4 % JOB_TIMERS]);
        return;
    }
    for (uint32_t i = 0; i < job->count; i++) {
        struct rank *rank = &job->ranks[i];
        if (!rank->host) continue;
        timer(job, &rank->respawn);
        if (rank->host->remote) continue;
        rank->proc.sweep_until = what & 4 ? 0. : rank->proc.sweep_until;
        timer(job, &rank->proc.sweep);
        if (rank->proc.out.sink) timer(job, &rank->proc.out.quiet);
    }
}

/* ------------------------------------------------------------------ people */

static void asked(struct job *job, struct fuzz_input *in)
{
    static const char *const words[] = {
        "0", "1", "7", "far", "", "localhost", "1x", "18446744073709551617"};
    char text[100], answer[200] = "";
    uint8_t what = fuzz_u8(in);
    (void)snprintf(text, sizeof text, "%s%s", what & 8 ? "" : "drain ",
                   words[what / 16 % ARRAY_COUNT(words)]);
    switch (what % 8) {
    case 0:
        job_abort(job, fuzz_u8(in) == 0 ? EXIT_AFTER_LOSS : (int)fuzz_u16(in),
                  what / 8);
        break;
    case 1:
        job_look(job, what, what, what);
        break;
    case 2:
    case 3:
        what = what / 8 % JOB_SIGNALS;
        /* This one would stop us. */
        if (job->signals[what].signum == SIGTSTP) break;
        if (!ev_is_active(&job->signals[what])) break;
        ev_feed_event(job->setup.loop, &job->signals[what], EV_SIGNAL);
        break;
    default:
        job_request(job, text, answer, sizeof answer);
        assert(*answer == '+' || *answer == '-');
        break;
    }
}

/* The other ends of our input and output. */
static struct {
    int in;     /* -1: it is closed */
    int out[2]; /* likewise */
    struct sink sinks[2];
} world;

static void end(int *fd)
{
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

static void other_ends(struct fuzz_input *in)
{
    static char bytes[64 * 1024];
    uint8_t what = fuzz_u8(in);
    int which = what >> 7;
    switch (what % 8) {
    case 0:
        if (world.out[which] >= 0)
            (void)!read(world.out[which], bytes, sizeof bytes);
        break;
    case 1:
        if (what > 64) end(&world.out[which]);
        break;
    case 2:
        end(&world.in);
        break;
    default:
        if (world.in >= 0) (void)!write(world.in, bytes, what * 64);
        break;
    }
}

static void coordinator(uint8_t what)
{
    outside.members = what & 3;
    outside.pending = what >> 2 & 3;
    outside.ended = what >> 4 & 1;
    outside.lost = what >> 5 & 1;
}

static void turn(struct job *job, struct fuzz_input *in)
{
    uint8_t what = fuzz_u8(in);
    switch (what % 16) {
    case 0:
        time_passes(job, in);
        break;
    case 1:
        asked(job, in);
        break;
    case 2:
        other_ends(in);
        break;
    case 3:
        coordinator(what / 16 | fuzz_u8(in));
        break;
    case 4:
    case 5:
    case 6:
    case 7:
    case 8:
        agent(job, in);
        break;
    default:
        process(job, in);
        break;
    }
    ev_run(job->setup.loop, EVRUN_NOWAIT);
}

/* ------------------------------------------------------------------- a run */

static void run_start(struct job_setup *setup, struct fuzz_input *in,
                      enum job_next *next)
{
    is_over = false;
    struct job *job = job_start(setup);
    if (fuzz_u8(in) & 3) agents_begin(job);
    ev_run(setup->loop, EVRUN_NOWAIT);
    for (int i = 0; i < 200 && !is_over && in->left > 0; i++) turn(job, in);
    *next = job_next(job);
    double pause = job_pause(job);
    assert(pause >= 0.);
    setup->pause = *next == JOB_AGAIN ? pause : 0.;
    setup->restart += *next == JOB_AGAIN;
    if (*next == JOB_AGAIN) hosts_free(setup->left_out);
    int status = job_finish(job);
    assert(status >= 0 && status < 256);
    outside_end();
}

static void run(struct options *o, struct fuzz_input *in, uint8_t bits)
{
    struct host_list hosts, left_out = {0};
    struct guard guard = {.fd = -1};
    struct job_setup setup = {
        .loop = ev_default_loop(0),
        .options = o,
        .guard = &guard,
        .out = &world.sinks[0],
        .err = &world.sinks[1],
        .server = bits & 1 ? NULL : outside_server(),
        .master = "127.0.0.1:5",
        .library_path = bits & 2 ? "/opt/lib" : NULL,
        .ignore_hangup = bits >> 2 & 1,
        .hosts = &hosts,
        .left_out = &left_out,
        .begun = ev_time(),
    };
    enum job_next next = JOB_AGAIN;
    for (int i = 0; i < STARTS && next != JOB_OVER; i++) {
        if (!hosts_without(&hosts, &o->hosts, &left_out, o->ranked)) break;
        run_start(&setup, in, &next);
        hosts_free(&hosts);
    }
    hosts_free(&left_out);
}

static int terminal(int ends[2])
{
    ends[0] = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    const char *name =
        ends[0] >= 0 && unlockpt(ends[0]) == 0 ? ptsname(ends[0]) : NULL;
    ends[1] =
        name ? open(name, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC) : -1;
    return ends[1] >= 0 ? 0 : -1;
}

static int pair(uint8_t kind, int ends[2])
{
    const int flags = SOCK_NONBLOCK | SOCK_CLOEXEC;
    switch (kind % 4) {
    case 0:
        return socketpair(AF_UNIX, SOCK_STREAM | flags, 0, ends);
    case 1:
        return terminal(ends);
    default:
        return pipe2(ends, O_CLOEXEC | O_NONBLOCK);
    }
}

/* Our input is a pipe, our outputs are pipes, sockets or terminals. */
static void world_begin(uint8_t bits)
{
    int ends[2];
    struct ev_loop *loop = ev_default_loop(0);
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) abort();
    if (dup2(ends[0], STDIN_FILENO) < 0) abort();
    close(ends[0]);
    world.in = ends[1];
    for (int i = 0; i < 2; i++) {
        if (pair(bits, ends) != 0) abort();
        world.sinks[i] = (struct sink){.stamped = bits >> 2 & 1};
        if (!sink_open(&world.sinks[i], loop, ends[1])) abort();
        world.out[i] = ends[0];
        (void)descriptor_write(ends[1], DESCRIPTOR_BLOCKING, "b", 1);
        assert(descriptor_is_same(ends[1], ends[1]));
        assert(!descriptor_is_same(ends[1], STDIN_FILENO));
        close(ends[1]);
    }
}

static void world_end(void)
{
    for (int i = 0; i < 2; i++) {
        sink_close(&world.sinks[i]);
        end(&world.out[i]);
    }
    end(&world.in);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null > 0 && dup2(null, STDIN_FILENO) == 0) close(null);
}

/* What hwloc reads of a user: other machines than this one. To look at this one
 * takes milliseconds. */
static void machine(uint8_t which)
{
    static const char *const machines[] = {"pack:2 core:2 pu:2",
                                           "numa:2 core:2",
                                           "pack:1 numa:2 core:1 pu:2", "pu:1"};
    (void)setenv("HWLOC_SYNTHETIC", machines[which % ARRAY_COUNT(machines)], 1);
    (void)setenv("HWLOC_THISSYSTEM", which & 4 ? "1" : "0", 1);
}

static int remove_one(const char *path, const struct stat *info, int kind,
                      struct FTW *where)
{
    (void)info, (void)kind, (void)where;
    (void)remove(path);
    return 0;
}

static void remove_files(void)
{
    (void)nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void ignore(struct ev_loop *loop, ev_signal *watcher, int events)
{
    (void)loop, (void)watcher, (void)events;
}

static void begin(void)
{
    struct rlimit before;
    descriptor_standard();
    descriptor_raise_limit(&before);
    ev_signal first; /* the loop opens what it needs for any */
    struct ev_loop *loop = ev_default_loop(0);
    ev_signal_init(&first, ignore, SIGWINCH);
    ev_signal_start(loop, &first);
    ev_signal_stop(loop, &first);
    (void)setenv("HWLOC_PLUGINS_PATH", "/nonexistent", 1);
    signal(SIGPIPE, SIG_IGN);
    if (!mkdtemp(folder)) abort();
    (void)atexit(remove_files);
    (void)snprintf(files[0], sizeof files[0], "%s/o.%%r.%%h", folder);
    (void)snprintf(files[1], sizeof files[1], "%s/none/%%r.%%%%", folder);
    (void)snprintf(files[2], sizeof files[2], "%s/f:nojobid", folder);
    (void)setenv("PMIX_RANK", "1", 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct fuzz_input in = {bytes, size};
    struct options options;
    uint64_t left, used;
    if (!*files[0]) begin();
    used = descriptors_used(&left);
    outside_begin(fuzz_u8(&in));
    uint8_t bits = fuzz_u8(&in);
    machine(bits >> 3);
    world_begin(bits >> 4);
    if (options_make(&options, &in)) run(&options, &in, bits);
    options_free(&options);
    words_free();
    world_end();
    assert(descriptors_used(&left) == used);
    return 0;
}
