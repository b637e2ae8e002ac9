/* partial.h - the partial all-reduces of one member: moves their data and obeys
 * the coordinator, which decides on them (rules A of COVERAGE.md).
 *
 * Everything is asked for. The owner of a part asks the others for their
 * contributions, reduces them, and the others ask the owner for the result. A
 * question that is lost with a link is asked again; a member that is gone does
 * not answer. Frames carry the number of the round and no epoch, so a change of
 * view does not disturb them. Pure. */
#ifndef PCCL_PARTIAL_H
#define PCCL_PARTIAL_H

#include "../link/links.h"

enum {
    PARTIAL_CALLS_MAX = WIRE_TAGS_MAX, /* rounds under way here */
    PARTIAL_CHUNK = 256 * 1024,        /* bytes of one answer */
    PARTIAL_WINDOW = 8, /* chunks of a kind asked of a member at a time */
    PARTIAL_TODO_MAX = 4 * PARTIAL_WINDOW, /* its unanswered questions */
    PARTIAL_EARLY_MAX = 256, /* questions about rounds not known here */
};

enum partial_data { PARTIAL_INPUT, PARTIAL_RESULT, PARTIAL_DATA_COUNT };

enum partial_phase {
    PARTIAL_CALLED,   /* the coordinator has not answered */
    PARTIAL_MOVING,   /* by its plan */
    PARTIAL_FETCHING, /* what it has decided on */
    PARTIAL_FAILING,  /* by itself; the coordinator lets go of it */
    PARTIAL_DONE,
};

enum partial_chunk { CHUNK_WANTED, CHUNK_ASKED, CHUNK_COMING, CHUNK_HERE };

/* Bytes that are asked of one member. */
struct partial_stream {
    uint32_t from; /* number of the member */
    uint8_t *to;
    uint64_t size;
    uint32_t piece;  /* bytes of a chunk, but for the last one */
    uint8_t *chunks; /* enum partial_chunk */
    uint32_t count, here, asked, next;
    pccl_ns pause_until;
};

struct partial_question {
    uint8_t kind; /* enum partial_data */
    uint32_t part;
    uint64_t offset;
};

struct partial_member {
    uint64_t id;
    double weight; /* 0: it has not called */
    bool gone;
    struct partial_stream input; /* its contribution to the part owned here */
    struct partial_question todo[PARTIAL_TODO_MAX];
    uint32_t todo_count;
    uint32_t asked[PARTIAL_DATA_COUNT]; /* chunks in flight from it */
};

struct partial_part {
    uint64_t begin, count; /* elements */
    uint32_t owner;
    bool here, told; /* the result; and HOLDS has said so */
    bool wanted;     /* FETCHING: it is committed */
    uint64_t hash;   /* of the result here; FETCHING: as decided */
    struct partial_stream result;
    uint32_t tries; /* FETCHING: holders that have been asked */
    /* The end of it: */
    double weight;
    uint32_t contributors;
};

/* What the program asks for. */
struct partial_request {
    uint64_t tag, count;
    uint8_t dtype, redop;
    double weight;
    uint32_t deadline_ms, gather_ms, evict_after;
    const uint8_t *send;
    uint8_t *recv; /* may be send */
};

struct partial_call {
    struct partial_call *next;
    enum partial_phase phase;
    bool awaited;  /* a call of the program waits for it */
    bool taken;    /* the program has its result */
    bool released; /* nobody needs it any more */
    bool folded;   /* the part that is owned here, or there is none */
    bool fold_due; /* with what is here */
    bool reports;  /* HOLDS is due for each part */
    bool starved;  /* there was no memory */
    struct partial_request r;
    uint32_t serial;             /* of the member's calls */
    uint64_t number;             /* 0: not known */
    uint8_t *result;             /* all parts; owned */
    uint32_t element, self, own; /* own: the part, or PARTIAL_NONE */
    struct partial_member *members;
    struct partial_part *parts;
    uint8_t *sets; /* FETCHING: holders. DONE: contributors */
    uint32_t member_count, part_count, set_size;
    uint64_t tx_bytes, rx_bytes;
    /* DONE: */
    int why; /* partial_refusal, or one of these: */
    bool contributed;
    char text[WIRE_TEXT_MAX + 1];
};

#define PARTIAL_NONE UINT32_MAX
enum {
    PARTIAL_WELL = -1,
    PARTIAL_GONE = -2,
    PARTIAL_BROKEN = -3,
    PARTIAL_LOST = -4,
};

struct partial_early {
    uint64_t peer, tag, number;
    struct partial_question question;
    pccl_ns since;
};

enum { PARTIAL_TAGS_MAX = 64 }; /* as many as the coordinator keeps */

struct partial {
    struct links *links;
    void (*send)(void *user, const struct wire_msg *msg); /* to the master */
    void (*changed)(void *user);                          /* a call is DONE */
    void *user;
    struct partial_call *calls;
    uint32_t serial; /* calls so far */
    uint32_t piece;  /* PARTIAL_CHUNK; less in tests */
    struct partial_early early[PARTIAL_EARLY_MAX];
    uint32_t early_count;
    /* In the order of their last calls. */
    struct partial_tag {
        uint64_t tag;
        bool missed; /* perhaps a round of it, when a coordinator was lost */
    } * tags;
    uint32_t tag_count;
};

/* The caller zeroes it before. */
void partial_init(struct partial *p, struct links *links,
                  void (*send)(void *user, const struct wire_msg *msg),
                  void (*changed)(void *user), void *user);
void partial_free(struct partial *p); /* before the links */
/* Every call ends. PARTIAL_GONE: out of the run. PARTIAL_LOST: the coordinator
 * is; so does the next call of each tag that none is under way of (H8). */
void partial_stop(struct partial *p, int why);
void partial_tick(struct partial *p);

/* What is wrong with the arguments, or NULL. */
const char *partial_wrong(const struct partial_request *r);
/* Begins a call. NULL: no memory, or too many. */
struct partial_call *partial_call(struct partial *p,
                                  const struct partial_request *r);
/* Another coordinator is to know of the calls that it was not there for. */
void partial_call_again(const struct partial *p);
struct partial_call *partial_find(struct partial *p, uint64_t tag);
/* The tags of calls whose result the program has not taken; returns how
 * many. */
uint32_t partial_untaken(const struct partial *p,
                         uint64_t tags[PARTIAL_CALLS_MAX]);
/* The call is DONE and its result was read: it may be freed. */
void partial_take(struct partial *p, struct partial_call *c);
void partial_on_message(struct partial *p, const struct wire_msg *msg);
/* A call is under way, or others may ask for what is kept. */
bool partial_has_work(const struct partial *p);
bool partial_waits(const struct partial *p); /* a call is under way */

/* --- partial*.c only --- */
void partial_receive_frames(struct partial *p);
bool partial_is_under_way(const struct partial *p, uint64_t tag);
void partial_finish(struct partial *p, struct partial_call *c, int why,
                    const char *text);
bool partial_stream_open(const struct partial *p, struct partial_stream *s,
                         uint32_t from, uint8_t *to, uint64_t size);
void partial_stream_close(struct partial_stream *s);
/* All that was asked of the member is wanted again. */
void partial_release(struct partial *p, struct partial_call *c,
                     uint32_t member);
void partial_wake(struct partial *p, const struct partial_call *c);
void partial_dial(struct partial *p, const struct partial_call *c);
void partial_apply_early(struct partial *p, struct partial_call *c);
/* Something has come, or an order: folds, reports. */
void partial_settle(struct partial *p, struct partial_call *c);
/* The whole result of a part is here, to be checked. */
void partial_result_here(struct partial *p, struct partial_call *c,
                         uint32_t part);
/* A member that was asked for a part in FETCHING does not give it. */
void partial_next_holder(struct partial *p, struct partial_call *c,
                         uint32_t part);

#endif
