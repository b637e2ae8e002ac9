/* letters.c - messages between members, beside everything else that happens.
 * Of many pairs only one writes. Where walls stand, it may be the member whose
 * dials do not pass: the other one has to dial (rule P2P-10). In all cases a
 * member receives from another one all messages that it wrote, in order, none
 * twice and none left out, until the last event: its loss (P2P-4, P2P-7). When
 * all faults are over every message arrives. */
#include "sim.h"

#include "../../../include/pccl.h"

#include <string.h>

enum { POSTS_MAX = 60, LETTER_MAX = 600 };

static size_t letter(const struct sim *s, uint64_t from, uint64_t to,
                     uint32_t number, uint8_t *bytes)
{
    uint64_t h = sim_mix(s->seed, 82, from * 100003 + to, number);
    size_t size = (size_t)(h >> 32) % LETTER_MAX;
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(h >> i % 4 * 8) ^ (uint8_t)i;
    return size;
}

static bool writes_to(const struct sim *s, uint64_t from, uint64_t to)
{
    return from != to && sim_mix(s->seed, 83, from, to) % 2 == 0;
}

static void post(struct sim *s, struct sim_proc *p, uint64_t to)
{
    uint64_t self = p->session->id;
    uint8_t bytes[LETTER_MAX];
    SIM_CHECK(s, to < SIM_IDS_MAX, "too many processes");
    if (!writes_to(s, self, to)) return;
    size_t size = letter(s, self, to, p->letters.sent[to], bytes);
    size_t head = size < MESSAGE_HEADER_MAX ? size / 2 : MESSAGE_HEADER_MAX;
    int result = message_post(&p->session->messages, to, bytes, head,
                              bytes + head, size - head);
    SIM_TRACE(s, "process %u (id %llu) writes letter %u to %llu: %d", p->uid,
              (unsigned long long)self, p->letters.sent[to],
              (unsigned long long)to, result);
    SIM_CHECK(s,
              result == pcclSuccess || result == pcclPendingAsyncOps ||
                  (result == pcclInternalError && s->options.scarce),
              "a letter from %llu to %llu: %d", (unsigned long long)self,
              (unsigned long long)to, result);
    p->letters.sent[to] += result == pcclSuccess;
}

static void take(struct sim *s, struct sim_proc *p, struct message_event *event)
{
    uint64_t from = event->member;
    struct sim_letters *l = &p->letters;
    SIM_CHECK(s, from < SIM_IDS_MAX, "too many processes");
    if (event->kind == EVENT_ROOM) return;
    SIM_CHECK(s, !l->lost[from], "P2P-7: something of %llu after its loss",
              (unsigned long long)from);
    if (event->kind == EVENT_LOST) {
        const struct view *v = p->session->view;
        SIM_CHECK(s, view_find(v, from) == v->size, "P2P-7: %llu is no loss",
                  (unsigned long long)from);
        l->lost[from] = true;
        sim_coverage.letters_lost++;
        return;
    }
    SIM_CHECK(s, event->kind == EVENT_MESSAGE, "event %d", (int)event->kind);
    const struct message_block *b = (const struct message_block *)event;
    uint8_t bytes[LETTER_MAX];
    uint32_t number = l->got[from]++;
    size_t size = letter(s, from, p->session->id, number, bytes);
    SIM_CHECK(s, b->size == size && memcmp(b->bytes, bytes, size) == 0,
              "P2P-4: %llu gets something else than letter %u of %llu",
              (unsigned long long)p->session->id, number,
              (unsigned long long)from);
    sim_coverage.letters++;
}

/* A last message to every member when the faults are over. */
static bool write_last(struct sim *s, struct sim_proc *p)
{
    const struct view *v = p->session->view;
    if (!s->healing || p->letters.last) return false;
    p->letters.last = true;
    for (uint32_t i = 0; i < v->size; i++) post(s, p, v->ids[i]);
    return true;
}

bool letters_turn(struct sim *s, struct sim_proc *p)
{
    struct messages *m = &p->session->messages;
    if (!s->options.letters || p->session->state != SESSION_MEMBER ||
        p->program.stage == STAGE_LEAVING)
        return false;
    message_progress(m);
    if (write_last(s, p)) return true;
    uint32_t what = sim_pick(s, 64);
    if (what < 8) {
        struct message_event *event = message_take(m);
        if (!event) return false;
        take(s, p, event);
        message_release(m, event);
        return true;
    }
    const struct view *v = p->session->view;
    if (what > 8 || s->healing || p->letters.posts == POSTS_MAX) return false;
    p->letters.posts++;
    post(s, p, v->ids[sim_pick(s, v->size)]);
    return true;
}

bool letters_delivered(const struct sim *s)
{
    if (!s->options.letters) return true;
    for (uint32_t left = s->live, i; sim_next(s, &left, &i);) {
        const struct sim_proc *p = &s->procs[i];
        if (!p->letters.last) return false;
        for (uint32_t all = s->live, k; sim_next(s, &all, &k);) {
            const struct sim_proc *q = &s->procs[k];
            if (q->group != p->group) continue;
            if (p->letters.sent[q->session->id] !=
                q->letters.got[p->session->id])
                return false;
        }
    }
    return true;
}
