/* universe.h - one universe: the states of its parties, and what is under way
 * between them; and the choices that it has.
 *
 * Every connection is a queue of whole messages in each direction. A choice
 * delivers the first message of one queue, lets one program make a step, or is
 * a fault. Time passes when there is no other choice. */
#ifndef EXPLORE_UNIVERSE_H
#define EXPLORE_UNIVERSE_H

#include "party.h"

enum {
    STREAMS_MAX = 24,
    CHOICES_MAX = 128,
    UNIVERSE_TEXT_MAX = 256,
};

enum fault_kind {
    FAULT_CRASH,
    FAULT_STOP,
    FAULT_CUT,
    FAULT_CUT_UP,
    FAULT_STALL,
    FAULT_KINDS,
};

enum choice_kind {
    CHOICE_PROGRAM = 'p', /* member: a step of the program */
    CHOICE_DOWN = 'm',    /* member: a message of the master, or the end */
    CHOICE_UP = 'u',      /* the master: a message of the member, or the end */
    CHOICE_DIALED = 'k',  /* member, connection: the result of a dial */
    CHOICE_ACCEPT = 'a',  /* member, dialer: of a connection */
    CHOICE_DATA = 'd',    /* member, connection: a frame, or the end */
    CHOICE_LOSE = 'l',    /* member, connection: what a dead one sent last */
    CHOICE_LOSE_UP = 'v', /* ... to the master */
    CHOICE_TIME = 't',    /* a step of time */
    CHOICE_CRASH = 'x',   /* member: it is killed */
    CHOICE_STOP = 's',    /* member: nothing passes to or from its host */
    CHOICE_CUT = 'c',     /* member, connection: reset, both ends notice */
    CHOICE_CUT_UP = 'w',  /* member: ... of the connection to the master */
    CHOICE_STALL = 'z',   /* time passes, and nothing arrives meanwhile */
};

struct choice {
    uint8_t kind, party, at, unused;
};

enum stream_flag {
    STREAM_DIALING = 1,
    STREAM_PENDING = 2, /* the dial has succeeded, nobody has accepted */
    STREAM_LEFT = 4,    /* of end 0: it has closed; 8: of end 1 */
    STREAM_LOSSY = 16,  /* of end 0: what it sent may be lost; 32: of end 1 */
};

/* End 0 has dialed. */
struct stream {
    uint8_t party[2], conn[2];
    uint8_t flags, unused[3];
    uint32_t queue[2]; /* sent by that end */
};

enum member_flag {
    MEMBER_ON = 1,        /* has been started */
    MEMBER_ENDED = 2,     /* the process has ended by itself */
    MEMBER_CRASHED = 4,   /* ... was killed */
    MEMBER_STOPPED = 8,   /* it is cut off, for good */
    MEMBER_HUNG_UP = 16,  /* it will read the end of the master's connection */
    MEMBER_DEAF = 32,     /* the member's end of it is closed */
    MEMBER_LOSSY = 64,    /* what the member sent to the master may be lost */
    MEMBER_UNHEARD = 128, /* the master's end of it is closed */
};

/* Compared and hashed as bytes, up to the last stream. */
struct universe {
    uint32_t state[MEMBERS_MAX + 1];
    uint32_t up[MEMBERS_MAX], down[MEMBERS_MAX];
    uint8_t flags[MEMBERS_MAX];
    uint16_t step;               /* of time */
    uint16_t quiet;              /* steps since the last fault */
    uint8_t faults[FAULT_KINDS]; /* left */
    uint8_t stream_count, unused[2];
    struct stream streams[STREAMS_MAX];
};

struct universe_config {
    uint32_t members;
    uint8_t faults[FAULT_KINDS];
    uint32_t stall;    /* steps of time of a stall */
    uint32_t patience; /* steps of time that a call may wait after a fault */
};

extern struct intern universe_queues;
extern struct universe_config universe_config;

static inline size_t universe_size(const struct universe *w)
{
    return offsetof(struct universe, streams) +
           w->stream_count * sizeof w->streams[0];
}

/* All members have connected to the master, and nothing else has happened. */
void universe_init(struct universe *w, const struct universe_config *config);
/* The choices that may do something. */
uint32_t universe_choices(const struct universe *w, struct choice *choices);

enum universe_result {
    UNIVERSE_NEXT,
    UNIVERSE_SAME, /* the choice does nothing now */
    UNIVERSE_BAD,  /* a condition is violated: universe_error() */
};
/* Makes `next` of `w`. */
enum universe_result universe_choose(const struct universe *w, struct choice c,
                                     struct universe *next);
/* Conditions on several members; false: universe_error(). */
bool universe_check(const struct universe *w);
/* Nothing happens any more: true if that is right. */
bool universe_over(const struct universe *w);
/* The member can do something. */
bool universe_runs(const struct universe *w, uint32_t i);
/* A live member's program has not ended. */
bool universe_waits(const struct universe *w);
bool universe_all_members(const struct universe *w);
const char *universe_error(void);

/* What a choice is, for people, in this universe. */
void universe_describe(const struct universe *w, struct choice c, char *text,
                       size_t size);
void universe_print(const struct universe *w);

#endif
