/* master_status.c - see master_status.h. */
#include "master_status.h"

#include "run_status.h"
#include "stall.h"
#include "peer_report.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ events */

void status_desk_note(struct status_desk *d, const struct master *m,
                      const struct master_note *note, const char *line)
{
    struct run_event *e = events_next(&d->events);
    *e = (struct run_event){.at = time(NULL),
                            .epoch = m->round_last,
                            .kind = run_event_kind(note->kind)};
    snprintf(e->text, sizeof e->text, "%s", line);
}

void status_desk_depart(struct status_desk *d, const struct master *m,
                        const struct master_note *note)
{
    char peer[160];
    char line[EVENT_TEXT_MAX];
    d->noted[note->kind]++;
    if (note->kind == NOTE_ABORTED) d->aborted = true;
    if (note->kind == NOTE_REGISTERED) d->aborted = false;
    if (note->kind != NOTE_LOST && note->kind != NOTE_LEFT &&
        note->kind != NOTE_JOINED)
        return;
    if (note->kind == NOTE_JOINED && note->old_epoch == 0) return; /* founds */
    stall_print_peer(m, (uint32_t)(note->peer - m->peers), peer, sizeof peer);
    const char *what = note->kind == NOTE_LEFT ? "left" : "joined";
    if (note->kind == NOTE_LOST)
        what = note->peer->dropped
                   ? "is lost: it was evicted"
                   : "is lost: its connection to the coordinator ended";
    snprintf(line, sizeof line, "%s %s", peer, what);
    if (note->kind == NOTE_LOST && !d->aborted)
        memcpy(d->loss, line, sizeof line);
    status_desk_note(d, m, note, line);
}

/* --------------------------------------------------------------- questions */

/* So long after their answers the members are asked once more. */
#define AGAIN (250 * PCCL_MS)

void status_desk_ask(struct status_desk *d, struct master *m, uint32_t link,
                     bool json, pccl_ns now)
{
    for (size_t i = 0; i < ARRAY_COUNT(d->asked); i++) {
        if (d->asked[i].used) continue;
        d->asked[i] = (struct desk_asked){
            .used = true, .json = json, .link = link, .at = now};
        d->asked_count++;
        stall_ask(m, true);
        return;
    }
}

pccl_ns status_desk_next(const struct status_desk *d, pccl_ns now)
{
    const pccl_ns look = 50 * PCCL_MS; /* who has become silent */
    return d->asked_count > 0 ? now + look : PCCL_NEVER;
}

void status_desk_closed(struct status_desk *d, uint32_t link)
{
    for (size_t i = 0; i < ARRAY_COUNT(d->asked); i++) {
        if (!d->asked[i].used || d->asked[i].link != link) continue;
        d->asked[i].used = false;
        d->asked_count--;
    }
}

/* What this host sees of a member whose heartbeats are late. */
static void look(struct status_desk *d, const struct master *m, uint32_t link,
                 pccl_ns now)
{
    struct peer_report *report = m->reports[link];
    const struct wire_member *info = &m->peers[link].info;
    if (!report || (info->host & ~(uint64_t)1) != d->host) return;
    report->seen = host_look(&d->watch, info->pid, now);
    report->seen_at = now;
}

/* Whether nothing more is to be learned of the peer since then. */
static bool is_known(struct status_desk *d, const struct master *m,
                     uint32_t link, pccl_ns since, pccl_ns now)
{
    const struct master_peer *p = &m->peers[link];
    const struct peer_report *report = m->reports[link];
    if (p->state != PEER_MEMBER || !report || report->at > since) return true;
    if (now - p->last_recv < 2 * PCCL_TIME_TO_PING(m->deadline)) return false;
    look(d, m, link, now);
    return true;
}

static void answer(struct status_desk *d, const struct master *m, uint32_t link,
                   bool json)
{
    static char no_memory[] = "out of memory\n";
    struct status_writing w;
    status_desk_write(d, m, json ? STATUS_JSON : STATUS_TEXT, &w);
    const char *text = w.text ? w.text : no_memory;
    if (!w.text) w.size = sizeof no_memory - 1;
    size_t done = 0;
    do {
        size_t part = w.size - done;
        if (part > WIRE_PART_MAX) part = WIRE_PART_MAX;
        struct wire_msg msg = {.type = WIRE_STATUS};
        msg.status.json = json;
        msg.status.size = (uint32_t)part;
        msg.status.bytes = (const uint8_t *)text + done;
        done += part;
        msg.status.last = done == w.size;
        m->out.send(m->out.user, &link, 1, &msg);
    } while (done < w.size);
    free(w.text);
}

/* A sample each HISTORY_STEP_S. */
static void take_sample(struct status_desk *d, const struct master *m,
                        pccl_ns now)
{
    struct run_history *h = &d->history;
    if (d->first == 0) d->first = now;
    const struct run_sample *last = &h->list[(h->count - 1) % HISTORY_MAX];
    if (h->count > 0 && now - last->at < HISTORY_STEP_S * PCCL_S) return;
    h->list[h->count++ % HISTORY_MAX] =
        (struct run_sample){now, m->traffic.operations, m->traffic.received};
}

/* Of all members. */
static bool all_known(struct status_desk *d, const struct master *m,
                      pccl_ns since, pccl_ns now)
{
    for (uint32_t i = 0; i < m->link_end; i++)
        if (!is_known(d, m, i, since, now)) return false;
    return true;
}

void status_desk_settle(struct status_desk *d, struct master *m, pccl_ns now)
{
    take_sample(d, m, now);
    for (size_t i = 0; i < ARRAY_COUNT(d->asked) && d->asked_count > 0; i++) {
        struct desk_asked *a = &d->asked[i];
        if (!a->used) continue;
        if (a->heard_at == 0 && all_known(d, m, a->at, now)) a->heard_at = now;
        if (a->heard_at == 0 || now - a->heard_at < AGAIN) continue;
        if (a->again_at == 0) {
            a->again_at = now;
            stall_ask(m, true);
        }
        if (!all_known(d, m, a->again_at, now)) continue;
        a->used = false;
        d->asked_count--;
        answer(d, m, a->link, a->json);
    }
}

void status_desk_write(struct status_desk *d, const struct master *m,
                       enum status_form form, struct status_writing *w)
{
    struct growing_text out = {0};
    struct status_source source = {.machine = m,
                                   .events = &d->events,
                                   .history = &d->history,
                                   .first = d->first,
                                   .noted = d->noted,
                                   .address = d->address,
                                   .begun = d->begun,
                                   .now = time(NULL),
                                   .took = d->took};
    source.up = difftime(source.now, d->begun);
    *w = (struct status_writing){.last_event = d->events.count};
    if (form == STATUS_JSON)
        run_status_json(&source, &out, &w->events, &w->history);
    else if (form == STATUS_METRICS)
        run_metrics(&source, &out);
    else
        run_status_text(&source, &out);
    if (out.failed) text_free(&out);
    w->text = out.bytes;
    w->size = out.size;
}
