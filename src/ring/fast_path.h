/* fast_path.h - a flat collective between ready members, or one over a tree,
 * without an operation.
 *
 * It covers small all-reduces, broadcasts, all-gathers and barriers of the
 * whole view, one at a time, between members of one host; and small all-to-alls
 * and reduce-scatters (fast_pairs.h), gathers and scatters (fast_star.h). It
 * writes its frames to the channels, or once for all as a post, polls the
 * channels for the frames of the others, and folds or copies them from where
 * they lie. On the wire it is a flat all-reduce (or a confirmed broadcast, a
 * linear all-gather, or one over a tree) like any other (rule D9). As soon as
 * anything is unusual, fast_convert() makes an operation of it, which goes on
 * from there. */
#ifndef PCCL_FAST_PATH_H
#define PCCL_FAST_PATH_H

#include "../link/frame.h"
#include "algorithm.h"

enum {
    FAST_PARTNERS_MAX = HOST_MESH_MAX - 1, /* a bit of `written` each */
    FAST_CHOICES = 4,
};

struct conn;
struct endpoint;
struct engine;
struct link;
struct op;
struct op_request;
struct cached_result;
struct tag_entry;
struct unexpected;

struct fast_endpoint {
    struct conn *conn;
    struct link *link;
    uint32_t number;     /* of the connection */
    uint32_t recvs;      /* bytes expected, without headers */
    uint32_t sends;      /* bytes to it, without headers */
    uint32_t frames;     /* frames expected */
    const uint8_t *body; /* bytes received; NULL: none yet */
    bool posted;         /* they lie where the other end has posted them */
    const uint8_t *sum;  /* its part of the result, posted; NULL: none yet */
    bool added;          /* this member has added up that part itself */
    struct unexpected *early; /* the data came before the call; or NULL */
    uint64_t tx_digest, rx_digest;
    /* Of pairs: */
    uint8_t head[FRAME_SIZE]; /* the frame that is to come */
};

/* A root and the others: the endpoints of a gather, a scatter or a reduction to
 * the root. */
struct fast_star {
    bool known, able; /* as of the fast path, for this root */
    uint32_t root, count;
    struct fast_endpoint eps[FAST_PARTNERS_MAX]; /* in the order of ranks */
};

/* Members that an operation goes to. */
struct fast_partners {
    bool able; /* each of them has a channel and no other connection */
    uint32_t count;
    struct fast_endpoint eps[FAST_PARTNERS_MAX];
};

/* What the table chooses for up to so many bytes of a vector or block. */
struct fast_choice {
    uint64_t most; /* 0 of the first one: the table has not been asked */
    enum algorithm_fast fast;
};

struct fast_path {
    /* what is here up to `choices` matches the view and the connections */
    bool known;
    struct fast_partners all;  /* the other members, in the order of ranks */
    struct fast_partners near; /* the children in the tree, then the parent */
    struct plan plan;          /* of the tree */
    struct fast_choice choices[COLL_COUNT][FLOW_COUNT][FAST_CHOICES];
    struct fast_endpoint *eps; /* of `all` or of `near` */
    uint32_t ep_count, left;
    const struct op_request *r; /* NULL: no operation is under way */
    struct tag_entry *tag;
    struct cached_result *cached; /* of the previous operation with this tag */
    uint32_t size;                /* of a vector or block */
    uint32_t result;              /* bytes in the receive buffer */
    uint32_t sends;   /* bytes to each of the others; not in a tree */
    bool tree;        /* it goes over the tree */
    bool posts;       /* its frame goes to all as one post (rule L11) */
    bool sums;        /* each member adds up a part (rule D9f) */
    bool has_sum;     /* this one has posted its part */
    uint32_t looks;   /* since then, for the parts of the others */
    uint8_t *own_sum; /* the part that it has posted */
    bool pairs;       /* each member gets other bytes (rule D9d) */
    bool spoked;      /* the last operation is one of `star` (rule D9e) */
    struct fast_star star;
    bool holds;         /* has all bytes, and waits for DONE */
    bool has_sent;      /* all that goes before anything is received */
    uint64_t written;   /* bit set: endpoints whose doorbell is to be rung */
    struct frame frame; /* of both heads: */
    uint8_t head[FRAME_SIZE];  /* the header with a vector, */
    uint8_t empty[FRAME_SIZE]; /* the header without one */
    /* In a tree the sum or the blocks; in pairs the block. */
    uint8_t *own;
    size_t own_size;
    uint64_t sent, received; /* bytes so far, with headers */
    uint32_t latest;         /* endpoint whose frame came last */
};

/* For the files of the fast path. */
/* Nothing prevents the fast path of an operation of the whole view. */
bool fast_may_begin(struct engine *e, const struct op_request *r);
enum algorithm_fast fast_find_choice(struct engine *e,
                                     const struct plan_request *r,
                                     uint64_t bytes);
/* How the table's algorithm for so many bytes of a vector or block runs. */
static inline enum algorithm_fast fast_choice(struct engine *e,
                                              const struct fast_path *q,
                                              const struct plan_request *r,
                                              uint64_t bytes)
{
    const struct fast_choice *first = q->choices[r->coll][r->flow];
    if (bytes <= first->most && first->fast != FAST_NOT) return first->fast;
    return fast_find_choice(e, r, bytes);
}
/* False: the member has no channel, or other connections. */
bool fast_find_endpoint(struct engine *e, uint32_t rank,
                        struct fast_endpoint *ep);
/* Nothing is half sent or half read, and nothing else waits to be sent. */
bool fast_endpoint_is_settled(const struct fast_endpoint *ep);
/* It is settled, and no frame is kept that came before its operation. */
bool fast_endpoint_is_idle(const struct fast_endpoint *ep);
/* Data of an endpoint (`recvs`, `rx_digest`) that came while the call before
 * this one was an ordinary operation, which reads more than its own frames, or
 * while there was none. False: other frames have come. */
bool fast_find_early(const struct engine *e, const struct op_request *r,
                     struct fast_endpoint *ep);
void fast_drop_early(struct engine *e, struct fast_endpoint *ep);
/* Posts of the other end that the call has read where they lie. */
static inline uint32_t fast_posts_of(const struct fast_endpoint *ep)
{
    return (ep->posted ? 1u : 0u) + (ep->sum ? 1u : 0u);
}
/* Rule L11c: they are still there. Otherwise this member has been left out; an
 * operation takes the place of the call, and will not end. */
bool fast_posts_hold(const struct fast_path *q);
/* All transfers to the partner have been sent. */
void fast_mark_sent(struct engine *e, struct op *op, struct endpoint *ep,
                    uint32_t bytes);

#endif
