/* comm_self.c - what this process sees of itself, for its report to the
 * operator (rule W1). A few small files are read once per heartbeat. */
#include "comm.h"

#include "../base/small_file.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { TEXT_SIZE = 512 };

/* The main thread: a program computes there, or in threads that it started. */
static char main_state(void)
{
    char text[TEXT_SIZE];
    if (!small_file_read("/proc/self/stat", text, sizeof text)) return 0;
    const char *end = strrchr(text, ')'); /* the name may hold anything */
    char state = end && end[1] == ' ' ? end[2] : 0;
    return state >= 'A' && state <= 'z' ? state : 0;
}

/* Time for which the main thread waited for a processor. */
static pccl_ns main_delay(void)
{
    char text[TEXT_SIZE];
    int64_t delay = 0;
    if (!small_file_read("/proc/self/schedstat", text, sizeof text)) return 0;
    (void)sscanf(text, "%*u %" SCNd64, &delay);
    return delay;
}

static uint16_t thousandths(pccl_ns part, pccl_ns whole)
{
    if (part <= 0 || whole <= 0) return 0;
    pccl_ns of = part * 1000 / whole;
    return of > UINT16_MAX ? UINT16_MAX : (uint16_t)of;
}

static pccl_ns time_of(struct timeval t)
{
    return t.tv_sec * PCCL_S + t.tv_usec * 1000;
}

static struct wire_traffic traffic_of(const pcclComm_t *c)
{
    struct counters n = c->counters;
    struct wire_traffic t = {0};
    count_fast(&n, c->session);
    for (int i = 0; i < KIND_COUNT; i++)
        t.operations += n.operations[i].succeeded;
    t.sent = n.tcp_sent + n.shared_sent;
    t.received =
        n.tcp_received + n.shared_received + n.cma_received + n.mapped_received;
    return t;
}

void comm_self_look(pcclComm_t *c)
{
    struct session *s = c->session;
    struct comm_self *old = &c->self;
    pccl_ns now = comm_now();
    pccl_ns took = now - old->at;
    if (took < PCCL_TIME_TO_PING(links_deadline(s->links))) return;
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0) return;
    struct comm_self seen = {
        .at = now,
        .cpu = time_of(usage.ru_utime) + time_of(usage.ru_stime),
        .delay = main_delay(),
        .faults = (uint64_t)usage.ru_majflt,
    };
    bool first = old->at == 0;
    s->waits.self = (struct wire_self){
        .state = main_state(),
        .cpu = first ? 0 : thousandths(seen.cpu - old->cpu, took),
        .starve = first ? 0 : thousandths(seen.delay - old->delay, took),
        .faults = first ? 0
                        : (uint32_t)((seen.faults - old->faults) *
                                     (uint64_t)PCCL_S / (uint64_t)took),
    };
    *old = seen;
    s->waits.traffic = traffic_of(c);
}

void comm_self_open(pcclComm_t *c)
{
    struct session_waits *w = &c->session->waits;
    char host[256] = "";
    if (gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
    c->self = (struct comm_self){.at = 0};
    w->reports = true;
    w->name = c->namer;
    for (size_t i = 0; i < WIRE_NAME_MAX && host[i] != '\0'; i++)
        w->host[i] = host[i] > ' ' && host[i] <= '~' ? host[i] : '?';
}
