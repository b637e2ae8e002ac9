/* averages.c - see averages.h.
 *
 * Each process calls round after round, some slowly, each when it likes. When a
 * call ends the oracle has the map of coverage of the same round from the
 * others, and every contribution; it computes each part anew. Rules A. */
#include "averages.h"

#include "witness.h"

#include "../../../include/pccl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    AVERAGE_TAGS = 2,
    ELEMENTS_MAX = 300,
    INPUTS_MAX = 20000, /* of a universe; then nobody calls any more */
    MAPS_MAX = 8000,
    ENDERS_MAX = SIM_PROCS_MAX,
    VOTES_MAX = 1024, /* the last ones */
    GUARD = 16
};

/* A contribution, whose data follow from the rest. */
struct input {
    uint64_t id, number;
    uint32_t tag, nth;
    double weight;
};

/* The map of coverage as the first member had it that ended. */
struct map {
    uint32_t group, tag, parts, members, set_size;
    uint64_t number;
    uint64_t ended[ENDERS_MAX]; /* members that ended well */
    uint32_t ended_count;
    uint64_t ids[SIM_PROCS_MAX];
    struct wire_part part[SIM_PROCS_MAX];
    uint8_t sets[SIM_PROCS_MAX][SIM_PROCS_MAX / 8];
    uint8_t *bytes; /* the result */
};

struct flight {
    struct partial_call *call;
    uint32_t input; /* place in the list */
    bool in_place, odd;
    pccl_ns began;
    uint8_t *send, *recv, *before;
    uint32_t count;
    uint64_t last;      /* number of the last round that ended */
    uint64_t low, high; /* of the last round in the state (A14); 0: unknown */
    bool skips;         /* it was told that it has missed some */
    bool amid;          /* a call was under way at its last vote */
    uint32_t calls, healed; /* since the faults stopped */
};

static struct input inputs[INPUTS_MAX];
static uint32_t input_count;
static struct map maps[MAPS_MAX];
static uint32_t map_count;
static struct flight flights[SIM_PROCS_MAX][AVERAGE_TAGS];
static struct vote { /* a state that was given to a synchronization */
    uint64_t content, low[AVERAGE_TAGS], high[AVERAGE_TAGS];
    uint32_t group;
} votes[VOTES_MAX];
static uint32_t vote_next;

void averages_begin(void)
{
    for (uint32_t i = 0; i < map_count; i++) free(maps[i].bytes);
    input_count = map_count = 0;
    memset(flights, 0, sizeof flights);
    memset(votes, 0, sizeof votes);
    vote_next = 0;
}

static struct flight *flight_of(const struct sim *s, const struct sim_proc *p,
                                uint32_t tag)
{
    return &flights[p - s->procs][tag];
}

/* ------------------------------------------------------------ the arguments */

static bool is_average(uint32_t tag)
{
    return tag == 0;
}

static size_t element_of(uint32_t tag)
{
    return is_average(tag) ? sizeof(double) : sizeof(uint32_t);
}

static uint32_t count_of(const struct sim *s, uint32_t tag)
{
    return (uint32_t)(sim_mix(s->seed, 70, tag, 0) % ELEMENTS_MAX);
}

static uint32_t deadline_of(const struct sim *s)
{
    return 200 + (uint32_t)(sim_mix(s->seed, 71, 0, 0) % 1000);
}

static void fill(const struct sim *s, const struct input *x, uint8_t *bytes,
                 uint32_t count)
{
    uint64_t h = sim_mix(s->seed, x->id, x->nth, x->tag);
    for (uint32_t i = 0; i < count; i++) {
        double d = (double)((h >> i % 32) % 10007) / 7 - 500;
        uint32_t n = (uint32_t)(h >> i % 24) * (i + 1);
        if (is_average(x->tag))
            memcpy(bytes + i * sizeof d, &d, sizeof d);
        else
            memcpy(bytes + i * sizeof n, &n, sizeof n);
    }
}

static void free_flight(struct flight *f)
{
    if (!f->in_place) free(f->send);
    free(f->recv);
    free(f->before);
    f->send = f->recv = f->before = NULL;
    f->call = NULL;
}

/* --------------------------------------------------------------- the calls */

static void begin(struct sim *s, struct sim_proc *p, uint32_t tag)
{
    struct flight *f = flight_of(s, p, tag);
    if (input_count == INPUTS_MAX) return;
    uint32_t count = count_of(s, tag);
    f->odd = s->options.mismatch && sim_pick(s, 60) == 0;
    count += f->odd;
    size_t size = count * element_of(tag);
    struct input *x = &inputs[input_count];
    *x = (struct input){.id = p->session->id, .tag = tag, .nth = f->calls++};
    x->weight = 1 + (double)sim_pick(s, 1000) / 8;
    f->count = count;
    f->recv = malloc(size + 2 * GUARD);
    f->before = malloc(size + 2 * GUARD);
    f->in_place = sim_pick(s, 2) == 0;
    f->send = f->in_place ? f->recv : malloc(size + 2 * GUARD);
    SIM_CHECK(s, f->recv && f->before && f->send, "no memory");
    memset(f->recv, 0xa5, size + 2 * GUARD);
    memset(f->send, 0xa5, size + 2 * GUARD);
    fill(s, x, f->send + GUARD, count);
    memcpy(f->before, f->recv, size + 2 * GUARD);
    bool evicts = sim_mix(s->seed, 72, 0, 0) % 3 == 0 && !s->options.calm &&
                  !s->options.starve && !s->options.single;
    struct partial_request r = {
        .tag = tag + 1,
        .count = count,
        .dtype = is_average(tag) ? DTYPE_F64 : DTYPE_U32,
        .redop = is_average(tag) ? REDOP_AVG : REDOP_SUM,
        .weight = x->weight,
        .deadline_ms = deadline_of(s),
        .gather_ms = s->seed % 4 == 1 ? deadline_of(s) / 8 : 0,
        .evict_after = evicts ? 2 + s->seed % 2 : 0,
        .send = f->send + GUARD,
        .recv = f->recv + GUARD};
    witness_average(p, &r, element_of(tag));
    int result = session_partial(p->session, &r, &f->call);
    SIM_TRACE(s, "process %u (id %llu) averages, tag %u nth %u: %d", p->uid,
              (unsigned long long)x->id, tag, x->nth, result);
    if (result == pcclSuccess) {
        f->input = input_count++;
        f->began = s->now;
        return;
    }
    struct witness_vectors v = {r.send, r.recv, size};
    witness_averaged(p, r.tag, result, NULL, v);
    SIM_CHECK(s,
              result == pcclMasterConnectionFailed ||
                  (result == pcclInternalError && s->options.scarce),
              "a partial all-reduce begins with %d", result);
    f->call = NULL;
    free_flight(f);
}

/* The numbers of the rounds under way, for their contributions. */
static void note_numbers(const struct sim *s)
{
    for (uint32_t left = s->live, i; sim_next(s, &left, &i);) {
        for (uint32_t tag = 0; tag < AVERAGE_TAGS; tag++) {
            const struct flight *f = &flights[i][tag];
            if (f->call) inputs[f->input].number = f->call->number;
        }
    }
}

void averages_end(struct sim_proc *p)
{
    struct sim *s = p->sim;
    note_numbers(s);
    for (uint32_t tag = 0; tag < AVERAGE_TAGS; tag++) {
        free_flight(flight_of(s, p, tag));
        *flight_of(s, p, tag) = (struct flight){0};
    }
}

/* ------------------------------------------------------- the state (A14) */

void averages_vote(struct sim *s, const struct sim_proc *p)
{
    struct vote *v = &votes[vote_next++ % VOTES_MAX];
    *v = (struct vote){.content = sim_hash(p->shared.bytes, p->shared.size),
                       .group = p->group};
    for (uint32_t tag = 0; tag < AVERAGE_TAGS; tag++) {
        struct flight *f = flight_of(s, p, tag);
        v->low[tag] = f->low;
        v->high[tag] = f->high;
        f->amid = f->call != NULL;
    }
}

void averages_receive(const struct sim *s, const struct sim_proc *p)
{
    const struct sim_shared *x = &p->shared;
    uint64_t content = sim_hash(x->bytes, x->size);
    if (memcmp(x->bytes, x->before, x->size) == 0 && !x->liar) return;
    for (uint32_t tag = 0; tag < AVERAGE_TAGS; tag++) {
        struct flight *f = flight_of(s, p, tag);
        f->low = UINT64_MAX;
        f->high = 0;
        for (uint32_t i = 0; i < VOTES_MAX; i++) {
            const struct vote *v = &votes[i];
            if (v->content != content || v->group != p->group) continue;
            if (v->low[tag] < f->low) f->low = v->low[tag];
            if (v->high[tag] > f->high) f->high = v->high[tag];
        }
        /* Other masters count anew (H8); a result may come beside a state. */
        bool known = f->high > 0 && f->low > 0 && !x->liar && !f->amid &&
                     s->options.masters == 0;
        if (!known) f->low = f->high = 0;
        f->skips |= !known; /* a refusal may be later than the state */
        sim_coverage.partial_received += known;
    }
}

/* -------------------------------------------------------------- the oracle */

static struct map *find_map(const struct sim_proc *p, uint32_t tag,
                            uint64_t number)
{
    for (uint32_t i = map_count; i-- > 0;) {
        struct map *m = &maps[i];
        if (m->group == p->group && m->tag == tag && m->number == number)
            return m;
    }
    return NULL;
}

static bool is_in(const uint8_t *set, uint32_t i)
{
    return set[i / 8] >> i % 8 & 1;
}

static const struct input *find_input(const struct sim *s, uint64_t id,
                                      uint32_t tag, uint64_t number)
{
    for (uint32_t i = input_count; i-- > 0;) {
        const struct input *x = &inputs[i];
        if (x->id == id && x->tag == tag && x->number == number) return x;
    }
    SIM_CHECK(s, false,
              "A7: member %llu contributes to round %llu, which it "
              "has not called for",
              (unsigned long long)id, (unsigned long long)number);
    return NULL;
}

/* The part anew, of its contributors. */
static void recompute(const struct sim *s, const struct partial_call *c,
                      uint32_t tag, uint32_t part, uint8_t *out)
{
    static uint8_t data[(ELEMENTS_MAX + 1) * sizeof(double)];
    double sums[ELEMENTS_MAX + 1] = {0};
    uint32_t wraps[ELEMENTS_MAX + 1] = {0};
    const struct partial_part *x = &c->parts[part];
    const uint8_t *set = c->sets + (size_t)part * c->set_size;
    double total = 0;
    uint32_t contributors = 0;
    for (uint32_t k = 0; k < c->member_count; k++) {
        if (!is_in(set, k)) continue;
        const struct input *in =
            find_input(s, c->members[k].id, tag, c->number);
        fill(s, in, data, (uint32_t)c->r.count);
        contributors++;
        total += in->weight;
        for (uint64_t i = 0; i < x->count; i++) {
            double d;
            uint32_t n;
            memcpy(&d, data + (x->begin + i) * sizeof d, sizeof d);
            memcpy(&n, data + (x->begin + i) * sizeof n, sizeof n);
            if (is_average(tag))
                sums[i] += in->weight * d;
            else
                wraps[i] += n;
        }
    }
    SIM_CHECK(s, contributors == x->contributors && total == x->weight,
              "A7: a part has %u contributors of weight %g, its map says %u "
              "of %g",
              contributors, total, x->contributors, x->weight);
    for (uint64_t i = 0; i < x->count; i++) {
        sums[i] /= total;
        if (is_average(tag))
            memcpy(out + i * sizeof(double), &sums[i], sizeof(double));
        else
            memcpy(out + i * sizeof(uint32_t), &wraps[i], sizeof(uint32_t));
    }
}

static void check_parts(struct sim *s, const struct flight *f, uint32_t tag)
{
    static uint8_t right[(ELEMENTS_MAX + 1) * sizeof(double)];
    const struct partial_call *c = f->call;
    size_t element = element_of(tag);
    uint64_t end = 0;
    bool some = false;
    for (uint32_t i = 0; i < c->part_count; i++) {
        const struct partial_part *x = &c->parts[i];
        const uint8_t *is = f->recv + GUARD + x->begin * element;
        SIM_CHECK(s, x->begin == end, "A4: the parts do not cover the vector");
        end += x->count;
        sim_coverage.partial_missing += x->contributors == 0;
        sim_coverage.partial_parts += x->contributors > 0;
        if (x->contributors == 0) {
            SIM_CHECK(s,
                      memcmp(is, f->before + GUARD + x->begin * element,
                             x->count * element) == 0,
                      "A7: a missing part was written");
            continue;
        }
        sim_coverage.partial_few += x->contributors < c->member_count;
        some |= is_in(c->sets + (size_t)i * c->set_size, c->self);
        recompute(s, c, tag, i, right);
        SIM_CHECK(s, memcmp(is, right, x->count * element) == 0,
                  "A7: part %u of round %llu is not the sum of its "
                  "contributions",
                  i, (unsigned long long)c->number);
    }
    SIM_CHECK(s, some == c->contributed, "A7: contributed is %d",
              c->contributed);
    sim_coverage.partial_late += !c->contributed;
}

/* Rule A1: who leaves is gone. */
static bool is_gone(const struct sim *s, uint64_t id)
{
    for (uint32_t i = 0; i < s->master->link_end; i++) {
        const struct master_peer *p = &s->master->peers[i];
        if (p->state == PEER_MEMBER && p->info.id == id) return p->leaving;
    }
    return true;
}

/* Nobody who stays has ended with the part. */
static bool all_gone(const struct sim *s, const struct map *m)
{
    for (uint32_t i = 0; i < m->ended_count; i++) {
        if (!is_gone(s, m->ended[i])) return false;
    }
    return true;
}

static void store(struct map *m, const struct flight *f)
{
    const struct partial_call *c = f->call;
    size_t size = c->r.count * c->element;
    m->parts = c->part_count;
    m->members = c->member_count;
    m->set_size = c->set_size;
    for (uint32_t i = 0; i < c->member_count; i++) m->ids[i] = c->members[i].id;
    for (uint32_t i = 0; i < c->part_count; i++) {
        m->part[i] =
            (struct wire_part){.begin = c->parts[i].begin,
                               .count = c->parts[i].count,
                               .weight = c->parts[i].weight,
                               .contributors = c->parts[i].contributors};
        memcpy(m->sets[i], c->sets + (size_t)i * c->set_size, c->set_size);
    }
    free(m->bytes);
    m->bytes = malloc(size + 1);
    assert(m->bytes);
    memcpy(m->bytes, f->recv + GUARD, size);
}

/* All survivors have the same parts, of the same contributors. */
static void check_same(struct sim *s, const struct sim_proc *p,
                       const struct flight *f, uint32_t tag)
{
    const struct partial_call *c = f->call;
    struct map *m = find_map(p, tag, c->number);
    bool first = m == NULL;
    if (first) {
        SIM_CHECK(s, map_count < MAPS_MAX, "too many rounds");
        m = &maps[map_count++];
        *m = (struct map){.group = p->group, .tag = tag, .number = c->number};
        store(m, f);
    }
    SIM_CHECK(s, m->parts == c->part_count && m->members == c->member_count,
              "A7: %u parts of %u members, %u of %u elsewhere", c->part_count,
              c->member_count, m->parts, m->members);
    for (uint32_t i = 0; i < c->part_count; i++) {
        const struct partial_part *x = &c->parts[i];
        const struct wire_part *y = &m->part[i];
        bool given_up = x->contributors == 0 && y->contributors > 0;
        sim_coverage.partial_given_up += given_up;
        if (given_up && all_gone(s, m)) {
            store(m, f);
            m->ended_count = 0;
            i = 0;
            continue;
        }
        SIM_CHECK(
            s, x->contributors == y->contributors && x->weight == y->weight,
            "A7: part %u of round %llu has %u contributors, and %u "
            "elsewhere",
            i, (unsigned long long)c->number, x->contributors, y->contributors);
        SIM_CHECK(s,
                  memcmp(m->sets[i], c->sets + (size_t)i * c->set_size,
                         c->set_size) == 0,
                  "A7: part %u has other contributors", i);
        size_t from = x->begin * c->element;
        SIM_CHECK(s,
                  x->contributors == 0 ||
                      memcmp(m->bytes + from, f->recv + GUARD + from,
                             x->count * c->element) == 0,
                  "A7: part %u has other bits", i);
    }
    if (m->ended_count < ENDERS_MAX)
        m->ended[m->ended_count++] = p->session->id;
}

/* A member goes through all rounds that are for it, in their order (A2). */
static void check_order(struct sim *s, const struct sim_proc *p,
                        struct flight *f, uint32_t tag)
{
    uint64_t number = f->call->number;
    SIM_CHECK(s, number > f->last, "A2: round %llu after %llu",
              (unsigned long long)number, (unsigned long long)f->last);
    SIM_CHECK(s, number > f->low, "A14: round %llu is in the state",
              (unsigned long long)number);
    uint64_t from = f->high > f->last ? f->high : f->last;
    for (uint32_t i = 0; i < map_count && from > 0 && !f->skips; i++) {
        const struct map *m = &maps[i];
        if (m->group != p->group || m->tag != tag || m->number <= from ||
            m->number >= number)
            continue;
        for (uint32_t k = 0; k < m->members; k++)
            SIM_CHECK(s, m->ids[k] != p->session->id,
                      "A2: member %llu has missed round %llu",
                      (unsigned long long)p->session->id,
                      (unsigned long long)m->number);
    }
    f->last = number;
    f->low = f->high = s->options.masters > 0 ? 0 : number;
    f->skips = false;
}

static void check_failure(struct sim *s, const struct sim_proc *p,
                          struct flight *f, int result, const char *text)
{
    size_t size = f->count * f->call->element + 2 * GUARD;
    SIM_CHECK(s, memcmp(f->recv, f->before, size) == 0,
              "A7: a failed call has written");
    /* Too late, it disagrees with a decided round (A3), or it has failed here
     * (A12). */
    f->skips |= result != pcclMasterConnectionFailed;
    sim_coverage.partial_lapsed += result == pcclInvalidUsage;
    sim_coverage.partial_differs += result == pcclInvalidArgument;
    bool right = result == pcclInvalidUsage ||
                 (result == pcclInvalidArgument && s->options.mismatch) ||
                 (result == pcclInternalError && s->options.scarce) ||
                 p->session->state == SESSION_GONE;
    SIM_CHECK(s, right, "a partial all-reduce ends with %d: %s", result, text);
}

static void end(struct sim *s, struct sim_proc *p, uint32_t tag)
{
    struct flight *f = flight_of(s, p, tag);
    struct partial_call *c = f->call;
    const char *text;
    int result = session_partial_result(p->session, c, &text);
    note_numbers(s);
    struct witness_vectors v = {f->send + GUARD, f->recv + GUARD,
                                f->count * c->element};
    witness_averaged(p, c->r.tag, result, c, v);
    SIM_TRACE(s, "process %u (id %llu) has averaged, tag %u round %llu: %d %s",
              p->uid, (unsigned long long)p->session->id, tag,
              (unsigned long long)c->number, result, text);
    if (result == pcclSuccess) {
        sim_coverage.partial++;
        size_t size = f->count * c->element;
        for (size_t i = 0; i < GUARD; i++)
            SIM_CHECK(s,
                      f->recv[i] == 0xa5 && f->recv[GUARD + size + i] == 0xa5,
                      "written outside of the buffer");
        check_order(s, p, f, tag);
        check_parts(s, f, tag);
        if (sim_is_member(s, p->session->id)) check_same(s, p, f, tag);
        f->healed += s->healing;
    } else {
        check_failure(s, p, f, result, text);
    }
    session_partial_take(p->session, c);
    free_flight(f);
}

/* Neither a loss nor a late member holds anybody up for longer than the
 * deadline of the round, and a further one (A9). */
static void check_time(const struct sim *s, const struct sim_proc *p,
                       const struct flight *f)
{
    pccl_ns since = f->began > s->last_fault ? f->began : s->last_fault;
    pccl_ns limit = 2 * deadline_of(s) * PCCL_MS + 8 * SIM_DEADLINE;
    if (s->options.large || s->options.slow || s->options.alive_max > SIM_FEW)
        limit *= 4;
    SIM_CHECK(s,
              s->options.single != SINGLE_NONE || s->now - since < limit ||
                  p->session->state == SESSION_GONE,
              "process %u waits in a partial all-reduce", p->uid);
}

/* It has said no, and is asked again at the tick after the pause. */
static bool pauses(const struct sim *s, const struct partial_stream *in)
{
    const pccl_ns ticks = 2 * PCCL_TIME_OF_TICK(SIM_DEADLINE);
    return in->pause_until > 0 && s->now < in->pause_until + ticks;
}

/* Rule A5: who is asked for its result is asked for its contribution, too, for
 * which the result may be waiting. */
static void check_asked(const struct sim *s, const struct sim_proc *p,
                        const struct partial_call *c)
{
    for (uint32_t i = 0; i < c->member_count; i++) {
        const struct partial_member *m = &c->members[i];
        const struct partial_stream *in = &m->input;
        bool due = in->chunks && !m->gone && !pauses(s, in);
        SIM_CHECK(s,
                  !due || in->here + in->asked > 0 ||
                      m->asked[PARTIAL_RESULT] == 0,
                  "A5: process %u asks %llu for no contribution", p->uid,
                  (unsigned long long)m->id);
    }
}

void averages_reads(struct sim *s, struct sim_proc *p, const struct wire_msg *m)
{
    bool folds = m->type == WIRE_COVERAGE && m->partial.word == PARTIAL_FOLD;
    for (uint32_t tag = 0; s->options.averages && folds && tag < AVERAGE_TAGS;
         tag++) {
        const struct flight *f = flight_of(s, p, tag);
        bool ours = f->call && f->call->r.tag == m->partial.tag;
        if (ours && f->call->phase == PARTIAL_MOVING)
            check_asked(s, p, f->call);
    }
}

bool averages_turn(struct sim *s, struct sim_proc *p)
{
    if (!s->options.averages || p->fast.op) return false;
    if (p->session->leaving) return false; /* it drops what it has not taken */
    uint32_t tag = sim_pick(s, AVERAGE_TAGS);
    struct flight *f = flight_of(s, p, tag);
    if (f->call && f->call->phase == PARTIAL_DONE) {
        end(s, p, tag);
        return true;
    }
    if (f->call) {
        check_time(s, p, f);
        return false;
    }
    uint32_t rarely = p->uid % 4 == 3 && !s->healing ? 2000 : 100;
    /* After the faults nobody is evicted for a program that is slow (A10). */
    if (s->options.slow && s->healing) rarely /= SIM_SLOW;
    bool cut = p->session->master_lost && !session_waits_for_master(p->session);
    if (p->session->state != SESSION_MEMBER || cut ||
        p->program.stage == STAGE_LEAVING || sim_pick(s, rarely) > 0)
        return false;
    begin(s, p, tag);
    return true;
}

bool averages_delivered(const struct sim *s)
{
    if (!s->options.averages || input_count == INPUTS_MAX) return true;
    for (uint32_t left = s->live, i; sim_next(s, &left, &i);) {
        for (uint32_t tag = 0; tag < AVERAGE_TAGS; tag++)
            if (flights[i][tag].healed == 0) return false;
    }
    return true;
}
