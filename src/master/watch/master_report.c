/* master_report.c - formats notes of the master. */
#include "master_report.h"

#include "stall.h"

#include "../../base/append.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void add_peer(const struct master_report *r, char line[REPORT_SIZE],
                     const struct master_peer *p)
{
    if (r->machine) {
        uint32_t link = (uint32_t)(p - r->machine->peers);
        size_t used = strlen(line);
        stall_print_peer(r->machine, link, line + used, REPORT_SIZE - used);
        return;
    }
    if (p->state == PEER_MEMBER || p->state == PEER_DEAD)
        append(line, REPORT_SIZE, "rank %" PRIu32 " (pid %" PRIu32 ")", p->rank,
               p->info.pid);
    else
        append(line, REPORT_SIZE, "newcomer (pid %" PRIu32 ")", p->info.pid);
}

/* Keeps the ranks sorted. */
static void list_add(const struct master_report *r, struct report_list *list,
                     const struct master_peer *p)
{
    char line[REPORT_SIZE] = "";
    uint32_t at = list->count++;
    add_peer(r, line, p);
    (void)snprintf(list->one, sizeof list->one, "%s", line);
    if (at >= REPORT_RANKS_MAX) return;
    for (; at > 0 && list->ranks[at - 1] > p->rank; at--)
        list->ranks[at] = list->ranks[at - 1];
    list->ranks[at] = p->rank;
}

static void add_list(char line[REPORT_SIZE], const struct report_list *list,
                     const char *verb)
{
    if (list->count == 0) return;
    if (*line) append(line, REPORT_SIZE, ", ");
    if (list->count == 1) {
        append(line, REPORT_SIZE, "%s %s", list->one, verb);
        return;
    }
    uint32_t named = list->count;
    if (named > REPORT_RANKS_MAX) named = REPORT_RANKS_MAX;
    for (uint32_t i = 0; i < named; i++)
        append(line, REPORT_SIZE, "%s%" PRIu32, i == 0 ? "ranks " : ", ",
               list->ranks[i]);
    if (named < list->count)
        append(line, REPORT_SIZE, " and %" PRIu32 " more", list->count - named);
    append(line, REPORT_SIZE, " %s", verb);
}

static const char *plural(uint32_t count)
{
    return count == 1 ? "" : "s";
}

static bool report_view(struct master_report *r, const struct master_note *note,
                        char line[REPORT_SIZE])
{
    uint32_t gone = r->lost.count + r->left.count;
    add_list(line, &r->lost, "lost");
    add_list(line, &r->left, "left");
    bool lost = r->lost.count > 0;
    memset(&r->lost, 0, sizeof r->lost);
    memset(&r->left, 0, sizeof r->left);
    if (r->aborted) return false;
    if (gone == 0 && note->joined == 0)
        return false; /* only links were remade */
    if (gone == 0 && note->old_epoch == 0) {
        append(line, REPORT_SIZE,
               "first view: epoch %" PRIu32 ", %" PRIu32 " rank%s", note->epoch,
               note->size, plural(note->size));
        return true;
    }
    if (note->joined > 0) {
        append(line, REPORT_SIZE, "%s%" PRIu32 " rank%s joined",
               gone > 0 ? ", " : "", note->joined, plural(note->joined));
    }
    if (gone == 0) {
        append(line, REPORT_SIZE, ", epoch %" PRIu32 ", %" PRIu32 " rank%s",
               note->epoch, note->size, plural(note->size));
        return true;
    }
    append(line, REPORT_SIZE,
           ", epoch %" PRIu32 " -> %" PRIu32 ", %" PRIu32 " -> %" PRIu32
           " rank%s",
           note->old_epoch, note->epoch, note->old_size, note->size,
           plural(note->size));
    if (lost && note->size > 0)
        append(line, REPORT_SIZE, ", recovered in %.1f ms",
               (double)note->took / PCCL_MS);
    return true;
}

bool master_report_note(struct master_report *r, const struct master_note *note,
                        char line[REPORT_SIZE])
{
    line[0] = '\0';
    switch (note->kind) {
    case NOTE_REGISTERED:
        if (note->peer->state == PEER_REGISTERED) r->aborted = false;
        return false;
    case NOTE_LOST:
        list_add(r, &r->lost, note->peer);
        return false;
    case NOTE_LEFT:
        list_add(r, &r->left, note->peer);
        return false;
    case NOTE_JOINED: /* counted in VIEW */
        return false;
    case NOTE_VIEW:
        return report_view(r, note, line);
    case NOTE_EVICTED:
        add_peer(r, line, note->peer);
        append(line, REPORT_SIZE, " evicted: %s", note->reason);
        return !r->aborted;
    case NOTE_SILENT:
        add_peer(r, line, note->peer);
        append(line, REPORT_SIZE,
               " has been silent for %.1f s and is waited for: %s",
               (double)note->took / PCCL_S, note->reason);
        return true;
    case NOTE_HEARD:
        add_peer(r, line, note->peer);
        append(line, REPORT_SIZE, " is heard again after %.1f s",
               (double)note->took / PCCL_S);
        return true;
    case NOTE_ABORTED:
        r->aborted = true;
        add_peer(r, line, note->peer);
        append(line, REPORT_SIZE, " aborted the run with code %" PRId32,
               note->code);
        return true;
    case NOTE_DIFFERS:
        append(line, REPORT_SIZE, "refused: %s", note->reason);
        return true;
    case NOTE_CUT:
        add_peer(r, line, note->peer);
        append(line, REPORT_SIZE, " cannot exchange data with ");
        add_peer(r, line, note->other);
        append(line, REPORT_SIZE,
               ": no connection was made, or it passes small packets only "
               "(check firewalls, routes and the MTU)");
        return true;
    case NOTE_RELAYED:
        add_peer(r, line, note->relay ? note->relay : note->peer);
        append(line, REPORT_SIZE, note->relay ? " relays between " : " and ");
        if (note->relay) add_peer(r, line, note->peer);
        if (note->relay) append(line, REPORT_SIZE, " and ");
        add_peer(r, line, note->other);
        if (!note->relay)
            append(line, REPORT_SIZE, " are linked over this coordinator");
        return true;
    case NOTE_SUCCESSION:
    case NOTE_STALLED:
        append(line, REPORT_SIZE, "%s", note->reason);
        return true;
    case NOTE_NO_RING:
        append(line, REPORT_SIZE, "no ring connects all peers: ");
        add_peer(r, line, note->peer);
        append(line, REPORT_SIZE, " and ");
        add_peer(r, line, note->other);
        append(line, REPORT_SIZE, " cannot reach each other");
        if (note->more > 0)
            append(line, REPORT_SIZE, ", nor can %" PRIu32 " more pairs",
                   note->more);
        return true;
    }
    return false;
}
