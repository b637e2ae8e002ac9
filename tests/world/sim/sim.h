/* sim.h - one universe: a master, its peers and the network between them, in
 * one thread, from one seed, in virtual time.
 *
 * sim.c moves bytes and injects faults; program.c runs in every peer, and
 * letters.c sends messages beside it; oracle.c and election.c check the
 * conditions that must hold. */
#ifndef PCCL_SIM_H
#define PCCL_SIM_H

#include "../../../src/master/master.h"
#include "../../../src/master/server/own_clock.h"
#include "../../../src/master/server/switchboard.h"
#include "../../../src/elastic/prefetch.h"
#include "../../../src/elastic/session.h"
#include "../../../src/ring/algorithm_table.h"
#include "../../../src/ring/op.h"
#include "../../../src/link/shared_memory.h"
#include "net.h"
#include "sim_options.h"

enum {
    SIM_ALGORITHMS_MAX = 32,
    SIM_PROCS_MAX = 32, /* slots; a slot is used by one process at a time */
    SIM_ALIVE_MAX = 16,
    SIM_FEW = 7,  /* live processes of most universes */
    SIM_SLOW = 6, /* in a slow one, programs have one turn of so many */
    SIM_CALLERS_MAX = 16,
    SIM_CONNS_MAX = 512, /* a relay of all pairs of 15 members has 3 a pair */
    SIM_OPS_MAX = 4,     /* concurrent operations of one step */
    SIM_GUARD = 32,      /* bytes around every buffer */
    SIM_REFUSALS_MAX = 8,
    SIM_TENSORS = 4,
    SIM_GROUPS = 2,
    SIM_SEARCHES_MAX = 8,
    SIM_FETCHERS_MAX = 6,
    SIM_IDS_MAX = 2048, /* of one universe */
    SIM_HOLE = 100,     /* bytes of the largest packet that is small */
    SIM_STEPS_KEPT = 256,
};
#define SIM_DEADLINE (200 * PCCL_MS)
#define SIM_GRACE (6 * SIM_DEADLINE) /* for another master */
#define SIM_RESYNC UINT64_MAX        /* ident of the resync */

/* The events of all universes; zero in any of them fails a long run. */
/* clang-format off */
#define SIM_COVERAGE(X) \
    X(crash) X(crash_joining) X(crash_many) X(freeze) X(starved) X(waited_for) \
    X(stopped) X(muted) X(unanswered) X(paused) X(slept) X(not_kept) \
    X(calm) X(evicted) X(reset) X(reset_half) X(striped_cut) \
    X(control_reset) X(refused) X(stall) X(leave) X(join) X(flush) X(ask) \
    X(donate) X(restart) X(commit) X(invalid) X(usage) X(unreachable) \
    X(refresh_mismatch) X(refresh_unreachable) X(suspect) X(vote_refused) \
    X(update) X(pending_yes) X(pending_no) X(lost) X(unexpected) X(parked) \
    X(pool) \
    X(interleaved) X(interleaved_lost) X(forced) \
    X(sites) X(sites_lost) X(sites_confirmed) \
    X(lent) X(lent_lost) X(lent_queued) X(pulled) \
    X(spread_turns) X(spread_lost) X(scatter_turns) \
    X(through_root) X(tree) X(tree_lost) X(tree_confirmed) \
    X(grid) X(grid_lost) X(grid_confirmed) X(grid_direct_lost) \
    X(grid_scatter_lost) X(deferred) X(confirmed) X(scoped) X(scoped_lost) \
    X(local) X(shuffled) X(two_groups) X(master_lost) X(again) X(sync) \
    X(sync_received) X(sync_blocks) X(sync_alone) X(sync_odd) X(sync_ahead) \
    X(sync_foreign) X(sync_conflict) X(sync_none) X(sync_resume) \
    X(sync_lost) X(sync_late) X(sync_two) X(sync_tie) X(sync_popular) \
    X(sync_behind) X(sync_mixed) X(sync_crossed) X(sync_dead_vote) \
    X(sync_dead_giver) X(sync_dead_taker) X(sync_many) X(sync_relay) \
    X(sync_orphan) X(sync_stranded) X(sync_exact) X(sync_device) \
    X(sync_gave_up) X(sync_named) \
    X(sync_cut_names) X(sync_cut_tensors) X(sync_cut_hashes) \
    X(sync_cut_bytes) X(sync_cut_body) X(sync_cut_taker) X(sync_cut_two) \
    X(shared) X(exchanged) X(left) X(share_half) X(share_lost) X(quant_lost) \
    X(fast) X(fast_converted) X(fail_asked) X(fail_met) X(fail_kept) \
    X(optimize) X(probe) X(probe_failed) X(probe_silent) X(searched) \
    X(improved) X(adopted) X(probe_lost) X(one_way) X(reversed) \
    X(crossed) X(left_alone) X(disputed) X(pending_refused) X(letters) \
    X(letters_lost) \
    X(reverse_dial) \
    X(many) X(many_lost) X(survey) X(last_process) X(last_host) \
    X(last_pair) X(last_one_way) X(last_small) X(last_split) X(last_lonely) \
    X(last_master) X(last_again) X(last_many) X(stutter) X(stutter_data) \
    X(stutter_master) X(garbled) X(garbled_master) X(garbled_member) \
    X(strangers) X(callers) X(hung_up) X(clocks) X(unjudged) X(old_view) \
    X(fast_before) X(fast_amid) X(fast_at_once) X(fast_waited) \
    X(fast_half_frame) X(fast_mixed) X(fast_unable) X(fast_no_room) \
    X(fast_rewound) X(fast_broadcast) X(fast_barrier) X(fast_in_place) \
    X(fast_allgather) X(fast_tree) X(fast_tree_converted) X(fast_alltoall) \
    X(fast_scatter) X(fast_pairs) X(fast_pairs_converted) X(fast_pairs_held) \
    X(fast_early) X(fast_early_converted) X(fast_tree_beside) \
    X(fast_posts) X(fast_post_late) X(fast_sums) X(fast_sums_converted) \
    X(fast_met_other) X(fast_met_argument) X(fast_met_flags) \
    X(fast_met_control) X(fast_patience_none) \
    X(fast_patience_some) X(fast_slept) X(fast_closed) X(fast_closed_done) \
    X(fast_ended) X(fast_ended_done) X(fast_evicted) X(fast_evicted_done) \
    X(fast_leaving) X(fast_crash) X(fast_crash_amid) X(fast_survived) \
    X(fast_lost) X(fast_again) X(fast_invalid) X(fast_failed) X(fast_usage) \
    X(fast_gives) X(fast_given) X(fast_letters) \
    X(fetch) X(fetch_done) X(fetch_served) X(fetch_same) X(fetch_device) \
    X(fetch_lost) X(fetch_left) X(fetch_nobody) X(fetch_old) X(fetch_joined) \
    X(fetch_exact) X(fetch_refused) X(fetch_full) \
    X(half_message) X(slow_reader) X(lingered) X(backlog) \
    X(scarce) X(scarce_launch) X(scarce_gone) X(counted) X(counted_reached) \
    X(counted_over) X(counted_none) \
    X(partial) X(partial_missing) X(partial_parts) X(partial_few) \
    X(partial_late) X(partial_lapsed) X(partial_differs) X(partial_given_up) \
    X(partial_received) \
    X(few) X(few_waits) X(doors) X(doors_announced) X(doors_seen) X(walls) \
    X(masters) X(masters_amid) X(masters_kept) X(masters_again) X(resumed) \
    X(resumed_kept) X(keep_waits) X(keep_claims) X(keep_few) X(keep_begins) \
    X(keep_decided) X(resumed_installs) X(resumed_answers) X(resumed_ends) \
    X(resumed_syncs) \
    X(relayed) X(relayed_lost) X(relayed_full) X(relayed_master)
/* clang-format on */

struct sim_coverage {
#define X(name) uint64_t name;
    SIM_COVERAGE(X)
#undef X
};

/* One operation as the program sees it; equal on all members but `self`. */
struct sim_spec {
    uint64_t ident; /* (step, index) */
    uint64_t tag;
    uint32_t coll;
    enum plan_flow flow;
    uint64_t count; /* elements (all-reduce) or bytes */
    enum dtype dtype;
    enum redop redop;
    struct quant quant; /* of an all-reduce of floats, or QUANT_NONE */
    bool in_place, scoped, absent; /* absent: not in the scope */
    uint32_t root, size, self;     /* in the scope */
    uint64_t ids[SIM_PROCS_MAX];
};

struct sim_key {
    uint64_t ident;
    uint32_t group, epoch, nth; /* notified epoch at the launch */
};

struct sim_op {
    struct sim_spec spec;
    struct sim_key key;
    struct op *op;
    bool taken, asked; /* asked: the request to have it fail */
    bool cached;       /* over at the launch */
    bool fast;         /* ended without one */
    bool converted;    /* began without one, in this epoch: */
    uint32_t began;
    int result;
    uint8_t *send, *recv, *copy; /* allocations; payload after SIM_GUARD */
    size_t send_size, recv_size;
    size_t arrays[4][SIM_PROCS_MAX]; /* all-to-all-v */
};

enum sim_stage {
    STAGE_JOIN,
    STAGE_STEP,
    STAGE_PENDING,
    STAGE_UPDATE,
    STAGE_OPTIMIZE,
    STAGE_SYNC,
    STAGE_RESYNC,
    STAGE_LAUNCH,
    STAGE_TAKE,
    STAGE_LEAVING,
};

struct sim_program {
    enum sim_stage stage;
    bool waiting;  /* for an answer to the vote of this stage */
    bool resync;   /* ops[0] is a resync */
    bool apart;    /* ... after an error of one in a scope */
    bool odd_vote; /* votes where the others launch (rule V4) */
    uint64_t step;
    uint64_t steps_done; /* of this process, for liveness */
    pccl_ns progress_at;
    uint32_t count, launched;
    uint8_t order[SIM_OPS_MAX];
    struct sim_op ops[SIM_OPS_MAX];
    uint32_t resync_epoch, resyncs; /* notified epoch, resyncs begun in it */
};

/* The tensors that one process synchronizes. */
struct sim_shared {
    uint8_t *bytes, *before; /* all tensors; `before` at the call */
    size_t size;
    uint64_t revision;
    enum sync_strategy strategy;
    bool synced; /* the last call succeeded */
    bool member; /* some call did */
    bool odd;    /* has other tensors this time */
    bool liar;   /* has changed a byte after it voted */
    bool listed;
    struct state_list list;
    struct state_list *offered; /* to newcomers; NULL: nothing */
    bool fetched;               /* was one, and has downloaded */
};

/* Messages, by the id of the other end. */
struct sim_letters {
    uint32_t sent[SIM_IDS_MAX], got[SIM_IDS_MAX];
    bool lost[SIM_IDS_MAX];
    bool last; /* the last ones are written */
    uint32_t posts;
};

/* Samples of a step: reported by one process, and made by all of a group. */
struct sim_counted {
    bool used, reached; /* told_for: of that step */
    uint64_t step, count, told_for;
    uint64_t made, turns;
};

struct sim_made {
    uint64_t step, count;
};

struct sim_checkpoint {
    uint8_t *bytes; /* of the group's last success */
    uint64_t revision, holder;
};

/* An operation on the fast path (program_fast.c). */
struct sim_fast {
    struct sim_op *op; /* NULL: none. Else nothing else happens there. */
    struct op_request request;
    uint32_t polls;        /* in vain */
    uint32_t count, shown; /* of its frames, those that the others see */
    uint64_t word;         /* of its post, while nobody sees it (rule L11) */
    pccl_ns turn_at;       /* the last turn */
    pccl_ns began;         /* the call */
    bool slept, closed, ended, evicted; /* meanwhile */
    struct frame done[8];               /* names of the last ones */
    uint32_t done_count;
};

/* The clock of a process, or of the master. */
struct sim_clock {
    pccl_ns began, base; /* by the universe's time, and by this clock */
    int32_t rate;        /* thousandths */
};

/* A newcomer that downloads before it joins (fetch.c). */
struct sim_fetcher {
    bool used;
    uint32_t group, uid; /* uid: which of its tensors are on a device */
    struct prefetch *core;
    struct state_list list;
    uint8_t *bytes;
    int control, data; /* streams; -1: none */
    uint32_t attempt;  /* of the data stream */
    struct net_pipe rx;
    pccl_ns asked_at, leave_at;
};

/* What it still does that nobody does who is correct (strange.c). */
struct sim_strange {
    uint32_t stutters, stutters_master; /* frames, messages sent twice */
    uint32_t garbles, garbles_master;   /* ... that no decoder may take */
    uint32_t master_garbles;            /* messages of the master to it */
};

/* A stranger's connection. */
struct sim_caller {
    pccl_ns since, until; /* until 0: free */
    int stream;
    bool member; /* it called a member */
    bool frozen; /* ... that may stand still */
};

struct sim_proc {
    bool joiner, leave_soon;
    bool idle;            /* its program calls nothing any more */
    bool frozen, starved; /* does nothing; ... for lack of CPU time */
    uint64_t looked; /* the id with which the master asks for evidence, or 0 */
    bool unseen;     /* no host looks at it */
    bool outcast;    /* no survivor: its calls may wait (M13) */
    enum wire_type mute; /* the answer that it never gives, or 0 */
    uint32_t uid;        /* also its port */
    uint32_t group;
    int32_t hint;
    pccl_ns thaw_at, starved_at, tick_at, start_at, redial_at;
    struct session *session;
    struct sim *sim;
    int control; /* stream, -1: closed */
    struct net_pipe rx;
    struct {
        int stream; /* -1: free */
        int side;
        bool blocked;
        bool mapped;
    } conns[SIM_CONNS_MAX];
    struct shared_memory shares[SIM_CONNS_MAX]; /* of those that are mapped */
    struct sim_program program;
    struct sim_fast fast;
    struct sim_shared shared;
    struct sim_letters letters;
    struct sim_counted counted;
    struct shared_region area;
    struct sim_clock clock;
    struct sim_strange strange;
    uint32_t told_epoch, told_size, told_rank, view_epoch;
    struct frame_route routes[FRAME_TYPE_COUNT]; /* as they were */
};

struct sim_search_job {
    pccl_ns at; /* 0: free */
    uint32_t group, ticket;
    bool found;
    uint16_t order[SIM_PROCS_MAX];
};

struct sim {
    uint64_t seed, random;
    pccl_ns now, last_fault;
    bool healing, over;
    uint32_t idle;     /* steps without effect in a row */
    uint64_t storm_id; /* last transfer in which a party died */
    struct sim_options options;
    struct master *master;
    struct switchboard *board; /* its connections */
    void *edges;               /* the master's store */
    size_t edges_size;
    pccl_ns master_tick_at, master_paused_until, master_cut_until;
    int links[MASTER_LINKS_MAX]; /* link -> stream */
    uint32_t link_count;
    uint32_t uid_last;
    uint32_t live;       /* slots of procs whose process lives, a bit each */
    bool dialed, called; /* a member, or the master, may have to accept */
    struct {
        uint32_t a, b; /* uids */
        pccl_ns until;
    } refusals[SIM_REFUSALS_MAX];
    /* The paths between the first processes, by uid. */
    bool cut[SIM_PROCS_MAX + 1][SIM_PROCS_MAX + 1];
    bool small[SIM_PROCS_MAX + 1][SIM_PROCS_MAX + 1];
    pccl_ns single_at, stall; /* since when; the longest call since then */
    pccl_ns own;              /* the longest call before */
    uint32_t lasted;          /* faults that last, so far */
    uint64_t steps;
    uint32_t slots; /* of procs, that are used */
    struct sim_clock master_clock;
    uint32_t installed; /* the last view of all, or where the run began */
    /* Ids of peers of the run that goes on are above: */
    uint64_t run_ids_from, ids_from; /* ... of one that this master begins */
    uint32_t kept_round; /* by its journal, or its members; the former has: */
    uint64_t kept_id, kept_stamp;
    uint8_t *journal;
    size_t journal_size;
    bool dying; /* what it does has no effect any more */
    pccl_ns master_down_until;
    bool waits_for_disk;         /* since it refused (rule J1) */
    struct own_clock master_own; /* what it makes of it (rule M15) */
    struct sim_caller callers[SIM_CALLERS_MAX];
    struct sim_fetcher fetchers[SIM_FETCHERS_MAX];
    struct sim_fetcher *joins; /* it becomes the process that starts now */
    uint32_t evictions;        /* since then */
    struct sim_search_job searches[SIM_SEARCHES_MAX];
    struct oracle *oracle;
    struct election *election;
    struct witness *witness; /* NULL: there is no model */
    struct sim_checkpoint checkpoints[SIM_GROUPS];
    struct sim_made made[SIM_GROUPS][SIM_STEPS_KEPT];
    uint64_t highest_made[SIM_GROUPS];
    /* From here on sim_init() clears what the universe before has used. */
    uint32_t stream_end;
    struct sim_proc procs[SIM_PROCS_MAX];
    struct net_stream streams[NET_STREAMS_MAX];
    pccl_ns dial_at[NET_STREAMS_MAX]; /* result of a dial is due */
    bool dialing[NET_STREAMS_MAX];
};

extern struct sim_coverage sim_coverage;
/* Operations by number of their algorithm. */
extern uint64_t sim_coverage_algorithms[SIM_ALGORITHMS_MAX];
extern bool sim_trace;
extern uint32_t sim_turn; /* uid of the process whose cores run, or 0 */
extern uint64_t sim_seed; /* of the universe under way, for crash reports */

#define SIM_CHECK(s, condition, ...)                                           \
    do {                                                                       \
        if (!(condition)) sim_fail((s), #condition, __VA_ARGS__);              \
    } while (0)
#define SIM_TRACE(s, ...)                                                      \
    do {                                                                       \
        if (sim_trace) sim_say((s), __VA_ARGS__);                              \
    } while (0)

_Noreturn void sim_fail(const struct sim *s, const char *condition,
                        const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void sim_say(const struct sim *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* test_sim.c chooses options, then (with a struct that is zeroed, or that an
 * earlier universe has used): */
void sim_init(struct sim *s, uint64_t seed, const struct sim_options *options);
void sim_run(struct sim *s);
uint64_t sim_host(const struct sim *s);
void memory_choose(const struct sim *s, struct sim_proc *p);
void sim_choose_tree(struct sim_options *o, uint64_t seed);
void sim_choose_grid(struct sim_options *o, uint64_t seed, bool all,
                     bool others);
void sim_choose_lost(struct sim_options *o, uint64_t seed, bool others);
void sim_choose_minimum(struct sim_options *o, uint64_t seed);
void sim_free(struct sim *s);

static inline uint32_t sim_pick(struct sim *s, uint32_t count)
{
    return net_pick(&s->random, count);
}

static inline bool sim_lives(const struct sim *s, uint32_t slot)
{
    return s->live >> slot & 1;
}

/* The next slot of a set (a bit each) whose process lives; false: no more. */
static inline bool sim_next(const struct sim *s, uint32_t *set, uint32_t *slot)
{
    uint32_t left = *set & s->live;
    if (left == 0) return false;
    *slot = (uint32_t)__builtin_ctz(left);
    *set = left & (left - 1);
    return true;
}

/* The first process at a slot or behind it, round and round; NULL: none. */
static inline struct sim_proc *sim_from(struct sim *s, uint32_t slot)
{
    uint32_t left = s->live >> slot << slot;
    if (left == 0) left = s->live;
    return left == 0 ? NULL : &s->procs[__builtin_ctz(left)];
}

/* sim.c */
/* Bytes of a vector too large for a flat all-reduce, from any n and h. */
/* Counts an operation that has ended. */
void sim_cover_plan(const struct plan *p, bool quantized, bool confirm,
                    bool mapped, int result);
uint64_t sim_large(const struct sim *s, uint64_t n, uint64_t h);
/* A verdict waits for the launch of such an operation (rule F6). */
bool sim_keeps_verdict(const struct session *x, const struct sim_spec *spec);
void sim_quantize(struct sim_spec *spec, uint64_t h);
size_t sim_chunk(struct sim *s, size_t available); /* how much of it */
uint64_t sim_hash(const uint8_t *bytes, size_t size);
uint64_t sim_mix(uint64_t a, uint64_t b, uint64_t c, uint64_t d);
void sim_proc_end(struct sim *s, struct sim_proc *p, bool crash);
struct sim_proc *sim_proc_start(struct sim *s, bool joiner, int32_t hint,
                                uint32_t group);
/* Messages between the master and a process: into a stream; from a stream into
 * rx, false if there are no bytes; out of rx. */
void sim_send_control(struct sim *s, int stream, int side,
                      const struct wire_msg *msg);
bool sim_pull_control(struct sim *s, struct net_pipe *from,
                      struct net_pipe *rx);
enum wire_status sim_next_message(struct net_pipe *rx, struct wire_msg *msg);
void sim_trace_message(const struct sim *s, const char *who, uint64_t to,
                       const struct wire_msg *m);
void sim_count_message(const struct wire_msg *msg);
void sim_count_pending(uint32_t flag, bool odd);
bool sim_is_member(const struct sim *s, uint64_t id);
uint64_t sim_round_trip(void *proc, uint64_t peer);
void sim_watch(struct sim_proc *p);
void sim_step(struct sim *s);
int sim_stream_new(struct sim *s, bool control);
/* Whether bytes pass from one process to another; a dial passes. */
static inline bool sim_passes(const struct sim *s, uint32_t from, uint32_t to)
{
    return from > SIM_PROCS_MAX || to > SIM_PROCS_MAX || !s->cut[from][to];
}
bool sim_walled(const struct sim *s, uint32_t caller, uint32_t called);
bool sim_refused(const struct sim *s, uint32_t a, uint32_t b);

void sim_lower_quorum(struct sim *s); /* before the first view only */
void sim_crash(struct sim *s, struct sim_proc *p);
void sim_check_progress(struct sim *s, struct sim_proc *p);

/* sim_master.c */
void sim_master_start(struct sim *s);
void sim_master_accept(struct sim *s, int stream);
bool sim_master_turn(struct sim *s);   /* true if it had work */
pccl_ns sim_master_now(struct sim *s); /* by its own clock (rule M15) */
void sim_master_event(struct sim *s, struct master_event *e);
void sim_master_ends_turn(struct sim *s); /* after messages to the master */
void sim_master_widen(struct sim *s);     /* its queues, and its doors */
void sim_master_free(struct sim *s);

/* masters.c: universes whose coordinator dies (rules H). */
void masters_choose(struct sim_options *o, uint64_t seed);
void rooted_choose(struct sim_options *o, uint64_t seed, bool all, bool others);
void even_choose(struct sim_options *o, uint64_t seed, bool all, bool others);
void sim_run_begins(struct sim *s);
/* It does so amid something, once in so many chances. */
bool sim_master_may_die(struct sim *s, uint32_t one_in);
void sim_master_dies(struct sim *s); /* and another one has begun */
/* A member whose master has died calls the next one. */
bool sim_dial_again(struct sim *s, struct sim_proc *p);

/* program.c: one turn; true if there was work. */
bool program_turn(struct sim *s, struct sim_proc *p);
bool program_quick(struct sim *s, struct sim_proc *p);
/* An answer of a process, which may be a result of its fast path. */
void program_gives(const struct sim_proc *p, const struct wire_msg *msg);
void program_free(struct sim_proc *p);

/* fail.c */
bool fail_withholds(const struct sim *s, const struct sim_proc *p,
                    const struct sim_op *o);
bool fail_asks(struct sim *s, struct sim_proc *p);
void fail_taken(const struct sim_op *o);

/* memory.c */
void memory_outputs(struct driver *out);
void memory_exchanges(struct driver *out);
void memory_close(struct sim_proc *p, uint32_t conn);
void memory_free(struct sim_proc *p);
bool memory_read(struct sim *s, struct sim_proc *p, uint32_t conn, bool *empty);
bool memory_broken(const struct sim *s, const struct sim_proc *p,
                   uint32_t conn);
bool memory_write(struct sim *s, struct sim_proc *p, uint32_t conn);
/* search.c */
bool sim_search(void *sim, const struct master_search *search);
bool sim_search_turn(struct sim *s); /* true if one ended */

/* shared.c */
size_t shared_size(const struct sim *s);
void shared_tensors(const struct sim *s, uint32_t uid, bool odd, uint8_t *bytes,
                    struct state_tensor tensors[SIM_TENSORS]);
void shared_init(struct sim *s, struct sim_proc *p);
void shared_free(struct sim_proc *p);
bool shared_begin(struct sim *s, struct sim_proc *p); /* false: no master */
void shared_end(struct sim *s, struct sim_proc *p);
void shared_killed(struct sim *s, const struct sim_proc *dead);

/* doors.c */
void doors_choose(struct sim_options *o, uint64_t *r);
void doors_announce(const struct sim *s, uint32_t uid, struct wire_addr *addr);
void doors_dial(struct sim *s, int stream, const struct wire_addr *addr);

/* walls.c */
void walls_choose(struct sim_options *o, uint64_t *r);
bool walls_is_public(const struct sim *s, uint32_t uid); /* all can dial it */
struct sim_proc *walls_relay(struct sim *s); /* it does; NULL: nobody */
/* A member can relay for the peer, where nothing else keeps them apart. */
bool walls_has_relay(const struct sim *s, const struct master_peer *peer);

/* letters.c */
bool letters_turn(struct sim *s, struct sim_proc *p); /* true: there was work */
bool letters_delivered(const struct sim *s); /* among the live processes */

/* counted.c */
bool counted_is(uint64_t seed);
void counted_turn(struct sim *s, struct sim_proc *p);
void counted_told(struct sim *s, uint32_t link, const struct wire_msg *m);
bool counted_settled(const struct sim *s); /* what is told is true */

/* oracle.c */
struct oracle *oracle_new(void);
void oracle_free(struct oracle *o);
void oracle_outcome(struct sim *s, const struct sim_proc *p,
                    const struct sim_op *o, uint32_t contributors);
void oracle_offer(struct sim *s, const struct sim_op *o, uint64_t id,
                  int64_t value); /* a contribution to a resync */
void oracle_answer(struct sim *s, const struct sim_proc *p, enum vote_kind kind,
                   uint32_t flag);
void oracle_view(struct sim *s, struct sim_proc *p);
void oracle_told(struct sim *s, struct sim_proc *p, bool allowed);
void oracle_update(struct sim *s, const uint32_t *links, uint32_t count);

/* Hash of the arguments that must be equal, but for the sizes of an
 * all-to-all. */
uint64_t spec_arguments(const struct sim_spec *spec);

/* Contribution of member `id` to an operation, `size` bytes; `to` is the
 * receiver of an all-to-all. */
void spec_fill(const struct sim *s, const struct sim_spec *spec, uint64_t id,
               uint64_t to, uint8_t *bytes, size_t size);
/* Bytes of the own block of a reduce-scatter, and the first of them. */
size_t spec_chunk(const struct sim_spec *spec, size_t *first);
/* The sum goes to another member, its root. */
bool spec_lacks_sum(const struct sim_spec *spec);
/* An all-to-all has a flow, and a sum that to a root; nothing else has. */
void spec_fit_flow(struct sim_spec *spec);
size_t spec_pair(const struct sim *s, const struct sim_spec *spec,
                 uint64_t from, uint64_t to);

#endif
