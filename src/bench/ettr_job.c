/* ettr_job.c - the processes of one run of pccl-bench ettr, and its faults. */
#include "ettr.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int64_t ns(double seconds)
{
    return (int64_t)(seconds * 1e9);
}

/* Between two lengths. */
static int64_t some(struct ettr_job *j, double least, double most)
{
    j->random = churn_mix(j->random, 0x2545f491u) + 1;
    double part = (double)(j->random >> 20 & 0xffff) / 0x10000;
    return ns(least + part * (most - least));
}

/* ------------------------------------------------------------- processes */

static void prepare(const struct ettr_job *j)
{
    char text[CHURN_PATH];
    snprintf(text, sizeof text, "%.480s/log", j->folder);
    int fd = open(text, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (fd < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0) _exit(4);
    close(fd);
    snprintf(text, sizeof text, "%g", j->o->deadline);
    (void)setenv("PCCL_DEADLINE", text, 1);
    /* Each namespace is a host (rule K7). */
    if (j->has_net && !getenv("PCCL_TOKEN_FILE"))
        (void)setenv("PCCL_INSECURE", "1", 1);
}

static _Noreturn void be_master(const struct ettr_job *j, int port_fd)
{
    ccoip_socket_address_t any = {.inet = {.protocol = inetIPv4}, .port = 0};
    pcclMasterInstance_t *master = NULL;
    uint16_t port = 0;
    if (!j->has_net) {
        any.inet.ipv4.data[0] = 127;
        any.inet.ipv4.data[3] = 1;
    }
    prepare(j);
    if ((!j->has_net || churn_net_enter(&j->net, 0)) &&
        pcclCreateMaster(any, &master) == pcclSuccess &&
        pcclRunMaster(master) == pcclSuccess &&
        pcclGetMasterPort(master, &port) == pcclSuccess &&
        write(port_fd, &port, sizeof port) == (ssize_t)sizeof port)
        (void)pcclMasterAwaitTermination(master);
    _exit(1);
}

static bool start_master(struct ettr_job *j)
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

static unsigned node_of(int slot)
{
    return 1 + (unsigned)slot % (CHURN_NODES - 1);
}

static int start_member(struct ettr_job *j)
{
    int slot = 0;
    while (slot < CHURN_SLOTS && j->child[slot].pid != 0) slot++;
    if (slot == CHURN_SLOTS) return -1;
    struct churn_slot *s = &j->board->slots[slot];
    uint32_t n =
        (uint32_t)slot + CHURN_SLOTS * atomic_fetch_add(&j->board->next, 1);
    atomic_store(&s->leave, 0);
    atomic_store(&s->steps, 0);
    atomic_store(&s->state, CHURN_COMES);
    atomic_store(&s->n, n);
    pid_t pid = churn_fork();
    if (pid == 0) {
        struct ettr_seat seat = {.o = j->o,
                                 .board = j->board,
                                 .folder = j->folder,
                                 .address = j->address,
                                 .n = n};
        prepare(j);
        if (j->has_net && !churn_net_enter(&j->net, (int)node_of(slot)))
            _exit(4);
        ettr_member(&seat);
    }
    j->child[slot] =
        (struct churn_child){.pid = pid > 0 ? pid : 0, .pidfd = -1};
    return slot;
}

bool ettr_job_start(struct ettr_job *j, const char *root)
{
    char error[200] = "";
    snprintf(j->folder, sizeof j->folder, "%.400s/%s", root,
             j->faulty ? "faulty" : "faultless");
    j->has_net = j->o->kind == CHURN_PARTITION;
    j->random = j->o->seed;
    j->victim = j->newcomer = -1;
    if (mkdir(j->folder, 0700) != 0) return false;
    j->board = churn_board_open(j->folder, true);
    if (!j->board || !churn_history_open(&j->log, j->folder, "faults"))
        return false;
    CHURN_WRITE(&j->log, 'C', (uint64_t)ns(j->o->deadline),
                j->faulty ? 1u << j->o->kind : 0);
    if (j->has_net &&
        !churn_net_start(&j->net, j->board, error, sizeof error)) {
        fprintf(stderr, "pccl-bench: %s\n", error);
        return false;
    }
    if (!start_master(j)) return false;
    for (int i = 0; i < j->o->members; i++) (void)start_member(j);
    return true;
}

static uint32_t steps_of(const struct ettr_job *j, int slot)
{
    return atomic_load(&j->board->slots[slot].steps);
}

bool ettr_job_warm(const struct ettr_job *j)
{
    int warm = 0;
    for (int i = 0; i < CHURN_SLOTS; i++)
        warm += j->child[i].pid != 0 && steps_of(j, i) >= ETTR_WARM;
    return warm == j->o->members;
}

/* ---------------------------------------------------------------- faults */

static bool healthy(const struct ettr_job *j, int slot)
{
    const struct churn_child *c = &j->child[slot];
    return c->pid != 0 && !c->doomed && steps_of(j, slot) > 0 &&
           atomic_load(&j->board->slots[slot].state) == CHURN_MEMBER;
}

static int pick(struct ettr_job *j)
{
    int from = (int)some(j, 0, 1) % CHURN_SLOTS;
    for (int i = 0; i < CHURN_SLOTS; i++)
        if (healthy(j, (from + i) % CHURN_SLOTS))
            return (from + i) % CHURN_SLOTS;
    return -1;
}

static void cut(struct ettr_job *j, unsigned node, uint8_t blocked)
{
    for (unsigned other = 0; other < CHURN_NODES; other++) {
        if (other == node) continue;
        atomic_store(&j->board->blocked[node][other], blocked);
        atomic_store(&j->board->blocked[other][node], blocked);
    }
}

static void leave(struct ettr_job *j, int slot)
{
    j->child[slot].doomed = true;
    atomic_store(&j->board->slots[slot].leave, 1);
}

static void log_fault(struct ettr_job *j)
{
    uint32_t n = j->victim < 0 ? 0 : atomic_load(&j->board->slots[j->victim].n);
    CHURN_WRITE(&j->log, 'F', (uint64_t)j->begun, (uint64_t)bench_now(),
                j->o->kind, n, 0);
}

static void begin_fault(struct ettr_job *j)
{
    const double d = j->o->deadline;
    j->victim = pick(j);
    if (j->victim < 0) return; /* everybody has just come: a moment later */
    struct churn_child *c = &j->child[j->victim];
    j->begun = j->until = bench_now();
    j->faults++;
    switch (j->o->kind) {
    case CHURN_KILL:
        c->doomed = true;
        (void)kill(c->pid, SIGKILL);
        break;
    case CHURN_PAUSE:
        j->until += some(j, 0, 0.4 * d);
        (void)kill(c->pid, SIGSTOP);
        break;
    case CHURN_STOP:
        j->until += some(j, 1.5 * d, 2.5 * d);
        (void)kill(c->pid, SIGSTOP);
        break;
    case CHURN_LEAVE:
        leave(j, j->victim);
        break;
    case CHURN_JOIN: /* it leaves again in time for the next one */
        j->until += ns(j->o->every / 2);
        j->victim = j->newcomer = start_member(j);
        break;
    case CHURN_PARTITION:
        j->until += some(j, 1.5 * d, 2.5 * d);
        cut(j, node_of(j->victim), 1);
        break;
    default:
        j->until += some(j, 0, 2 * d);
        (void)kill(j->master, SIGSTOP);
        break;
    }
}

static void end_fault(struct ettr_job *j)
{
    const struct churn_child *c = j->victim < 0 ? NULL : &j->child[j->victim];
    bool stopped = j->o->kind == CHURN_PAUSE || j->o->kind == CHURN_STOP;
    if (stopped && c->pid > 0) (void)kill(c->pid, SIGCONT);
    if (j->o->kind == CHURN_PARTITION) cut(j, node_of(j->victim), 0);
    if (j->o->kind == CHURN_MASTER) (void)kill(j->master, SIGCONT);
    if (j->newcomer >= 0) leave(j, j->newcomer);
    log_fault(j);
    j->newcomer = -1;
    j->begun = 0;
}

static void vacate(struct ettr_job *j, int slot, int status)
{
    const struct churn_child *c = &j->child[slot];
    bool well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    CHURN_WRITE(&j->log, 'D', (uint64_t)bench_now(),
                atomic_load(&j->board->slots[slot].n),
                (uint64_t)(unsigned)status, well || c->doomed);
    j->child[slot] = (struct churn_child){.pidfd = -1};
    atomic_store(&j->board->slots[slot].state, CHURN_FREE);
}

static int reap(struct ettr_job *j)
{
    int alive = 0;
    for (int i = 0; i < CHURN_SLOTS; i++) {
        int status;
        if (j->child[i].pid == 0) continue;
        if (waitpid(j->child[i].pid, &status, WNOHANG) == j->child[i].pid)
            vacate(j, i, status);
        else
            alive++;
    }
    return alive;
}

void ettr_job_tick(struct ettr_job *j)
{
    int64_t now = bench_now();
    int alive = reap(j);
    if (j->begun != 0 && now >= j->until) end_fault(j);
    if (!j->faulty || j->begin == 0) return;
    if (alive < j->o->members) (void)start_member(j);
    if (j->begun != 0 || now < j->at || j->faults == j->planned) return;
    uint64_t before = j->faults;
    begin_fault(j);
    if (j->faults == before) return;
    j->at = j->begin + ns(j->o->every * (double)j->faults) +
            some(j, 0, j->o->every / 4);
}

void ettr_job_end(struct ettr_job *j)
{
    const struct timespec pause = {.tv_nsec = 5000000};
    int64_t limit = bench_now() + ns(BENCH_PATIENCE_S);
    int status;
    if (j->begun != 0) end_fault(j);
    if (j->begin != 0)
        CHURN_WRITE(&j->log, 'W', (uint64_t)j->begin, (uint64_t)bench_now(),
                    j->planned);
    if (j->board) atomic_store(&j->board->over, 1);
    while (reap(j) > 0) {
        /* A newcomer would wait for members that are no more. */
        int members = 0;
        for (int i = 0; i < CHURN_SLOTS; i++)
            members += j->child[i].pid != 0 &&
                       atomic_load(&j->board->slots[i].state) == CHURN_MEMBER;
        bool hangs = bench_now() > limit;
        for (int i = 0; (members == 0 || hangs) && i < CHURN_SLOTS; i++) {
            if (j->child[i].pid == 0) continue;
            j->child[i].doomed = !hangs;
            (void)kill(j->child[i].pid, SIGKILL);
        }
        (void)nanosleep(&pause, NULL);
    }
    if (j->master > 0) {
        (void)kill(j->master, SIGKILL);
        (void)waitpid(j->master, &status, 0);
    }
    if (j->has_net && j->net.forwarder > 0) {
        churn_net_stop(&j->net);
        (void)waitpid(j->net.forwarder, &status, 0);
    }
    if (j->log.fd > 0) close(j->log.fd);
    if (j->board) (void)munmap(j->board, sizeof *j->board);
}
