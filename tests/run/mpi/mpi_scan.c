/* mpi_scan.c - tests MPI_Scan and MPI_Exscan of vectors on both sides of the
 * sizes from which on they go to one rank, and in slices: counts that no number
 * of ranks divides, an operator that does not commute on a type with holes, in
 * place and not, blocking, nonblocking and persistent. */
#include "conform.h"

static int rank, size;

enum { GUARD = 7 };

/* Gathered, for one rank of several to fold, too small for slices, too large
 * for the rest not to count, and large. */
static const int counts[] = {1, 5, 2049, 4099, 40009, 262147};

/* x -> a * x + b, modulo a prime: composition does not commute. */
struct map {
    unsigned a, hole, b;
};

enum { PRIME = 65521 };

static struct map map_of(int r, int i)
{
    return (struct map){(unsigned)(r * 7 + i % 5 + 2), 77,
                        (unsigned)(r + i % 11)};
}

static struct map after(struct map first, struct map second)
{
    return (struct map){first.a * second.a % PRIME, 77,
                        (second.a * first.b + second.b) % PRIME};
}

static void compose(void *in, void *inout, int *count, MPI_Datatype *type)
{
    struct map *from = in, *to = inout;
    (void)type;
    for (int i = 0; i < *count; i++) {
        struct map both = after(from[i], to[i]);
        to[i].a = both.a;
        to[i].b = both.b;
    }
}

/* What the ranks 0 to last make of element i. */
static struct map prefix(int last, int i)
{
    struct map all = map_of(0, i);
    for (int r = 1; r <= last; r++) all = after(all, map_of(r, i));
    return all;
}

static void scan(int how, const void *in, void *out, int count,
                 MPI_Datatype type, MPI_Op op)
{
    MPI_Request request = MPI_REQUEST_NULL;
    if (how == 0) OK(MPI_Scan(in, out, count, type, op, MPI_COMM_WORLD));
    if (how == 1) OK(MPI_Exscan(in, out, count, type, op, MPI_COMM_WORLD));
    if (how == 2)
        OK(MPI_Iscan(in, out, count, type, op, MPI_COMM_WORLD, &request));
    if (how == 3)
        OK(MPI_Iexscan(in, out, count, type, op, MPI_COMM_WORLD, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

static void maps(int count, int how, int in_place, MPI_Datatype type, MPI_Op op)
{
    size_t all = (size_t)count + GUARD;
    struct map *in = malloc(all * sizeof *in), *out = malloc(all * sizeof *out);
    int wrong = 0, last = rank - how % 2;
    for (int i = 0; i < count + GUARD; i++) {
        in[i] = map_of(rank, i);
        out[i] = in_place ? in[i] : (struct map){1, 2, 3};
    }
    scan(how, in_place ? MPI_IN_PLACE : in, out, count, type, op);
    for (int i = 0; i < count + GUARD; i++) {
        struct map want = in_place ? map_of(rank, i) : (struct map){1, 2, 3};
        if (i < count && last >= 0) {
            unsigned hole = want.hole;
            want = prefix(last, i);
            want.hole = hole;
        }
        wrong += memcmp(&out[i], &want, sizeof want) != 0;
        want = map_of(rank, i);
        wrong += memcmp(&in[i], &want, sizeof want) != 0;
    }
    CHECK(wrong == 0);
    free(in);
    free(out);
}

static void sums(int count, int how, int in_place)
{
    size_t all = (size_t)count + GUARD;
    double *in = malloc(all * sizeof *in), *out = malloc(all * sizeof *out);
    int wrong = 0, last = rank - how % 2;
    for (int i = 0; i < count + GUARD; i++) {
        in[i] = rank + i;
        out[i] = in_place ? in[i] : -1;
    }
    scan(how, in_place ? MPI_IN_PLACE : in, out, count, MPI_DOUBLE, MPI_SUM);
    for (int i = 0; i < count + GUARD; i++) {
        double sum = last * (last + 1) / 2 + (double)(last + 1) * i;
        double before = in_place ? rank + i : -1;
        wrong += out[i] != (i < count && last >= 0 ? sum : before);
        wrong += in[i] != rank + i;
    }
    CHECK(wrong == 0);
    free(in);
    free(out);
}

#if MPI_VERSION >= 4
/* Each start takes what the buffer holds then. */
static void persistent(void)
{
    enum { COUNT = 50021 };
    static int in[COUNT], out[COUNT];
    MPI_Request request;
    OK(MPI_Scan_init(in, out, COUNT, MPI_INT, MPI_MAX, MPI_COMM_WORLD,
                     MPI_INFO_NULL, &request));
    for (int turn = 0; turn < 3; turn++) {
        int wrong = 0;
        for (int i = 0; i < COUNT; i++) in[i] = turn * rank + i;
        OK(MPI_Start(&request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        for (int i = 0; i < COUNT; i++) wrong += out[i] != turn * rank + i;
        CHECK(wrong == 0);
    }
    OK(MPI_Request_free(&request));
}
#endif

int main(int argc, char **argv)
{
    MPI_Datatype pair, type;
    MPI_Op op;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    OK(MPI_Type_vector(2, 1, 2, MPI_UNSIGNED, &pair));
    OK(MPI_Type_create_resized(pair, 0, sizeof(struct map), &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Op_create(compose, 0, &op));
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
        for (int how = 0; how < 4; how++)
            for (int in_place = 0; in_place < 2; in_place++) {
                maps(counts[c], how, in_place, type, op);
                sums(counts[c], how, in_place);
            }
#if MPI_VERSION >= 4
    persistent();
#endif
    OK(MPI_Op_free(&op));
    OK(MPI_Type_free(&type));
    OK(MPI_Type_free(&pair));
    return conform_end();
}
