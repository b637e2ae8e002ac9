/* graph.h - graph topologies: the neighbours of a process, in the order of its
 * edges. */
#ifndef GRAPH_H
#define GRAPH_H

#include "mpi_comm.h"

struct graph {
    atomic_int references;
    int kind; /* MPI_GRAPH or MPI_DIST_GRAPH */
    /* Of an MPI_GRAPH, the whole graph as MPI_Graph_create got it: */
    int nodes, edge_count;
    int *index, *edges;
    /* Of this process; for an MPI_GRAPH both lists have its neighbours: */
    int in, out;
    int *sources, *dests;
    bool weighted;
    int *in_weights, *out_weights; /* one per edge, if weighted */
};

/* Adds a reference; NULL stays NULL. */
struct graph *graph_share(struct graph *graph);
void graph_release(struct graph *graph);

#endif
