/* churn_faults.c - which process of a job meets what, and when.
 *
 * A fault comes when the members have made a step since the last one, so that
 * it meets a job at work, and after a random time. Two healthy members remain,
 * so that the state is never lost. */
#include "churn.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#define MS INT64_C(1000000)

static void log_fault(struct churn_job *j, int64_t begin, int64_t end,
                      enum churn_fault kind, uint64_t n, uint64_t nodes)
{
    j->had |= 1u << kind;
    CHURN_WRITE(&j->faults, 'F', (uint64_t)begin, (uint64_t)end, kind, n,
                nodes);
}

static uint32_t node_of(int slot)
{
    return 1 + (uint32_t)slot % (CHURN_NODES - 1);
}

static bool healthy(const struct churn_job *j, int slot)
{
    const struct churn_child *c = &j->child[slot];
    return c->pid != 0 && !c->doomed && c->cont_at == 0 &&
           !(j->cut_nodes >> node_of(slot) & 1) &&
           atomic_load(&j->board->slots[slot].state) == CHURN_MEMBER &&
           atomic_load(&j->board->slots[slot].steps) > 0;
}

static int count_healthy(const struct churn_job *j)
{
    int count = 0;
    for (int i = 0; i < CHURN_SLOTS; i++) count += healthy(j, i);
    return count;
}

/* A launcher whose last rank has died ends its job. */
static bool is_needed(const struct churn_job *j, int slot)
{
    int others = 0;
    if (!j->mpi || slot >= CHURN_LAUNCHED) return false;
    for (int i = 0; i < CHURN_LAUNCHED; i++)
        others += i != slot && healthy(j, i);
    return others == 0;
}

/* In every other job one member lives long, so that its memory tells. */
static bool is_spared(const struct churn_job *j, int slot)
{
    return j->generation % 2 == 0 && slot == CHURN_LAUNCHED;
}

/* A process that may meet a fault now; -1: none. */
static int pick(struct churn_job *j, int64_t now, bool newcomers)
{
    int from = (int)churn_random(j, CHURN_SLOTS);
    for (int i = 0; i < CHURN_SLOTS; i++) {
        int slot = (from + i) % CHURN_SLOTS;
        const struct churn_child *c = &j->child[slot];
        bool young = c->pid != 0 && !c->doomed && c->cont_at == 0 &&
                     atomic_load(&j->board->slots[slot].state) != CHURN_MEMBER;
        if (now < c->quiet_until || is_needed(j, slot)) continue;
        if (is_spared(j, slot)) continue;
        if (healthy(j, slot) || (newcomers && young)) return slot;
    }
    return -1;
}

static uint64_t n_of(const struct churn_job *j, int slot)
{
    return atomic_load(&j->board->slots[slot].n);
}

/* ----------------------------------------------------------------- kinds */

static void kill_some(struct churn_job *j, int64_t now)
{
    int most = count_healthy(j) - 2;
    int count = churn_random(j, 5) == 0 ? 2 : 1;
    for (int i = 0; i < count && i < most; i++) {
        int slot = pick(j, now, churn_random(j, 8) == 0);
        if (slot < 0) return;
        log_fault(j, bench_now(), bench_now(), CHURN_KILL, n_of(j, slot), 0);
        j->child[slot].doomed = true;
        (void)churn_signal(j, slot, SIGKILL);
    }
}

static void stop_one(struct churn_job *j, int64_t now, enum churn_fault kind)
{
    int64_t deadline = (int64_t)(j->o->deadline * 1e9);
    int slot = pick(j, now, false);
    if (slot < 0 || count_healthy(j) < 3) return;
    struct churn_child *c = &j->child[slot];
    int64_t length =
        kind == CHURN_PAUSE
            ? MS + (int64_t)churn_random(j, (uint64_t)(deadline / 5 * 2))
            : deadline / 2 * 3 + (int64_t)churn_random(j, (uint64_t)deadline);
    c->stopped_at = bench_now();
    c->stopped_as = kind;
    c->cont_at = now + length;
    (void)churn_signal(j, slot, SIGSTOP);
}

static void leave_one(struct churn_job *j, int64_t now)
{
    int slot = pick(j, now, false);
    if (slot < 0 || count_healthy(j) < 3) return;
    log_fault(j, bench_now(), bench_now(), CHURN_LEAVE, n_of(j, slot), 0);
    j->child[slot].doomed = true; /* meets nothing else */
    atomic_store(&j->board->slots[slot].leave, 1);
}

static void pause_master(struct churn_job *j, int64_t now)
{
    int64_t deadline = (int64_t)(j->o->deadline * 1e9);
    if (j->mpi || j->master_cont_at != 0) return;
    j->master_stopped_at = bench_now();
    j->master_cont_at =
        now + MS + (int64_t)churn_random(j, (uint64_t)deadline * 2);
    (void)kill(j->master, SIGSTOP);
}

static void block(struct churn_job *j, uint32_t side, bool one_way,
                  bool with_master)
{
    for (uint32_t a = 0; a < CHURN_NODES; a++) {
        for (uint32_t b = 0; b < CHURN_NODES; b++) {
            bool cut = (side >> a & 1) && !(side >> b & 1);
            if ((a == 0 || b == 0) && !with_master) continue;
            if (cut) atomic_store(&j->board->blocked[a][b], 1);
            if (cut && !one_way) atomic_store(&j->board->blocked[b][a], 1);
        }
    }
}

/* Any set of nodes against the rest; any of them may be evicted. Where the set
 * loses the master, too, members remain that do not. */
static void cut_network(struct churn_job *j, int64_t now)
{
    int64_t deadline = (int64_t)(j->o->deadline * 1e9);
    if (!j->has_net || j->cut_nodes != 0) return;
    uint32_t all = (1u << CHURN_NODES) - 2;
    uint32_t side = (uint32_t)churn_random(j, all / 2 - 1) * 2 + 2;
    int outside = 0;
    for (int i = 0; i < CHURN_SLOTS; i++)
        outside += healthy(j, i) && !(side >> node_of(i) & 1);
    block(j, side, churn_random(j, 4) == 0,
          outside > 1 && churn_random(j, 4) == 0);
    j->cut_at = bench_now();
    j->cut_nodes = all;
    j->heal_at =
        now + deadline / 2 + (int64_t)churn_random(j, (uint64_t)deadline * 3);
}

/* ------------------------------------------------------------------- ends */

void churn_end_stop(struct churn_job *j, int slot)
{
    struct churn_child *c = &j->child[slot];
    (void)churn_signal(j, slot, SIGCONT);
    int64_t now = bench_now();
    log_fault(j, c->stopped_at, now, c->stopped_as, n_of(j, slot), 0);
    /* A rank of MPI ends if it was evicted, or its launcher ends it. On a busy
     * machine a stop may have lasted longer than it was to. */
    c->doomed |=
        j->mpi && now - c->stopped_at >= (int64_t)(j->o->deadline * 5e8);
    c->cont_at = 0;
    c->quiet_until = now + (int64_t)(j->o->deadline * 2e9);
}

static void end_cut(struct churn_job *j)
{
    for (int a = 0; a < CHURN_NODES; a++)
        for (int b = 0; b < CHURN_NODES; b++)
            atomic_store(&j->board->blocked[a][b], 0);
    log_fault(j, j->cut_at, bench_now(), CHURN_PARTITION, 0, j->cut_nodes);
    j->cut_nodes = 0;
}

static void end_master_pause(struct churn_job *j)
{
    (void)kill(j->master, SIGCONT);
    log_fault(j, j->master_stopped_at, bench_now(), CHURN_MASTER, 0, 0);
    j->master_cont_at = 0;
}

static void end_due(struct churn_job *j, int64_t now)
{
    for (int i = 0; i < CHURN_SLOTS; i++)
        if (j->child[i].cont_at != 0 && now >= j->child[i].cont_at)
            churn_end_stop(j, i);
    if (j->cut_nodes != 0 && now >= j->heal_at) end_cut(j);
    if (j->master_cont_at != 0 && now >= j->master_cont_at) end_master_pause(j);
}

void churn_faults_end(struct churn_job *j, int64_t now)
{
    (void)now;
    end_due(j, INT64_MAX);
}

/* ------------------------------------------------------------------ choice */

/* In how many of a thousand faults of a job it is this kind. Stops cost a
 * deadline each, and have jobs of their own. */
static uint64_t share(const struct churn_job *j, enum churn_fault kind)
{
    bool slow = strcmp(j->name, "mixed") == 0;
    if (!j->o->wanted[kind]) return 0;
    switch (kind) {
    case CHURN_KILL:
        return 700;
    case CHURN_PAUSE:
        return slow || j->mpi ? 150 : 20;
    case CHURN_STOP:
        return slow ? 60 : j->mpi ? 20 : j->has_net ? 20 : 3;
    case CHURN_LEAVE: /* MPI_Finalize is collective */
        return j->mpi ? 0 : 100;
    case CHURN_PARTITION:
        return j->has_net ? 150 : 0;
    case CHURN_MASTER:
        return slow ? 60 : j->mpi ? 0 : 3;
    default:
        return 0;
    }
}

uint32_t churn_faults_wanted(const struct churn_job *j)
{
    uint32_t bits = 0;
    for (int k = 0; k < CHURN_FAULTS; k++)
        if (share(j, (enum churn_fault)k) > 0) bits |= 1u << k;
    return bits | (j->o->wanted[CHURN_JOIN] ? 1u << CHURN_JOIN : 0);
}

static void inject(struct churn_job *j, int64_t now)
{
    uint64_t total = 0;
    for (int k = 0; k < CHURN_FAULTS; k++)
        total += share(j, (enum churn_fault)k);
    if (total == 0) return;
    uint64_t at = churn_random(j, total);
    int kind = 0;
    while (at >= share(j, (enum churn_fault)kind))
        at -= share(j, (enum churn_fault)kind++);
    /* Each kind once, also in a short run. */
    int rare = (int)churn_random(j, CHURN_FAULTS);
    if (share(j, (enum churn_fault)rare) > 0 && !(j->had >> rare & 1))
        kind = rare;
    switch ((enum churn_fault)kind) {
    case CHURN_KILL:
        kill_some(j, now);
        break;
    case CHURN_PAUSE:
    case CHURN_STOP:
        stop_one(j, now, (enum churn_fault)kind);
        break;
    case CHURN_LEAVE:
        leave_one(j, now);
        break;
    case CHURN_PARTITION:
        cut_network(j, now);
        break;
    case CHURN_MASTER:
        pause_master(j, now);
        break;
    default:
        break;
    }
}

void churn_faults_tick(struct churn_job *j, int64_t now)
{
    end_due(j, now);
    if (j->ending || now < j->next || j->master <= 0) return;
    if (atomic_load(&j->board->steps) == j->last_steps) return;
    if (count_healthy(j) < 3) return;
    inject(j, now);
    int64_t gap = j->mpi ? 100 * MS : 10 * MS;
    j->next = now + (int64_t)churn_random(j, (uint64_t)gap * 2);
}
