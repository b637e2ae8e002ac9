/* test_traces.c - is the model blind? Traces of universes are accepted. The
 * same traces with one event less, one twice, or one that says something else
 * are not, but for edits that the rules allow, each kind of which has its
 * reason here. Nor are an empty trace and one that is cut off. */
#include "../sim/sim.h"
#include "../sim/witness.h"
#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RECORDS_MAX = 20000, PARTIES_MAX = 64 };

enum edit {
    REMOVED,
    TWICE,
    CHANGED,
    OTHER_BYTES,  /* of a vector: one bit; of a message: another of its words */
    PAIR_REMOVED, /* a message, as if it had never been sent */
    PAIR_TWICE,
    PAIR_CHANGED,
    PAIR_OTHER,
    EDITS,
};

static const char *const edit_names[EDITS] = {
    "removed",      "twice",      "changed",      "other bytes",
    "pair removed", "pair twice", "pair changed", "pair other"};

/* Edits that leave a behaviour of the rules. */
static const struct {
    uint8_t kind, message;
    uint32_t edits; /* bits */
    const char *reason;
} allowed[] = {
    {TRACE_SETTLED, 0, 1u << REMOVED | 1u << TWICE,
     "an event that neither begins with a message nor sends one"},
    {TRACE_FRAME, 0, 1u << REMOVED | 1u << TWICE,
     "D2c: READY and DONE say the same however often they come, and others "
     "know what this one said"},
    {TRACE_FRAME, 0, 1u << CHANGED,
     "its receiver knows of the launch from others, or is frozen"},
    {TRACE_AT_MASTER, MESSAGE_OTHER, 1u << REMOVED | 1u << TWICE,
     "heartbeats and measurements show that a process lives, nothing else"},
    {TRACE_VIEW, 0, 1u << REMOVED | 1u << TWICE, "an observation"},
    {TRACE_TOLD, 0, 1u << REMOVED | 1u << TWICE, "an observation"},
    {TRACE_CUT, 0, 1u << TWICE, "a connection that has ended stays so"},
    {TRACE_OVER, 0, 1u << REMOVED | 1u << TWICE,
     "a killed process does nothing more; neither does one that stands still"},
    {TRACE_LOST, 0, 1u << REMOVED,
     "nobody has noticed yet: rounds need not be over at the end"},
    {TRACE_CUT, 0, 1u << REMOVED, "the process has not noticed"},
    {TRACE_DIES, 0, 1u << TWICE, "the next one dies before it says anything"},
    {TRACE_TO_MASTER, MESSAGE_LEAVE, 1u << TWICE | 1u << PAIR_TWICE,
     "M7: it leaves already"},
    {TRACE_TO_MASTER, MESSAGE_FLUSHED, 1u << PAIR_CHANGED,
     "D2e: who has heard of all may be complete, and need not be"},
    {TRACE_TO_MASTER, MESSAGE_REFRESH, 1u << PAIR_TWICE,
     "R1: a report about an epoch that is closed is stale"},
    {TRACE_TO_MASTER, MESSAGE_SUSPECT, 1u << PAIR_TWICE | 1u << PAIR_REMOVED,
     "the same; and one end of a broken link may be the only one to notice"},
    {TRACE_TO_MASTER, MESSAGE_BLOCKED, 1u << PAIR_REMOVED,
     "V4b: a report may cost an epoch, and need not"},
    {TRACE_TO_MASTER, MESSAGE_READY, 1u << REMOVED | 1u << PAIR_REMOVED,
     "R2: a round that begins again has forgotten it; it may not arrive"},
    {TRACE_TO_MASTER, MESSAGE_SAMPLES, 1u << PAIR_REMOVED,
     "G5: the next one comes before this one was overdue"},
    {TRACE_TO_PROCESS, MESSAGE_SAMPLES, 1u << PAIR_REMOVED,
     "G4: the next one comes before this one was overdue"},
    {TRACE_TO_PROCESS, MESSAGE_SAMPLES, 1u << TWICE | 1u << PAIR_TWICE,
     "G4 says when a sum must be told, and forbids no repetition"},
    {TRACE_ASKED, 0, 1u << REMOVED,
     "A5: a question that has no answer, as the asker's call ended first"},
    {TRACE_ASKED, 0, 1u << TWICE,
     "A5: it is asked again, as after the loss of a link"},
    {TRACE_PIECE, 0, 1u << REMOVED,
     "A6, A7: bytes that come too late for a part that is not waited for"},
    {TRACE_PIECE, 0, 1u << TWICE, "A5: a question came again, and its answer"},
    {TRACE_MADE, 0, 1u << REMOVED | 1u << TWICE | 1u << CHANGED,
     "G5: the next one comes before its report is due; it says the same"},
    {TRACE_AVERAGE, 0, 1u << OTHER_BYTES,
     "A6, A7: what is given to no part that anybody has ended with"},
    {TRACE_TO_PROCESS, MESSAGE_MOVES, 1u << PAIR_REMOVED | 1u << PAIR_TWICE,
     "S8a: the lists go out again; who gives and takes, the model does not "
     "know"},
    {TRACE_TO_PROCESS, MESSAGE_MOVES, 1u << TWICE,
     "it did not arrive: its master has died"},
    {TRACE_AT_PROCESS, MESSAGE_MOVES, 1u << REMOVED, "the same"},
    {TRACE_TO_PROCESS, MESSAGE_SYNCED, 1u << PAIR_REMOVED | 1u << PAIR_CHANGED,
     "H6: the next master knows the end from another member"},
    {TRACE_TO_MASTER, MESSAGE_SYNC, 1u << REMOVED | 1u << CHANGED,
     "it did not arrive: its master has died, and it is asked again (H6)"},
    {TRACE_TO_MASTER, MESSAGE_SYNC, 1u << PAIR_CHANGED,
     "V1: a number is higher than the last one, by whatever"},
    {TRACE_TO_MASTER, MESSAGE_HAS, 1u << PAIR_REMOVED,
     "S8a: who still receives when nobody can give it any more gets NO_STATE"},
    {TRACE_AT_MASTER, MESSAGE_HAS, 1u << REMOVED, "the same"},
    {TRACE_SHARED, 0, 1u << REMOVED | 1u << TWICE, "an observation"},
    {TRACE_SUM, 0, 1u << REMOVED | 1u << TWICE, "an observation"},
    {TRACE_TO_PROCESS, MESSAGE_WELCOME, 1u << PAIR_CHANGED,
     "a newcomer that is not proposed says its id to nobody"},
    {TRACE_TO_PROCESS, MESSAGE_EVICT,
     1u << TWICE | 1u << PAIR_REMOVED | 1u << PAIR_TWICE,
     "the connection ends with it, and that is what the process goes by"},
};

struct kept {
    struct trace t;
    size_t partner; /* receipt of this message, or 0 */
};

static struct kept records[RECORDS_MAX];
static size_t record_count;

static void *copy_of(const void *from, size_t size)
{
    void *to = size > 0 ? malloc(size) : NULL;
    if (to) memcpy(to, from, size);
    return to;
}

/* A program looks far more often than there is anything new. */
static bool looks_again(const struct trace *t)
{
    for (size_t i = record_count; i-- > 0 && t->kind == TRACE_SUM;) {
        const struct trace *k = &records[i].t;
        if (k->process != t->process) continue;
        return k->kind == t->kind && k->now == t->now &&
               k->digest == t->digest && k->number == t->number &&
               k->flag == t->flag;
    }
    return false;
}

static void keep(const struct trace *t)
{
    if (record_count == RECORDS_MAX || looks_again(t)) return;
    struct trace *k = &records[record_count].t;
    records[record_count++].partner = 0;
    *k = *t;
    k->names = copy_of(t->names, t->name_count * sizeof *t->names);
    k->ids = copy_of(t->ids, t->id_count * sizeof *t->ids);
    k->added = copy_of(t->added, t->added_count * sizeof *t->added);
    k->sets = copy_of(t->sets, t->set_count * sizeof *t->sets);
    k->parts = copy_of(t->parts, t->part_count * sizeof *t->parts);
    k->bytes = copy_of(t->bytes, t->byte_count);
}

static void forget(void)
{
    for (size_t i = 0; i < record_count; i++) {
        free((void *)(uintptr_t)records[i].t.names);
        free((void *)(uintptr_t)records[i].t.ids);
        free((void *)(uintptr_t)records[i].t.added);
        free((void *)(uintptr_t)records[i].t.sets);
        free((void *)(uintptr_t)records[i].t.parts);
        free((void *)(uintptr_t)records[i].t.bytes);
    }
    record_count = 0;
}

/* The n-th message sent on a channel is the n-th received there. */
static void pair_up(void)
{
    for (size_t i = 0; i < record_count; i++) {
        const struct trace *a = &records[i].t;
        if (a->kind != TRACE_TO_MASTER && a->kind != TRACE_TO_PROCESS) continue;
        if (a->message == MESSAGE_OTHER) continue;
        size_t before = 0;
        for (size_t k = 0; k < i; k++)
            before += records[k].t.kind == a->kind &&
                      records[k].t.process == a->process &&
                      records[k].t.message != MESSAGE_OTHER;
        for (size_t k = 0; k < record_count; k++) {
            const struct trace *b = &records[k].t;
            bool same = b->kind == a->kind + 1 && b->process == a->process &&
                        b->message != MESSAGE_OTHER;
            if (!same || before-- > 0) continue;
            if (k > i) records[i].partner = k;
            break;
        }
    }
}

/* Says something else; false: there is nothing to change. */
static bool change(struct trace *t, struct trace_name *names)
{
    if (t->kind == TRACE_SETTLED || t->kind == TRACE_END ||
        t->kind == TRACE_DIES || t->kind == TRACE_OVER ||
        t->kind == TRACE_CUT || t->kind == TRACE_LOST ||
        t->message == MESSAGE_EVICT)
        return false;
    bool sent = t->kind <= TRACE_AT_PROCESS;
    if (sent && t->message == MESSAGE_OTHER) return false;
    if (t->kind == TRACE_RESULT || t->kind == TRACE_SHARED) {
        t->flag = t->flag == SUCCESS ? LOST_MEMBER : SUCCESS;
    } else if (t->kind == TRACE_AVERAGED) {
        t->flag = t->flag == SUCCESS ? BAD_USAGE : SUCCESS;
    } else if (t->kind == TRACE_AVERAGE) {
        return false;
    } else if (t->kind == TRACE_MADE || t->kind == TRACE_SUM) {
        t->digest++;
    } else if (t->kind == TRACE_ASKED || t->kind == TRACE_PIECE) {
        t->round += PARTIES_MAX; /* another part */
    } else if (t->kind == TRACE_FRAME) {
        t->digest++;
    } else if (t->kind == TRACE_LAUNCH || t->kind == TRACE_VIEW ||
               t->kind == TRACE_TOLD) {
        t->epoch++;
    } else if (t->kind == TRACE_ANSWER) {
        t->number ^= 1;
    } else if (sent && t->name_count > 0 &&
               (t->message == MESSAGE_VERDICT || t->message == MESSAGE_REPLY ||
                t->message == MESSAGE_FLUSHED)) {
        names[0] = t->names[0];
        memcpy(names, t->names, t->name_count * sizeof *names);
        names[0].state = names[0].state == COMPLETE ? RUNNING : COMPLETE;
        t->names = names;
    } else if (sent && (t->message == MESSAGE_VOTE)) {
        t->flag = t->flag == UPDATE ? PENDING : UPDATE;
    } else if (sent && t->message == MESSAGE_ANSWER) {
        t->value ^= 1;
    } else if (sent && t->message == MESSAGE_PARTIAL) {
        if (t->flag == SAYS_CALL) t->digest++; /* A3 */
        if (t->flag == SAYS_FOLDED) t->value++;
        if (t->flag == SAYS_HOLDS) t->number++;
    } else if (sent && t->message == MESSAGE_SAMPLES) {
        t->digest++; /* G2 */
    } else if (sent && t->message == MESSAGE_COVERAGE) {
        if (t->flag == ORDER_REFUSE || t->flag == ORDER_END)
            t->value ^= 1;
        else
            t->number++;
    } else if (sent && t->message == MESSAGE_RESUME) {
        t->epoch++;
    } else if (sent && t->message == MESSAGE_RESUMED) {
        t->digest--; /* H1 */
    } else if (sent &&
               (t->message == MESSAGE_MOVES || t->message == MESSAGE_SYNCED)) {
        t->number++;
    } else if (sent && t->message == MESSAGE_WELCOME) {
        t->number += 1000;
    } else if (sent && t->round > 0) {
        t->round++;
    } else {
        return false;
    }
    return true;
}

/* A bit of what a member gives, or of what it gets. */
static uint8_t *other_bytes(const struct trace *t)
{
    uint8_t *bytes = copy_of(t->bytes, t->byte_count);
    uint64_t at = t->byte_count / 2;
    if (t->kind == TRACE_AVERAGE) at = t->size - 1; /* no sum rounds it away */
    bytes[at] ^= 0x10;
    return bytes;
}

/* What change() leaves: the members of a set, and whether a step is reached.
 * False: there is none. */
static bool change_other(struct trace *t, uint64_t *sets)
{
    bool orders = t->message == MESSAGE_COVERAGE &&
                  (t->flag == ORDER_PLAN || t->flag == ORDER_FETCH ||
                   t->flag == ORDER_END);
    bool folded = t->message == MESSAGE_PARTIAL && t->flag == SAYS_FOLDED;
    if (t->message == MESSAGE_SAMPLES && t->kind >= TRACE_TO_PROCESS) {
        t->flag ^= 1; /* G3 */
        return true;
    }
    if ((!orders && !folded) || t->set_count == 0) return false;
    memcpy(sets, t->sets, t->set_count * sizeof *sets);
    /* A6: one contributor less. */
    sets[0] = folded ? sets[0] & (sets[0] - 1) : sets[0] ^ 1;
    t->sets = sets;
    return true;
}

/* The verdict on the trace with this edit; NULL: accepted. */
static const char *verdict(size_t at, enum edit edit)
{
    static char text[256];
    struct trace_name names[WIRE_OPS_MAX];
    struct model *m = model_new(SIM_DEADLINE);
    if (!m) abort();
    size_t other = edit >= PAIR_REMOVED ? records[at].partner : at;
    enum edit what = edit >= PAIR_REMOVED ? edit - PAIR_REMOVED : edit;
    uint8_t *bytes = NULL;
    uint64_t sets[PARTIES_MAX];
    const char *why = NULL;
    for (size_t i = 0; i < record_count && !why; i++) {
        struct trace t = records[i].t;
        bool here = edit < EDITS && (i == at || i == other);
        if (here && what == REMOVED) continue;
        if (here && what == CHANGED) (void)change(&t, names);
        if (here && edit == OTHER_BYTES) t.bytes = bytes = other_bytes(&t);
        if (here && edit == PAIR_OTHER) (void)change_other(&t, sets);
        why = model_take(m, &t);
        if (here && what == TWICE && !why) why = model_take(m, &t);
    }
    if (!why) why = model_end(m);
    free(bytes);
    if (why) (void)snprintf(text, sizeof text, "%s", why);
    model_free(m);
    return why ? text : NULL;
}

/* An order for a round for which there was none before that record: a call that
 * begins a round has had no effect until then. */
static bool orders_anew(size_t at, const struct trace *n)
{
    if (n->kind != TRACE_TO_PROCESS || n->message != MESSAGE_COVERAGE)
        return false;
    for (size_t i = 0; i < at; i++) {
        const struct trace *k = &records[i].t;
        if (k->kind == n->kind && k->message == n->message &&
            k->number == n->number)
            return false;
    }
    return true;
}

/* What has not come when the universe ends is under way: the edit concerns the
 * last event that could show it. */
static bool is_last(size_t at, enum edit edit)
{
    const struct trace *t = &records[at].t;
    bool pair = edit >= PAIR_REMOVED;
    bool call = t->message == MESSAGE_PARTIAL || t->message == MESSAGE_VOTE;
    bool launched = false;
    bool taken = false;
    for (size_t i = at + 1; i < record_count; i++) {
        const struct trace *n = &records[i].t;
        if (n->process != t->process) continue;
        switch ((enum trace_kind)t->kind) {
        case TRACE_AT_PROCESS:
            if (n->kind == t->kind) return false;
            break;
        case TRACE_AT_MASTER:
            if (n->kind == t->kind && n->message != MESSAGE_OTHER) return false;
            break;
        case TRACE_RESULT: /* the next batch is launched, and the one after it
                            */
            if (n->kind == TRACE_LAUNCH && taken) return false;
            taken |= n->kind == TRACE_RESULT && launched;
            launched |= n->kind == TRACE_LAUNCH;
            break;
        case TRACE_LAUNCH:
            if (n->kind == TRACE_RESULT && n->names[0].tag == t->names[0].tag)
                return false;
            break;
        case TRACE_AVERAGED:
            if (n->kind == TRACE_AVERAGE && n->names[0].tag == t->names[0].tag)
                return false;
            break;
        case TRACE_ANSWER:
            if (n->kind == TRACE_TO_MASTER && n->message == MESSAGE_VOTE &&
                n->flag == t->flag)
                return false;
            break;
        case TRACE_TO_MASTER:
            if (call && !pair && n->kind == t->kind) return false;
            if (call && !pair) break;
            if (t->message == MESSAGE_PARTIAL && orders_anew(at, n))
                return false;
            if (t->message == MESSAGE_PARTIAL) break;
            if (t->message != MESSAGE_VOTE || !pair) return false;
            if (n->kind == TRACE_TO_PROCESS && n->message == MESSAGE_ANSWER)
                return false;
            break;
        case TRACE_TO_PROCESS:
            if (t->message != MESSAGE_SYNCED || n->kind == TRACE_SHARED)
                return false;
            break;
        default:
            return false;
        }
    }
    bool ends = t->message == MESSAGE_VOTE || t->message == MESSAGE_SYNCED ||
                t->message == MESSAGE_PARTIAL;
    return edit == REMOVED || (call && edit == CHANGED) || (pair && ends);
}

/* Of two deaths between which no master has spoken, one is enough. */
static bool is_one_of_two(size_t at, enum edit edit)
{
    if (records[at].t.kind != TRACE_DIES || edit != REMOVED) return false;
    size_t from = at, to = at;
    while (from > 0 && records[from - 1].t.kind != TRACE_TO_PROCESS &&
           records[from - 1].t.kind != TRACE_DIES)
        from--;
    while (to + 1 < record_count &&
           records[to + 1].t.kind != TRACE_TO_PROCESS &&
           records[to + 1].t.kind != TRACE_DIES)
        to++;
    return (from > 0 && records[from - 1].t.kind == TRACE_DIES) ||
           (to + 1 < record_count && records[to + 1].t.kind == TRACE_DIES);
}

/* The master dies before it has said a word of the synchronization that this
 * one has asked for: it asks the next one (H6). */
static bool dies_unanswered(size_t at, enum edit edit)
{
    if (records[at].t.message != MESSAGE_SYNC ||
        (edit != REMOVED && edit != PAIR_REMOVED))
        return false;
    for (size_t i = at + 1; i < record_count; i++) {
        const struct trace *t = &records[i].t;
        if (t->kind == TRACE_DIES) return true;
        if (t->kind == TRACE_TO_PROCESS &&
            (t->message == MESSAGE_MOVES || t->message == MESSAGE_SYNCED))
            return false;
    }
    return false;
}

static bool is_allowed(const struct trace *t, enum edit edit)
{
    bool sent = t->kind <= TRACE_AT_PROCESS;
    for (size_t i = 0; i < ARRAY_COUNT(allowed); i++) {
        bool same = allowed[i].kind == t->kind &&
                    (!sent || allowed[i].message == t->message);
        if (same && allowed[i].edits >> edit & 1) return true;
    }
    return false;
}

static uint32_t edits, refused, last;
static uint32_t blind[TRACE_KIND_COUNT][MESSAGE_COUNT][EDITS];

static void edit_all(void)
{
    for (size_t i = 0; i < record_count; i++) {
        const struct trace *t = &records[i].t;
        for (enum edit e = 0; e < EDITS; e++) {
            struct trace copy = *t;
            struct trace_name names[WIRE_OPS_MAX];
            uint64_t sets[PARTIES_MAX];
            bool pair = e >= PAIR_REMOVED;
            if (pair && records[i].partner == 0) continue;
            if (e == OTHER_BYTES && t->byte_count == 0) continue;
            if ((e == CHANGED || e == PAIR_CHANGED) && !change(&copy, names))
                continue;
            if (e == PAIR_OTHER && !change_other(&copy, sets)) continue;
            if (is_one_of_two(i, e)) continue;
            edits++;
            if (verdict(i, e) != NULL)
                refused++;
            else if (is_last(i, e) || dies_unanswered(i, e))
                last++;
            else
                blind[t->kind][t->message][e]++;
        }
    }
}

static int report(void)
{
    int wrong = 0;
    for (uint8_t k = 0; k < TRACE_KIND_COUNT; k++) {
        for (uint8_t n = 0; n < MESSAGE_COUNT; n++) {
            for (enum edit e = 0; e < EDITS; e++) {
                struct trace t = {.kind = k, .message = n};
                bool fine = is_allowed(&t, e);
                if (blind[k][n][e] == 0) continue;
                printf("%s: event %u, message %u, %s: %u\n",
                       fine ? "equivalent" : "BLIND", k, n, edit_names[e],
                       blind[k][n][e]);
                wrong += !fine;
            }
        }
    }
    printf("%u edits, %u refused, %u concern what is under way at an end\n",
           edits, refused, last);
    return wrong;
}

static void run(uint64_t seed, const struct sim_options *options)
{
    static struct sim s;
    sim_init(&s, seed, options);
    sim_run(&s);
    sim_free(&s);
}

static bool check_ends(void)
{
    size_t all = record_count;
    bool right = verdict(0, EDITS) == NULL;
    record_count = 0;
    right = right && verdict(0, EDITS) != NULL; /* empty */
    for (size_t cut = 1; cut < all; cut = cut * 2 + 1) {
        record_count = cut;
        right = right && verdict(0, EDITS) != NULL;
    }
    record_count = all;
    return right;
}

static const struct sim_options universes[] = {
    {.procs = 3, .quorum = 3, .groups = 1, .crash = 1500, .steps = 4000},
    {.procs = 4,
     .quorum = 4,
     .groups = 1,
     .leave = 900,
     .join = 900,
     .crash = 500,
     .scoped = true,
     .steps = 4000},
    {.procs = 3, .quorum = 3, .groups = 1, .reset = 2500, .steps = 4000},
    {.procs = 3,
     .quorum = 3,
     .groups = 1,
     .mismatch = true,
     .variant_resync = true,
     .steps = 4000},
    {.procs = 3,
     .quorum = 2,
     .groups = 1,
     .odd_vote = true,
     .variant_resync = true,
     .steps = 4000},
    {.procs = 3,
     .quorum = 3,
     .groups = 1,
     .crash = 300,
     .masters = 250,
     .steps = 5000},
    {.procs = 2,
     .quorum = 2,
     .groups = 1,
     .minimum = 2,
     .crash = 900,
     .join = 300,
     .steps = 5000},
    {.procs = 3,
     .quorum = 3,
     .groups = 1,
     .counts = true,
     .crash = 600,
     .join = 300,
     .steps = 5000},
    {.procs = 3,
     .quorum = 3,
     .groups = 1,
     .averages = true,
     .crash = 600,
     .leave = 300,
     .join = 300,
     .steps = 5000},
    {.procs = 3,
     .quorum = 3,
     .groups = 1,
     .sync = 2,
     .crash = 600,
     .join = 400,
     .steps = 5000},
    {.procs = 3,
     .quorum = 3,
     .groups = 1,
     .sync = 2,
     .masters = 400,
     .steps = 6000},
};

int main(void)
{
    witness_tap = keep;
    int wrong = 0;
    for (uint64_t i = 0; i < ARRAY_COUNT(universes); i++) {
        struct sim_options o = universes[i];
        o.pool = 1;
        o.pipe_min = 300;
        o.pipe_max = 2000;
        o.delay_max = 20000;
        o.burst = true;
        run(i + 1, &o);
        pair_up();
        if (record_count == RECORDS_MAX || !check_ends()) {
            printf("universe %u: %zu events, %s\n", (unsigned)i, record_count,
                   verdict(0, EDITS) ? verdict(0, EDITS) : "accepted");
            wrong++;
        }
        printf("universe %u: %zu events\n", (unsigned)i, record_count);
        edit_all();
        forget();
    }
    wrong += report();
    return wrong == 0 && refused > 1000 ? 0 : 1;
}
