/* program_op.c - the operations of a program: their choice, their buffers, and
 * the conditions on the buffers when an operation ends. */
#include "program.h"
#include "witness.h"

#include "../../../include/pccl.h"

#include <stdlib.h>
#include <string.h>

uint64_t program_hash(const struct sim *s, uint64_t a, uint64_t b)
{
    return sim_mix(s->seed, 77, a, b);
}

/* A step in which one member calls something else than the others. */
bool program_special(const struct sim *s, uint64_t step)
{
    return (s->options.odd_vote || s->options.mismatch) &&
           program_hash(s, step, 500) % 4 == 0;
}

static uint64_t choose_count(const struct sim *s, uint64_t h, uint64_t step,
                             size_t element, bool quantized)
{
    uint64_t n = h >> 8;
    bool often = quantized || s->options.pairwise || s->options.sites > 0;
    uint32_t one_in = often ? 3 : 12;
    if (s->options.large && program_hash(s, step, 900) % one_in == 0)
        return sim_large(s, n, program_hash(s, step, 901)) / element;
    switch (h % 8) {
    case 0:
        return 0;
    case 1:
        return 1;
    case 2:
        return 2;
    case 3:
    case 4:
        return 3 + n % 20;
    default:
        return n % (s->options.pipe_max < 2048 ? 100 : 900);
    }
}

static void choose_scope(const struct sim *s, const struct sim_proc *p,
                         struct sim_spec *spec, uint64_t h)
{
    const struct view *t = p->session->notified.view;
    spec->scoped = s->options.scoped && t->size >= 2 && h % 4 == 0 &&
                   !program_special(s, p->program.step);
    spec->absent = spec->scoped;
    for (uint32_t i = 0; i < t->size; i++) {
        uint64_t id = t->members[i].id;
        if (spec->scoped && sim_mix(h, i, 5, 0) % 3 == 0) continue;
        if (id == p->session->id) {
            spec->self = spec->size;
            spec->absent = false;
        }
        spec->ids[spec->size++] = id;
    }
    if (spec->size < 2) spec->absent = spec->scoped;
    if (spec->size > 0) spec->root = (uint32_t)(h >> 20) % spec->size;
}

void program_spec(const struct sim *s, const struct sim_proc *p, uint32_t i,
                  struct sim_spec *spec)
{
    uint64_t step = p->program.step;
    uint64_t h = program_hash(s, step, i);
    *spec = (struct sim_spec){.ident = step * 8 + i};
    bool few = s->options.fast || program_hash(s, 0, 0) % 2;
    spec->tag = few ? i : 100000 + step * 8 + i;
    spec->coll = (uint32_t)(h >> 3) % 8;
    if (spec->coll >= COLL_COUNT) spec->coll = COLL_ALLREDUCE;
    if (s->options.rooted && (h >> 56) % 2) spec->coll = COLL_ALLTOALLV;
    if (s->options.rooted && spec->coll == COLL_ALLTOALLV)
        spec->flow = (h >> 57) % 2 ? FLOW_TO_ROOT : FLOW_FROM_ROOT;
    if (s->options.even && (h >> 56) % 4 == 0) spec->coll = COLL_ALLTOALLV;
    if (s->options.even && spec->coll == COLL_ALLTOALLV) spec->flow = FLOW_EVEN;
    if (s->options.rooted && spec->coll == COLL_ALLREDUCE && (h >> 58) % 4)
        spec->flow = FLOW_TO_ROOT;
    spec->dtype = (enum dtype)((h >> 32) % DTYPE_COUNT);
    spec->redop = (enum redop)((h >> 40) % REDOP_COUNT);
    bool whole = s->options.fast || spec->flow != FLOW_ALL;
    sim_quantize(spec, whole ? 1 : h >> 50);
    spec->count = choose_count(
        s, h >> 10, step,
        plan_coll_reduces(spec->coll) ? dtype_size(spec->quant.code) : 2,
        spec->quant.algorithm != QUANT_NONE);
    spec->in_place = (h >> 48) % 2;
    choose_scope(s, p, spec, sim_mix(h, 1, 2, 3));
}

/* Small integers, exact in every type. */
static void put_number(enum dtype type, uint64_t v, uint8_t *to)
{
    static const uint16_t half[] = {0, 0x3c00, 0x4000, 0x4200};
    float f = (float)v;
    double d = (double)v;
    uint32_t bits;
    uint16_t bf;
    switch (type) {
    case DTYPE_F16:
        memcpy(to, &half[v], 2);
        return;
    case DTYPE_BF16:
        memcpy(&bits, &f, 4);
        bf = (uint16_t)(bits >> 16);
        memcpy(to, &bf, 2);
        return;
    case DTYPE_F32:
        memcpy(to, &f, 4);
        return;
    case DTYPE_F64:
        memcpy(to, &d, 8);
        return;
    default:
        memset(to, 0, dtype_size(type));
        *to = (uint8_t)v; /* little-endian */
    }
}

/* Seven bytes of the hash after each other. */
static void fill_bytes(uint64_t h, uint8_t *bytes, size_t size)
{
    size_t i = 0;
    for (; i + 7 <= size; i += 7)
        for (size_t k = 0; k < 7; k++)
            bytes[i + k] = (uint8_t)(h >> 8 * k) ^ (uint8_t)((i + k) * 31);
    for (size_t k = 0; i < size; i++, k++)
        bytes[i] = (uint8_t)(h >> 8 * k) ^ (uint8_t)(i * 31);
}

/* Of a constant width each: a copy is one instruction. */
static inline void fill_numbers(uint64_t h, uint8_t numbers[4][8], size_t width,
                                uint8_t *bytes, size_t size)
{
    for (; size >= width; size -= width, bytes += width) {
        memcpy(bytes, numbers[h >> 62], width);
        h += 0x9e3779b97f4a7c15u;
    }
}

void spec_fill(const struct sim *s, const struct sim_spec *spec, uint64_t id,
               uint64_t to, uint8_t *bytes, size_t size)
{
    uint64_t h = sim_mix(s->seed, spec->ident, id, to);
    if (!plan_coll_reduces(spec->coll)) {
        fill_bytes(h, bytes, size);
        return;
    }
    uint8_t numbers[4][8] = {{0}};
    for (uint64_t v = 0; v < 4; v++)
        put_number(spec->dtype, spec->redop == REDOP_PROD && v > 2 ? 1 : v,
                   numbers[v]);
    switch (dtype_size(spec->dtype)) {
    case 1:
        fill_numbers(h, numbers, 1, bytes, size);
        return;
    case 2:
        fill_numbers(h, numbers, 2, bytes, size);
        return;
    case 4:
        fill_numbers(h, numbers, 4, bytes, size);
        return;
    default:
        fill_numbers(h, numbers, 8, bytes, size);
        return;
    }
}

bool spec_lacks_sum(const struct sim_spec *spec)
{
    return spec->coll == COLL_ALLREDUCE && spec->flow == FLOW_TO_ROOT &&
           spec->self != spec->root;
}

void spec_fit_flow(struct sim_spec *spec)
{
    bool sum = spec->coll == COLL_ALLREDUCE && spec->flow == FLOW_TO_ROOT;
    if (spec->coll != COLL_ALLTOALLV && !sum) spec->flow = FLOW_ALL;
}

size_t spec_chunk(const struct sim_spec *spec, size_t *first)
{
    size_t each = (size_t)spec->count / spec->size;
    size_t rest = (size_t)spec->count % spec->size;
    size_t width = dtype_size(spec->dtype);
    *first =
        (each * spec->self + (spec->self < rest ? spec->self : rest)) * width;
    return (each + (spec->self < rest)) * width;
}

static uint8_t *buffer_new(size_t size)
{
    uint8_t *b = malloc(size + 2 * SIM_GUARD);
    assert(b);
    memset(b, 0xa5, size + 2 * SIM_GUARD);
    return b;
}

static bool guards_intact(const uint8_t *b, size_t size)
{
    for (size_t i = 0; i < SIM_GUARD; i++) {
        if (b[i] != 0xa5 || b[SIM_GUARD + size + i] != 0xa5) return false;
    }
    return true;
}

static void fill_pairs(const struct sim *s, const struct sim_proc *p,
                       struct sim_op *o, struct plan_request *r)
{
    uint64_t self = p->session->id;
    for (uint32_t i = 0; i < o->spec.size; i++) {
        uint64_t id = o->spec.ids[i];
        o->arrays[0][i] = spec_pair(s, &o->spec, self, id);
        o->arrays[1][i] = o->send_size;
        o->arrays[2][i] = spec_pair(s, &o->spec, id, self);
        o->arrays[3][i] = o->recv_size;
        o->send_size += o->arrays[0][i];
        o->recv_size += o->arrays[2][i];
    }
    r->send_bytes = o->arrays[0];
    r->send_displs = o->arrays[1];
    r->recv_bytes = o->arrays[2];
    r->recv_displs = o->arrays[3];
}

static void make_buffers(const struct sim *s, const struct sim_proc *p,
                         struct sim_op *o, struct op_request *q)
{
    const struct sim_spec *spec = &o->spec;
    uint64_t self = p->session->id;
    size_t size = (size_t)spec->count;
    if (plan_coll_reduces(spec->coll)) size *= dtype_size(spec->dtype);
    o->send_size = o->recv_size = 0;
    if (spec->coll == COLL_ALLTOALLV) {
        fill_pairs(s, p, o, &q->plan);
    } else if (spec->coll != COLL_BARRIER) {
        o->send_size = size;
        o->recv_size = spec->coll == COLL_ALLGATHER ? size * spec->size : size;
        if (spec->coll == COLL_REDUCE_SCATTER)
            o->recv_size = spec_chunk(spec, &size);
        if (spec_lacks_sum(spec)) o->recv_size = 0;
    }
    o->send = buffer_new(o->send_size);
    o->recv = buffer_new(o->recv_size);
    uint8_t *send = o->send + SIM_GUARD;
    uint8_t *recv = o->recv + SIM_GUARD;
    for (uint32_t i = 0; spec->coll == COLL_ALLTOALLV && i < spec->size; i++)
        spec_fill(s, spec, self, spec->ids[i], send + o->arrays[1][i],
                  o->arrays[0][i]);
    if (spec->coll != COLL_ALLTOALLV)
        spec_fill(s, spec, self, 0, send, o->send_size);
    if (o->spec.ident == SIM_RESYNC && o->send_size >= 8) {
        int64_t step = (int64_t)p->program.step;
        memcpy(send, &step, 8);
    }
    q->call.sendbuf = send;
    q->call.recvbuf = recv;
    uint64_t own = spec->coll == COLL_ALLGATHER ? spec->self * size : 0;
    bool whole = spec->coll == COLL_BROADCAST && spec->self == spec->root;
    bool in_place = spec->in_place && spec->coll <= COLL_ALLGATHER;
    if (spec_lacks_sum(spec)) {
        q->call.recvbuf = NULL;
    } else if (in_place || whole) {
        if (o->send_size > 0) memcpy(recv + own, send, o->send_size);
        q->call.sendbuf = recv + own;
    }
    o->copy = buffer_new(o->recv_size);
    memcpy(o->copy, o->recv, o->recv_size + 2 * SIM_GUARD);
}

static void free_op(struct sim_op *o)
{
    free(o->send);
    free(o->recv);
    free(o->copy);
    o->send = o->recv = o->copy = NULL;
}

/* A step is run once per notified epoch, a resync as often as it takes. */
static void make_key(struct sim_proc *p, struct sim_op *o)
{
    struct sim_program *g = &p->program;
    uint32_t epoch = p->session->notified.view->epoch;
    if (g->resync_epoch != epoch) g->resyncs = 0;
    g->resync_epoch = epoch;
    bool resync = o->spec.ident == SIM_RESYNC;
    o->key = (struct sim_key){o->spec.ident, p->group, epoch,
                              resync ? g->resyncs++ : 0};
}

uint64_t spec_arguments(const struct sim_spec *spec)
{
    bool counts = spec->coll != COLL_ALLTOALLV || spec->flow == FLOW_EVEN;
    uint64_t count = counts ? spec->count : 0;
    bool rooted = spec->coll == COLL_BROADCAST || spec->flow != FLOW_ALL;
    count += (uint64_t)spec->flow << 48;
    if (spec->scoped) count += (uint64_t)spec->size << 32;
    return sim_mix(spec->ident, count, spec->dtype * 16 + spec->redop,
                   spec->coll * 16 + (rooted ? spec->root : 0));
}

/* Arguments made for another view than the one that the program knows begin
 * nothing. The answer is the epoch of arguments that are up to date, or 0. */
static uint64_t view_epoch(struct sim *s, struct sim_proc *p,
                           const struct sim_spec *spec,
                           const struct op_request *r)
{
    uint64_t now = p->session->notified.view->epoch;
    uint64_t h = program_hash(s, spec->ident, 600 + p->session->id);
    if (h % 16 == 0 && !spec->scoped && p->session->state == SESSION_MEMBER) {
        struct op *op = NULL;
        SIM_CHECK(s, !session_fast(p->session, r, now + 1),
                  "a fast operation with arguments of epoch %u", (unsigned)now);
        int result = session_launch(p->session, r, now + 1, &op);
        SIM_CHECK(s, result == pcclRankConnectionLost && !op,
                  "arguments of another view: %d", result);
        sim_coverage.old_view++;
    }
    return h / 16 % 2 == 0 ? now : 0;
}

bool program_launch(struct sim *s, struct sim_proc *p, struct sim_op *o)
{
    struct sim_spec *spec = &o->spec;
    o->op = NULL;
    o->taken = o->asked = o->cached = o->fast = o->converted = false;
    make_key(p, o);
    if (spec->absent ||
        (spec->size == 1 && spec->coll == COLL_ALLREDUCE && s->options.local)) {
        o->taken = true;
        o->result = pcclSuccess;
        return true;
    }
    struct op_request q = {.call.tag = spec->tag,
                           .call.dtype = spec->dtype,
                           .call.redop = spec->redop,
                           .call.digest = spec_arguments(spec)};
    q.plan.coll = spec->coll;
    q.plan.root = spec->root;
    q.plan.flow = spec->flow;
    q.plan.count = spec->count;
    q.plan.element =
        plan_coll_reduces(spec->coll) ? (uint32_t)dtype_size(spec->dtype) : 1;
    make_buffers(s, p, o, &q);
    if (spec->quant.algorithm != QUANT_NONE)
        engine_quantize(&q, spec->quant.algorithm, spec->quant.code);
    if (spec->scoped) {
        q.call.members = spec->ids;
        q.call.member_count = spec->size;
        sim_coverage.scoped++;
    }
    oracle_offer(s, o, p->session->id,
                 spec->ident == SIM_RESYNC ? (int64_t)p->program.step
                                           : (int64_t)spec_arguments(spec));
    uint64_t view = view_epoch(s, p, spec, &q);
    bool fast = program_fast(s, p, o, &q, view);
    witness_launch(p, o);
    if (fast) return true;
    int result = session_launch(p->session, &q, view, &o->op);
    SIM_TRACE(s,
              "process %u (id %llu) launches %llu tag %llu coll %u count "
              "%llu epoch %u size %u: %d phase %d",
              p->uid, (unsigned long long)p->session->id,
              (unsigned long long)spec->ident, (unsigned long long)spec->tag,
              spec->coll, (unsigned long long)spec->count, o->key.epoch,
              spec->size, result, o->op ? (int)o->op->phase : -1);
    o->cached = o->op && o->op->phase == PHASE_DONE;
    if (result == pcclSuccess) return true;
    if (result == pcclInternalError && s->options.scarce) {
        sim_coverage.scarce_launch++;
        free_op(o);
        return false; /* the program calls again */
    }
    SIM_CHECK(s, p->session->state == SESSION_GONE, "launch refused: %d",
              result);
    o->taken = true;
    o->result = result;
    witness_result(p, o, 0, false);
    free_op(o);
    return true;
}

/* Contract C2. */
static void check_buffers(struct sim *s, const struct sim_op *o)
{
    const struct sim_spec *spec = &o->spec;
    SIM_CHECK(s, guards_intact(o->send, o->send_size), "send buffer overrun");
    SIM_CHECK(s, guards_intact(o->recv, o->recv_size), "recv buffer overrun");
    if (spec->ident == SIM_RESYNC) return;
    uint8_t *sent = buffer_new(o->send_size);
    for (uint32_t i = 0; spec->coll == COLL_ALLTOALLV && i < spec->size; i++)
        spec_fill(s, spec, spec->ids[spec->self], spec->ids[i],
                  sent + o->arrays[1][i], o->arrays[0][i]);
    if (spec->coll != COLL_ALLTOALLV)
        spec_fill(s, spec, spec->ids[spec->self], 0, sent, o->send_size);
    SIM_CHECK(s, memcmp(sent, o->send + SIM_GUARD, o->send_size) == 0,
              "C2: the send buffer was written");
    bool reduce =
        spec->coll == COLL_ALLREDUCE && spec->in_place && !spec_lacks_sum(spec);
    bool root = spec->coll == COLL_BROADCAST && spec->self == spec->root;
    if (o->result != pcclSuccess && (reduce || root))
        SIM_CHECK(s, memcmp(o->recv, o->copy, o->recv_size + SIM_GUARD) == 0,
                  "C2: an in-place buffer was not restored");
    if (spec->coll == COLL_ALLGATHER && spec->in_place && o->send_size > 0)
        SIM_CHECK(s,
                  memcmp(o->recv + SIM_GUARD + spec->self * o->send_size, sent,
                         o->send_size) == 0,
                  "C2: the own block of a gather was written");
    free(sent);
}

void program_ends(struct sim *s, struct sim_proc *p, struct sim_op *o,
                  uint32_t contributors)
{
    o->taken = true;
    o->op = NULL;
    SIM_TRACE(s, "process %u (id %llu) takes %llu epoch %u nth %u: %d, told %u",
              p->uid, (unsigned long long)p->session->id,
              (unsigned long long)o->spec.ident, o->key.epoch, o->key.nth,
              o->result, p->session->notified.view->epoch);
    sim_coverage.lost += o->result == pcclRankConnectionLost;
    sim_coverage.many_lost +=
        o->result == pcclRankConnectionLost && o->spec.size > SIM_FEW;
    fail_taken(o);
    sim_coverage.scoped_lost +=
        o->result == pcclRankConnectionLost && o->spec.scoped;
    witness_result(p, o, contributors, o->fast);
    check_buffers(s, o);
    oracle_told(s, p, o->result == pcclRankConnectionLost && !o->spec.scoped);
    if (p->session->state != SESSION_GONE)
        oracle_outcome(s, p, o, contributors);
    if (o->spec.ident == SIM_RESYNC && o->result == pcclSuccess) {
        int64_t step;
        memcpy(&step, o->recv + SIM_GUARD, 8);
        p->program.step = (uint64_t)step;
    }
    free_op(o);
}

void program_take(struct sim *s, struct sim_proc *p, struct sim_op *o)
{
    uint32_t contributors;
    uint64_t tx, rx;
    const struct plan plan = o->op->plan;
    bool quantized = o->op->r.quant.algorithm != QUANT_NONE;
    bool confirm = o->op->confirm, mapped = o->op->mapped_bytes > 0;
    uint32_t dispute = op_dispute(o->op);
    if (o->converted) program_fast_taken(p, o);
    o->result = session_take(p->session, o->op, &contributors, &tx, &rx);
    sim_cover_plan(&plan, quantized, confirm, mapped, o->result);
    const char *text = session_dispute(p->session, dispute);
    sim_coverage.disputed += o->result == pcclInvalidArgument && text != NULL;
    sim_coverage.local += o->result == pcclSuccess && o->spec.size == 1;
    program_ends(s, p, o, contributors);
}

void program_free(struct sim_proc *p)
{
    for (uint32_t i = 0; i < SIM_OPS_MAX; i++) free_op(&p->program.ops[i]);
}
