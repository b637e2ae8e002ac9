/* churn_job.c - the processes of one job of pccl-bench churn: a coordinator,
 * members that come and go, and what starts them.
 *
 * The launcher has no threads and has never initialized the library, so that a
 * fork of it is a new process within a fraction of a millisecond. All processes
 * are its children and die with it. The ranks that pccl-master starts are
 * signalled by pidfds, and die with their launcher. */
#include "churn.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ADDRESS_PATIENCE_MS = 60000 };

uint64_t churn_random(struct churn_job *j, uint64_t limit)
{
    j->random = churn_mix(j->random, 0x2545f491u) + 1;
    return (j->random >> 20) % limit;
}

pid_t churn_fork(void)
{
    pid_t parent = getpid();
    fflush(NULL);
    pid_t pid = fork();
    if (pid != 0) return pid;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) _exit(1);
    return 0;
}

/* What the processes of a job say goes to a file in its folder. */
static void redirect(const struct churn_job *j)
{
    char path[CHURN_PATH];
    snprintf(path, sizeof path, "%.480s/log", j->folder);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    int null = open("/dev/null", O_RDONLY);
    if (fd < 0 || null < 0) _exit(4);
    (void)dup2(null, 0);
    (void)dup2(fd, 1);
    (void)dup2(fd, 2);
    close(fd);
    close(null);
}

static void set_environment(const struct churn_job *j)
{
    char text[32];
    snprintf(text, sizeof text, "%g", j->o->deadline);
    (void)setenv("PCCL_DEADLINE", text, 1);
    (void)setenv("CHURN_FOLDER", j->folder, 1);
    /* Each namespace is a host (rule K7). */
    if (j->has_net && !getenv("PCCL_TOKEN_FILE"))
        (void)setenv("PCCL_INSECURE", "1", 1);
}

/* ------------------------------------------------------------- coordinator */

static _Noreturn void be_master(const struct churn_job *j, int port_fd)
{
    ccoip_socket_address_t any = {.inet = {.protocol = inetIPv4}, .port = 0};
    pcclMasterInstance_t *master = NULL;
    uint16_t port = 0;
    if (!j->has_net) {
        any.inet.ipv4.data[0] = 127;
        any.inet.ipv4.data[3] = 1;
    }
    redirect(j);
    set_environment(j);
    if ((!j->has_net || churn_net_enter(&j->net, 0)) &&
        pcclCreateMaster(any, &master) == pcclSuccess &&
        pcclRunMaster(master) == pcclSuccess &&
        pcclGetMasterPort(master, &port) == pcclSuccess &&
        write(port_fd, &port, sizeof port) == (ssize_t)sizeof port)
        (void)pcclMasterAwaitTermination(master);
    _exit(1);
}

static bool start_master(struct churn_job *j)
{
    int fds[2];
    uint16_t port = 0;
    if (pipe(fds) != 0) return false;
    j->master = churn_fork();
    if (j->master == 0) be_master(j, fds[1]);
    close(fds[1]);
    ssize_t n = read(fds[0], &port, sizeof port);
    close(fds[0]);
    snprintf(j->address, sizeof j->address, "%s:%u",
             j->has_net ? "10.99.0.1" : "127.0.0.1", port);
    return n == sizeof port;
}

void churn_beside(const char *name, char path[CHURN_PATH])
{
    char self[CHURN_PATH] = "";
    ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
    self[size < 0 ? 0 : size] = '\0';
    const char *folder = dirname(self);
    snprintf(path, CHURN_PATH, "%.400s/%.80s", folder, name);
    if (access(path, X_OK) == 0) return;
    snprintf(path, CHURN_PATH, "%.400s/../lib/pccl/%.80s", folder, name);
}

/* The launcher has said in its log where it listens. */
static bool read_address(struct churn_job *j, const char *path)
{
    static const char mark[] = "listening on ";
    char line[200] = "";
    const char *at = NULL;
    FILE *f = fopen(path, "re");
    while (f && !at && fgets(line, sizeof line, f))
        at = strchr(line, '\n') ? strstr(line, mark) : NULL;
    if (f) (void)fclose(f);
    if (!at) return false;
    at += sizeof mark - 1;
    snprintf(j->address, sizeof j->address, "%.*s", (int)strcspn(at, " \n"),
             at);
    return true;
}

/* `log` is an inotify descriptor that watches the file; it is closed. */
static bool wait_for_address(struct churn_job *j, int log, const char *path)
{
    struct pollfd changes = {.fd = log, .events = POLLIN};
    char events[4096];
    bool known;
    while (!(known = read_address(j, path)) &&
           poll(&changes, 1, ADDRESS_PATIENCE_MS) == 1)
        if (read(log, events, sizeof events) <= 0) break;
    close(log);
    return known;
}

/* The ranks that pccl-master starts, and starts again. */
static bool start_launcher(struct churn_job *j)
{
    char master[CHURN_PATH];
    char program[CHURN_PATH];
    char path[CHURN_PATH];
    churn_beside("pccl-master", master);
    churn_beside("churn-mpi", program);
    snprintf(path, sizeof path, "%.480s/log", j->folder);
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    int log = inotify_init1(IN_CLOEXEC);
    if (file < 0 || log < 0 || inotify_add_watch(log, path, IN_MODIFY) < 0)
        return false;
    close(file);
    j->master = churn_fork();
    if (j->master == 0) {
        redirect(j);
        set_environment(j);
        (void)setenv("PCCL_TRANSPORT", "auto", 1);
        (void)execl(master, master, "-n", "3", "--elastic", "--respawn",
                    program, (char *)NULL);
        _exit(4);
    }
    return wait_for_address(j, log, path);
}

/* ----------------------------------------------------------------- members */

static const char *transport_of(const struct churn_job *j, int slot)
{
    if (strcmp(j->name, "tcp") == 0) return "tcp";
    if (strcmp(j->name, "mixed") == 0) return slot % 3 ? "auto" : "tcp";
    return "auto";
}

static _Noreturn void be_newcomer(const struct churn_job *j, uint32_t n)
{
    int slot = (int)(n % CHURN_SLOTS);
    struct churn_seat seat = {.board = j->board,
                              .folder = j->folder,
                              .address = j->address,
                              .transport = transport_of(j, slot),
                              .n = n};
    redirect(j);
    set_environment(j);
    if (j->has_net && !churn_net_enter(&j->net, 1 + slot % (CHURN_NODES - 1)))
        _exit(4);
    if (!j->mpi) churn_member(&seat);
    char program[CHURN_PATH];
    char text[16];
    churn_beside("churn-mpi", program);
    snprintf(text, sizeof text, "%u", n);
    (void)setenv("CHURN_N", text, 1);
    (void)setenv("PCCL_MASTER", j->address, 1);
    (void)setenv("PCCL_JOIN", "1", 1);
    (void)setenv("PCCL_ON_FAILURE", "shrink", 1);
    (void)setenv("PCCL_TRANSPORT", seat.transport, 1);
    (void)execl(program, program, (char *)NULL);
    _exit(4);
}

static void start_member(struct churn_job *j, int slot)
{
    struct churn_slot *s = &j->board->slots[slot];
    uint32_t n =
        (uint32_t)slot + CHURN_SLOTS * atomic_fetch_add(&j->board->next, 1);
    atomic_store(&s->leave, 0);
    atomic_store(&s->steps, 0);
    atomic_store(&s->state, CHURN_COMES);
    atomic_store(&s->n, n);
    pid_t pid = churn_fork();
    if (pid == 0) be_newcomer(j, n);
    j->child[slot] =
        (struct churn_child){.pid = pid > 0 ? pid : 0, .pidfd = -1};
    atomic_store(&s->pid, pid);
}

bool churn_signal(struct churn_job *j, int slot, int sig)
{
    struct churn_child *c = &j->child[slot];
    if (c->pid == 0) return false;
    if (c->pidfd < 0) return kill(c->pid, sig) == 0;
    return syscall(SYS_pidfd_send_signal, c->pidfd, sig, NULL, 0) == 0;
}

/* ------------------------------------------------------------------- start */

bool churn_job_start(struct churn_job *j, const char *root)
{
    char error[200] = "";
    snprintf(j->folder, sizeof j->folder, "%.400s/%s.%u", root, j->name,
             j->generation);
    if (mkdir(j->folder, 0700) != 0) return false;
    j->board = churn_board_open(j->folder, true);
    if (!j->board || !churn_history_open(&j->faults, j->folder, "faults"))
        return false;
    j->random = churn_mix(j->o->seed, j->number * 1000u + j->generation);
    j->board->seed = churn_random(j, UINT32_MAX);
    atomic_store(&j->board->next, 1);
    j->mpi = strcmp(j->name, "mpi") == 0;
    j->has_net = strcmp(j->name, "net") == 0;
    if (j->has_net &&
        !churn_net_start(&j->net, j->board, error, sizeof error)) {
        fprintf(stderr, "pccl-bench: %s\n", error);
        return false;
    }
    CHURN_WRITE(&j->faults, 'C', (uint64_t)(j->o->deadline * 1e9),
                churn_faults_wanted(j));
    j->born = j->progress_at = bench_now();
    return j->mpi ? start_launcher(j) : start_master(j);
}

/* -------------------------------------------------------------------- reap */

static void vacate(struct churn_job *j, int slot, int status)
{
    struct churn_child *c = &j->child[slot];
    struct churn_slot *s = &j->board->slots[slot];
    if (c->cont_at != 0) churn_end_stop(j, slot); /* its launcher was first */
    bool well = WIFEXITED(status) &&
                (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == CHURN_GONE);
    /* MPI_Init of one that comes when the job is over is an error. */
    bool late = j->mpi && j->ending && atomic_load(&s->state) != CHURN_MEMBER;
    CHURN_WRITE(&j->faults, 'D', (uint64_t)bench_now(), atomic_load(&s->n),
                (uint64_t)(unsigned)status, well || late || c->doomed);
    if (c->pidfd >= 0) close(c->pidfd);
    *c = (struct churn_child){.pidfd = -1};
    atomic_store(&s->state, CHURN_FREE);
    atomic_store(&s->pid, 0);
}

/* The ranks of pccl-master: asks those it does not know yet who they are, and
 * notices ends. The status of one that was not killed is not known here: its
 * launcher tells of it. */
static void watch_ranks(struct churn_job *j)
{
    for (int i = 0; j->mpi && i < CHURN_LAUNCHED; i++) {
        struct churn_slot *s = &j->board->slots[i];
        struct churn_child *c = &j->child[i];
        pid_t pid = atomic_load(&s->pid);
        if (c->pid != 0) {
            if (syscall(SYS_pidfd_send_signal, c->pidfd, 0, NULL, 0) != 0 &&
                errno == ESRCH)
                vacate(j, i, 0);
        } else if (pid > 0 && c->pidfd < 0) {
            c->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
            atomic_store(&s->question, 1 + (uint32_t)churn_random(j, 1u << 30));
            if (c->pidfd < 0) atomic_store(&s->pid, 0);
        } else if (pid > 0 &&
                   atomic_load(&s->answer) == atomic_load(&s->question)) {
            c->pid = pid;
        } else if (c->pidfd >= 0 &&
                   syscall(SYS_pidfd_send_signal, c->pidfd, 0, NULL, 0) != 0) {
            close(c->pidfd);
            *c = (struct churn_child){.pidfd = -1};
            atomic_store(&s->pid, 0);
        }
    }
}

static void reap(struct churn_job *j)
{
    int status;
    for (int i = 0; i < CHURN_SLOTS; i++) {
        pid_t pid = j->child[i].pid;
        if (pid > 0 && j->child[i].pidfd < 0 &&
            waitpid(pid, &status, WNOHANG) == pid)
            vacate(j, i, status);
    }
    watch_ranks(j);
    if (j->master > 0 && waitpid(j->master, &status, WNOHANG) == j->master) {
        j->master = 0;
        if (!j->ending || j->mpi)
            CHURN_WRITE(&j->faults, 'D', (uint64_t)bench_now(), 0,
                        (uint64_t)(unsigned)status,
                        j->ending && WIFEXITED(status) &&
                            WEXITSTATUS(status) == 0);
    }
}

static void admit(struct churn_job *j)
{
    int alive = 0;
    for (int i = 0; i < CHURN_SLOTS; i++) {
        struct churn_child *c = &j->child[i];
        struct churn_slot *s = &j->board->slots[i];
        alive += c->pid != 0;
        if (c->pid == 0 || c->admitted || atomic_load(&s->steps) == 0) continue;
        c->admitted = true;
        j->had |= 1u << CHURN_JOIN;
        CHURN_WRITE(&j->faults, 'F', (uint64_t)bench_now(),
                    (uint64_t)bench_now(), CHURN_JOIN, atomic_load(&s->n), 0);
    }
    for (int i = j->mpi ? CHURN_LAUNCHED : 0; i < CHURN_SLOTS; i++) {
        int slot = (int)(((uint64_t)i + j->random) % CHURN_SLOTS);
        if (j->mpi && slot < CHURN_LAUNCHED) continue;
        if (alive >= j->o->members || j->child[slot].pid != 0) continue;
        start_member(j, slot);
        alive++;
    }
}

static void note_memory(struct churn_job *j, int64_t now)
{
    unsigned long pages = 0;
    char path[64];
    if (now < j->memory_at || j->master <= 0) return;
    j->memory_at = now + 2000000000;
    snprintf(path, sizeof path, "/proc/%d/statm", (int)j->master);
    FILE *f = fopen(path, "re");
    if (!f) return;
    if (fscanf(f, "%*u %lu", &pages) == 1)
        j->master_last =
            (int64_t)(pages * (unsigned long)sysconf(_SC_PAGESIZE) / 1024);
    (void)fclose(f);
    /* Its tables are there after a few seconds. */
    if (now < j->born + 5000000000 || j->master_first == 0)
        j->master_first = j->master_last;
}

void churn_job_tick(struct churn_job *j)
{
    int64_t now = bench_now();
    uint64_t steps = atomic_load(&j->board->steps);
    reap(j);
    if (steps != j->last_steps) j->progress_at = now;
    note_memory(j, now);
    if (!j->ending) admit(j);
    churn_faults_tick(j, now);
    j->last_steps = steps;
}

/* --------------------------------------------------------------------- end */

bool churn_job_over(struct churn_job *j)
{
    int64_t now = bench_now();
    int members = 0;
    int alive = 0;
    if (!j->ending) {
        j->ending = true;
        churn_faults_end(j, now);
        CHURN_WRITE(&j->faults, 'R', (uint64_t)j->master_first,
                    (uint64_t)j->master_last, (uint64_t)now);
        atomic_store(&j->board->over, 1);
    }
    reap(j);
    for (int i = 0; i < CHURN_SLOTS; i++) {
        alive += j->child[i].pid != 0;
        members += j->child[i].pid != 0 &&
                   atomic_load(&j->board->slots[i].state) == CHURN_MEMBER;
    }
    /* A process that was never admitted waits for members that are no more. */
    for (int i = 0; members == 0 && i < CHURN_SLOTS; i++) {
        if (j->child[i].pid == 0) continue;
        j->child[i].doomed = true;
        (void)churn_signal(j, i, SIGKILL);
    }
    return alive == 0 && (!j->mpi || j->master == 0);
}

void churn_job_kill(struct churn_job *j)
{
    int status;
    for (int i = 0; i < CHURN_SLOTS; i++) {
        if (j->child[i].pid == 0) continue;
        (void)churn_signal(j, i, SIGKILL);
        if (j->child[i].pidfd < 0) (void)waitpid(j->child[i].pid, &status, 0);
    }
    if (j->master > 0) {
        (void)kill(j->master, SIGKILL);
        (void)waitpid(j->master, &status, 0);
    }
    if (j->has_net) {
        churn_net_stop(&j->net);
        (void)waitpid(j->net.forwarder, &status, 0);
    }
    close(j->faults.fd);
}
