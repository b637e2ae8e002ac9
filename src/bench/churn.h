/* churn.h - what the parts of `pccl-bench churn` share: see bench_churn.c. */
#ifndef PCCL_BENCH_CHURN_H
#define PCCL_BENCH_CHURN_H

#include "bench.h"

#include <stdatomic.h>
#include <sys/types.h>

enum {
    CHURN_SLOTS = 12, /* processes of a job at a time; digits of a float */
    CHURN_OPS = 8,    /* concurrent operations of a step */
    CHURN_NODES = 5,  /* namespaces of a job; node 0 is the master's */
    CHURN_FIELDS = 24,
    CHURN_BIG = 2 << 20,   /* bytes of the last operation of a step, at most */
    CHURN_SMALL = 1 << 16, /* of the others */
    CHURN_STATE = 20000,   /* words of the shared state */
    CHURN_LAUNCHED = 3, /* slots from 0 of an MPI job that its launcher fills */
    CHURN_GONE = 5,     /* exit status of an MPI process that was evicted */
    CHURN_KEPT = 64,    /* violations whose text is kept */
    CHURN_PATH = 512,
};

/* ------------------------------------------------------------------ faults */

enum churn_fault {
    CHURN_KILL,
    CHURN_PAUSE,     /* SIGSTOP for less than half a deadline */
    CHURN_STOP,      /* ... for longer than a deadline */
    CHURN_JOIN,      /* a newcomer that was admitted */
    CHURN_LEAVE,     /* a member that ends well */
    CHURN_PARTITION, /* of the data network; some of the master, too */
    CHURN_MASTER,    /* SIGSTOP of the coordinator */
    CHURN_FAULTS
};

extern const char *const churn_fault_names[CHURN_FAULTS];

/* ------------------------------------------------------------------- board */

enum churn_state { CHURN_FREE, CHURN_COMES, CHURN_MEMBER };

/* A place of a process in its job. n names a process for good: it is slot +
 * CHURN_SLOTS * k, with another k for each process that had the slot. */
struct churn_slot {
    _Atomic uint32_t n, state, steps, leave;
    _Atomic int32_t pid;
    /* A process that another one started answers what it was asked, so that
     * a pidfd is known to be its own. */
    _Atomic uint32_t question, answer;
};

/* Shared by all processes of a job; a file in its folder. */
struct churn_board {
    _Atomic uint32_t over;  /* the job is to end */
    _Atomic uint32_t lost;  /* nobody is left that has the state */
    _Atomic uint32_t next;  /* the next k */
    _Atomic uint64_t steps; /* of all members */
    uint64_t seed;
    struct churn_slot slots[CHURN_SLOTS];
    _Atomic uint8_t blocked[CHURN_NODES][CHURN_NODES]; /* from, to */
};

/* NULL: errno. */
struct churn_board *churn_board_open(const char *folder, bool create);

/* ----------------------------------------------------------------- history */

/* One line of a history:
 *
 *     NUMBER TAG FIELD... [;TEXT] #CHECKSUM
 *
 * NUMBER counts the lines of the file from 0. Times are CLOCK_MONOTONIC ns.
 * Each process writes one file, N.hist, and the launcher writes faults.hist.
 *
 *   B time n kind pid            begins (kind 0: native, 1: MPI)
 *   J start end result           connected
 *   V time epoch rank size n...  a view in force
 *   P start end result step pending
 *   U start end result step           updated
 *   S start end result step revision hash received steady
 *   O start end result step op attempt epoch world set hash bytes
 *   G time ;why                  evicted
 *   X time ;what                 the process itself saw what must not be
 *   M time KiB steps             its memory
 *   E time                       ended well
 *   F start end kind n nodes     a fault (faults.hist)
 *   D time n status wanted       a process has ended (faults.hist)
 *   R first last time            KiB of the master; the job is to end
 *   C deadline wanted            ns; kinds of faults, as bits (faults.hist)
 *   T time step set              pccl-bench ettr: a step whose sum was right
 *   W begin end planned          ... what is measured, its faults (faults.hist)
 *
 * `set` has the slots of the contributors, as the result tells them; 0 where it
 * does not tell (quantized). `steady`: the state was not to change. */
struct churn_record {
    char tag;
    uint32_t count;
    uint64_t v[CHURN_FIELDS];
    char text[256];
};

struct churn_history {
    int fd;
    uint64_t lines;
};

bool churn_history_open(struct churn_history *h, const char *folder,
                        const char *name);
void churn_write(struct churn_history *h, char tag, const uint64_t *v,
                 uint32_t count, const char *text);
#define CHURN_WRITE(h, tag, ...)                                               \
    churn_write((h), (tag), (const uint64_t[]){__VA_ARGS__},                   \
                sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t),    \
                NULL)

enum churn_line { CHURN_LINE, CHURN_END, CHURN_TORN, CHURN_BROKEN };
/* The next line of text at *at (`size` bytes in all), which must have this
 * number. CHURN_TORN: the last line, without its end or checksum. */
enum churn_line churn_read(const char *text, size_t size, size_t *at,
                           uint64_t number, struct churn_record *r);

/* -------------------------------------------------------------------- data */

/* One of the operations of a step; equal on all members but for in_place. */
struct churn_op {
    uint64_t step;
    uint32_t op;
    pcclDataType_t type;
    pcclRedOp_t redop;
    size_t count, size; /* elements; bytes of one */
    bool quantized, in_place;
};

void churn_op_make(struct churn_op *o, uint64_t seed, uint64_t step,
                   uint32_t op, uint32_t n);
/* What the process contributes. `over` is its part of operation 0. */
void churn_fill(const struct churn_op *o, uint32_t n, bool over, void *to);
/* The slots that the result itself tells, of `count` contributors; 0: it does
 * not. *twice: it is the sum of no set. */
uint32_t churn_set(const struct churn_op *o, const void *result, uint32_t count,
                   bool *twice);
/* Whether the result is that of exactly these contributors; *set gets
 * what churn_set() says, *over whether one of them has said so. */
bool churn_holds(const struct churn_op *o, const uint32_t *ns, uint32_t count,
                 const void *result, uint32_t *set, bool *over);
uint64_t churn_hash(const void *from, size_t size);
uint64_t churn_mix(uint64_t a, uint64_t b);

/* ----------------------------------------------------------------- members */

struct churn_seat {
    struct churn_board *board;
    const char *folder, *address, *transport;
    uint32_t n;
};

/* A member until the job is over or it is to leave. */
_Noreturn void churn_member(const struct churn_seat *seat);

/* ------------------------------------------------------------------- check */

struct churn_samples {
    double *v;
    size_t count, room;
};
void churn_sample(struct churn_samples *s, double value);

/* What one process wrote. */
struct churn_life {
    char name[32];
    uint32_t n;
    bool mpi, ended, torn, faults;
    size_t first, count; /* of its lines */
};

struct churn_row {
    char tag;
    uint8_t count;
    uint32_t life;
    const uint64_t *v;
    const char *text; /* "": none */
};

/* All histories of a job. */
struct churn_log {
    struct churn_life *lives;
    struct churn_row *rows;
    size_t life_count, row_count, row_room;
    uint64_t *fields; /* all `v`, and where texts begin */
    size_t field_count, field_room;
    char *texts;
    size_t text_count, text_room;
    int64_t deadline;
    uint64_t over; /* when the job was to end; 0: never */
    uint32_t wanted;
};

struct churn_totals {
    uint64_t histories, records;
    uint64_t operations;  /* distinct ones, each by all of its members */
    uint64_t agreed;      /* ... that ended with a verdict after a loss */
    uint64_t epochs;      /* distinct views in force */
    uint64_t votes;       /* pending, update, synchronize: distinct */
    uint64_t sums, bytes; /* results checked element by element */
    uint64_t evictions, refused, lost;
    uint64_t faults[CHURN_FAULTS];
    uint32_t wanted; /* kinds that some job was to have, as bits */
    uint64_t violations;
    char texts[CHURN_KEPT][256];
    struct churn_samples stalls[CHURN_FAULTS]; /* in deadlines */
    int64_t member_growth, master_growth;      /* KiB, the largest */
};

/* Reads all histories in the folder; what they must not look like is a
 * violation. */
void churn_load(struct churn_log *log, const char *folder,
                struct churn_totals *to);
void churn_unload(struct churn_log *log);
/* Reports per fault how long the calls under way still took. */
void churn_stalls(const struct churn_log *log, struct churn_totals *to);
/* Checks the histories of one job and adds to the totals. */
void churn_check(const char *folder, struct churn_totals *to);
/* ... of all folders in this one. False: there are none. */
bool churn_check_all(const char *folder, struct churn_totals *to);
/* Each of these kinds of faults (bits) must have happened. */
void churn_require(uint32_t kinds, struct churn_totals *to);
void churn_violation(struct churn_totals *to, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* -------------------------------------------------------------------- jobs */

struct churn_options {
    double seconds;
    uint64_t seed;
    int members;
    bool json, explicit_faults;
    bool wanted[CHURN_FAULTS];
    const char *keep, *check;
    double deadline;
    const char *jobs; /* "shm,tcp,mixed,net,mpi" */
};

struct churn_net {
    int net_fd[CHURN_NODES];
    pid_t forwarder;
};

struct churn_child {
    pid_t pid; /* 0: none */
    int pidfd; /* of a process that another one started; -1: our child */
    int64_t cont_at, stopped_at;
    enum churn_fault stopped_as;
    int64_t quiet_until; /* no fault of its own before */
    bool doomed, admitted;
};

struct churn_job {
    const struct churn_options *o;
    const char *name;
    char folder[CHURN_PATH], address[40];
    struct churn_board *board;
    struct churn_history faults;
    struct churn_net net;
    pid_t master;
    uint64_t random, last_steps;
    int64_t born, next, master_cont_at, master_stopped_at, heal_at, cut_at;
    int64_t memory_at, master_first, master_last;
    uint32_t cut_nodes, generation, number;
    uint32_t had; /* kinds of faults, as bits */
    bool ending, ended, hung;
    int64_t progress_at;
    struct churn_child child[CHURN_SLOTS];
    bool has_net, mpi;
};

uint64_t churn_random(struct churn_job *j, uint64_t limit);
bool churn_job_start(struct churn_job *j, const char *root);
/* Starts newcomers, injects faults, reaps. */
void churn_job_tick(struct churn_job *j);
/* Ends the job; true when all processes have ended. */
bool churn_job_over(struct churn_job *j);
void churn_job_kill(struct churn_job *j);
/* The kinds that a job of this sort may have, as bits. */
uint32_t churn_faults_wanted(const struct churn_job *j);
void churn_faults_tick(struct churn_job *j, int64_t now);
void churn_faults_end(struct churn_job *j, int64_t now);
/* A stop is over: its process goes on, or has been ended. */
void churn_end_stop(struct churn_job *j, int slot);
bool churn_signal(struct churn_job *j, int slot, int sig);
/* The path of a program beside this one. */
void churn_beside(const char *name, char path[CHURN_PATH]);
/* A child that dies with this process; 0 in the child. */
pid_t churn_fork(void);

/* False: why is in `error`. */
bool churn_net_possible(char *error, size_t room);
bool churn_net_start(struct churn_net *net, struct churn_board *board,
                     char *error, size_t room);
void churn_net_stop(struct churn_net *net);
bool churn_net_enter(const struct churn_net *net, int node);

void churn_report(const struct churn_options *o, const struct churn_totals *t,
                  double seconds, const char *skipped);
int bench_churn(int argc, char **argv);

#endif
