/* wan_world.h - an emulated network as described by a text file. Pure.
 *
 * README.md defines the format. A line is one statement. Statements about links
 * may apply at a later time ("at 5s ...") or be given while the network
 * runs. */
#ifndef WAN_WORLD_H
#define WAN_WORLD_H

#include "middlebox.h"

enum {
    NODES_MAX = 128, /* node 0 is the master's, peer i is node i */
    REGIONS_MAX = 32,
    TRUNKS_MAX = 16,
    STATEMENTS_MAX = 4096,
    NAME_SIZE = 24,
    TITLE_SIZE = 80,
    MASTER_NODE = 0,
};

/* Bit i: node i. */
__extension__ typedef unsigned __int128 node_set;

/* Shape of one direction between two nodes, or of a part of it. */
struct shaped_link {
    struct shaper_rule rule;
    wan_ns delay;     /* one way */
    wan_ns jitter;    /* added, uniformly from 0 to this */
    double loss;      /* probability of a packet */
    double reorder;   /* ... that it takes a delay more than those after it */
    double duplicate; /* ... that it comes twice */
    uint32_t mtu;     /* larger packets vanish; 0: none does */
    struct middlebox_rule middlebox;
    bool blocked;    /* nothing passes */
    bool firewalled; /* no new TCP connection this way; replies to the other way
                        pass */
};

enum statement_kind {
    STATEMENT_UP,    /* all that a node sends */
    STATEMENT_DOWN,  /* all that it receives */
    STATEMENT_TRUNK, /* all that one set of nodes sends to another, over one
                        shared link */
    STATEMENT_PATH,  /* what one node sends to another */
};

enum link_field {
    FIELD_RATE = 1 << 0,
    FIELD_FLOW = 1 << 1,
    FIELD_QUEUE = 1 << 2,
    FIELD_FAIR = 1 << 3,
    FIELD_DELAY = 1 << 4,
    FIELD_JITTER = 1 << 5,
    FIELD_LOSS = 1 << 6,
    FIELD_BLOCK = 1 << 7,
    FIELD_WALL = 1 << 8,
    FIELD_REORDER = 1 << 9,
    FIELD_DUPLICATE = 1 << 10,
    FIELD_MTU = 1 << 11,
    FIELD_FORGET = 1 << 12,
    FIELD_FIRST = 1 << 13,
};

struct statement {
    enum statement_kind kind;
    wan_ns at;
    node_set from, to;
    bool both;       /* and from `to` to `from` */
    unsigned fields; /* enum link_field: fields of `link` that it sets */
    struct shaped_link link;
    int line;
};

struct world {
    char title[TITLE_SIZE];
    char congestion[NAME_SIZE]; /* TCP's congestion control, "": the host's */
    uint64_t seed;
    wan_ns limit; /* the run ends after this time */
    uint32_t mtu;
    enum { OFFLOAD_AUTO, OFFLOAD_ON, OFFLOAD_OFF } offload;
    uint32_t nodes, regions;
    char region_name[REGIONS_MAX][NAME_SIZE];
    uint8_t region_of[NODES_MAX];
    struct statement *statements; /* in order of `at`, then of the file */
    uint32_t statement_count;
};

enum { WORLD_ERROR_SIZE = 200 };

/* Parses a whole file. False: error names the line and the cause. `name` stands
 * for the file in errors. */
bool world_parse(struct world *w, const char *name, const char *text,
                 char error[WORLD_ERROR_SIZE]);
void world_free(struct world *w);

/* One statement about links, as in the file. */
bool world_statement(const struct world *w, const char *line,
                     struct statement *s, char error[WORLD_ERROR_SIZE]);

/* Copies the fields that the statement sets to a link. */
void shaped_link_apply(struct shaped_link *link, const struct statement *s);

#endif
