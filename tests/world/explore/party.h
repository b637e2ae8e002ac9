/* party.h - the parties of a universe: members and the master, as functions
 * from (state, event) to (state, effects).
 *
 * A party runs the real cores in an arena. Its state is a picture of the arena,
 * so each pair of state and event runs once, however many universes it occurs
 * in. A party knows nothing of the others but what events tell it. */
#ifndef EXPLORE_PARTY_H
#define EXPLORE_PARTY_H

#include "../../../src/base/base.h"
#include "intern.h"

enum {
    MEMBERS_MAX = 4,
    MASTER = MEMBERS_MAX, /* as the number of a party */
    MEMBER_CONNS_MAX = 64,
    MEMBER_OPS_MAX = 4,
    OUTCOMES_MAX = 12,
    EFFECTS_MAX = 256,
    NO_PARTY = 255,
};

#define EXPLORE_DEADLINE (200 * PCCL_MS)
#define EXPLORE_STEP PCCL_TIME_OF_TICK(EXPLORE_DEADLINE)

enum event_kind {
    EVENT_START = 1,   /* number: of the member */
    EVENT_CONTROL,     /* from the master; at the master: from member `at` */
    EVENT_CONTROL_END, /* ... and the end of that connection */
    EVENT_CONNECT,     /* master: of member `at` */
    EVENT_DIALED,      /* of connection `at`; number: success */
    EVENT_ACCEPT,
    EVENT_DATA, /* on connection `at` */
    EVENT_DATA_END,
    EVENT_TICK,    /* number: time in steps */
    EVENT_PROGRAM, /* one step of the program */
    EVENT_LEAVE,   /* the program leaves */
};

/* Of an event or an effect; `number` is a message, unless it says otherwise. */
struct event {
    enum event_kind kind;
    uint8_t at;
    uint32_t number;
};

enum effect_kind {
    EFFECT_CONTROL,  /* to the master; of the master: to member `at` */
    EFFECT_HANG_UP,  /* the master closes the connection of member `at` */
    EFFECT_DIAL,     /* connection `at` to member `number` */
    EFFECT_DATA,     /* a frame on connection `at` */
    EFFECT_CLOSE,    /* connection `at` */
    EFFECT_ACCEPTED, /* the answer to ACCEPT: as connection `at` */
    EFFECT_LEFT,     /* the answer to DATA: this is not read now */
    EFFECT_QUIT,     /* the process ends, and closes everything */
};

struct effect {
    uint8_t kind, at;
    uint16_t unused;
    uint32_t number;
};

/* An operation of the program as it ended. */
struct outcome {
    uint8_t op;
    uint8_t contributors;
    uint16_t result;
    uint32_t epoch; /* of the view that the program knew at the launch */
    uint64_t value;
};

/* The part of a member's state that a person, or another member, can see. */
struct facts {
    bool member, gone, left, over; /* over: the program has ended */
    bool waits;                    /* it is inside of a call */
    uint32_t epoch, notified;
    uint64_t view;     /* hash of the ids, 0: none */
    uint64_t id, live; /* ids of the view as bits */
    uint32_t outcome_count;
    struct outcome outcomes[OUTCOMES_MAX];
};

enum program_mode {
    MODE_SEQUENTIAL, /* one operation after the other, of one tag */
    MODE_CONCURRENT, /* all at once, each with a tag of its own */
};

/* The same in all universes of a run. */
struct party_config {
    uint32_t members, ops;
    enum program_mode mode;
    bool confirm;          /* operations are never deferred (rule D4) */
    bool leaves;           /* programs leave at their end */
    bool updates;          /* ... vote for an update before */
    bool unsteady;         /* links or members may be cut off */
    bool odd;              /* member 0 votes where the others launch (V4) */
    bool remembers;        /* nothing is forgotten after an event */
    bool broken;           /* an oracle of the programs is wrong, on purpose */
    uint32_t count;        /* elements of a vector */
    const char *algorithm; /* or NULL */
};

extern struct party_config party_config;
extern struct intern party_messages;
extern uint64_t party_runs; /* of the cores */

void party_init(const struct party_config *config);
uint32_t party_first(uint32_t party); /* its state before any event */

/* The state after the event, and what it did: `effects` are `*count` ones,
 * valid until the next call. PARTY_FAILED: party_error() says why. */
#define PARTY_FAILED UINT32_MAX
uint32_t party_step(uint32_t party, uint32_t state, struct event event,
                    const struct effect **effects, uint32_t *count);
const char *party_error(void);
const struct facts *party_facts(uint32_t state); /* of a member */
uint32_t party_states(void);
uint64_t party_memory(void);
/* Prints how two states of a party differ. */
void party_compare(uint32_t party, uint32_t one, uint32_t other);

/* What a message is, for people. */
void party_describe(bool control, uint32_t message, char *text, size_t size);
/* It says only that its sender lives. */
bool party_is_neutral(bool control, uint32_t message);

/* --- party*.c only --- */
struct party_out {
    struct effect effects[EFFECTS_MAX];
    uint32_t count;
};
extern struct party_out party_out;
void party_effect(enum effect_kind kind, uint32_t at, uint32_t number);
_Noreturn void party_fail(const char *format, ...)
    __attribute__((format(printf, 1, 2)));
struct wire_msg;
uint32_t party_encode(const struct wire_msg *msg);
void party_decode(uint32_t message, struct wire_msg *msg);
pccl_ns party_time(uint32_t step);

void *member_new(uint32_t number);
void member_event(void *member, const struct event *event);
void member_facts(const void *member, struct facts *facts);
void *coordinator_new(void);
void coordinator_event(void *coordinator, const struct event *event);

#define PARTY_CHECK(condition, ...)                                            \
    do {                                                                       \
        if (!(condition)) party_fail(__VA_ARGS__);                             \
    } while (0)

#endif
