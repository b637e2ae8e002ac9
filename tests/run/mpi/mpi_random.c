/* mpi_random.c - tests random sequences of collectives, messages and
 * communicators.
 *
 *   random FIRST COUNT [STEPS]    the seeds FIRST .. FIRST + COUNT - 1
 *
 * All ranks draw the same numbers, so each knows the actions of the others and
 * can predict every byte of its memory. Collectives run blocking, nonblocking
 * and persistent, with narrow and wide counts, up to a few at once, and are
 * completed in an order of each rank's own. */
#include "random_layout.h"

enum { RANKS_MAX = 16, TEAMS = 4, BLOCK = 12 };
enum { PERIOD = 8, ACTS_MAX = PERIOD };
enum { NOW, NOW_WIDE, LATER, LATER_WIDE, KEPT, KEPT_WIDE, MODES };

/* A communicator and its members. */
struct team {
    MPI_Comm comm;
    int size, rank, world[RANKS_MAX];
};

/* One collective, from its call to its completion. */
struct act {
    int live, active, step, mode, repeats, root;
    const char *name;
    const struct team *team;
    struct dice dice; /* same state on all ranks of the team */
    struct area in, out;
    int unit, doubles;
    int counts[2][RANKS_MAX], displs[2][RANKS_MAX];
    MPI_Count wide_counts[2][RANKS_MAX];
    MPI_Aint wide_displs[2][RANKS_MAX];
    struct layout layouts[2][RANKS_MAX]; /* of an all-to-all-w */
    MPI_Datatype types[2][RANKS_MAX];
    int kinds; /* number of `layouts` in use */
    MPI_Op op, user;
    MPI_Request request;
};

static int rank, size, seed, step;
static struct team teams[TEAMS];
static struct act acts[ACTS_MAX];
static struct dice own; /* of this rank only */
static int mpich;

static void blame(const char *name, int mode, const char *what)
{
    if (conform_failures > 20) return;
    fprintf(stderr, "rank %d of %d, seed %d, step %d, %s, mode %d: %s\n", rank,
            size, seed, step, name, mode, what);
    conform_failures++;
}

/* Value of element e of the message from one rank to another. */
static uint64_t value(const struct act *act, int from, int to, int e)
{
    uint64_t stream = mix((uint64_t)seed << 20 | (uint64_t)act->step,
                          (uint64_t)(from * RANKS_MAX + to));
    return mix(stream, (uint64_t)e);
}

#define RUN(name, iname, ...)                                                  \
    do {                                                                       \
        MPI_Request *request = &act->request;                                  \
        if (act->mode == NOW) OK(MPI_##name(__VA_ARGS__));                     \
        if (act->mode == NOW_WIDE) OK(MPI_##name##_c(__VA_ARGS__));            \
        if (act->mode == LATER) OK(MPI_I##iname(__VA_ARGS__, request));        \
        if (act->mode == LATER_WIDE)                                           \
            OK(MPI_I##iname##_c(__VA_ARGS__, request));                        \
        if (act->mode == KEPT)                                                 \
            OK(MPI_##name##_init(__VA_ARGS__, MPI_INFO_NULL, request));        \
        if (act->mode == KEPT_WIDE)                                            \
            OK(MPI_##name##_init_c(__VA_ARGS__, MPI_INFO_NULL, request));      \
        if (act->mode >= KEPT) OK(MPI_Start(request));                         \
    } while (0)
#define BARE(...) __VA_ARGS__
#define RUN_BOTH(name, iname, narrow, wide)                                    \
    do {                                                                       \
        MPI_Request *request = &act->request;                                  \
        if (act->mode == NOW) OK(MPI_##name(BARE narrow));                     \
        if (act->mode == NOW_WIDE) OK(MPI_##name##_c(BARE wide));              \
        if (act->mode == LATER) OK(MPI_I##iname(BARE narrow, request));        \
        if (act->mode == LATER_WIDE) OK(MPI_I##iname##_c(BARE wide, request)); \
        if (act->mode == KEPT)                                                 \
            OK(MPI_##name##_init(BARE narrow, MPI_INFO_NULL, request));        \
        if (act->mode == KEPT_WIDE)                                            \
            OK(MPI_##name##_init_c(BARE wide, MPI_INFO_NULL, request));        \
        if (act->mode >= KEPT) OK(MPI_Start(request));                         \
    } while (0)

/* MPICH 4.0.2 fails in place when a call cannot complete at once: an
 * all-to-all-w, and a reduce-scatter by an operator that does not commute. */
static int late_in_mpich(const struct act *act)
{
    return mpich && act->mode >= LATER;
}

#include "random_move.h"
#include "random_reduce.h"
#include "random_p2p.h"

/* -------------------------------------------------------------- completion */

static void act_free(struct act *act)
{
    if (act->request != MPI_REQUEST_NULL) OK(MPI_Request_free(&act->request));
    area_free(&act->in);
    area_free(&act->out);
    for (int r = 0; r < act->kinds; r++)
        for (int side = 0; side < 2; side++)
            if (act->layouts[side][r].count > 0)
                layout_free(&act->layouts[side][r]);
    if (act->user != MPI_OP_NULL) OK(MPI_Op_free(&act->user));
    act->live = 0;
}

static void act_finish(struct act *act)
{
    if (act->in.memory && !area_good(&act->in))
        blame(act->name, act->mode, "the input has changed");
    if (act->out.memory && !area_good(&act->out))
        blame(act->name, act->mode, "the output is wrong");
    act->active = 0;
    if (act->mode < KEPT) act_free(act);
}

/* Completes one or a few operations in flight, chosen by each rank
 * independently. False: none in flight. */
static int acts_complete(void)
{
    MPI_Request requests[ACTS_MAX];
    struct act *of[ACTS_MAX];
    int n = 0, index = 0, flag = 0, done = 1, indices[ACTS_MAX];
    for (int i = 0; i < ACTS_MAX; i++) {
        /* inactive ones may be among them */
        if (!acts[i].live) continue;
        of[n] = &acts[i];
        requests[n++] = acts[i].request;
        flag |= acts[i].active;
    }
    if (!flag) return 0;
    int how = roll(&own, 4);
    if (how == 0 || how == 3) {
        do {
            index = roll(&own, n);
        } while (!of[index]->active);
    }
    if (how == 0) OK(MPI_Wait(&requests[index], MPI_STATUS_IGNORE));
    if (how == 1) OK(MPI_Waitany(n, requests, &index, MPI_STATUS_IGNORE));
    if (how == 2)
        OK(MPI_Waitsome(n, requests, &done, indices, MPI_STATUSES_IGNORE));
    for (flag = 0; how == 3 && !flag;)
        OK(MPI_Test(&requests[index], &flag, MPI_STATUS_IGNORE));
    for (int i = 0; i < done; i++) {
        int at = how == 2 ? indices[i] : index;
        of[at]->request = requests[at];
        act_finish(of[at]);
    }
    return 1;
}

/* Completes all, restarts persistent ones as often as they require, in an order
 * of each rank's own, and frees them. */
static void acts_settle(void)
{
    MPI_Request again[ACTS_MAX];
    int n;
    do {
        while (acts_complete()) continue;
        n = 0;
        for (int i = 0, turn = roll(&own, ACTS_MAX); i < ACTS_MAX; i++) {
            struct act *act = &acts[(i + turn) % ACTS_MAX];
            if (!act->live || act->repeats-- == 0) continue;
            if (act->in.memory) area_fill(&act->in);
            if (act->out.memory) area_fill(&act->out);
            act->active = 1;
            again[n++] = act->request;
        }
        OK(MPI_Startall(n, again));
        for (int i = 0; i < ACTS_MAX; i++)
            if (acts[i].live && !acts[i].active) act_free(&acts[i]);
    } while (n > 0);
}

static struct act *act_new(void)
{
    int at = 0;
    while (acts[at].live) at++;
    memset(&acts[at], 0, sizeof acts[at]);
    return &acts[at];
}

static void act_start(struct dice *dice, const struct team *team, int kind)
{
    static const int units[] = {1, 2, 4, 8};
    struct act *act = act_new();
    act->live = act->active = 1;
    act->step = step;
    act->team = team;
    act->dice = *dice;
    act->mode = roll(&act->dice, MODES);
    act->root = roll(&act->dice, team->size);
    act->unit = units[roll(&act->dice, 4)];
    act->op = act->user = MPI_OP_NULL;
    act->request = MPI_REQUEST_NULL;
    /* MPICH 4.0.2 gathers the first input again on a restart, so no restarts
     * there. */
    if (act->mode >= KEPT && !mpich) act->repeats = roll(&act->dice, 3);
    if (kind == 0) act_broadcast(act);
    if (kind == 1 || kind == 2) act_gather(act, kind == 1);
    if (kind == 3 || kind == 4) act_scatter(act, kind == 3);
    if (kind == 5 || kind == 6) act_allgather(act, kind == 5);
    if (kind == 7 || kind == 8) act_alltoall(act, kind == 7);
    if (kind == 9) act_alltoallw(act);
    if (kind >= 10) act_reduce(act, kind - 10);
    if (act->request == MPI_REQUEST_NULL) act_finish(act);
}

/* ------------------------------------------------------------ communicators */

static void team_of(struct team *team, MPI_Comm comm, const int *world, int n)
{
    int found_size = -1, found_rank = -1;
    team->comm = comm;
    team->size = n;
    team->rank = -1;
    for (int r = 0; r < n; r++) {
        team->world[r] = world[r];
        if (world[r] == rank) team->rank = r;
    }
    OK(MPI_Comm_size(comm, &found_size));
    OK(MPI_Comm_rank(comm, &found_rank));
    if (found_size != team->size || found_rank != team->rank)
        blame("communicator", 0, "other members than computed");
}

/* By random colors and keys with ties; every rank has a color. */
static void team_split(struct dice *dice, struct team *team)
{
    int colors[RANKS_MAX], keys[RANKS_MAX], world[RANKS_MAX], n = 0;
    MPI_Comm comm;
    for (int r = 0; r < size; r++) {
        colors[r] = roll(dice, 2);
        keys[r] = roll(dice, 3) - 1;
    }
    for (int key = -1; key < 2; key++)
        for (int r = 0; r < size; r++)
            if (colors[r] == colors[rank] && keys[r] == key) world[n++] = r;
    OK(MPI_Comm_split(MPI_COMM_WORLD, colors[rank], keys[rank], &comm));
    team_of(team, comm, world, n);
}

/* Two disjoint groups made at the same time, in any order of ranks. */
static void team_group(struct dice *dice, struct team *team, int all)
{
    int colors[RANKS_MAX], world[RANKS_MAX], n = 0;
    MPI_Group whole, part;
    MPI_Comm comm;
    for (int r = 0; r < size; r++) colors[r] = roll(dice, 2);
    for (int r = size - 1; r >= 0; r--)
        if (colors[r] == colors[rank]) world[n++] = r;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &whole));
    OK(MPI_Group_incl(whole, n, world, &part));
    if (all)
        OK(MPI_Comm_create(MPI_COMM_WORLD, part, &comm));
    else
        OK(MPI_Comm_create_group(MPI_COMM_WORLD, part, 7, &comm));
    OK(MPI_Group_free(&whole));
    OK(MPI_Group_free(&part));
    team_of(team, comm, world, n);
}

static void team_replace(struct dice *dice)
{
    struct team *team = &teams[1 + roll(dice, TEAMS - 1)];
    int kind = roll(dice, 5), world[RANKS_MAX];
    MPI_Comm comm;
    MPI_Request request;
    acts_settle();
    OK(MPI_Comm_free(&team->comm));
    for (int r = 0; r < size; r++) world[r] = r;
    switch (kind) {
    case 0:
        team_split(dice, team);
        break;
    case 1:
    case 2:
        team_group(dice, team, kind == 1);
        break;
    case 3:
        OK(MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        team_of(team, comm, world, size);
        break;
    default:
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        team_of(team, comm, world, size);
    }
}

/* ------------------------------------------------------------------ the run */

static void run_step(void)
{
    struct dice dice = {mix((uint64_t)seed << 20, (uint64_t)step)};
    int kind = roll(&dice, 26);
    if (kind == 25) {
        team_replace(&dice);
        return;
    }
    /* Numbers that are equal on all ranks of the world choose the team; its
     * actions depend on its size, so its members draw them. */
    const struct team *team = &teams[roll(&dice, TEAMS)];
    if (kind >= 20)
        messages(&dice, team);
    else
        act_start(&dice, team, kind);
    if (roll(&own, 3) == 0) (void)acts_complete();
    if (step % PERIOD == PERIOD - 1) acts_settle();
}

static void run_seed(int steps)
{
    int world[RANKS_MAX];
    MPI_Comm comm;
    own.state = mix((uint64_t)seed, (uint64_t)rank + 1000);
    for (int r = 0; r < size; r++) world[r] = r;
    team_of(&teams[0], MPI_COMM_WORLD, world, size);
    for (int t = 1; t < TEAMS; t++) {
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        team_of(&teams[t], comm, world, size);
    }
    for (step = 0; step < steps; step++) run_step();
    acts_settle();
    for (int t = 1; t < TEAMS; t++) OK(MPI_Comm_free(&teams[t].comm));
}

int main(int argc, char **argv)
{
    int first = argc > 1 ? atoi(argv[1]) : 1;
    int count = argc > 2 ? atoi(argv[2]) : 3;
    int steps = argc > 3 ? atoi(argv[3]) : 120, length;
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_library_version(version, &length);
    mpich = strncmp(version, "MPICH", 5) == 0;
    void *room = malloc(1 << 20);
    OK(MPI_Buffer_attach(room, 1 << 20));
    for (seed = first; seed < first + count && !conform_failures; seed++)
        run_seed(steps);
    OK(MPI_Buffer_detach(&room, &length));
    free(room);
    return conform_end();
}
