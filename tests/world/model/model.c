/* model.c - the channels between processes and the master, and the dispatch of
 * events. See model.h. */
#include "model_state.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void model_refuse(struct model *m, const char *format, ...)
{
    if (m->wrong) return;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(m->text, sizeof m->text, format, args);
    va_end(args);
    m->wrong = m->text;
}

struct model *model_new(int64_t deadline)
{
    struct model *m = calloc(1, sizeof *m);
    if (m) m->deadline = deadline;
    return m;
}

void model_free(struct model *m)
{
    if (!m) return;
    for (uint32_t i = 0; i < m->process_end; i++) {
        struct process *p = m->processes[i];
        if (!p) continue;
        for (uint32_t k = 0; k < p->caller_count; k++)
            data_over(&p->callers[k]);
        free(p->up.of);
        free(p->down.of);
        free(p->seqs);
        free(p);
    }
    data_free(m);
    free(m->calls);
    free(m);
}

bool same_name(const struct trace_name *a, const struct trace_name *b)
{
    return a->scope == b->scope && a->tag == b->tag && a->seq == b->seq;
}

uint32_t find_id(const struct ids *s, uint64_t id)
{
    uint32_t i = 0;
    while (i < s->count && s->of[i] != id) i++;
    return i;
}

struct process *process_of(struct model *m, uint64_t id)
{
    for (uint32_t i = m->process_end; i-- > 0;) {
        struct process *p = m->processes[i];
        if (p && p->id == id) return p;
    }
    return NULL;
}

/* ---------------------------------------------------------------- channels */

static uint64_t mix(uint64_t h, uint64_t more)
{
    h = (h ^ more) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

static uint64_t hash_of(const struct trace *t)
{
    uint64_t h = mix(t->message, (uint64_t)t->round << 32 | t->epoch);
    h = mix(h, (uint64_t)t->flag << 32 | t->value);
    h = mix(mix(h, t->number + t->joins), t->digest);
    h = mix(h, (uint64_t)t->name_count << 32 | t->id_count);
    h = mix(h, (uint64_t)t->added_count << 32 | t->set_count);
    for (uint32_t i = 0; i < t->name_count; i++) {
        const struct trace_name *n = &t->names[i];
        h = mix(mix(h, n->scope), n->tag);
        h = mix(h, (uint64_t)n->seq << 16 | (uint64_t)n->state << 8 | n->donor);
    }
    for (uint32_t i = 0; i < t->id_count; i++) h = mix(h, t->ids[i]);
    for (uint32_t i = 0; i < t->added_count; i++) h = mix(h, t->added[i]);
    for (uint32_t i = 0; i < t->set_count; i++) h = mix(h, t->sets[i]);
    h = mix(mix(h, t->size), t->part_count);
    for (uint32_t i = 0; i < t->part_count; i++) {
        const struct trace_part *x = &t->parts[i];
        h = mix(mix(mix(h, x->begin), x->count), x->hash);
        h = mix(h, (uint64_t)x->owner << 32 | x->contributors);
    }
    return h;
}

static void goes(struct model *m, struct queue *q, const struct trace *t)
{
    if (q->first == q->count) q->first = q->count = 0;
    if (q->count == q->room) {
        uint32_t room = 2 * q->room + 16;
        uint64_t *of = realloc(q->of, room * sizeof *of);
        if (!of) {
            REFUSE(m, "out of memory");
            return;
        }
        q->of = of;
        q->room = room;
    }
    q->of[q->count++] = hash_of(t);
}

/* Messages arrive as they were sent, in that order. */
static void comes(struct model *m, struct queue *q, const struct trace *t)
{
    if (q->first == q->count || q->of[q->first] != hash_of(t))
        REFUSE(m, "message %u of process %u is not the next one sent",
               t->message, t->process);
    else
        q->first++;
}

/* ---------------------------------------------------------------- dispatch */

static struct process *take_process(struct model *m, const struct trace *t)
{
    if (t->process == 0 || t->process >= PROCESSES) {
        REFUSE(m, "no such process: %u", t->process);
        return NULL;
    }
    if (t->process >= m->process_end) m->process_end = t->process + 1;
    struct process **slot = &m->processes[t->process];
    bool first = t->kind == TRACE_TO_MASTER && t->message == MESSAGE_HELLO;
    if (!*slot && first) *slot = calloc(1, sizeof **slot);
    if (!*slot) {
        REFUSE(m, "event %u of process %u before its HELLO", t->kind,
               t->process);
        return NULL;
    }
    return *slot;
}

/* What a process does beside its messages to the master. */
static void dispatch_beside(struct model *m, struct process *p,
                            const struct trace *t)
{
    switch ((enum trace_kind)t->kind) {
    case TRACE_SHARED:
        sync_taken(m, p, t);
        return;
    case TRACE_MADE:
        samples_made(p, t);
        return;
    case TRACE_SUM:
        samples_seen(m, p, t);
        return;
    case TRACE_ASKED:
        data_asked(m, p, t);
        return;
    case TRACE_PIECE:
        data_came(m, p, t);
        return;
    case TRACE_AVERAGE:
    case TRACE_AVERAGED:
        caller_program(m, p, t);
        return;
    default:
        member_program(m, p, t);
        return;
    }
}

static void dispatch(struct model *m, struct process *p, const struct trace *t)
{
    bool frame = t->kind == TRACE_ASKED || t->kind == TRACE_PIECE;
    bool calls = t->kind == TRACE_TO_MASTER && t->message == MESSAGE_PARTIAL &&
                 t->flag == SAYS_CALL;
    if (p->call_due && !calls && !frame && t->kind != TRACE_AVERAGED)
        REFUSE(m, "A2: a call of %llu is not said", (unsigned long long)p->id);
    if (!frame) p->call_due = false;
    switch ((enum trace_kind)t->kind) {
    case TRACE_TO_MASTER:
        if (t->message == MESSAGE_MEASURED) probe_reported(m, p, t);
        if (t->message == MESSAGE_VOTE || t->message == MESSAGE_SYNC)
            call_numbered(m, p, t);
        if (t->message == MESSAGE_HAS) sync_says(m, p);
        member_sends(m, p, t);
        if (t->message == MESSAGE_PARTIAL) caller_sends(m, p, t);
        if (t->message == MESSAGE_SAMPLES) samples_sent(m, p, t);
        if (t->message != MESSAGE_OTHER) goes(m, &p->up, t);
        return;
    case TRACE_AT_MASTER:
        if (m->unsettled) REFUSE(m, "an event at the master has no end");
        m->unsettled = true;
        m->plain = t->message == MESSAGE_OTHER || t->message == MESSAGE_SAMPLES;
        if (t->message != MESSAGE_OTHER) comes(m, &p->up, t);
        if (t->message == MESSAGE_PARTIAL && p->standing == MEMBER)
            average_takes(m, p, t);
        else if (t->message == MESSAGE_SAMPLES && p->standing == MEMBER)
            samples_reported(m, p, t);
        else
            master_takes(m, p, t);
        if (t->message == MESSAGE_MEASURED) probe_ended(m, p, t);
        return;
    case TRACE_TO_PROCESS:
        m->unsettled = true;
        goes(m, &p->down, t);
        if (t->message == MESSAGE_PROBE)
            probe_ordered(m, p, t);
        else if (t->message == MESSAGE_COVERAGE)
            average_gives(m, p, t);
        else if (t->message == MESSAGE_SAMPLES)
            samples_told(m, p, t);
        else
            master_gives(m, p, t);
        return;
    case TRACE_AT_PROCESS:
        comes(m, &p->down, t);
        if (t->message == MESSAGE_SAMPLES) samples_heard(p, t);
        if (t->message == MESSAGE_PROBE) probe_read(p, t);
        member_reads(m, p, t);
        return;
    case TRACE_LOST:
        master_loses(m, p);
        return;
    case TRACE_CLOSED:
        master_closes(m, p, t->flag);
        m->plain = true; /* what follows from that may wait for the next one */
        return;
    case TRACE_MUTE:
        p->mute = true;
        p->due = MESSAGE_OTHER;
        return;
    case TRACE_FRAME:
        call_hears(m, p, t);
        return;
    default:
        dispatch_beside(m, p, t);
        return;
    }
}

const char *model_take(struct model *m, const struct trace *t)
{
    if (m->wrong) return m->wrong;
    m->now = t->time;
    if (m->starts) m->began = m->now; /* by its own clock */
    m->starts = false;
    if (m->ended) REFUSE(m, "an event after the end");
    if (t->kind == TRACE_END) {
        m->ended = true;
        return m->wrong;
    }
    if (t->kind == TRACE_SETTLED) {
        m->no_disk = t->flag != 0;
        master_settled(m);
        if (!m->waits) probes_settled(m);
        samples_settled(m);
        if (!m->plain && !m->waits) average_settled(m);
        m->plain = false;
        return m->wrong;
    }
    if (t->kind == TRACE_DIES) {
        master_dies(m);
        return m->wrong;
    }
    struct process *p = take_process(m, t);
    if (p) dispatch(m, p, t);
    return m->wrong;
}

const char *model_end(struct model *m)
{
    if (!m->ended) REFUSE(m, "the trace is cut off");
    if (m->views == 0) REFUSE(m, "no view was ever in force");
    if (m->results == 0) REFUSE(m, "no call ever ended");
    return m->wrong;
}
