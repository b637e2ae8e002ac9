/* mpi_graph.c - topologies of fuzz_mpi's program: grids, and graphs as a whole,
 * by neighbours, by edges, of which other ranks give some. The program asks for
 * them, and all exchange a number along the edges. See mpi_calls.h. */
#include "mpi_calls.h"

#include "../../src/mpi/mpi_comm.h"

enum { NODES_MAX = RUN_MEMBERS * 2, CART_DIMS = 2 };

static int *numbers(int count)
{
    return call_buffer(0, (size_t)count);
}

static void check_ranks(MPI_Comm graph, const int *ranks, int count)
{
    int size;
    (void)PMPI_Comm_size(graph, &size);
    for (int i = 0; i < count; i++)
        if (ranks[i] != MPI_PROC_NULL && (ranks[i] < 0 || ranks[i] >= size))
            run_fail("a neighbour that is no rank");
}

/* --------------------------------------------------------------- questions */

/* Returns the number of those from which something comes; -1: it is no graph
 * any more. */
static int ask_whole(MPI_Comm graph, int room)
{
    int nodes, edges, rank, count = -1;
    (void)PMPI_Comm_rank(graph, &rank);
    if (PMPI_Graphdims_get(graph, &nodes, &edges) != MPI_SUCCESS) return -1;
    int *index = numbers(nodes), *ends = numbers(edges);
    (void)PMPI_Graph_get(graph, nodes + room, edges, index, ends);
    free(index);
    free(ends);
    (void)PMPI_Graph_neighbors_count(graph, rank + room, &count);
    if (PMPI_Graph_neighbors_count(graph, rank, &count) != MPI_SUCCESS)
        return -1;
    int *near = numbers(count);
    (void)PMPI_Graph_neighbors(graph, rank + room, count, near);
    if (PMPI_Graph_neighbors(graph, rank, count, near) == MPI_SUCCESS)
        check_ranks(graph, near, count);
    free(near);
    return count;
}

static int ask_edges(MPI_Comm graph, int room)
{
    int ins, outs, weighted;
    if (PMPI_Dist_graph_neighbors_count(graph, &ins, &outs, &weighted) !=
        MPI_SUCCESS)
        return -1;
    int *from = numbers(ins), *to = numbers(outs);
    int *in_weights = numbers(ins), *out_weights = numbers(outs);
    int most = outs + room < 0 ? -1 : outs;
    if (PMPI_Dist_graph_neighbors(graph, ins, from,
                                  weighted ? in_weights : MPI_UNWEIGHTED, most,
                                  to, out_weights) == MPI_SUCCESS) {
        check_ranks(graph, from, ins);
        check_ranks(graph, to, outs);
    }
    free(from);
    free(to);
    free(in_weights);
    free(out_weights);
    return ins;
}

static int ask_cart(MPI_Comm cart, int room)
{
    int dims, rank, ends[2], coords[CART_DIMS], sizes[CART_DIMS];
    if (PMPI_Cartdim_get(cart, &dims) != MPI_SUCCESS) return -1;
    (void)PMPI_Comm_rank(cart, &rank);
    (void)PMPI_Cart_get(cart, dims, sizes, coords, coords);
    for (int i = 0; i < dims; i++)
        if (PMPI_Cart_shift(cart, i, 1 + room, &ends[0], &ends[1]) ==
            MPI_SUCCESS)
            check_ranks(cart, ends, 2);
    if (PMPI_Cart_coords(cart, rank, dims, coords) == MPI_SUCCESS &&
        PMPI_Cart_rank(cart, coords, &rank) == MPI_SUCCESS)
        check_ranks(cart, &rank, 1);
    return 2 * dims;
}

/* All send a number along the edges. */
static void exchange(MPI_Comm graph, int ins)
{
    int number = ins;
    int *from = numbers(ins);
    run_call(comm_find(graph)->context, 0);
    (void)PMPI_Neighbor_allgather(&number, 1, MPI_INT, from, 1, MPI_INT, graph);
    free(from);
}

/* room: a length is as much too long or too short. */
static void use(MPI_Comm made, int room)
{
    int kind = MPI_UNDEFINED, ins, nodes, rank;
    if (made == MPI_COMM_NULL) return;
    (void)PMPI_Topo_test(made, &kind);
    if (kind == MPI_GRAPH)
        ins = ask_whole(made, room);
    else if (kind == MPI_CART)
        ins = ask_cart(made, room);
    else
        ins = ask_edges(made, room);
    if (ins >= 0) exchange(made, ins);
    (void)PMPI_Comm_size(made, &nodes);
    (void)PMPI_Graph_map(made, nodes + room, NULL, NULL, &rank);
    (void)PMPI_Graphdims_get(kind == MPI_GRAPH ? MPI_COMM_WORLD : made, &nodes,
                             &rank);
}

/* ------------------------------------------------------------------ making */

/* A ring of its first ranks, with another edge. */
static void make_whole(MPI_Comm handle, uint8_t shape, MPI_Comm *out)
{
    int index[NODES_MAX], edges[NODES_MAX + 1];
    int size = comm_members(comm_find(handle))->size;
    int nodes = 1 + shape % NODES_MAX; /* too many: it is refused */
    for (int i = 0; i < nodes; i++) {
        index[i] = i + 1;
        edges[i] = (i + 1) % nodes;
    }
    index[nodes - 1]++;
    edges[nodes] = shape / NODES_MAX; /* as well */
    if (size == 0) return;
    (void)PMPI_Graph_create(handle, nodes, index, edges, 0, out);
}

/* Two neighbours on each side. */
static void make_near(MPI_Comm handle, uint8_t shape, MPI_Comm *out)
{
    int size = comm_members(comm_find(handle))->size;
    int ranks[] = {shape % 8, shape / 8 % size};
    int weights[] = {shape, shape % 4 - 1}; /* below zero: it is refused */
    bool weighted = shape & 128;
    int ins = shape % 3, outs = shape / 3 % 3;
    (void)PMPI_Dist_graph_create_adjacent(
        handle, ins, ranks, weighted ? weights : MPI_UNWEIGHTED, outs, ranks,
        weighted ? weights : MPI_UNWEIGHTED, MPI_INFO_NULL, 0, out);
}

/* One edge from here; others give theirs. */
static void make_edges(MPI_Comm handle, uint8_t to, const int *weight,
                       MPI_Comm *out)
{
    const struct group *members = comm_members(comm_find(handle));
    int node = members->rank, degree = 1, dest = to % members->size;
    (void)PMPI_Dist_graph_create(handle, 1, &node, &degree, &dest, weight,
                                 MPI_INFO_NULL, 0, out);
}

/* Two rows, or a part of them. */
static void make_cart(MPI_Comm handle, uint8_t shape, MPI_Comm *out)
{
    int size = comm_members(comm_find(handle))->size;
    int sizes[CART_DIMS] = {2 - shape % 2, size / 2 + shape / 64};
    int periods[CART_DIMS] = {shape & 2, shape & 4};
    (void)PMPI_Cart_create(handle, CART_DIMS, sizes, periods, 0, out);
}

static void use_row(MPI_Comm cart, uint8_t shape, int room)
{
    int remain[CART_DIMS] = {shape & 8, shape & 16};
    MPI_Comm row = MPI_COMM_NULL;
    run_call(comm_find(cart)->context, 0);
    if (PMPI_Cart_sub(cart, remain, &row) != MPI_SUCCESS) return;
    use(row, room);
    (void)PMPI_Comm_free(&row);
}

static void use_copy(MPI_Comm made, int room)
{
    MPI_Comm copy = MPI_COMM_NULL;
    run_call(comm_find(made)->context, 0);
    if (PMPI_Comm_dup(made, &copy) != MPI_SUCCESS) return;
    use(copy, room);
    (void)PMPI_Comm_free(&copy);
}

void call_graph(MPI_Comm handle, uint8_t shape, uint8_t which, MPI_Comm *out)
{
    int weight = (int8_t)shape; /* below zero: it is refused */
    int room = which / 32 == 7 ? -1000 : which / 32 == 6 ? 1000 : 0;
    switch (which % 8) {
    case 0:
        make_edges(handle, shape, MPI_UNWEIGHTED, out);
        break;
    case 1:
        make_edges(handle, shape, &weight, out);
        break;
    case 2:
    case 3:
        make_near(handle, shape, out);
        break;
    case 4:
    case 5:
        make_whole(handle, shape, out);
        break;
    default:
        make_cart(handle, shape, out);
        break;
    }
    use(*out, room);
    if (*out == MPI_COMM_NULL || which % 2 == 0) return;
    use_copy(*out, room);
    if (which % 8 == 7) use_row(*out, shape, room);
}
