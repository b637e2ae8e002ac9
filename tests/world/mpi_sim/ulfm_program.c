/* ulfm_program.c - the program of each rank: steps on one communicator after
 * the other, each step followed by an agreement; whatever went wrong is ended
 * by a revocation and a shrink. Some ranks revoke without a reason.
 *
 * Checked:
 *   - an agreement has one flag and one result on all that live;
 *   - a shrink has one communicator on all: context and members; all
 * communicators of one context have the same members, or none in common;
 *   - no rank meets a context number twice;
 *   - a collective that succeeds on one rank fails on none;
 *   - on a revoked communicator a rank that knows it gets MPIX_ERR_REVOKED;
 *   - data are right where a call succeeds.
 * That none hangs, test_mpi_sim.c checks. */
#include "world.h"

#include <string.h>

enum { STEPS = 8, NOTES_MAX = 4096, CONTEXTS_MAX = 1024 };

/* What ranks found that did the same thing. */
struct note {
    uint64_t what; /* names it: a hash */
    bool used;
    int size; /* of a communicator */
    uint64_t ids[RANKS_MAX];
    struct {
        bool said;
        int result;
        uint32_t value;
    } by[RANKS_MAX];
};

static struct note notes[NOTES_MAX];
static bool seen[RANKS_MAX][CONTEXTS_MAX];

void ulfm_begin(void)
{
    memset(notes, 0, sizeof notes);
    memset(seen, 0, sizeof seen);
}

/* One rank's program. */
struct run {
    struct rank *rank;
    const struct mpi_calls *mpi;
    MPI_Comm comm;
    uint32_t context; /* of comm */
    /* Of its context and members: a rank that came too late for the first
     * world has one of its own. */
    uint64_t name;
    int me, size, votes, calls;
    uint32_t step;
    bool knows; /* it is revoked */
};

static uint64_t draw(uint64_t a, uint64_t b)
{
    return sim_mix(universe.seed, 0x77, a, b);
}

static struct note *note_of(uint64_t what)
{
    uint64_t i = what % NOTES_MAX;
    while (notes[i].used && notes[i].what != what) i = (i + 1) % NOTES_MAX;
    if (!notes[i].used) notes[i] = (struct note){.what = what, .used = true};
    return &notes[i];
}

/* All ranks that live find the same. Who died after it had an answer is no
 * survivor, and the others may have another one (contract C1). */
static void check_same(const struct run *r, uint64_t what, int result,
                       uint32_t value)
{
    struct note *n = note_of(what);
    int me = r->rank->number;
    for (int i = 0; i < RANKS_MAX; i++) {
        if (!n->by[i].said || ranks[i].dead) continue;
        SIM_CHECK(
            &universe, n->by[i].result == result && n->by[i].value == value,
            "step %u: rank %d has class %d and value %u, rank %d class "
            "%d and value %u",
            r->step, me, result, value, i, n->by[i].result, n->by[i].value);
    }
    n->by[me].said = true;
    n->by[me].result = result;
    n->by[me].value = value;
}

static int class_of(const struct run *r, int code)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int class = -1, length;
    (void)r->mpi->MPI_Error_class(code, &class);
    (void)r->mpi->MPI_Error_string(code, text, &length);
    if (class != MPI_SUCCESS)
        SIM_TRACE(&universe, "rank %d, step %u: %s", r->rank->number, r->step,
                  text);
    if (class == MPIX_ERR_PROC_FAILED) events->proc_failed++;
    if (class == MPIX_ERR_REVOKED) events->revoked++;
    SIM_CHECK(&universe,
              class == MPI_SUCCESS || class == MPIX_ERR_PROC_FAILED ||
                  class == MPIX_ERR_REVOKED,
              "rank %d gets error class %d in step %u: %s", r->rank->number,
              class, r->step, text);
    return class;
}

/* A communicator was made here. */
static void check_made(const struct run *r, MPI_Comm made)
{
    uint64_t ids[RANKS_MAX] = {0};
    uint32_t context = r->mpi->look_context(made);
    int size = r->mpi->look_members(made, ids, RANKS_MAX);
    events->contexts++;
    SIM_CHECK(&universe, context < CONTEXTS_MAX, "context %u", context);
    SIM_CHECK(&universe, !seen[r->rank->number][context],
              "rank %d has context %u twice", r->rank->number, context);
    seen[r->rank->number][context] = true;
    for (int i = 0; i < size; i++) {
        struct note *n = note_of(sim_mix(1, context, ids[i], 0));
        if (n->size == 0) {
            n->size = size;
            memcpy(n->ids, ids, sizeof ids);
        }
        SIM_CHECK(&universe,
                  n->size == size && memcmp(n->ids, ids, sizeof ids) == 0,
                  "rank %d has other members in context %u", r->rank->number,
                  context);
    }
}

/* A collective that is one operation, the nth call on its communicator. */
static void check_call(struct run *r, int class)
{
    check_same(r, sim_mix(2, r->name, (uint64_t)r->calls++, 0),
               class == MPI_SUCCESS, 0);
}

/* ------------------------------------------------------------------- actions
 */

static int barrier(struct run *r)
{
    MPI_Request request;
    bool later = draw(r->step, 3) % 2;
    int class = later ? r->mpi->MPI_Ibarrier(r->comm, &request)
                      : r->mpi->MPI_Barrier(r->comm);
    if (later && class == MPI_SUCCESS)
        class = r->mpi->MPI_Wait(&request, MPI_STATUS_IGNORE);
    class = class_of(r, class);
    events->barriers += class == MPI_SUCCESS;
    check_call(r, class);
    return class;
}

static int sum(struct run *r)
{
    int mine = r->me + (int)r->step, all = -1;
    MPI_Request request;
    bool later = draw(r->step, 4) % 2;
    int class = later ? r->mpi->MPI_Iallreduce(&mine, &all, 1, MPI_INT, MPI_SUM,
                                               r->comm, &request)
                      : r->mpi->MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM,
                                              r->comm);
    events->started += later;
    if (later && class == MPI_SUCCESS)
        class = r->mpi->MPI_Wait(&request, MPI_STATUS_IGNORE);
    class = class_of(r, class);
    int right = r->size * (r->size - 1) / 2 + r->size * (int)r->step;
    SIM_CHECK(&universe, class != MPI_SUCCESS || all == right,
              "rank %d: %d is not %d", r->rank->number, all, right);
    events->sums += class == MPI_SUCCESS;
    check_call(r, class);
    return class;
}

static int broadcast(struct run *r)
{
    int root = (int)(draw(r->step, 5) % (uint64_t)r->size);
    int value = r->me == root ? (int)r->step : -1;
    int class =
        class_of(r, r->mpi->MPI_Bcast(&value, 1, MPI_INT, root, r->comm));
    SIM_CHECK(&universe, class != MPI_SUCCESS || value == (int)r->step,
              "rank %d has %d of the broadcast", r->rank->number, value);
    events->broadcasts += class == MPI_SUCCESS;
    check_call(r, class);
    return class;
}

/* A communicator is made, used and freed. */
static int use(struct run *r, MPI_Comm made)
{
    int one = 1, all = 0;
    check_made(r, made);
    uint64_t ids[RANKS_MAX];
    int size = r->mpi->look_members(made, ids, RANKS_MAX);
    int class = class_of(
        r, r->mpi->MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, made));
    SIM_CHECK(&universe, class != MPI_SUCCESS || all == size,
              "%d of %d members contributed", all, size);
    /* Who waits for this rank in it is told. */
    if (class != MPI_SUCCESS) (void)r->mpi->MPIX_Comm_revoke(made);
    (void)r->mpi->MPI_Comm_free(&made);
    return class;
}

static int duplicate(struct run *r)
{
    MPI_Comm made = MPI_COMM_NULL;
    int class = class_of(r, r->mpi->MPI_Comm_dup(r->comm, &made));
    if (class == MPI_SUCCESS) events->duplicates++;
    return class == MPI_SUCCESS ? use(r, made) : class;
}

static int split(struct run *r)
{
    MPI_Comm made = MPI_COMM_NULL;
    int color = (int)(draw(r->step, (uint64_t)r->me + 100) % 2);
    int class =
        class_of(r, r->mpi->MPI_Comm_split(r->comm, color, -r->me, &made));
    if (class == MPI_SUCCESS) events->splits++;
    return class == MPI_SUCCESS ? use(r, made) : class;
}

/* Of the first half: by messages. */
static int group(struct run *r)
{
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Group all, part;
    int list[RANKS_MAX], half = (r->size + 1) / 2;
    for (int i = 0; i < half; i++) list[i] = half - 1 - i;
    (void)r->mpi->MPI_Comm_group(r->comm, &all);
    (void)r->mpi->MPI_Group_incl(all, half, list, &part);
    int class = class_of(
        r, r->mpi->MPI_Comm_create_group(r->comm, part, (int)r->step, &made));
    (void)r->mpi->MPI_Group_free(&all);
    (void)r->mpi->MPI_Group_free(&part);
    if (class != MPI_SUCCESS || made == MPI_COMM_NULL) return class;
    events->groups++;
    return use(r, made);
}

static int ring(struct run *r)
{
    int out = r->me, in = -1, n = r->size;
    int class = class_of(
        r, r->mpi->MPI_Sendrecv(&out, 1, MPI_INT, (r->me + 1) % n, (int)r->step,
                                &in, 1, MPI_INT, (r->me + n - 1) % n,
                                (int)r->step, r->comm, MPI_STATUS_IGNORE));
    SIM_CHECK(&universe, class != MPI_SUCCESS || in == (r->me + n - 1) % n,
              "rank %d has %d from its neighbour", r->rank->number, in);
    events->rings += class == MPI_SUCCESS;
    return class;
}

static int act(struct run *r)
{
    static int (*const actions[])(struct run *) = {
        barrier, sum, broadcast, duplicate, split, group, ring};
    uint64_t count = sizeof actions / sizeof *actions;
    return actions[draw(r->step, r->context) % count](r);
}

/* ------------------------------------------------------------ revoke, agree,
 * shrink
 */

static void revoke(struct run *r)
{
    int flag = 0;
    events->revocations++;
    (void)class_of(r, r->mpi->MPIX_Comm_revoke(r->comm));
    (void)r->mpi->MPIX_Comm_is_revoked(r->comm, &flag);
    SIM_CHECK(&universe, flag, "a revoked communicator is none");
    r->knows = true;
}

/* Each kind of call, at once. */
static void check_revoked(struct run *r)
{
    int value = 0, class;
    MPI_Comm made;
    switch (draw(r->step, (uint64_t)r->me) % 4) {
    case 0:
        class = r->mpi->MPI_Barrier(r->comm);
        break;
    case 1:
        class = r->mpi->MPI_Bcast(&value, 1, MPI_INT, 0, r->comm);
        break;
    case 2:
        class = r->mpi->MPI_Recv(&value, 1, MPI_INT, (r->me + 1) % r->size, 77,
                                 r->comm, MPI_STATUS_IGNORE);
        break;
    default:
        class = r->mpi->MPI_Comm_dup(r->comm, &made);
    }
    SIM_CHECK(&universe, class_of(r, class) == MPIX_ERR_REVOKED,
              "rank %d goes on with a revoked communicator", r->rank->number);
}

/* Whether all are content. */
static bool agree(struct run *r, bool content)
{
    int flag = content ? 7 : 4, class;
    MPI_Request request;
    if (draw(r->step, 6) % 2) {
        class = r->mpi->MPIX_Comm_iagree(r->comm, &flag, &request);
        events->agreements_later++;
        if (class == MPI_SUCCESS)
            class = r->mpi->MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        class = r->mpi->MPIX_Comm_agree(r->comm, &flag);
    }
    class = class_of(r, class);
    SIM_CHECK(&universe, class != MPIX_ERR_REVOKED, "an agreement is revoked");
    events->agreements++;
    events->agreed_no += flag == 4;
    events->unacknowledged += class != MPI_SUCCESS;
    SIM_CHECK(&universe, flag == 7 || flag == 4, "flag %d", flag);
    SIM_CHECK(&universe, content || flag == 4,
              "one that disagrees is not heard");
    check_same(r, sim_mix(3, r->name, (uint64_t)r->votes++, 0), class,
               (uint32_t)flag);
    return flag == 7 && class == MPI_SUCCESS;
}

static void enter(struct run *r, MPI_Comm comm)
{
    r->comm = comm;
    uint64_t ids[RANKS_MAX];
    int size = r->mpi->look_members(comm, ids, RANKS_MAX);
    r->name = r->context = r->mpi->look_context(comm);
    for (int i = 0; i < size; i++) r->name = sim_mix(5, r->name, ids[i], 0);
    r->votes = r->calls = 0;
    r->knows = false;
    (void)r->mpi->MPI_Comm_rank(comm, &r->me);
    (void)r->mpi->MPI_Comm_size(comm, &r->size);
}

static void shrink(struct run *r)
{
    MPI_Comm made = MPI_COMM_NULL, old = r->comm;
    MPI_Request request;
    int class, before = r->size;
    uint64_t what = sim_mix(4, r->name, (uint64_t)r->votes++, 0);
    if (draw(r->step, 8) % 2) {
        class = r->mpi->MPIX_Comm_ishrink(old, &made, &request);
        events->shrinks_later++;
        if (class == MPI_SUCCESS)
            class = r->mpi->MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        class = r->mpi->MPIX_Comm_shrink(old, &made);
    }
    SIM_CHECK(&universe, class_of(r, class) == MPI_SUCCESS, "a shrink fails");
    events->shrinks++;
    check_made(r, made);
    enter(r, made);
    check_same(r, what, r->size, r->context);
    events->shrunk += r->size < before;
    if (old != MPI_COMM_WORLD) (void)r->mpi->MPI_Comm_free(&old);
}

/* The ranks of a communicator are in step: its agreements say so. */
static void step(struct run *r)
{
    uint64_t whim = draw(r->step, r->context + 1000);
    bool revokes =
        whim % 6 == 0 && (int)(whim / 6 % (uint64_t)r->size) == r->me;
    if (revokes && whim / 64 % 2) revoke(r);
    int class = r->knows ? MPIX_ERR_REVOKED : act(r);
    if (class == MPIX_ERR_REVOKED) r->knows = true;
    if (revokes && !r->knows) revoke(r);
    /* Others may wait for this rank. A loss in a part is no loss for all. */
    if (class != MPI_SUCCESS && !r->knows) revoke(r);
    if (!agree(r, class == MPI_SUCCESS && !r->knows)) shrink(r);
}

void *ulfm_program(void *argument)
{
    struct rank *rank = argument;
    struct run r = {.rank = rank, .mpi = &rank->mpi};
    (void)r.mpi->MPI_Init(NULL, NULL);
    (void)r.mpi->MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    enter(&r, MPI_COMM_WORLD);
    for (r.step = 0; r.step < STEPS; r.step++) {
        if (r.knows) check_revoked(&r);
        step(&r);
    }
    (void)r.mpi->MPI_Finalize();
    return NULL;
}
