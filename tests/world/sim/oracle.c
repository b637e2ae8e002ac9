/* oracle.c - the conditions that every universe must meet (contract.md). */
#include "witness.h"

#include "../../../include/pccl.h"
#include "../../../src/reduce/quant_kernels.h"
#include "../../../src/reduce/reduce.h"

#include <stdlib.h>
#include <string.h>

enum { KEYS_MIN = 1024, OUTCOMES_MAX = 32, VIEWS_MAX = 1 << 17 };

struct outcome {
    uint64_t id;
    int result;
    uint32_t contributors;
    uint64_t hash;
};

struct entry {
    bool expected;
    struct sim_key key;
    uint64_t want; /* hash of the right result, if expected */
    uint32_t count, offer_count;
    struct outcome outcomes[OUTCOMES_MAX];
    struct {
        uint64_t id;
        int64_t value;
    } offers[OUTCOMES_MAX];
};

struct seen {
    uint64_t hash;
    uint32_t epoch;
};

struct oracle {
    struct entry **entries; /* by their keys, open addressing */
    uint32_t room, count;
    struct seen views[VIEWS_MAX];
    /* Notified epoch -> the next notified one; hash: its traits (T4). */
    struct seen next[VIEWS_MAX];
    uint64_t next_by[VIEWS_MAX]; /* member that was notified */
};

struct oracle *oracle_new(void)
{
    return calloc(1, sizeof(struct oracle));
}

void oracle_free(struct oracle *o)
{
    for (uint32_t i = 0; i < o->room; i++) free(o->entries[i]);
    free(o->entries);
    free(o);
}

/* Where it is, or has its place. */
static struct entry **place_of(const struct oracle *o,
                               const struct sim_key *key)
{
    uint64_t h = sim_mix(key->ident, key->epoch, key->nth, key->group);
    for (;; h++) {
        struct entry **at = &o->entries[h & (o->room - 1)];
        const struct entry *e = *at;
        if (!e || (e->key.ident == key->ident && e->key.group == key->group &&
                   e->key.epoch == key->epoch && e->key.nth == key->nth))
            return at;
    }
}

static void make_room(struct oracle *o)
{
    struct oracle old = *o;
    if (2 * o->count < o->room) return;
    o->room = old.room > 0 ? 4 * old.room : KEYS_MIN;
    o->entries = calloc(o->room, sizeof *o->entries);
    assert(o->entries);
    for (uint32_t i = 0; i < old.room; i++)
        if (old.entries[i]) *place_of(o, &old.entries[i]->key) = old.entries[i];
    free(old.entries);
}

static struct entry *entry_of(struct sim *s, const struct sim_key *key)
{
    struct oracle *o = s->oracle;
    make_room(o);
    struct entry **at = place_of(o, key);
    if (*at) return *at;
    *at = calloc(1, sizeof **at);
    assert(*at);
    (*at)->key = *key;
    o->count++;
    return *at;
}

/* The right result of an operation with these contributors (C5, C6). */
static void expect(struct sim *s, const struct sim_op *o, uint8_t *out)
{
    const struct sim_spec *spec = &o->spec;
    size_t size = o->send_size;
    if (spec->coll == COLL_BROADCAST) {
        spec_fill(s, spec, spec->ids[spec->root], 0, out, size);
        return;
    }
    size_t at = 0;
    if (spec->coll == COLL_ALLTOALLV) {
        for (uint32_t i = 0; i < spec->size; i++) {
            size_t part =
                spec_pair(s, spec, spec->ids[i], spec->ids[spec->self]);
            spec_fill(s, spec, spec->ids[i], spec->ids[spec->self], out + at,
                      part);
            at += part;
        }
        return;
    }
    if (spec->coll == COLL_ALLGATHER) {
        for (uint32_t i = 0; i < spec->size; i++)
            spec_fill(s, spec, spec->ids[i], 0, out + i * size, size);
        return;
    }
    if (!plan_coll_reduces(spec->coll) || spec_lacks_sum(spec)) return;
    uint8_t *one = malloc(size + 1);
    uint8_t *sum = malloc(size + 1);
    assert(one && sum);
    size_t count = size / dtype_size(spec->dtype);
    spec_fill(s, spec, spec->ids[0], 0, sum, size);
    for (uint32_t i = 1; i < spec->size; i++) {
        spec_fill(s, spec, spec->ids[i], 0, one, size);
        reduce_apply(spec->dtype, spec->redop, sum, sum, one, count);
    }
    if (spec->redop == REDOP_AVG)
        reduce_divide(spec->dtype, sum, count, spec->size);
    if (spec->coll == COLL_REDUCE_SCATTER) (void)spec_chunk(spec, &at);
    memcpy(out, sum + at, o->recv_size);
    free(one);
    free(sum);
}

/* Links may fail often enough to count as impossible. */
static bool unsteady(const struct sim *s)
{
    const struct sim_options *o = &s->options;
    return o->single || o->scarce || o->refuse > 0 || o->reset > 0 ||
           o->stall > 0 || o->freeze > 0 || o->starve > 0 || o->pause > 0 ||
           o->garble > 0 || o->stutter > 0 ||
           (o->masters > 0 && o->sync > 0 && !o->well);
}

/* Where launches may fail on one member alone, its resyncs are numbered
 * differently from the others'. */
static bool comparable(const struct sim *s, const struct sim_op *o)
{
    return o->spec.ident != SIM_RESYNC ||
           !(s->options.odd_vote || s->options.mismatch || unsteady(s));
}

static void check_resync(struct sim *s, const struct sim_op *o,
                         const struct entry *e)
{
    if (!comparable(s, o)) return;
    int64_t got, most = -1;
    memcpy(&got, o->recv + SIM_GUARD, 8);
    for (uint32_t k = 0; k < o->spec.size; k++) {
        bool found = false;
        for (uint32_t i = 0; i < e->offer_count; i++) {
            if (e->offers[i].id != o->spec.ids[k]) continue;
            found = true;
            if (e->offers[i].value > most) most = e->offers[i].value;
        }
        SIM_CHECK(s, found || o->spec.size == 1,
                  "resync succeeded without member %llu",
                  (unsigned long long)o->spec.ids[k]);
    }
    SIM_CHECK(s, got == most || o->spec.size == 1,
              "C5: resync is %lld, not %lld", (long long)got, (long long)most);
}

void oracle_offer(struct sim *s, const struct sim_op *o, uint64_t id,
                  int64_t value)
{
    struct entry *e = entry_of(s, &o->key);
    if (e->offer_count == OUTCOMES_MAX) return;
    e->offers[e->offer_count].id = id;
    e->offers[e->offer_count++].value = value;
}

/* Contract C4: every live member, and every contributor to a result, agreed. */
static void check_arguments(struct sim *s, const struct sim_op *o,
                            const struct entry *e)
{
    if (o->spec.ident == SIM_RESYNC) return;
    bool all = plan_coll_reduces(o->spec.coll);
    for (uint32_t i = 0; i < e->offer_count; i++) {
        SIM_CHECK(s,
                  e->offers[i].value == (int64_t)spec_arguments(&o->spec) ||
                      (!all && !sim_is_member(s, e->offers[i].id)),
                  "C4: success in spite of a mismatch");
    }
}

static double number_of(enum dtype type, const uint8_t *from)
{
    float f;
    double x;
    if (type == DTYPE_F64) memcpy(&x, from, 8);
    if (type == DTYPE_F64) return x;
    if (type == DTYPE_F32)
        memcpy(&f, from, 4);
    else
        quant_kernels_base.widen[type](&f, from, 1);
    return f;
}

/* Contributions are at most 3, so results keep the bound of pccl.h. compare()
 * checks that members have the same bits. */
static void check_near(struct sim *s, const struct sim_op *o)
{
    const struct sim_spec *spec = &o->spec;
    size_t width = dtype_size(spec->dtype);
    double n = spec->size;
    double top =
        (double)(((uint64_t)1 << 8 * dtype_size(spec->quant.code)) - 1);
    double factor = spec->redop == REDOP_SUM   ? 0.52 * n * (n + 1)
                    : spec->redop == REDOP_AVG ? 0.52 * (n + 1)
                                               : 1.04 * n;
    double rounding = width == 2 ? 0x1p-7 : 0x1p-20;
    double bound = factor * 3 / top + rounding * 3 * n;
    uint8_t *want = calloc(1, o->recv_size + 1);
    assert(want);
    expect(s, o, want);
    for (size_t i = 0; i < spec->count; i++) {
        double a = number_of(spec->dtype, o->recv + SIM_GUARD + i * width);
        double b = number_of(spec->dtype, want + i * width);
        SIM_CHECK(s, a - b <= bound && b - a <= bound,
                  "quantized result of operation %llu, %s %s to %s: element "
                  "%zu of %llu is %g, not %g",
                  (unsigned long long)spec->ident, dtype_name(spec->dtype),
                  redop_name(spec->redop), dtype_name(spec->quant.code), i,
                  (unsigned long long)spec->count, a, b);
    }
    free(want);
}

static uint64_t check_result(struct sim *s, const struct sim_op *o,
                             struct entry *e)
{
    uint64_t got = sim_hash(o->recv + SIM_GUARD, o->recv_size);
    if (o->spec.ident == SIM_RESYNC) {
        check_resync(s, o, e);
        return got;
    }
    if (o->spec.quant.algorithm != QUANT_NONE && o->spec.size > 1) {
        check_near(s, o);
        return got;
    }
    bool own = o->spec.coll == COLL_ALLTOALLV ||
               o->spec.coll == COLL_REDUCE_SCATTER || o->spec.flow != FLOW_ALL;
    if (!e->expected || own) {
        uint8_t *want = calloc(1, o->recv_size + 1);
        assert(want);
        expect(s, o, want);
        e->want = sim_hash(want, o->recv_size);
        e->expected = true;
        free(want);
    }
    SIM_CHECK(s, got == e->want,
              "C5/C6: wrong result of operation %llu, coll %u %s %s count %llu "
              "members %u in place %d",
              (unsigned long long)o->spec.ident, o->spec.coll,
              dtype_name(o->spec.dtype), redop_name(o->spec.redop),
              (unsigned long long)o->spec.count, o->spec.size,
              o->spec.in_place);
    return own ? 0 : got;
}

static void compare(struct sim *s, const struct entry *e,
                    const struct outcome *a, const struct outcome *b)
{
    bool strange = s->options.odd_vote || s->options.mismatch || unsteady(s);
    bool both = (a->result == pcclSuccess) == (b->result == pcclSuccess);
    bool same = strange ? both : a->result == b->result;
    SIM_CHECK(s,
              same && a->contributors == b->contributors && a->hash == b->hash,
              "C1: operation %llu told epoch %u nth %u: member %llu has result "
              "%d of %u (%llx), member %llu %d of %u (%llx)",
              (unsigned long long)e->key.ident, e->key.epoch, e->key.nth,
              (unsigned long long)a->id, a->result, a->contributors,
              (unsigned long long)a->hash, (unsigned long long)b->id, b->result,
              b->contributors, (unsigned long long)b->hash);
}

void oracle_outcome(struct sim *s, const struct sim_proc *p,
                    const struct sim_op *o, uint32_t contributors)
{
    struct entry *e = entry_of(s, &o->key);
    struct outcome now = {.id = p->session->id, .result = o->result};
    sim_coverage.few += o->result == pcclTooFewPeers;
    if (o->result == pcclSuccess) {
        SIM_CHECK(s, o->spec.scoped || o->spec.size >= s->options.minimum,
                  "M14: %u members are too few", o->spec.size);
        SIM_CHECK(s, contributors == o->spec.size,
                  "C5: %u contributors, not %u", contributors, o->spec.size);
        check_arguments(s, o, e);
        now.contributors = contributors;
        now.hash = check_result(s, o, e);
    }
    bool known = o->result == pcclSuccess ||
                 o->result == pcclRankConnectionLost ||
                 (o->result == pcclInvalidArgument && s->options.mismatch) ||
                 o->result == pcclInvalidUsage ||
                 (o->result == pcclTooFewPeers && !o->spec.scoped &&
                  o->spec.size < s->options.minimum) ||
                 (o->result == pcclOperationFailed &&
                  (s->options.fails || s->options.scarce)) ||
                 (o->result == pcclInternalError && s->options.scarce) ||
                 (o->result == pcclRankConnectionFailed && unsteady(s));
    SIM_CHECK(s, known, "unexpected result %d", o->result);
    bool fault = o->result == pcclRankConnectionLost ||
                 o->result == pcclRankConnectionFailed;
    SIM_CHECK(s, !fault || !s->options.calm, "result %d without a fault",
              o->result);
    SIM_CHECK(
        s, o->result != pcclInvalidUsage || s->options.odd_vote || unsteady(s),
        "nobody was in a vote");
    if (!sim_is_member(s, now.id) || !comparable(s, o)) return;
    for (uint32_t i = 0; i < e->count; i++) {
        if (sim_is_member(s, e->outcomes[i].id))
            compare(s, e, &e->outcomes[i], &now);
    }
    if (e->count < OUTCOMES_MAX) e->outcomes[e->count++] = now;
}

void oracle_answer(struct sim *s, const struct sim_proc *p, enum vote_kind kind,
                   uint32_t flag)
{
    if (s->options.odd_vote || s->options.refuse) return;
    struct sim_op o = {.key = {p->program.step * 8 + 7, p->group,
                               p->session->notified.view->epoch, kind}};
    if (kind != VOTE_PENDING) return;
    struct entry *e = entry_of(s, &o.key);
    struct outcome now = {.id = p->session->id, .result = (int)flag};
    for (uint32_t i = 0; i < e->count; i++) {
        if (sim_is_member(s, e->outcomes[i].id) && sim_is_member(s, now.id))
            SIM_CHECK(s, e->outcomes[i].result == now.result,
                      "two answers to one vote");
    }
    if (e->count < OUTCOMES_MAX) e->outcomes[e->count++] = now;
}

/* Views of an epoch are identical at all members. */
void oracle_view(struct sim *s, struct sim_proc *p)
{
    const struct view *v = p->session->view;
    if (p->session->state != SESSION_MEMBER || v->epoch == p->view_epoch)
        return;
    SIM_CHECK(s, v->epoch > p->view_epoch && v->epoch < VIEWS_MAX,
              "epoch %u after %u", v->epoch, p->view_epoch);
    p->view_epoch = v->epoch;
    witness_view(p);
    uint64_t h = sim_hash((const uint8_t *)v->ids, v->size * 8);
    if (v->order) h ^= sim_hash((const uint8_t *)v->order, v->size * 2);
    h = sim_mix(h, v->ring, v->mesh, v->world * 256 + v->groups) ^ v->largest;
    struct seen *seen = &s->oracle->views[v->epoch];
    if (seen->epoch == 0) *seen = (struct seen){h, v->epoch};
    SIM_CHECK(s, seen->hash == h, "two views of epoch %u", v->epoch);
    SIM_CHECK(s, v->ids[v->rank] == p->session->id, "wrong rank");
}

/* The program's view changes only where the contract allows, and through the
 * same epochs for all members. */
void oracle_told(struct sim *s, struct sim_proc *p, bool allowed)
{
    const struct view *t = p->session->notified.view;
    uint32_t traits = p->session->notified.traits;
    bool voted = p->program.waiting && (p->program.stage == STAGE_UPDATE ||
                                        p->program.stage == STAGE_OPTIMIZE);
    bool joined = p->program.stage == STAGE_JOIN;
    bool same = t->epoch == p->told_epoch && t->size == p->told_size &&
                t->rank == p->told_rank;
    if (same) return;
    witness_told(p);
    SIM_CHECK(s,
              allowed || voted || joined || p->session->leaving ||
                  p->program.stage == STAGE_LEAVING,
              "told epoch %u behind the program's back", t->epoch);
    SIM_CHECK(s, t->epoch > p->told_epoch, "told epoch %u twice", t->epoch);
    struct seen *next = &s->oracle->next[p->told_epoch % VIEWS_MAX];
    uint64_t *by = &s->oracle->next_by[p->told_epoch % VIEWS_MAX];
    if (p->told_epoch > 0 && p->session->state == SESSION_MEMBER &&
        sim_is_member(s, p->session->id)) {
        SIM_CHECK(s,
                  next->epoch == 0 || next->epoch == t->epoch ||
                      !sim_is_member(s, *by) || unsteady(s) ||
                      s->options.odd_vote,
                  "epoch %u was told %u after %u, another one %u", t->epoch,
                  t->epoch, p->told_epoch, next->epoch);
        SIM_CHECK(s,
                  next->epoch != t->epoch || next->hash == traits ||
                      !sim_is_member(s, *by) || unsteady(s) ||
                      s->options.odd_vote,
                  "T4: epoch %u was told with traits %x, and with %x", t->epoch,
                  traits, (unsigned)next->hash);
        next->epoch = t->epoch;
        next->hash = traits;
        *by = p->session->id;
    }
    p->told_epoch = t->epoch;
    p->told_size = t->size;
    p->told_rank = t->rank;
}

/* No newcomer is admitted while a member has an operation. */
void oracle_update(struct sim *s, const uint32_t *links, uint32_t count)
{
    for (uint32_t left = s->live, i; sim_next(s, &left, &i);) {
        const struct sim_proc *p = &s->procs[i];
        if (p->session->state != SESSION_MEMBER) continue;
        for (uint32_t k = 0; k < count; k++) {
            const struct master_peer *m = &s->master->peers[links[k]];
            bool listed = m->info.id == p->session->id && m->voted[VOTE_UPDATE];
            SIM_CHECK(s, !listed || !session_busy(p->session),
                      "process %u is in an operation during an update", p->uid);
        }
    }
}
