/* fuzz_hook.c - an operator's hook that prints anything and ends anyhow, or
 * does not; and who comes meanwhile. Each ticket gets one answer, whose text is
 * plain. The program is not real: job_outside.h. */
#include "../../src/launch/hook.c"
#include "fuzz.h"
#include "job_outside.h"

#include <assert.h>

enum { TICKETS = 512 };

static enum { TICKET_NONE, TICKET_OPEN, TICKET_ANSWERED } tickets[TICKETS];
static uint32_t ticket_count;
static int ended; /* the wait status that is being handled, or -1 */

void master_server_answer(struct master_server *server, uint64_t ticket,
                          bool admits, const char *why)
{
    assert(server == outside_server());
    assert(ticket > 0 && ticket < TICKETS && tickets[ticket] == TICKET_OPEN);
    tickets[ticket] = TICKET_ANSWERED;
    assert(strlen(why) < REASON_SIZE + 64);
    for (const char *at = why; *at; at++) assert(*at >= ' ' && *at <= '~');
    assert(!admits || ended == 0);
}

static struct master_guest guest_of(struct fuzz_input *in)
{
    static const char *const texts[] = {"alice", "", "10.0.0.7:80", "a\"b",
                                        "a name that is rather long"};
    return (struct master_guest){
        .name = texts[fuzz_below(in, ARRAY_COUNT(texts))],
        .address = "10.0.0.7:80",
        .wants = fuzz_u8(in) & 1 ? "join" : NULL,
        .group = fuzz_u8(in),
        .id = fuzz_u8(in),
        .pid = fuzz_u8(in),
    };
}

static void comes(struct hook *h, struct fuzz_input *in)
{
    char why[100] = "";
    struct master_guest g = guest_of(in);
    uint8_t what = fuzz_u8(in);
    if (what & 1 || ticket_count + 1 == TICKETS) {
        g.ticket = 99; /* nobody waits for it */
        hook_told(h, &g, what & 2 ? "joined" : "lost");
        return;
    }
    g.ticket = ticket_count + 1;
    if (hook_ask(h, &g, why, sizeof why))
        tickets[++ticket_count] = TICKET_OPEN;
    else
        assert(*why != '\0');
}

static void prints(struct fuzz_input *in, const struct call *c)
{
    const struct outside_process *p = outside_by_pid(c->pid);
    size_t size = fuzz_u8(in);
    if (!p || p->out < 0) return;
    if (size > in->left) size = in->left;
    (void)!write(p->out, in->at, size);
    in->at += size;
    in->left -= size;
}

static void program(struct hook *h, struct fuzz_input *in)
{
    static const int statuses[] = {0, 1 << 8, SIGKILL, 0};
    struct call *c = &h->calls[fuzz_below(in, 24)];
    uint8_t what = fuzz_u8(in);
    if (c->state == CALL_FREE) return;
    if (what % 4 == 0 && ev_is_active(&c->timer)) {
        ev_timer_stop(h->loop, &c->timer);
        ev_feed_event(h->loop, &c->timer, EV_TIMER);
    } else if (c->state == CALL_WAITS) {
        return;
    } else if (what % 4 == 1) {
        ended = c->child.rstatus = statuses[what / 4 % ARRAY_COUNT(statuses)];
        struct outside_process *p = outside_by_pid(c->pid);
        if (p) outside_leave(p, what < 240);
        on_end(h->loop, &c->child, 0);
        ended = -1;
    } else {
        prints(in, c);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const char *const programs[] = {"true",      "true",        "true",
                                           "not-there", "/etc/passwd", ""};
    struct fuzz_input in = {bytes, size};
    char error[100] = "";
    struct ev_loop *loop = ev_default_loop(0);
    FILE *to = stderr, *null = fopen("/dev/null", "w");
    uint8_t bits = fuzz_u8(&in);
    assert(null);
    outside_begin(fuzz_u8(&in));
    ended = -1;
    ticket_count = 0;
    struct hook *h = hook_open(loop, programs[bits % ARRAY_COUNT(programs)], 5.,
                               error, sizeof error);
    assert(h || *error);
    stderr = null;
    if (h) hook_serve(h, outside_server());
    while (h && in.left > 0) {
        uint8_t what = fuzz_u8(&in);
        for (int i = 0; i < (what == 255 ? CALLS_MAX : 1); i++)
            if (what & 1) comes(h, &in);
        if (!(what & 1)) program(h, &in);
        ev_run(loop, EVRUN_NOWAIT);
    }
    if (h) hook_close(h);
    stderr = to;
    (void)fclose(null);
    outside_end();
    return 0;
}
