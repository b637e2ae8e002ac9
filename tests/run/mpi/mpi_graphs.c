/* mpi_graphs.c - tests graph topologies and neighbourhood collectives on
 * them. */
#include "conform.h"

enum { EDGES_MAX = 32, BLOCK = 3 };

static int rank, size;

static int item(int from, int to, int number, int i)
{
    return from * 10000 + to * 100 + number * 10 + i;
}

/* Number of edges to or from the same member before entry j. */
static int number_of(const int *list, int j)
{
    int number = 0;
    for (int k = 0; k < j; k++) number += list[k] == list[j];
    return number;
}

struct edges {
    int in, out, sources[EDGES_MAX], dests[EDGES_MAX];
};

static void check_allgather(MPI_Comm comm, const struct edges *e, int how)
{
    int out[BLOCK], in[EDGES_MAX * BLOCK];
    MPI_Request request;
    for (int i = 0; i < BLOCK; i++) out[i] = item(rank, 0, 0, i);
    memset(in, -1, sizeof in);
    if (how == 0) {
        OK(MPI_Neighbor_allgather(out, BLOCK, MPI_INT, in, BLOCK, MPI_INT,
                                  comm));
    } else {
        OK(MPI_Ineighbor_allgather(out, BLOCK, MPI_INT, in, BLOCK, MPI_INT,
                                   comm, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    for (int j = 0; j < e->in; j++)
        for (int i = 0; i < BLOCK; i++)
            CHECK(in[j * BLOCK + i] == item(e->sources[j], 0, 0, i));
    CHECK(in[e->in * BLOCK] == -1);
    int counts[EDGES_MAX], displs[EDGES_MAX];
    for (int j = 0; j < e->in; j++) {
        counts[j] = 1;
        displs[j] = 2 * (e->in - 1 - j);
    }
    memset(in, -1, sizeof in);
    OK(MPI_Neighbor_allgatherv(out, 1, MPI_INT, in, counts, displs, MPI_INT,
                               comm));
    for (int j = 0; j < e->in; j++)
        CHECK(in[displs[j]] == item(e->sources[j], 0, 0, 0));
}

static void fill(int *out, const struct edges *e)
{
    for (int j = 0; j < e->out; j++)
        for (int i = 0; i < BLOCK; i++)
            out[j * BLOCK + i] =
                item(rank, e->dests[j], number_of(e->dests, j), i);
}

static void check_received(const int *in, const struct edges *e, int count)
{
    for (int j = 0; j < e->in; j++)
        for (int i = 0; i < count; i++)
            CHECK(in[j * BLOCK + i] ==
                  item(e->sources[j], rank, number_of(e->sources, j), i));
}

static void check_alltoall(MPI_Comm comm, const struct edges *e)
{
    int out[EDGES_MAX * BLOCK], in[EDGES_MAX * BLOCK];
    MPI_Request request;
    fill(out, e);
    memset(in, -1, sizeof in);
    OK(MPI_Neighbor_alltoall(out, BLOCK, MPI_INT, in, BLOCK, MPI_INT, comm));
    check_received(in, e, BLOCK);
    memset(in, -1, sizeof in);
    OK(MPI_Ineighbor_alltoall(out, BLOCK, MPI_INT, in, BLOCK, MPI_INT, comm,
                              &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    check_received(in, e, BLOCK);
    int counts[2][EDGES_MAX], displs[EDGES_MAX];
    for (int j = 0; j < EDGES_MAX; j++) {
        counts[0][j] = counts[1][j] = 2;
        displs[j] = j * BLOCK;
    }
    memset(in, -1, sizeof in);
    OK(MPI_Neighbor_alltoallv(out, counts[0], displs, MPI_INT, in, counts[1],
                              displs, MPI_INT, comm));
    check_received(in, e, 2);
    MPI_Aint bytes[EDGES_MAX];
    MPI_Datatype types[EDGES_MAX];
    for (int j = 0; j < EDGES_MAX; j++) {
        bytes[j] = (MPI_Aint)sizeof(int) * j * BLOCK;
        types[j] = MPI_INT;
    }
    memset(in, -1, sizeof in);
    OK(MPI_Neighbor_alltoallw(out, counts[0], bytes, types, in, counts[1],
                              bytes, types, comm));
    check_received(in, e, 2);
}

/* MPICH receives parallel edges in reverse order, as its grids need; MPI 4.0
 * (8.6) defines sends and receives in the order of the edges. */
static int reverses(const struct edges *e)
{
    for (int j = 0; j < e->in; j++)
        if (number_of(e->sources, j) > 0) return conform_is_mpich();
    return 0;
}

static void check_collectives(MPI_Comm comm, const struct edges *e)
{
    int mine = reverses(e), any;
    check_allgather(comm, e, 0);
    check_allgather(comm, e, 1);
    OK(MPI_Allreduce(&mine, &any, 1, MPI_INT, MPI_MAX, comm));
    if (!any) check_alltoall(comm, e);
}

static int kind_of(MPI_Comm comm)
{
    int kind = -1;
    OK(MPI_Topo_test(comm, &kind));
    return kind;
}

/* Edges to the next `reach` ranks, the first one doubled if `twice`. */
static void ring(struct edges *e, int reach, int twice)
{
    memset(e, 0, sizeof *e);
    for (int k = 1; k <= reach; k++)
        for (int t = 0; t < (k == 1 && twice ? 2 : 1); t++) {
            e->dests[e->out++] = (rank + k) % size;
            e->sources[e->in++] = (rank - k + reach * size) % size;
        }
}

static void test_adjacent(int reach, int twice)
{
    struct edges e;
    MPI_Comm comm, copy;
    int in, out, weighted, weights[2][EDGES_MAX], got[2][EDGES_MAX];
    int sources[EDGES_MAX], dests[EDGES_MAX];
    ring(&e, reach, twice);
    for (int j = 0; j < EDGES_MAX; j++) {
        weights[0][j] = 10 * j;
        weights[1][j] = j + 1;
    }
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, e.in, e.sources,
                                      weights[0], e.out, e.dests, weights[1],
                                      MPI_INFO_NULL, 0, &comm));
    CHECK(kind_of(comm) == MPI_DIST_GRAPH);
    OK(MPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted));
    CHECK(in == e.in && out == e.out && weighted);
    OK(MPI_Dist_graph_neighbors(comm, in, sources, got[0], out, dests, got[1]));
    for (int j = 0; j < in; j++)
        CHECK(sources[j] == e.sources[j] && got[0][j] == weights[0][j]);
    for (int j = 0; j < out; j++)
        CHECK(dests[j] == e.dests[j] && got[1][j] == weights[1][j]);
    check_collectives(comm, &e);
    OK(MPI_Comm_dup(comm, &copy));
    OK(MPI_Comm_free(&comm));
    CHECK(kind_of(copy) == MPI_DIST_GRAPH);
    check_collectives(copy, &e);
    OK(MPI_Comm_free(&copy));
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, e.in, e.sources,
                                      MPI_UNWEIGHTED, e.out, e.dests,
                                      MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm));
    OK(MPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted));
    CHECK(in == e.in && out == e.out && !weighted);
    check_collectives(comm, &e);
    OK(MPI_Comm_free(&comm));
}

/* A star: rank 0 provides all of its edges, in both directions. */
static void test_create(void)
{
    MPI_Comm comm;
    int nodes[2 * EDGES_MAX], degrees[2 * EDGES_MAX], dests[2 * EDGES_MAX];
    int weights[2 * EDGES_MAX], n = 0, in, out, weighted;
    struct edges e = {0};
    for (int r = 1; r < size && rank == 0; r++) {
        nodes[n] = 0;
        degrees[n] = 1;
        weights[n] = 5 + r;
        dests[n++] = r;
        nodes[n] = r;
        degrees[n] = 1;
        weights[n] = 50 + r;
        dests[n++] = 0;
    }
    OK(MPI_Dist_graph_create(MPI_COMM_WORLD, n, nodes, degrees, dests, weights,
                             MPI_INFO_NULL, 0, &comm));
    OK(MPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted));
    CHECK(in == (rank == 0 ? size - 1 : 1) || size == 1);
    CHECK(out == in && weighted);
    int got[2][EDGES_MAX];
    OK(MPI_Dist_graph_neighbors(comm, in, e.sources, got[0], out, e.dests,
                                got[1]));
    e.in = in;
    e.out = out;
    int seen[EDGES_MAX] = {0};
    for (int j = 0; j < in; j++) {
        seen[e.sources[j]]++;
        int leaf = rank == 0 ? e.sources[j] : rank;
        CHECK(got[0][j] == (rank == 0 ? 50 : 5) + leaf);
    }
    for (int r = 0; r < size; r++)
        CHECK(seen[r] == (size > 1 && (rank == 0) != (r == 0)));
    check_collectives(comm, &e);
    OK(MPI_Comm_free(&comm));
    /* no rank has an edge */
    OK(MPI_Dist_graph_create(MPI_COMM_WORLD, 0, nodes, degrees, dests,
                             MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, 0, &comm));
    OK(MPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted));
    CHECK(in == 0 && out == 0 && weighted);
    e.in = e.out = 0;
    check_collectives(comm, &e);
    OK(MPI_Comm_free(&comm));
}

/* The ring with both neighbours, defined as a whole, on all but the last
 * rank. */
static void test_graph(int nodes)
{
    MPI_Comm comm;
    int index[EDGES_MAX], edges[2 * EDGES_MAX], got_index[EDGES_MAX];
    int got_edges[2 * EDGES_MAX], neighbors[4], count, edge_count, place;
    struct edges e = {0};
    for (int i = 0; i < nodes; i++) {
        edges[2 * i] = (i + nodes - 1) % nodes;
        edges[2 * i + 1] = (i + 1) % nodes;
        index[i] = 2 * i + 2;
    }
    OK(MPI_Graph_map(MPI_COMM_WORLD, nodes, index, edges, &place));
    OK(MPI_Graph_create(MPI_COMM_WORLD, nodes, index, edges, 0, &comm));
    CHECK((comm == MPI_COMM_NULL) == (rank >= nodes));
    if (comm == MPI_COMM_NULL) return;
    CHECK(kind_of(comm) == MPI_GRAPH);
    OK(MPI_Graphdims_get(comm, &count, &edge_count));
    CHECK(count == nodes && edge_count == 2 * nodes);
    OK(MPI_Graph_get(comm, nodes, 2 * nodes, got_index, got_edges));
    for (int i = 0; i < nodes; i++) CHECK(got_index[i] == index[i]);
    for (int i = 0; i < 2 * nodes; i++) CHECK(got_edges[i] == edges[i]);
    for (int r = 0; r < nodes; r++) {
        OK(MPI_Graph_neighbors_count(comm, r, &count));
        CHECK(count == 2);
        OK(MPI_Graph_neighbors(comm, r, 2, neighbors));
        CHECK(neighbors[0] == edges[2 * r]);
        CHECK(neighbors[1] == edges[2 * r + 1]);
    }
    e.in = e.out = 2;
    for (int j = 0; j < 2; j++) e.sources[j] = e.dests[j] = edges[2 * rank + j];
    check_collectives(comm, &e);
    FAILS(MPI_ERR_TOPOLOGY, MPI_Cartdim_get(comm, &count));
    OK(MPI_Comm_free(&comm));
}

static void test_errors(void)
{
    MPI_Comm comm = MPI_COMM_NULL;
    int bad = size, one = 1, in, out, weighted;
    FAILS(MPI_ERR_TOPOLOGY,
          MPI_Dist_graph_neighbors_count(MPI_COMM_WORLD, &in, &out, &weighted));
    FAILS(MPI_ERR_TOPOLOGY, MPI_Graphdims_get(MPI_COMM_WORLD, &in, &out));
    CHECK(MPI_Graph_create(MPI_COMM_WORLD, size + 1, &one, &bad, 0, &comm) !=
          MPI_SUCCESS);
    CHECK(MPI_Dist_graph_create_adjacent(
              MPI_COMM_WORLD, -1, &one, MPI_UNWEIGHTED, 0, &one, MPI_UNWEIGHTED,
              MPI_INFO_NULL, 0, &comm) != MPI_SUCCESS);
    CHECK(kind_of(MPI_COMM_WORLD) == MPI_UNDEFINED);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int reach = 0; reach <= 3; reach++) {
        test_adjacent(reach, 0);
        test_adjacent(reach, 1);
    }
    test_create();
    test_graph(size);
    if (size > 1) test_graph(size - 1);
    test_errors();
    return conform_end();
}
