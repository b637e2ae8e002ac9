/* wan_world.h - an emulated network as a text file says it. Pure.
 *
 * The format is in README.md. A line is one statement; statements about links
 * may be given for a later time ("at 5s ..."), or while the network runs. */
#ifndef WAN_WORLD_H
#define WAN_WORLD_H

#include "pipe.h"

enum {
    NODES_MAX = 64, /* node 0 is the master's, peer i is node i */
    REGIONS_MAX = 32,
    TRUNKS_MAX = 16,
    STATEMENTS_MAX = 4096,
    NAME_SIZE = 24,
    TITLE_SIZE = 80,
    MASTER_NODE = 0,
};

/* Bit i: node i. */
typedef uint64_t node_set;

/* One direction between two nodes, or a part of it. */
struct wire {
    struct pipe_rule rule;
    wan_ns delay;  /* one way */
    wan_ns jitter; /* added, uniformly from 0 to this */
    double loss;   /* probability of a packet */
    bool blocked;  /* nothing passes */
    bool walled;   /* nobody may call: TCP connections the other way pass */
};

enum statement_kind {
    STATE_UP,    /* what a node sends, to whomever */
    STATE_DOWN,  /* what it receives */
    STATE_TRUNK, /* what one set of nodes sends to another, together */
    STATE_PATH,  /* what one node sends to another */
};

enum wire_field {
    FIELD_RATE = 1 << 0,
    FIELD_FLOW = 1 << 1,
    FIELD_QUEUE = 1 << 2,
    FIELD_FAIR = 1 << 3,
    FIELD_DELAY = 1 << 4,
    FIELD_JITTER = 1 << 5,
    FIELD_LOSS = 1 << 6,
    FIELD_BLOCK = 1 << 7,
    FIELD_WALL = 1 << 8,
};

struct statement {
    enum statement_kind kind;
    wan_ns at;
    node_set from, to;
    bool both;       /* and from `to` to `from` */
    unsigned fields; /* enum wire_field: which of `wire` are said */
    struct wire wire;
    int line;
};

struct world {
    char title[TITLE_SIZE];
    char congestion[NAME_SIZE]; /* TCP's congestion control, "": the host's */
    uint64_t seed;
    wan_ns limit; /* the run is ended after this time */
    uint32_t mtu;
    enum { OFFLOAD_AUTO, OFFLOAD_ON, OFFLOAD_OFF } offload;
    uint32_t nodes, regions;
    char region_name[REGIONS_MAX][NAME_SIZE];
    uint8_t region_of[NODES_MAX];
    struct statement *statements; /* in order of `at`, then of the file */
    uint32_t statement_count;
};

enum { WORLD_ERROR_SIZE = 200 };

/* Reads a whole file's text. False: error says which line and what is wrong.
 * `name` is what the error calls the file. */
bool world_parse(struct world *w, const char *name, const char *text,
                 char error[WORLD_ERROR_SIZE]);
void world_free(struct world *w);

/* One statement about links, as in the file. */
bool world_statement(const struct world *w, const char *line,
                     struct statement *s, char error[WORLD_ERROR_SIZE]);

/* Carries the statement's fields into a wire. */
void wire_apply(struct wire *wire, const struct statement *s);

#endif
