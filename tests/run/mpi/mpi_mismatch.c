/* mpi_mismatch.c - tests that ranks which disagree on any argument of a
 * collective all get an error through MPI_ERRORS_RETURN, and that the
 * communicator goes on.
 *
 *   mpi_mismatch SECONDS FIRST [COLLECTIVE SIZE...]...
 *
 * SECONDS: a rank that waits longer in a case names it and ends. FIRST: the
 * number of the first case that is run. COLLECTIVE:
 * allreduce, broadcast, allgather or alltoallv, with the sizes in bytes at
 * which the library chooses another algorithm (bench/borders.h). */
#include "conform.h"
#include "mismatch_words.h"

#include <signal.h>
#include <unistd.h>

enum { SIZES_MAX = 64, SUM_COUNT = 100 };

enum what {
    BARRIER,
    BCAST,
    GATHER,
    GATHERV,
    SCATTER,
    SCATTERV,
    ALLGATHER,
    ALLGATHERV,
    ALLTOALL,
    ALLTOALLV,
    ALLTOALLW,
    REDUCE,
    ALLREDUCE,
    REDUCE_SCATTER_BLOCK,
    REDUCE_SCATTER,
    SCAN,
    EXSCAN,
    WHATS
};

static const char *const names[WHATS] = {
    "Barrier",        "Bcast",
    "Gather",         "Gatherv",
    "Scatter",        "Scatterv",
    "Allgather",      "Allgatherv",
    "Alltoall",       "Alltoallv",
    "Alltoallw",      "Reduce",
    "Allreduce",      "Reduce_scatter_block",
    "Reduce_scatter", "Scan",
    "Exscan"};

/* The call of one rank. */
struct args {
    enum what what;
    int count; /* elements, of each pair in an all-to-all */
    MPI_Datatype type;
    MPI_Op op;
    int root;
    /* Elements more than `count` to and from each rank, where there is an
     * array of counts or a second count. */
    int send[RANKS_MAX], recv[RANKS_MAX];
};

static int rank, size, number, wrong;
static char *out, *in;
static char text[160];
static MPI_Op backwards; /* of the program, not commutative */
static int sizes[4][SIZES_MAX], size_counts[4];
static const char *const colls[4] = {"allreduce", "broadcast", "allgather",
                                     "alltoallv"};

/* -------------------------------------------------------------------- calls */

struct arrays {
    int sends[RANKS_MAX], send_at[RANKS_MAX];
    int recvs[RANKS_MAX], recv_at[RANKS_MAX];
    int send_bytes[RANKS_MAX], recv_bytes[RANKS_MAX];
    MPI_Datatype types[RANKS_MAX];
};

static void arrays_fill(const struct args *a, struct arrays *x)
{
    int bytes;
    MPI_Type_size(a->type, &bytes);
    for (int r = 0; r < size; r++) {
        x->types[r] = a->type;
        x->sends[r] = a->count + a->send[r];
        x->recvs[r] = a->count + a->recv[r];
        x->send_at[r] = r == 0 ? 0 : x->send_at[r - 1] + x->sends[r - 1];
        x->recv_at[r] = r == 0 ? 0 : x->recv_at[r - 1] + x->recvs[r - 1];
        x->send_bytes[r] = x->send_at[r] * bytes;
        x->recv_bytes[r] = x->recv_at[r] * bytes;
    }
}

static int blocking(const struct args *a, const struct arrays *x)
{
    MPI_Comm w = MPI_COMM_WORLD;
    int n = a->count, to_root = x->sends[a->root], mine = x->recvs[a->root];
    MPI_Datatype t = a->type;
    switch (a->what) {
    case BARRIER:
        return MPI_Barrier(w);
    case BCAST:
        return MPI_Bcast(out, n, t, a->root, w);
    case GATHER:
        return MPI_Gather(out, to_root, t, in, n, t, a->root, w);
    case GATHERV:
        return MPI_Gatherv(out, to_root, t, in, x->recvs, x->recv_at, t,
                           a->root, w);
    case SCATTER:
        return MPI_Scatter(out, n, t, in, mine, t, a->root, w);
    case SCATTERV:
        return MPI_Scatterv(out, x->sends, x->send_at, t, in, mine, t, a->root,
                            w);
    case ALLGATHER:
        return MPI_Allgather(out, n, t, in, n, t, w);
    case ALLGATHERV:
        return MPI_Allgatherv(out, x->sends[0], t, in, x->recvs, x->recv_at, t,
                              w);
    case ALLTOALL:
        return MPI_Alltoall(out, n, t, in, n, t, w);
    case ALLTOALLV:
        return MPI_Alltoallv(out, x->sends, x->send_at, t, in, x->recvs,
                             x->recv_at, t, w);
    case ALLTOALLW:
        return MPI_Alltoallw(out, x->sends, x->send_bytes, x->types, in,
                             x->recvs, x->recv_bytes, x->types, w);
    case REDUCE:
        return MPI_Reduce(out, in, n, t, a->op, a->root, w);
    case ALLREDUCE:
        return MPI_Allreduce(out, in, n, t, a->op, w);
    case REDUCE_SCATTER_BLOCK:
        return MPI_Reduce_scatter_block(out, in, n, t, a->op, w);
    case REDUCE_SCATTER:
        return MPI_Reduce_scatter(out, in, x->recvs, t, a->op, w);
    case SCAN:
        return MPI_Scan(out, in, n, t, a->op, w);
    default:
        return MPI_Exscan(out, in, n, t, a->op, w);
    }
}

static int start(const struct args *a, const struct arrays *x, MPI_Request *q)
{
    MPI_Comm w = MPI_COMM_WORLD;
    int n = a->count, to_root = x->sends[a->root], mine = x->recvs[a->root];
    MPI_Datatype t = a->type;
    switch (a->what) {
    case BARRIER:
        return MPI_Ibarrier(w, q);
    case BCAST:
        return MPI_Ibcast(out, n, t, a->root, w, q);
    case GATHER:
        return MPI_Igather(out, to_root, t, in, n, t, a->root, w, q);
    case GATHERV:
        return MPI_Igatherv(out, to_root, t, in, x->recvs, x->recv_at, t,
                            a->root, w, q);
    case SCATTER:
        return MPI_Iscatter(out, n, t, in, mine, t, a->root, w, q);
    case SCATTERV:
        return MPI_Iscatterv(out, x->sends, x->send_at, t, in, mine, t, a->root,
                             w, q);
    case ALLGATHER:
        return MPI_Iallgather(out, n, t, in, n, t, w, q);
    case ALLGATHERV:
        return MPI_Iallgatherv(out, x->sends[0], t, in, x->recvs, x->recv_at, t,
                               w, q);
    case ALLTOALL:
        return MPI_Ialltoall(out, n, t, in, n, t, w, q);
    case ALLTOALLV:
        return MPI_Ialltoallv(out, x->sends, x->send_at, t, in, x->recvs,
                              x->recv_at, t, w, q);
    case ALLTOALLW:
        return MPI_Ialltoallw(out, x->sends, x->send_bytes, x->types, in,
                              x->recvs, x->recv_bytes, x->types, w, q);
    case REDUCE:
        return MPI_Ireduce(out, in, n, t, a->op, a->root, w, q);
    case ALLREDUCE:
        return MPI_Iallreduce(out, in, n, t, a->op, w, q);
    case REDUCE_SCATTER_BLOCK:
        return MPI_Ireduce_scatter_block(out, in, n, t, a->op, w, q);
    case REDUCE_SCATTER:
        return MPI_Ireduce_scatter(out, in, x->recvs, t, a->op, w, q);
    case SCAN:
        return MPI_Iscan(out, in, n, t, a->op, w, q);
    default:
        return MPI_Iexscan(out, in, n, t, a->op, w, q);
    }
}

static int call(const struct args *a)
{
    struct arrays x = {{0}, {0}, {0}, {0}, {0}, {0}, {MPI_INT}};
    MPI_Request request;
    arrays_fill(a, &x);
    if (number % 2 == 0) return blocking(a, &x);
    int result = start(a, &x, &request);
    return result == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE)
                                 : result;
}

/* -------------------------------------------------------------------- cases */

static void say(const char *what, int value)
{
    fprintf(stderr, "%d ranks, %s: rank %d %s %d\n", size, text, rank, what,
            value);
    wrong++;
}

static void late(int sig)
{
    static const char says[] = " waits for too long\n";
    ssize_t n = write(2, text, strlen(text));
    (void)(n + write(2, says, sizeof says - 1) + sig);
    _exit(1);
}

static int sum_is_right(void)
{
    int values[SUM_COUNT], root = 1 % size;
    for (int i = 0; i < SUM_COUNT; i++) values[i] = rank + i;
    if (MPI_Allreduce(MPI_IN_PLACE, values, SUM_COUNT, MPI_INT, MPI_SUM,
                      MPI_COMM_WORLD) != MPI_SUCCESS)
        return 0;
    for (int i = 0; i < SUM_COUNT; i++)
        if (values[i] != size * (size - 1) / 2 + size * i) return 0;
    int value = rank;
    return MPI_Bcast(&value, 1, MPI_INT, root, MPI_COMM_WORLD) == MPI_SUCCESS &&
           value == root;
}

/* Forms of one collective. A library may let them meet. */
static int family(int what)
{
    static const int first[WHATS] = {
        BARRIER,   BCAST,          GATHER,         GATHER,   SCATTER,  SCATTER,
        ALLGATHER, ALLGATHER,      ALLTOALL,       ALLTOALL, ALLTOALL, REDUCE,
        ALLREDUCE, REDUCE_SCATTER, REDUCE_SCATTER, SCAN,     EXSCAN};
    return first[what];
}

/* ----------------------------------------------------------------- the text
 */

static const char *op_text(MPI_Op op)
{
    return op == MPI_SUM    ? "MPI_SUM"
           : op == MPI_MAX  ? "MPI_MAX"
           : op == MPI_LAND ? "MPI_LAND"
           : op == MPI_BXOR ? "MPI_BXOR"
                            : "of the program";
}

static const char *type_text(MPI_Datatype type)
{
    return type == MPI_INT     ? "MPI_INT"
           : type == MPI_FLOAT ? "MPI_FLOAT"
                               : "MPI_DOUBLE";
}

/* What the call of this rank has under a name; 0: there is no such name. */
static int own_value(const struct args *a, const char *name, char *out,
                     size_t room)
{
    int entry, bytes;
    int is_block = a->what == REDUCE_SCATTER_BLOCK;
    enum what shown = (enum what)family((int)a->what);
    MPI_Type_size(a->type, &bytes);
    if (strcmp(name, "the function") == 0)
        snprintf(out, room, "MPI_%s", names[is_block ? a->what : shown]);
    else if (strcmp(name, "the root") == 0)
        snprintf(out, room, "%d", a->root);
    else if (strcmp(name, "the count") == 0)
        snprintf(out, room, "%d", a->count);
    else if (strcmp(name, "the bytes") == 0)
        snprintf(out, room, "%d", a->count * bytes);
    else if (strcmp(name, "the datatype") == 0)
        snprintf(out, room, "%s", type_text(a->type));
    else if (strcmp(name, "the operator") == 0)
        snprintf(out, room, "%s", op_text(a->op));
    else if (sscanf(name, "counts[%d]", &entry) == 1)
        snprintf(out, room, "%d", a->count + a->recv[entry]);
    else
        return 0;
    return 1;
}

/* The text of an error: it names an argument, its values and ranks. */
static int text_is_right(const struct args *mine, char *error)
{
    char own[64], *colon;
    char *at = strstr(error, "members disagree on ");
    if (!at) return 0;
    if (sizes_are_right(at)) return 1;
    at += strlen("members disagree on ");
    colon = strstr(at, ": ");
    if (!colon) return 0;
    *colon = 0;
    if (strncmp(at, "the bytes of a block", 20) == 0)
        return values_are_right(colon + 2, "", RANKS_MAX, size);
    return own_value(mine, at, own, sizeof own) &&
           values_are_right(colon + 2, own, rank, size);
}

static int patience, first;

static void disagree(const struct args *mine, const struct args *usual,
                     const char *what)
{
    int bytes;
    if (number++ < first) return;
    MPI_Type_size(usual->type, &bytes);
    snprintf(text, sizeof text, "case %d: MPI_%s%s of %d times %d bytes, %s",
             number - 1, number % 2 ? "I" : "", names[usual->what],
             usual->count, bytes, what);
    alarm((unsigned)patience);
    char error[MPI_MAX_ERROR_STRING], copy[MPI_MAX_ERROR_STRING];
    int code = call(mine), result = conform_class(code);
    char *says = copy;
    snprintf(copy, sizeof copy, "%s", error_text(code, error));
    if (!text_is_right(mine, says)) {
        say("has a wrong text, case", number - 1);
        fprintf(stderr, "%s\n", error);
    }
    if (!text_is_everywhere(error_text(code, error)))
        say("has another text than others", 0);
    if (result != MPI_ERR_NOT_SAME) say("has error class", result);
    if (!sum_is_right()) say("cannot go on", 0);
}

/* One rank differs: each in its turn. */
static void odd(const struct args *usual, const struct args *other,
                const char *what)
{
    disagree(rank == number % size ? other : usual, usual, what);
}

static int is_rooted(enum what what)
{
    return what == BCAST || what == REDUCE || what == GATHER ||
           what == GATHERV || what == SCATTER || what == SCATTERV;
}

static int reduces(enum what what)
{
    return what >= REDUCE;
}

static void roots(const struct args *usual)
{
    struct args a = *usual;
    a.root = rank;
    disagree(&a, usual, "root: each itself");
    a.root = (rank + 1) % size;
    disagree(&a, usual, "root: each the next");
    a.root = rank == size - 1 ? rank : 0;
    disagree(&a, usual, "root: itself at the last rank");
    a.root = rank == 0 ? 1 : 0;
    disagree(&a, usual, "root: 1 at rank 0");
    a.root = rank == size - 1 ? 1 : 0;
    if (size > 2) disagree(&a, usual, "root: 1 at the last rank");
}

static void counts(const struct args *usual, int next)
{
    struct args a = *usual, none = *usual;
    a.count = next;
    none.count = 0;
    odd(usual, &a, "count: the next larger");
    odd(&a, usual, "count: the next smaller");
    if (usual->count == 0) return;
    odd(usual, &none, "count: nothing");
    odd(&none, usual, "count: something");
}

/* What rank 0, the root, sends to itself and expects of itself. */
static void own(const struct args *usual)
{
    struct args a = *usual;
    enum what what = usual->what;
    if (what != SCATTER) {
        if (rank == 0) a.send[0] = 1;
        disagree(&a, usual, "counts: one more to itself at rank 0");
        a = *usual;
    }
    if (what == GATHER || usual->count == 0) return;
    if (rank == 0) a.recv[0] = -a.count;
    disagree(&a, usual, "counts: nothing expected of itself at rank 0");
}

/* Counts of pairs: what one sends and another one expects. */
static void pairs(const struct args *usual)
{
    struct args a = *usual;
    enum what what = usual->what;
    own(usual);
    if (what == GATHER || what == GATHERV || what == ALLGATHERV) {
        if (rank == size - 1) a.send[0] = a.recv[rank] = 1;
        disagree(&a, usual, "counts: one more from the last rank");
        a = *usual;
    }
    if (what == SCATTERV || what == ALLTOALLV || what == ALLTOALLW) {
        if (rank == 0) a.send[size - 1] = 1;
        disagree(&a, usual, "counts: one more to the last rank");
        a = *usual;
    }
    if (what == GATHERV || what == ALLGATHERV) {
        if (rank == 0) a.recv[size - 1] = 1;
        disagree(&a, usual, "counts: one more expected at rank 0");
    }
    if (what == SCATTER || what == SCATTERV) {
        if (rank == size - 1) a.recv[0] = 1;
        disagree(&a, usual, "counts: one more expected at the last");
    }
    if (what != ALLTOALLV && what != ALLTOALLW) return;
    if (usual->count == 0) return;
    a = *usual;
    for (int r = 0; r < size; r++) a.recv[r] = r == rank ? 0 : -a.count;
    disagree(&a, usual, "counts: nothing is expected");
    memcpy(a.send, a.recv, sizeof a.send);
    memset(a.recv, 0, sizeof a.recv);
    disagree(&a, usual, "counts: nothing is sent");
    a = *usual;
    for (int r = 0; r < size; r++) a.send[r] = a.recv[r] = -a.count;
    if (rank == size - 1) a.send[0] = 0;
    disagree(&a, usual, "counts: one pair, which expects nothing");
}

static void types(const struct args *usual)
{
    struct args a = *usual;
    a.type = MPI_FLOAT;
    odd(usual, &a, "type: float");
    a.type = MPI_DOUBLE;
    odd(usual, &a, "type: double");
    a = *usual;
    if (a.what == REDUCE_SCATTER && a.count > 0) {
        a.recv[0] = 1;
        a.recv[size - 1] = -1;
        odd(usual, &a, "counts: as many, but not for the same ranks");
        a = *usual;
    }
    a.op = MPI_MAX;
    odd(usual, &a, "operator: maximum");
    a.op = MPI_LAND;
    odd(usual, &a, "operator: logical and");
    a.op = MPI_BXOR;
    odd(usual, &a, "operator: exclusive or");
    a.op = backwards;
    odd(usual, &a, "operator: of the program");
    struct args folds = a;
    folds.op = MPI_LAND;
    odd(&folds, &a, "operator: of the program beside a logical one");
}

static void kinds(int count)
{
    for (int one = 0; one < WHATS; one++) {
        for (int other = 0; other < WHATS; other++) {
            struct args a = {
                (enum what)one, count, MPI_INT, MPI_SUM, 0, {0}, {0}};
            struct args b = a;
            char what[40];
            b.what = (enum what)other;
            snprintf(what, sizeof what, "kind: MPI_%s", names[other]);
            if (family(one) != family(other)) odd(&a, &b, what);
        }
    }
}

/* The native collective that carries it, as a number in colls. */
static int table_of(enum what what)
{
    if (what == BCAST) return 1;
    if (what == ALLGATHER || what == SCAN || what == EXSCAN) return 2;
    return reduces(what) ? 0 : 3;
}

static void every_size(enum what what, int coll)
{
    for (int i = 0; i < size_counts[coll]; i++) {
        struct args a = {
            what, sizes[coll][i] / (int)sizeof(int), MPI_INT, MPI_SUM, 0, {0},
            {0}};
        if (is_rooted(what)) roots(&a);
        if (reduces(what) && a.count > 0) types(&a);
        if (what >= GATHER && what <= ALLTOALLW && what != ALLGATHER &&
            what != ALLTOALL)
            pairs(&a);
        else if (i + 1 < size_counts[coll])
            counts(&a, sizes[coll][i + 1] / (int)sizeof(int));
    }
}

static void last_but_one(void *a, void *b, int *count, MPI_Datatype *type)
{
    (void)type;
    memcpy(b, a, (size_t)*count * sizeof(int));
}

static int read_sizes(int argc, char **argv)
{
    int coll = -1, most = 0;
    for (int i = 3; i < argc; i++) {
        int is_name = 0;
        for (int k = 0; k < 4; k++) {
            if (strcmp(argv[i], colls[k]) != 0) continue;
            coll = k;
            is_name = 1;
        }
        if (is_name || coll < 0 || size_counts[coll] == SIZES_MAX) continue;
        int bytes = atoi(argv[i]);
        sizes[coll][size_counts[coll]++] = bytes;
        if (bytes > most) most = bytes;
    }
    return most;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Op_create(last_but_one, 0, &backwards);
    patience = argc > 1 ? atoi(argv[1]) : 0;
    first = argc > 2 ? atoi(argv[2]) : 0;
    signal(SIGALRM, late);
    int most = read_sizes(argc, argv);
    out = calloc((size_t)(most + 8) * RANKS_MAX, 2);
    in = calloc((size_t)(most + 8) * RANKS_MAX, 2);
    for (int count = 0; count <= 100000; count = 1000 * count + 10 * !count)
        kinds(count);
    for (int what = BCAST; what < WHATS; what++)
        every_size((enum what)what, table_of((enum what)what));
    fprintf(stderr, "rank %d: %d wrong of %d cases\n", rank, wrong, number);
    conform_failures = wrong;
    MPI_Op_free(&backwards);
    free(out);
    free(in);
    return conform_end();
}
