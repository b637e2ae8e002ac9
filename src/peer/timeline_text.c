/* timeline_text.c - see timeline_text.h. */
#include "timeline_text.h"

#include "../base/clock.h"
#include "../base/small_file.h"
#include "../base/status.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int own_pid; /* getpid() is a system call */

struct trace_line {
    char *to;
    size_t used;
};

__attribute__((format(printf, 2, 3))) static void print(struct trace_line *t,
                                                        const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(t->to + t->used, TRACE_TEXT_MAX - t->used, format, args);
    va_end(args);
    if (n > 0) t->used += (size_t)n;
    if (t->used >= TRACE_TEXT_MAX) t->used = TRACE_TEXT_MAX - 1;
}

/* Most of a line is the same for all: this is what the writer spends its time
 * on, so it does without printf. */
static void copy(struct trace_line *t, const char *from)
{
    size_t size = strlen(from);
    memcpy(t->to + t->used, from, size);
    t->used += size;
}

static void number(struct trace_line *t, uint64_t value)
{
    char digits[24];
    size_t count = 0;
    do digits[count++] = (char)('0' + value % 10);
    while ((value /= 10) > 0);
    while (count > 0) t->to[t->used++] = digits[--count];
}

/* Nanoseconds as microseconds. */
static void time_of(struct trace_line *t, pccl_ns at)
{
    uint64_t ns = at > 0 ? (uint64_t)at : 0;
    number(t, ns / 1000);
    t->to[t->used++] = '.';
    t->to[t->used++] = (char)('0' + ns / 100 % 10);
    t->to[t->used++] = (char)('0' + ns / 10 % 10);
    t->to[t->used++] = (char)('0' + ns % 10);
}

static void field(struct trace_line *t, const char *name, uint64_t value)
{
    copy(t, name);
    number(t, value);
}

/* ------------------------------------------------------------------- head */

/* The same for all processes that share CLOCK_MONOTONIC. */
static void read_boot(char boot[64])
{
    (void)small_file_read("/proc/sys/kernel/random/boot_id", boot, 64);
    boot[strcspn(boot, "\n\"\\")] = '\0';
}

size_t trace_text_begin(char *to, int32_t rank)
{
    char host[65] = "", boot[64], who[32];
    int pid = own_pid = (int)getpid();
    if (gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
    host[strcspn(host, "\"\\")] = '\0';
    read_boot(boot);
    (void)snprintf(who, sizeof who, "rank %d", (int)rank);
    if (rank < 0) (void)snprintf(who, sizeof who, "newcomer");
    struct trace_line t = {.to = to};
    print(&t, "[\n");
    print(&t,
          "{\"ts\":0,\"pid\":%d,\"tid\":0,\"ph\":\"M\",\"name\":\"process_"
          "name\",\"args\":{\"name\":\"%s (%s, pid %d)\"}},\n",
          pid, who, host, pid);
    print(&t,
          "{\"ts\":0,\"pid\":%d,\"tid\":0,\"ph\":\"M\",\"name\":\"process_"
          "sort_index\",\"args\":{\"sort_index\":%d}},\n",
          pid, rank < 0 ? INT32_MAX : (int)rank);
    print(&t,
          "{\"ts\":0,\"pid\":%d,\"tid\":0,\"ph\":\"M\",\"name\":\"pccl_clock\","
          "\"args\":{\"rank\":%d,\"host\":\"%s\",\"clock\":\"%s\","
          "\"monotonic_ns\":%" PRId64 ",\"realtime_ns\":%" PRId64 "}},\n",
          pid, (int)rank, host, boot, clock_ns(CLOCK_MONOTONIC),
          clock_ns(CLOCK_REALTIME));
    return t.used;
}

size_t trace_text_thread(char *to, int thread, const char *name)
{
    struct trace_line t = {.to = to};
    char plain[32] = "";
    for (size_t i = 0; i < sizeof plain - 1 && name[i] != '\0'; i++) {
        bool bad = name[i] < ' ' || name[i] > '~' || strchr("\"\\", name[i]);
        plain[i] = bad ? '?' : name[i];
    }
    print(&t,
          "{\"ts\":0,\"pid\":%d,\"tid\":%d,\"ph\":\"M\",\"name\":\"thread_"
          "name\",\"args\":{\"name\":\"%s\"}},\n",
          own_pid, thread, plain);
    return t.used;
}

size_t trace_text_end(char *to)
{
    struct trace_line t = {.to = to};
    print(&t,
          "{\"ts\":0,\"pid\":%d,\"tid\":0,\"ph\":\"M\",\"name\":\"pccl_end\","
          "\"args\":{}}\n]\n",
          own_pid);
    return t.used;
}

/* ----------------------------------------------------------------- events */

static void text(struct trace_line *t, const char *name, const char *value)
{
    copy(t, name);
    copy(t, value);
    copy(t, "\"");
}

static void tell_algorithm(struct trace_line *t, const struct trace_event *e)
{
    if (!e->algorithm) return;
    text(t, ",\"algorithm\":\"", e->algorithm);
    text(t, ",\"why\":\"", e->why);
    if (!e->instead_of) return;
    text(t, ",\"instead_of\":\"", e->instead_of);
    text(t, ",\"unfit\":\"", e->unfit);
}

static void tell_operation(struct trace_line *t, const struct trace_event *e)
{
    if (e->phase == 'B' || e->phase == 'b') {
        copy(t, "\"kind\":\"");
        copy(t, e->kind);
        field(t, "\",\"bytes\":", e->bytes);
        return;
    }
    copy(t, "\"kind\":\"");
    copy(t, e->kind);
    copy(t, "\",\"result\":\"");
    copy(t, e->result == 0 ? "success" : status_text(e->result));
    field(t, "\",\"members\":", e->count);
    field(t, ",\"bytes\":", e->bytes);
    if (e->phase != 'X' && e->took > 0) {
        copy(t, ",\"began\":");
        time_of(t, e->at - e->took);
    }
    if (e->partner >= 0) field(t, ",\"last\":", (uint64_t)e->partner);
    tell_algorithm(t, e);
    if (e->epoch == 0) return;
    field(t, ",\"op\":\"", e->group);
    field(t, ".", e->epoch);
    field(t, ".", e->scope);
    field(t, ".", e->tag);
    field(t, ".", e->seq);
    copy(t, "\"");
}

static void tell_partner(struct trace_line *t, const struct trace_event *e)
{
    if (e->partner >= 0) field(t, "\"partner\":", (uint64_t)e->partner);
    if (e->category == TRACE_WAIT) {
        if (e->partner >= 0) copy(t, ",");
        field(t, "\"others\":", e->count);
    } else if (e->bytes != UINT64_MAX) {
        if (e->partner >= 0) copy(t, ",");
        field(t, "\"bytes\":", e->bytes);
    }
}

static void tell_view(struct trace_line *t, const struct trace_event *e)
{
    field(t, "\"epoch\":", e->epoch);
    field(t, ",\"members\":", e->count);
    field(t, ",\"lost\":", e->lost);
    field(t, ",\"joined\":", e->joined);
}

static void tell(struct trace_line *t, const struct trace_event *e)
{
    copy(t, ",\"args\":{");
    switch (e->category) {
    case TRACE_OPERATION:
        tell_operation(t, e);
        break;
    case TRACE_WAIT:
    case TRACE_CALL:
        if (e->phase != 'E') tell_partner(t, e);
        break;
    default:
        if (e->phase != 'b') tell_view(t, e);
        break;
    }
    copy(t, "}},\n");
}

size_t trace_text_event(char *to, int thread, const struct trace_event *e)
{
    static const char *const categories[] = {"operation", "wait", "call",
                                             "change", "view"};
    struct trace_line t = {.to = to};
    copy(&t, "{\"ts\":");
    time_of(&t, e->at);
    field(&t, ",\"pid\":", (uint64_t)own_pid);
    field(&t, ",\"tid\":", (uint64_t)thread);
    copy(&t, ",\"ph\":\"");
    t.to[t.used++] = e->phase;
    copy(&t, "\",\"cat\":\"");
    copy(&t, categories[e->category]);
    copy(&t, "\",\"name\":\"");
    copy(&t, e->name);
    copy(&t, "\"");
    if (e->phase == 'X') {
        copy(&t, ",\"dur\":");
        time_of(&t, e->took);
    }
    if (e->phase == 'b' || e->phase == 'e') {
        field(&t, ",\"id\":\"", e->id);
        copy(&t, "\"");
    }
    if (e->phase == 'i') copy(&t, ",\"s\":\"p\"");
    tell(&t, e);
    return t.used;
}
