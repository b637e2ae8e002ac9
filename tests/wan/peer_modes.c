/* peer_modes.c - the modes of wan-peer: what a peer does in each test. */
#include "peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HANDLES_MAX = LOAD_CONCURRENT_MAX };

/* Seconds from the first peer's launch to the last peer's result, for `row`
 * repetitions without a pause. */
static double one_reduce(struct peer *p, int row)
{
    pcclAsyncReduceOp_t handles[HANDLES_MAX];
    peer_fill(p);
    (void)peer_most(p, 0); /* a barrier: all have filled their vectors */
    double begin = peer_now();
    pcclResult_t rc = pcclSuccess;
    for (int i = 0; i < row && rc == pcclSuccess; i++) {
        rc = peer_launch(p, handles);
        if (rc == pcclSuccess) rc = peer_await(p, handles);
    }
    double end = peer_now();
    if (rc != pcclSuccess)
        peer_fail(p, "all-reduce: %s", pcclGetErrorString(rc));
    peer_verify(p);
    return peer_span(p, begin, end);
}

static void measure(struct peer *p, const char *phase, const struct load *load)
{
    double times[LOAD_TIMES_MAX];
    peer_take(p, load);
    if (peer_rank(p) == 0) peer_control(p, "mark %s-begin", phase);
    for (int i = 0; i < load->repeat; i++) times[i] = one_reduce(p, load->row);
    if (peer_rank(p) != 0) return;
    peer_control(p, "mark %s %s", phase, load->name);
    load_print(load, phase, peer_world(p), p->pool, times);
}

static void phase(struct peer *p, const char *name)
{
    for (int i = 0; i < p->load_count; i++) measure(p, name, &p->loads[i]);
}

int peer_reduce(struct peer *p)
{
    if (peer_world(p) != p->peers)
        peer_fail(p, "%d peers, not %d", peer_world(p), p->peers);
    phase(p, "before");
    if (!p->optimize) return 0;
    double begin = peer_now();
    pcclResult_t rc = pcclOptimizeTopology(p->comm);
    double took = peer_now() - begin;
    if (rc != pcclSuccess && peer_rank(p) == 0) {
        /* The current ring stays: this is a valid outcome, not a failure. */
        fprintf(stderr, "wan-peer: optimize: %s\n", pcclGetErrorString(rc));
    }
    took = peer_most(p, took);
    if (peer_rank(p) == 0) {
        peer_control(p, "mark optimize");
        printf("{\"optimize\":%d,\"time\":%.6f}\n", (int)rc, took);
    }
    phase(p, "after");
    return 0;
}

/* -------------------------------------------------------------------- loss */

bool peer_loses(const struct peer *p, int number)
{
    if (!p->lose) return number == p->peers;
    const char *at = p->lose;
    while (*at) {
        char *end;
        if (strtol(at, &end, 10) == number) return true;
        if (end == at) return false;
        at = *end == ',' ? end + 1 : end;
    }
    return false;
}

/* Lists of the lost and of the remaining peers, for a statement. */
static void split(const struct peer *p, char *lost, char *kept, size_t size)
{
    lost[0] = kept[0] = '\0';
    for (int i = 1; i <= p->peers; i++) {
        char *list = peer_loses(p, i) ? lost : kept;
        size_t used = strlen(list);
        snprintf(list + used, size - used, "%s%d", used ? "," : "", i);
    }
}

static int first_kept(const struct peer *p)
{
    int i = 1;
    while (i < p->peers && peer_loses(p, i)) i++;
    return i;
}

static int kept_count(const struct peer *p)
{
    int count = 0;
    for (int i = 1; i <= p->peers; i++) count += !peer_loses(p, i);
    return count;
}

/* Repeats the operations until the remaining members complete them. The caller
 * passes the result of its own first try. */
static void until_done(struct peer *p, pcclResult_t rc)
{
    pcclAsyncReduceOp_t handles[HANDLES_MAX];
    while (rc == pcclRankConnectionLost) {
        rc = peer_launch(p, handles);
        if (rc == pcclSuccess) rc = peer_await(p, handles);
    }
    if (rc != pcclSuccess)
        peer_fail(p, "all-reduce: %s", pcclGetErrorString(rc));
    peer_verify(p);
}

static void tell(const struct peer *p, const char *what, double begin)
{
    if (peer_rank(p) != 0) return;
    printf("{\"%s\":%.6f,\"peers\":%d}\n", what, peer_now() - begin,
           peer_world(p));
    fflush(stdout);
}

/* Some peers vanish in the middle of an operation; no packet reports it. */
int peer_vanish(struct peer *p)
{
    pcclAsyncReduceOp_t handles[HANDLES_MAX];
    (void)one_reduce(p, 1);
    pcclResult_t rc = peer_launch(p, handles);
    if (peer_loses(p, p->number)) {
        peer_control(p, "path %d <-> * block", p->number);
        _exit(0);
    }
    double begin = peer_now();
    if (rc == pcclSuccess) rc = peer_await(p, handles);
    until_done(p, rc);
    if (peer_world(p) != kept_count(p))
        peer_fail(p, "%d peers, not %d", peer_world(p), kept_count(p));
    tell(p, "recovered", begin);
    return 0;
}

/* Reunites all peers: members update, evicted peers connect again and are
 * admitted. */
static void gather(struct peer *p)
{
    while (peer_world(p) < p->peers) {
        pcclResult_t rc = pcclUpdateTopology(p->comm);
        if (rc != pcclSuccess)
            peer_fail(p, "update: %s", pcclGetErrorString(rc));
    }
}

/* Some peers are cut off from the others and from the master in the middle of
 * an operation. The others continue without them, the network heals, and all
 * peers are members again. */
int peer_partition(struct peer *p)
{
    pcclAsyncReduceOp_t handles[HANDLES_MAX];
    char lost[200];
    char kept[200];
    split(p, lost, kept, sizeof lost);
    (void)one_reduce(p, 1);
    pcclResult_t rc = peer_launch(p, handles);
    double begin = peer_now();
    if (p->number == first_kept(p))
        peer_control(p, "path %s <-> %s,master block", lost, kept);
    if (rc == pcclSuccess) rc = peer_await(p, handles);
    if (peer_loses(p, p->number)) {
        if (rc != pcclMasterConnectionFailed && rc != pcclRankConnectionLost)
            peer_fail(p, "cut off: %s", pcclGetErrorString(rc));
        peer_connect(p);
    } else {
        until_done(p, rc);
        if (peer_world(p) != kept_count(p))
            peer_fail(p, "%d peers, not %d", peer_world(p), kept_count(p));
        tell(p, "recovered", begin);
        begin = peer_now();
        if (p->number == first_kept(p))
            peer_control(p, "path %s <-> %s,master open", lost, kept);
        gather(p);
    }
    gather(p);
    tell(p, "gathered", begin);
    (void)one_reduce(p, 1);
    return 0;
}

/* The master alone is cut off, for several deadlines. Operations go on, nobody
 * is lost, and the call that needs the master ends when the network heals. */
int peer_outage(struct peer *p)
{
    enum { OUTAGE = 6 };
    (void)one_reduce(p, 1); /* every peer knows the view before the cut */
    double begin = peer_now();
    if (p->number == 1) peer_control(p, "path master <-> * block");
    while (peer_most(p, peer_now() - begin) < OUTAGE) (void)one_reduce(p, 1);
    if (p->number == 1) peer_control(p, "path master <-> * open");
    pcclResult_t rc = pcclUpdateTopology(p->comm);
    if (rc != pcclSuccess) peer_fail(p, "update: %s", pcclGetErrorString(rc));
    (void)one_reduce(p, 1);
    if (peer_world(p) != p->peers)
        peer_fail(p, "%d peers, not %d", peer_world(p), p->peers);
    tell(p, "outlasted", begin);
    return 0;
}

/* ----------------------------------------------------------------- no ring */

/* The last error names both unreachable pairs on every member. */
static void must_name_pairs(const struct peer *p, const char *what)
{
    char why[512] = "";
    char pair[2][32]; /* as either end reports it */
    (void)pcclGetLastError(p->comm, why, sizeof why);
    for (int i = 1; i <= 2; i++) {
        snprintf(pair[0], sizeof pair[0], "0 and %d", i);
        snprintf(pair[1], sizeof pair[1], "%d and 0", i);
        if (!strstr(why, pair[0]) && !strstr(why, pair[1]))
            peer_fail(p, "%s: no '%s'", what, pair[0]);
    }
}

/* Four peers, of which 1 loses all its links: then no ring exists.
 * Every member learns which pairs lack a link, and no member is evicted. When
 * the network is whole again, an update finds a ring. */
int peer_stranded(struct peer *p)
{
    pcclAsyncReduceOp_t handles[HANDLES_MAX];
    (void)one_reduce(p, 1);
    if (p->number == 1) peer_control(p, "path 1 <-> 2,3,4 block");
    pcclResult_t rc = pcclSuccess;
    while (rc == pcclSuccess || rc == pcclRankConnectionLost) {
        rc = peer_launch(p, handles);
        if (rc == pcclSuccess) rc = peer_await(p, handles);
    }
    if (rc != pcclRankConnectionFailed)
        peer_fail(p, "all-reduce: %s", pcclGetErrorString(rc));
    must_name_pairs(p, "all-reduce");
    rc = pcclOptimizeTopology(p->comm);
    if (rc != pcclTopologyOptimizationFailed)
        peer_fail(p, "optimize: %s", pcclGetErrorString(rc));
    must_name_pairs(p, "optimize");
    if (peer_world(p) != p->peers)
        peer_fail(p, "%d peers, not %d", peer_world(p), p->peers);
    if (p->number == 1) peer_control(p, "path 1 <-> 2,3,4 open");
    rc = pcclUpdateTopology(p->comm);
    if (rc != pcclSuccess) peer_fail(p, "update: %s", pcclGetErrorString(rc));
    (void)one_reduce(p, 1);
    if (peer_rank(p) == 0)
        printf("{\"stranded\":true,\"peers\":%d}\n", peer_world(p));
    return 0;
}

/* The same, and nobody asked that all stay: the others go on without 1, which
 * is told why. */
int peer_split(struct peer *p)
{
    pcclAsyncReduceOp_t handles[HANDLES_MAX];
    char why[512] = "";
    (void)one_reduce(p, 1);
    if (p->number == 1) peer_control(p, "path 1 <-> 2,3,4 block");
    pcclResult_t rc = pcclSuccess;
    while (rc == pcclSuccess) {
        rc = peer_launch(p, handles);
        if (rc == pcclSuccess) rc = peer_await(p, handles);
    }
    (void)pcclGetLastError(p->comm, why, sizeof why);
    bool evicted = p->number == 1;
    if (rc != (evicted ? pcclMasterConnectionFailed : pcclRankConnectionLost))
        peer_fail(p, "all-reduce: %s", pcclGetErrorString(rc));
    if (evicted && !strstr(why, "cannot exchange data with rank"))
        peer_fail(p, "no reason: %s", why);
    if (evicted) return 0;
    (void)one_reduce(p, 1);
    if (peer_world(p) != p->peers - 1)
        peer_fail(p, "%d peers, not %d", peer_world(p), p->peers - 1);
    if (peer_rank(p) == 0)
        printf("{\"split\":true,\"peers\":%d}\n", peer_world(p));
    return 0;
}

/* ---------------------------------------------------------------- messages */

enum { MESSAGES = 3 }; /* to each */

static void post_all(struct peer *p)
{
    pcclMember_t members[WAN_PEERS_MAX];
    int size;
    if (pcclGetView(p->comm, NULL, NULL, &size, members, WAN_PEERS_MAX))
        peer_fail(p, "no view");
    for (int i = 0; i < size; i++) {
        if (!peer_loses(p, members[i].hint + 1)) continue;
        for (int n = 0; n < MESSAGES; n++) {
            pcclResult_t rc =
                pcclPostMessage(p->comm, members[i].id, &n, sizeof n, NULL, 0);
            if (rc != pcclSuccess)
                peer_fail(p, "post: %s", pcclGetErrorString(rc));
        }
    }
}

int peer_messages(struct peer *p)
{
    bool listens = peer_loses(p, p->number);
    double begin = peer_now();
    if (!listens) post_all(p);
    int due = listens ? kept_count(p) * MESSAGES : 0;
    for (int got = 0; got < due;) {
        pcclEvent_t event;
        pcclResult_t rc = pcclTakeEvent(p->comm, -1, &event);
        if (rc != pcclSuccess)
            peer_fail(p, "event: %s", pcclGetErrorString(rc));
        got += event.kind == pcclEventMessage;
        (void)pcclReleaseEvent(p->comm, &event);
    }
    double took = peer_span(p, begin, peer_now());
    if (peer_rank(p) == 0) {
        printf("{\"messages\":%.6f,\"peers\":%d}\n", took, peer_world(p));
        fflush(stdout);
    }
    return 0;
}
