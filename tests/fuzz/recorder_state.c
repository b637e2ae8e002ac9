/* recorder_state.c - records what the simulator's members do with their shared
 * state, with partial all-reduces and with samples. See recorder.c. */
#include "recorder.h"

/* ------------------------------------------------------------- shared state */

/* Bytes as runs with the same difference between two of them. */
static void fold(struct words *w, const uint8_t *bytes, uint64_t size)
{
    size_t at = w->size;
    uint8_t runs = 0;
    uint8_t last = 0;
    word(w, 0, 1);
    for (uint64_t i = 0; i < size;) {
        uint8_t step = (uint8_t)(bytes[i] - last);
        uint32_t run = 0;
        for (; i < size && (uint8_t)(bytes[i] - last) == step; i++, run++)
            last = bytes[i];
        if (runs == UINT8_MAX) break; /* the rest is cut */
        word(w, run, 4);
        word(w, step, 1);
        runs++;
    }
    w->bytes[at] = runs;
}

static void fold_list(struct words *w, const struct state_list *list)
{
    word(w, list->count, 1);
    for (uint32_t i = 0; i < list->count; i++) {
        const struct state_tensor *x = &list->tensors[i];
        const uint8_t *bytes = x->data;
        word(w, (x->name[0] == 'o' ? 1u : 0u) | (x->device ? 4u : 0u), 1);
        if (x->device) bytes -= (uintptr_t)1 << 62; /* as shared.c has it */
        fold(w, bytes, x->size);
    }
}

static void put_call(struct tape *t, uint8_t kind)
{
    const struct words none = {.size = 0};
    put_words(t, kind, 0, &none);
}

WRAP(int, session_sync, struct session *s, struct state_list *list,
     enum sync_strategy strategy, uint64_t revision)
{
    struct tape *t = tape_of(s);
    struct words w = {.size = 0};
    word(&w, revision, 8);
    if (t) fold_list(&w, list);
    put_words(t, MEMBER_SYNC, strategy, &w);
    RETURN(int, __real_session_sync(s, list, strategy, revision));
}

WRAP(int, session_sync_take, struct session *s, uint64_t *revision,
     uint64_t *tx, uint64_t *rx)
{
    put_call(tape_of(s), MEMBER_SYNC_TAKE);
    RETURN(int, __real_session_sync_take(s, revision, tx, rx));
}

WRAP(int, session_offer, struct session *s, const struct state_list *list,
     const struct offer_terms *terms)
{
    struct tape *t = tape_of(s);
    struct words w = {.size = 0};
    word(&w, terms->revision, 8);
    word(&w, terms->rate, 8);
    word(&w, terms->share, 4);
    if (t) fold_list(&w, list);
    put_words(t, MEMBER_OFFER, 0, &w);
    RETURN(int, __real_session_offer(s, list, terms));
}

WRAP(void, session_offer_end, struct session *s)
{
    put_call(tape_of(s), MEMBER_OFFER_END);
    INSIDE(__real_session_offer_end(s));
}

/* -------------------------------------------- partial all-reduces, samples */

WRAP(int, session_partial, struct session *s, const struct partial_request *r,
     struct partial_call **out)
{
    struct words w = {.size = 0};
    uint64_t weight;
    memcpy(&weight, &r->weight, sizeof weight);
    word(&w, r->tag, 8);
    word(&w, r->dtype, 1);
    word(&w, r->redop, 1);
    word(&w, r->count, 4);
    word(&w, weight, 8);
    word(&w, r->deadline_ms, 4);
    word(&w, r->gather_ms, 4);
    word(&w, r->evict_after, 4);
    put_words(tape_of(s), MEMBER_PARTIAL, r->send == r->recv, &w);
    RETURN(int, __real_session_partial(s, r, out));
}

WRAP(void, session_partial_take, struct session *s, struct partial_call *c)
{
    struct words w = {.size = 0};
    word(&w, c->r.tag, 8);
    put_words(tape_of(s), MEMBER_PARTIAL_TAKE, 0, &w);
    INSIDE(__real_session_partial_take(s, c));
}

WRAP(void, session_report_samples, struct session *s,
     const struct sample_report *r)
{
    struct words w = {.size = 0};
    word(&w, r->step, 8);
    word(&w, r->count, 8);
    word(&w, r->target, 8);
    put_words(tape_of(s), MEMBER_SAMPLES, 0, &w);
    INSIDE(__real_session_report_samples(s, r));
}
