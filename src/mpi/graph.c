/* graph.c - graph topologies, defined as a whole (MPI_Graph_create) or by edges
 * (MPI_Dist_graph_create*). Ranks are not reordered. */
#include "graph.h"
#include "cart.h"
#include "comm_split.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct graph *graph_share(struct graph *graph)
{
    if (graph) atomic_fetch_add(&graph->references, 1);
    return graph;
}

void graph_release(struct graph *graph)
{
    if (!graph || atomic_fetch_sub(&graph->references, 1) > 1) return;
    free(graph->index);
    free(graph->edges);
    if (graph->kind == MPI_DIST_GRAPH) {
        free(graph->sources);
        free(graph->dests);
    }
    free(graph->in_weights);
    free(graph->out_weights);
    free(graph);
}

static struct graph *graph_new(int kind)
{
    struct graph *graph = calloc(1, sizeof *graph);
    if (!graph) return NULL;
    atomic_init(&graph->references, 1);
    graph->kind = kind;
    return graph;
}

static int *numbers_copy(const int *from, int count)
{
    int *copy = calloc((size_t)count + 1, sizeof *copy);
    if (copy && count > 0) memcpy(copy, from, (size_t)count * sizeof *copy);
    return copy;
}

/* Makes the communicator of the first `nodes` ranks with the graph, which it
 * takes over. One of them may be lost meanwhile. */
static int graph_publish(struct comm *comm, struct graph *graph, int nodes,
                         MPI_Comm *out)
{
    int rank = comm_members(comm)->rank;
    int result = split_run(comm, rank < nodes ? 0 : MPI_UNDEFINED, rank, out);
    struct comm *made = result == MPI_SUCCESS ? comm_find(*out) : NULL;
    if (made) {
        split_lacks(made, nodes);
        made->graph = graph;
    } else {
        graph_release(graph);
    }
    return result;
}

static int intra_check(const struct comm *comm)
{
    if (!comm->remote) return MPI_SUCCESS;
    return error_note(MPI_ERR_COMM, "not defined for intercommunicators");
}

/* --------------------------------------------------------- the graph as whole
 */

static bool graph_valid(int nodes, const int index[], const int edges[])
{
    int before = 0;
    for (int i = 0; i < nodes; i++) {
        if (index[i] < before) return false;
        before = index[i];
    }
    for (int i = 0; i < before; i++)
        if (edges[i] < 0 || edges[i] >= nodes) return false;
    return true;
}

static int first_edge(const struct graph *graph, int rank)
{
    return rank > 0 ? graph->index[rank - 1] : 0;
}

int mpi_Graph_create(struct comm *comm, int nodes, const int index[],
                     const int edges[], int reorder, MPI_Comm *out)
{
    (void)reorder;
    int result = intra_check(comm);
    if (result != MPI_SUCCESS) return result;
    if (nodes < 0 || (nodes > 0 && (!index || !edges)))
        return note_argument("negative nodes or null pointer");
    int rank = comm_members(comm)->rank;
    if (nodes > comm_members(comm)->size)
        return note_argument("the graph has more nodes than there are ranks");
    if (!graph_valid(nodes, index, edges))
        return note_argument("index falls, or an edge leaves the graph");
    struct graph *graph = graph_new(MPI_GRAPH);
    if (!graph) return note_no_memory();
    graph->nodes = nodes;
    graph->edge_count = nodes > 0 ? index[nodes - 1] : 0;
    graph->index = numbers_copy(index, nodes);
    graph->edges = numbers_copy(edges, graph->edge_count);
    if (!graph->index || !graph->edges) {
        graph_release(graph);
        return note_no_memory();
    }
    if (rank < nodes) {
        int first = first_edge(graph, rank);
        graph->in = graph->out = graph->index[rank] - first;
        graph->sources = graph->dests = graph->edges + first;
    }
    return graph_publish(comm, graph, nodes, out);
}

/* A graph that has lost a member is no topology. */
static int graph_of(const struct comm *comm, int kind,
                    const struct graph **graph)
{
    *graph = comm->graph;
    if (!*graph || (*graph)->kind != kind)
        return error_note(MPI_ERR_TOPOLOGY,
                          "the communicator has no %s topology",
                          kind == MPI_GRAPH ? "graph" : "distributed graph");
    if (atomic_load(&comm->lost) > 0)
        return error_note(MPIX_ERR_PROC_FAILED, "a node of the graph was lost");
    return MPI_SUCCESS;
}

int mpi_Graphdims_get(struct comm *comm, int *nodes, int *edges)
{
    const struct graph *graph;
    int result = graph_of(comm, MPI_GRAPH, &graph);
    if (result != MPI_SUCCESS) return result;
    *nodes = graph->nodes;
    *edges = graph->edge_count;
    return MPI_SUCCESS;
}

int mpi_Graph_get(struct comm *comm, int max_index, int max_edges, int index[],
                  int edges[])
{
    const struct graph *graph;
    int result = graph_of(comm, MPI_GRAPH, &graph);
    if (result != MPI_SUCCESS) return result;
    if (max_index < graph->nodes || max_edges < graph->edge_count)
        return note_argument("arrays are too short");
    for (int i = 0; i < graph->nodes; i++) index[i] = graph->index[i];
    for (int i = 0; i < graph->edge_count; i++) edges[i] = graph->edges[i];
    return MPI_SUCCESS;
}

int mpi_Graph_neighbors_count(struct comm *comm, int rank, int *count)
{
    const struct graph *graph;
    int result = graph_of(comm, MPI_GRAPH, &graph);
    if (result != MPI_SUCCESS) return result;
    if (rank < 0 || rank >= graph->nodes)
        return error_note(MPI_ERR_RANK, "rank %d", rank);
    *count = graph->index[rank] - first_edge(graph, rank);
    return MPI_SUCCESS;
}

int mpi_Graph_neighbors(struct comm *comm, int rank, int max, int neighbors[])
{
    const struct graph *graph;
    int result = graph_of(comm, MPI_GRAPH, &graph);
    if (result != MPI_SUCCESS) return result;
    if (rank < 0 || rank >= graph->nodes)
        return error_note(MPI_ERR_RANK, "rank %d", rank);
    int first = first_edge(graph, rank), count = graph->index[rank] - first;
    if (max < 0 || (max > 0 && !neighbors))
        return note_argument("negative length or null pointer");
    for (int i = 0; i < count && i < max; i++)
        neighbors[i] = graph->edges[first + i];
    return MPI_SUCCESS;
}

int mpi_Graph_map(struct comm *comm, int nodes, const int index[],
                  const int edges[], int *rank)
{
    (void)index;
    (void)edges;
    const struct group *members = comm_members(comm);
    if (nodes < 1 || nodes > members->size)
        return note_argument("the graph does not fit");
    *rank = members->rank < nodes ? members->rank : MPI_UNDEFINED;
    return MPI_SUCCESS;
}

/* ------------------------------------------------------- the graph by its
 * edges
 */

static bool ranks_valid(const struct comm *comm, const int ranks[], int count)
{
    for (int i = 0; i < count; i++)
        if (ranks[i] < 0 || ranks[i] >= comm_members(comm)->size) return false;
    return true;
}

static bool weights_valid(const int weights[], int count)
{
    for (int i = 0; i < count; i++)
        if (weights[i] < 0) return false;
    return true;
}

/* Both sides are weighted or neither. MPI_WEIGHTS_EMPTY stands for an empty
 * array; its address must not be read. */
static const int *weights_given(const int weights[], int count)
{
    return weights == MPI_UNWEIGHTED || weights == MPI_WEIGHTS_EMPTY ||
                   count == 0
               ? NULL
               : weights;
}

int mpi_Dist_graph_create_adjacent(struct comm *comm, int in,
                                   const int sources[], const int in_weights[],
                                   int out, const int dests[],
                                   const int out_weights[], MPI_Info info,
                                   int reorder, MPI_Comm *made)
{
    (void)info;
    (void)reorder;
    int result = intra_check(comm);
    if (result != MPI_SUCCESS) return result;
    if (in < 0 || out < 0 || (in > 0 && !sources) || (out > 0 && !dests))
        return note_argument("negative degree or null pointer");
    if (!ranks_valid(comm, sources, in) || !ranks_valid(comm, dests, out))
        return error_note(MPI_ERR_RANK, "a neighbour is not a member");
    bool weighted =
        in_weights != MPI_UNWEIGHTED && out_weights != MPI_UNWEIGHTED;
    const int *of_in = weights_given(in_weights, in);
    const int *of_out = weights_given(out_weights, out);
    if (weighted && ((in > 0 && !of_in) || (out > 0 && !of_out)))
        return note_argument("null weights");
    if (weighted && (!weights_valid(of_in, in) || !weights_valid(of_out, out)))
        return note_argument("a negative weight");
    struct graph *graph = graph_new(MPI_DIST_GRAPH);
    if (!graph) return note_no_memory();
    graph->in = in;
    graph->out = out;
    graph->sources = numbers_copy(sources, in);
    graph->dests = numbers_copy(dests, out);
    graph->weighted = weighted;
    if (weighted) {
        graph->in_weights = numbers_copy(of_in, in);
        graph->out_weights = numbers_copy(of_out, out);
    }
    if (!graph->sources || !graph->dests ||
        (weighted && (!graph->in_weights || !graph->out_weights))) {
        graph_release(graph);
        return note_no_memory();
    }
    return graph_publish(comm, graph, comm_members(comm)->size, made);
}

/* An edge in a message to one of its ends. */
enum { EDGE_SOURCE, EDGE_DEST, EDGE_WEIGHT, EDGE_FIELDS };

struct edges {
    int size;  /* of the communicator when the call began */
    int count; /* number of edges given here */
    const int *nodes, *degrees, *dests, *weights;
    int n; /* entries of nodes and degrees */
};

/* For all edges: counts the entries of each member, or writes them at the
 * positions in `at`, which advance. */
static void edges_spread(const struct edges *edges, bool to_source, int *counts,
                         int *at, int *data)
{
    for (int i = 0, e = 0; i < edges->n; i++) {
        for (int k = 0; k < edges->degrees[i]; k++, e++) {
            int end = to_source ? edges->nodes[i] : edges->dests[e];
            if (counts) counts[end] += EDGE_FIELDS;
            if (!data) continue;
            int *to = data + at[end];
            at[end] += EDGE_FIELDS;
            to[EDGE_SOURCE] = edges->nodes[i];
            to[EDGE_DEST] = edges->dests[e];
            to[EDGE_WEIGHT] = edges->weights ? edges->weights[e] : 0;
        }
    }
}

static int offsets(const int *counts, int *displs, int size)
{
    int total = 0;
    for (int i = 0; i < size; i++) {
        displs[i] = total;
        total += counts[i];
    }
    return total;
}

/* Whether these can be numbers of what each member sends here. */
static bool counts_can_be(const int *counts, int size)
{
    long long total = 0;
    for (int i = 0; i < size; i++) {
        if (counts[i] < 0 || counts[i] % EDGE_FIELDS != 0) return false;
        total += counts[i];
    }
    return total <= INT_MAX;
}

/* Whether edges that others gave have this rank as the end to which they were
 * sent, and a rank as the other one. */
static bool edges_can_be(const struct group *members, const int *data,
                         int count, bool to_source)
{
    for (int i = 0; i < count; i++) {
        const int *edge = data + (size_t)i * EDGE_FIELDS;
        int own = edge[to_source ? EDGE_SOURCE : EDGE_DEST];
        int other = edge[to_source ? EDGE_DEST : EDGE_SOURCE];
        if (own != members->rank || other < 0 || other >= members->size)
            return false;
    }
    return true;
}

static bool is_whole(const struct comm *comm, const struct edges *edges)
{
    return comm_members(comm)->size == edges->size;
}

/* First how many go to each, then the edges. table: five numbers of each
 * member, zeros; out: room for the own edges. Calls inside raise errors, and -1
 * means that another rank's numbers cannot be. */
static int edges_swap(struct comm *comm, const struct edges *edges,
                      bool to_source, int *table, int *out, int **data,
                      int *count)
{
    int size = edges->size;
    MPI_Comm handle = comm->object.handle;
    int *sends = table, *starts = table + size, *at = table + 2 * size;
    int *recvs = table + 3 * size, *places = table + 4 * size;
    edges_spread(edges, to_source, sends, NULL, NULL);
    (void)offsets(sends, starts, size);
    memcpy(at, starts, (size_t)size * sizeof *at);
    edges_spread(edges, to_source, NULL, at, out);
    int result = PMPI_Alltoall(sends, 1, MPI_INT, recvs, 1, MPI_INT, handle);
    if (result != MPI_SUCCESS || !is_whole(comm, edges)) return result;
    if (!counts_can_be(recvs, size)) return -1;
    int total = offsets(recvs, places, size);
    *data = malloc(((size_t)total + 1) * sizeof **data);
    if (!*data) return RAISE_NO_MEMORY(comm);
    result = PMPI_Alltoallv(out, sends, starts, MPI_INT, *data, recvs, places,
                            MPI_INT, handle);
    if (result != MPI_SUCCESS || !is_whole(comm, edges)) return result;
    *count = total / EDGE_FIELDS;
    bool good = edges_can_be(comm_members(comm), *data, *count, to_source);
    return good ? MPI_SUCCESS : -1;
}

/* Sends every edge to its source or its destination. *data gets the received
 * edges, ordered by the rank that gave them and by its order, so that both ends
 * of parallel edges have the same order. The caller frees *data. When a member
 * is lost, in shrink mode, ranks are others: no edges come. */
static int edges_exchange(struct comm *comm, const struct edges *edges,
                          bool to_source, int **data, int *count)
{
    *data = NULL;
    *count = 0;
    if (!is_whole(comm, edges)) return MPI_SUCCESS;
    int *table = calloc(5 * (size_t)edges->size, sizeof *table);
    int *out = malloc(((size_t)edges->count * EDGE_FIELDS + 1) * sizeof *out);
    int result = table && out ? edges_swap(comm, edges, to_source, table, out,
                                           data, count)
                              : RAISE_NO_MEMORY(comm);
    if (result == -1)
        result = RAISE(comm, MPI_ERR_OTHER,
                       "another rank gives edges that cannot be");
    free(table);
    free(out);
    return result;
}

/* One field of all edges. */
static int *edges_field(const int *data, int count, int field)
{
    int *list = malloc(((size_t)count + 1) * sizeof *list);
    for (int i = 0; list && i < count; i++)
        list[i] = data[i * EDGE_FIELDS + field];
    return list;
}

static int graph_collect(struct comm *comm, const struct edges *edges,
                         struct graph *graph)
{
    int *in, *out = NULL;
    int result = edges_exchange(comm, edges, false, &in, &graph->in);
    if (result == MPI_SUCCESS)
        result = edges_exchange(comm, edges, true, &out, &graph->out);
    if (result == MPI_SUCCESS) {
        graph->sources = edges_field(in, graph->in, EDGE_SOURCE);
        graph->dests = edges_field(out, graph->out, EDGE_DEST);
        graph->in_weights = edges_field(in, graph->in, EDGE_WEIGHT);
        graph->out_weights = edges_field(out, graph->out, EDGE_WEIGHT);
        if (!graph->sources || !graph->dests || !graph->in_weights ||
            !graph->out_weights)
            result = RAISE_NO_MEMORY(comm);
    }
    free(in);
    free(out);
    return result;
}

MPI_PUBLIC(Dist_graph_create);
int PMPI_Dist_graph_create(MPI_Comm handle, int n, const int nodes[],
                           const int degrees[], const int dests[],
                           const int weights[], MPI_Info info, int reorder,
                           MPI_Comm *out)
{
    COMM_OR_RETURN(comm, handle);
    (void)info;
    (void)reorder;
    int result = intra_check(comm);
    if (result != MPI_SUCCESS) return error_raise_noted(comm, result, __func__);
    if (!out || n < 0 || (n > 0 && (!nodes || !degrees)))
        return RAISE_ARG(comm, "negative count or null pointer");
    struct edges edges = {.size = comm_members(comm)->size,
                          .nodes = nodes,
                          .degrees = degrees,
                          .dests = dests,
                          .n = n};
    for (int i = 0; i < n; i++) {
        if (degrees[i] < 0) return RAISE_ARG(comm, "a negative degree");
        edges.count += degrees[i];
    }
    if (edges.count > 0 && !dests) return RAISE_ARG(comm, "null destinations");
    if (!ranks_valid(comm, nodes, n) || !ranks_valid(comm, dests, edges.count))
        return RAISE(comm, MPI_ERR_RANK, "an edge's end is not a member");
    bool weighted = weights != MPI_UNWEIGHTED;
    edges.weights = weights_given(weights, edges.count);
    if (weighted && edges.count > 0 && !edges.weights)
        return RAISE_ARG(comm, "null weights");
    if (edges.weights && !weights_valid(weights, edges.count))
        return RAISE_ARG(comm, "a negative weight");
    struct graph *graph = graph_new(MPI_DIST_GRAPH);
    if (!graph) return RAISE_NO_MEMORY(comm);
    graph->weighted = weighted;
    result = graph_collect(comm, &edges, graph);
    if (result != MPI_SUCCESS) {
        graph_release(graph);
        return result;
    }
    result = graph_publish(comm, graph, edges.size, out);
    return result == MPI_SUCCESS ? result
                                 : error_raise_noted(comm, result, __func__);
}

int mpi_Dist_graph_neighbors_count(struct comm *comm, int *in, int *out,
                                   int *weighted)
{
    const struct graph *graph;
    int result = graph_of(comm, MPI_DIST_GRAPH, &graph);
    if (result != MPI_SUCCESS) return result;
    *in = graph->in;
    *out = graph->out;
    *weighted = graph->weighted;
    return MPI_SUCCESS;
}

static void list_give(const int *from, int count, int *to, int max)
{
    if (to == MPI_UNWEIGHTED || to == MPI_WEIGHTS_EMPTY || !from) return;
    for (int i = 0; i < count && i < max; i++) to[i] = from[i];
}

int mpi_Dist_graph_neighbors(struct comm *comm, int max_in, int sources[],
                             int in_weights[], int max_out, int dests[],
                             int out_weights[])
{
    const struct graph *graph;
    int result = graph_of(comm, MPI_DIST_GRAPH, &graph);
    if (result != MPI_SUCCESS) return result;
    if (max_in < 0 || max_out < 0 || (max_in > 0 && !sources) ||
        (max_out > 0 && !dests))
        return note_argument("negative length or null pointer");
    bool weighted = graph->weighted;
    list_give(graph->sources, graph->in, sources, max_in);
    list_give(graph->dests, graph->out, dests, max_out);
    list_give(weighted ? graph->in_weights : NULL, graph->in, in_weights,
              max_in);
    list_give(weighted ? graph->out_weights : NULL, graph->out, out_weights,
              max_out);
    return MPI_SUCCESS;
}

int mpi_Topo_test(struct comm *comm, int *kind)
{
    *kind = comm->cart    ? MPI_CART
            : comm->graph ? comm->graph->kind
                          : MPI_UNDEFINED;
    return MPI_SUCCESS;
}
