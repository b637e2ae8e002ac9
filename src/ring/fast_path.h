/* fast_path.h - a flat collective of members that are ready, without an
 * operation.
 *
 * Small all-reduces, broadcasts and barriers of the whole view, one at a time,
 * between members of one host: the frames are written to the channels, those
 * of the others are awaited there and folded from where they lie. On the wire
 * it is a flat all-reduce (or a confirmed broadcast) like any other (rule D9).
 * Whatever is not as it mostly is, now or later, is left to the operation that
 * fast_convert() makes of it, which goes on from there. */
#ifndef PCCL_QUICK_H
#define PCCL_QUICK_H

#include "../link/frame.h"
#include "plan.h"

enum {
    FAST_WORLD_MAX = 16,
};

struct conn;
struct engine;
struct link;
struct op;
struct op_request;
struct cached_result;
struct tag_entry;

struct fast_endpoint {
    struct conn *conn;
    struct link *link;
    uint32_t number;     /* of the connection */
    uint32_t recvs;      /* bytes of what is to come */
    const uint8_t *body; /* of what has come; NULL: nothing yet */
};

struct fast_path {
    bool known; /* `able` and the endpoints are those of view and connections */
    bool able;  /* every member of the view has a channel and nothing else */
    /* By collective: bytes from which on the algorithm is another one. */
    uint64_t limit[COLL_COUNT];
    uint32_t ep_count, left;
    struct fast_endpoint eps[FAST_WORLD_MAX]; /* in the order of ranks */
    const struct op_request *r;               /* NULL: none is under way */
    struct tag_entry *tag;
    struct cached_result *cached; /* of the operation before with this tag */
    uint32_t size;                /* of a vector */
    uint32_t sends;               /* bytes to each of the others */
    struct frame frame;           /* what the heads encode, */
    uint8_t head[FRAME_SIZE];     /* with a vector, */
    uint8_t empty[FRAME_SIZE];    /* and without */
    uint8_t *own;                 /* copy of an in-place input */
    size_t own_size;
};

#endif
