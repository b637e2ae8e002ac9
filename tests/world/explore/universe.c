/* universe.c - see universe.h. */
#include "universe.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "universe_step.h"

struct intern universe_queues;
struct universe_config universe_config;
static char error[512];

bool universe_fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(error, sizeof error, format, args);
    va_end(args);
    return false;
}

const char *universe_error(void)
{
    return error;
}

void universe_init(struct universe *w, const struct universe_config *config)
{
    universe_config = *config;
    intern_init(&universe_queues, 0);
    memset(w, 0, sizeof *w);
    memcpy(w->faults, config->faults, sizeof w->faults);
    for (uint32_t i = 0; i < config->members; i++) w->state[i] = party_first(i);
    w->state[MASTER] = party_first(MASTER);
    for (uint8_t i = 0; i < config->members; i++) {
        w->flags[i] = MEMBER_ON;
        (void)universe_event(w, MASTER, (struct event){EVENT_CONNECT, i, 0},
                             NULL);
        (void)universe_event(w, i, (struct event){EVENT_START, 0, 0}, NULL);
    }
}

static void add(struct choice *choices, uint32_t *count, enum choice_kind kind,
                uint32_t party, uint32_t at)
{
    PCCL_ASSERT(*count < CHOICES_MAX);
    choices[(*count)++] =
        (struct choice){(uint8_t)kind, (uint8_t)party, (uint8_t)at, 0};
}

bool universe_runs(const struct universe *w, uint32_t i)
{
    return (w->flags[i] & (MEMBER_ENDED | MEMBER_CRASHED | MEMBER_STOPPED)) ==
           0;
}

static void add_stream(const struct universe *w, const struct stream *st,
                       struct choice *choices, uint32_t *n)
{
    uint32_t dialer = st->party[0], acceptor = st->party[1];
    bool cut_off = (w->flags[dialer] | w->flags[acceptor]) & MEMBER_STOPPED;
    if (st->flags & STREAM_DIALING) {
        if (!(st->flags & STREAM_LEFT) && universe_runs(w, dialer) && !cut_off)
            add(choices, n, CHOICE_DIALED, dialer, st->conn[0]);
        return;
    }
    if ((st->flags & STREAM_PENDING) && universe_runs(w, acceptor) && !cut_off)
        add(choices, n, CHOICE_ACCEPT, acceptor, dialer);
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t reader = st->party[i];
        if (st->conn[i] == NO_PARTY || st->flags & STREAM_LEFT << i) continue;
        if (!universe_runs(w, reader) || cut_off) continue;
        bool ended = st->flags & STREAM_LEFT << !i;
        if (st->queue[!i] != 0 || ended)
            add(choices, n, CHOICE_DATA, reader, st->conn[i]);
        if (st->queue[!i] != 0 && st->flags & STREAM_LOSSY << !i)
            add(choices, n, CHOICE_LOSE, reader, st->conn[i]);
        if (i == 0 && w->faults[FAULT_CUT] > 0 && !ended)
            add(choices, n, CHOICE_CUT, reader, st->conn[i]);
    }
}

static void add_control(const struct universe *w, uint32_t i,
                        struct choice *choices, uint32_t *n)
{
    uint8_t flags = w->flags[i];
    if (flags & MEMBER_STOPPED) return;
    if (!(flags & MEMBER_UNHEARD)) {
        if (w->up[i] != 0 || flags & (MEMBER_DEAF | MEMBER_HUNG_UP))
            add(choices, n, CHOICE_UP, i, 0);
        if (w->up[i] != 0 && flags & MEMBER_LOSSY)
            add(choices, n, CHOICE_LOSE_UP, i, 0);
    }
    if (!universe_runs(w, i) || flags & MEMBER_DEAF) return;
    if (w->down[i] != 0 || flags & MEMBER_HUNG_UP)
        add(choices, n, CHOICE_DOWN, i, 0);
    if (w->faults[FAULT_CUT_UP] > 0) add(choices, n, CHOICE_CUT_UP, i, 0);
}

uint32_t universe_choices(const struct universe *w, struct choice *choices)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < universe_config.members; i++) {
        add_control(w, i, choices, &n);
        if (!universe_runs(w, i)) continue;
        add(choices, &n, CHOICE_PROGRAM, i, 0);
    }
    for (uint32_t i = 0; i < w->stream_count; i++)
        add_stream(w, &w->streams[i], choices, &n);
    for (uint32_t i = 0; i < universe_config.members; i++) {
        if (!universe_runs(w, i)) continue;
        if (w->faults[FAULT_CRASH] > 0) add(choices, &n, CHOICE_CRASH, i, 0);
        if (w->faults[FAULT_STOP] > 0) add(choices, &n, CHOICE_STOP, i, 0);
    }
    if (w->faults[FAULT_STALL] > 0) add(choices, &n, CHOICE_STALL, 0, 0);
    return n;
}

/* --------------------------------------------------------------- conditions */

static const struct outcome *success_of(const struct facts *f, uint32_t op)
{
    for (uint32_t i = 0; i < f->outcome_count; i++) {
        if (f->outcomes[i].op == op && f->outcomes[i].result == 0)
            return &f->outcomes[i];
    }
    return NULL;
}

/* C1: members that launched an operation in the same view have the same end of
 * it, and each operation succeeds in one view only. */
static bool agree(const struct facts *a, const struct facts *b)
{
    for (uint32_t i = 0; i < a->outcome_count; i++) {
        const struct outcome *x = &a->outcomes[i];
        for (uint32_t k = 0; k < b->outcome_count; k++) {
            const struct outcome *y = &b->outcomes[k];
            if (x->op != y->op || x->epoch != y->epoch) continue;
            if (memcmp(x, y, sizeof *x) != 0)
                return universe_fail(
                    "C1: operation %u of epoch %u: member %llu "
                    "has result %u of %u, member %llu %u of %u",
                    x->op, x->epoch, (unsigned long long)a->id, x->result,
                    x->contributors, (unsigned long long)b->id, y->result,
                    y->contributors);
        }
        if (x->result != 0) continue;
        const struct outcome *y = success_of(b, x->op);
        if (y && y->epoch != x->epoch)
            return universe_fail(
                "C1: operation %u succeeded for member %llu in "
                "epoch %u, for member %llu in %u",
                x->op, (unsigned long long)a->id, x->epoch,
                (unsigned long long)b->id, y->epoch);
    }
    if (a->member && b->member && a->epoch == b->epoch && a->view != b->view)
        return universe_fail("members %llu and %llu have two views of epoch %u",
                             (unsigned long long)a->id,
                             (unsigned long long)b->id, a->epoch);
    return true;
}

/* A live member may be taken for a lost one. */
static bool unsteady(void)
{
    return party_config.unsteady;
}

bool universe_check(const struct universe *w)
{
    for (uint32_t i = 0; i < universe_config.members; i++) {
        const struct facts *a = party_facts(w->state[i]);
        if (!universe_runs(w, i)) continue;
        if (a->gone && !a->left && !unsteady())
            return universe_fail(
                "member %llu is out without a fault of its own",
                (unsigned long long)a->id);
        for (uint32_t k = i + 1; k < universe_config.members; k++) {
            const struct facts *b = party_facts(w->state[k]);
            /* One that was cut off is no survivor, and may not know it yet. */
            bool same = a->member && b->member && a->epoch == b->epoch;
            if (universe_runs(w, k) && (same || !unsteady()) && !agree(a, b))
                return false;
        }
    }
    return true;
}

/* A founder is lost before the first view: the others wait for another one. */
static bool lacks_founder(const struct universe *w)
{
    bool lost = false;
    for (uint32_t i = 0; i < universe_config.members; i++) {
        lost |= !universe_runs(w, i);
        if (universe_runs(w, i) && party_facts(w->state[i])->epoch > 0)
            return false;
    }
    return lost;
}

bool universe_waits(const struct universe *w)
{
    if (lacks_founder(w)) return false;
    for (uint32_t i = 0; i < universe_config.members; i++) {
        if (universe_runs(w, i) && !party_facts(w->state[i])->over) return true;
    }
    return false;
}

bool universe_all_members(const struct universe *w)
{
    for (uint32_t i = 0; i < universe_config.members; i++) {
        if (!party_facts(w->state[i])->member) return false;
    }
    return true;
}

bool universe_over(const struct universe *w)
{
    if (universe_waits(w))
        return universe_fail(
            "C3: a live member waits %u steps of time after the "
            "last fault",
            w->quiet);
    /* Operations that one survivor has, all have. */
    for (uint32_t i = 0; i < universe_config.members; i++) {
        const struct facts *a = party_facts(w->state[i]);
        if (!universe_runs(w, i) || !a->member) continue;
        for (uint32_t k = 0; k < universe_config.members; k++) {
            const struct facts *b = party_facts(w->state[k]);
            if (!universe_runs(w, k) || !b->member || a->view != b->view)
                continue;
            for (uint32_t op = 0; op < party_config.ops; op++) {
                if (!success_of(a, op) != !success_of(b, op))
                    return universe_fail("C1: member %llu has operation %u, "
                                         "member %llu does not",
                                         (unsigned long long)a->id, op,
                                         (unsigned long long)b->id);
            }
        }
    }
    return true;
}

/* ---------------------------------------------------------------- for people
 */

static uint32_t head_of(uint32_t queue)
{
    size_t size;
    const uint32_t *messages = intern_get(&universe_queues, queue, &size);
    return size > 0 ? messages[0] : 0;
}

void universe_describe(const struct universe *w, struct choice c, char *text,
                       size_t size)
{
    char what[128] = "the end";
    static const char *const names[256] = {
        [CHOICE_PROGRAM] = "runs its program",
        [CHOICE_DIALED] = "has dialed",
        [CHOICE_ACCEPT] = "accepts",
        [CHOICE_CRASH] = "is killed",
        [CHOICE_STOP] = "is cut off",
        [CHOICE_CUT] = "is reset",
        [CHOICE_CUT_UP] = "loses the master",
        [CHOICE_LOSE] = "loses bytes",
        [CHOICE_LOSE_UP] = "loses bytes to the master"};
    const struct stream *st = universe_stream(w, c.party, c.at);
    if (c.kind == CHOICE_TIME || c.kind == CHOICE_STALL) {
        (void)snprintf(text, size, "%s: step %u",
                       c.kind == CHOICE_TIME ? "time passes" : "a stall",
                       w->step + 1);
        return;
    }
    if (c.kind == CHOICE_DOWN && w->down[c.party] != 0)
        party_describe(true, head_of(w->down[c.party]), what, sizeof what);
    if (c.kind == CHOICE_UP && w->up[c.party] != 0)
        party_describe(true, head_of(w->up[c.party]), what, sizeof what);
    if (c.kind == CHOICE_DATA && st && st->queue[st->party[0] == c.party] != 0)
        party_describe(false, head_of(st->queue[st->party[0] == c.party]), what,
                       sizeof what);
    unsigned other =
        st && c.kind != CHOICE_ACCEPT ? st->party[st->party[0] == c.party] : 0;
    if (c.kind == CHOICE_UP)
        (void)snprintf(text, size, "the master reads of %u: %s", c.party, what);
    else if (c.kind == CHOICE_DOWN)
        (void)snprintf(text, size, "member %u reads of the master: %s", c.party,
                       what);
    else if (c.kind == CHOICE_DATA)
        (void)snprintf(text, size, "member %u reads of %u: %s", c.party, other,
                       what);
    else
        (void)snprintf(text, size, "member %u %s (%u)", c.party, names[c.kind],
                       c.at);
}

static void print_queue(const char *name, bool control, uint32_t queue)
{
    size_t size;
    const uint32_t *messages = intern_get(&universe_queues, queue, &size);
    for (uint32_t i = 0; i < size / 4; i++) {
        char text[128];
        party_describe(control, messages[i], text, sizeof text);
        printf("    %s: %s\n", name, text);
    }
}

void universe_print(const struct universe *w)
{
    printf("  time: step %u, %u since the last fault\n", w->step, w->quiet);
    for (uint32_t i = 0; i < universe_config.members; i++) {
        const struct facts *f = party_facts(w->state[i]);
        printf("  member %u (id %llu) flags %#x %s%s%s epoch %u notified %u\n",
               i, (unsigned long long)f->id, w->flags[i],
               f->member ? "member " : "", f->gone ? "gone " : "",
               f->over ? "over" : "", f->epoch, f->notified);
        for (uint32_t k = 0; k < f->outcome_count; k++)
            printf("    operation %u of epoch %u: result %u of %u\n",
                   f->outcomes[k].op, f->outcomes[k].epoch,
                   f->outcomes[k].result, f->outcomes[k].contributors);
        print_queue("to the master", true, w->up[i]);
        print_queue("from the master", true, w->down[i]);
    }
    for (uint32_t i = 0; i < w->stream_count; i++) {
        const struct stream *st = &w->streams[i];
        printf("  connection %u:%u - %u:%u flags %#x\n", st->party[0],
               st->conn[0], st->party[1], st->conn[1], st->flags);
        print_queue("forth", false, st->queue[0]);
        print_queue("back", false, st->queue[1]);
    }
}
