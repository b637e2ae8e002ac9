/* host.c - see host.h. Linux: /proc. */
#include "host.h"

#include "clock.h"
#include "fnv.h"
#include "small_file.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEXT_SIZE = 4096 };

uint64_t host_id(void)
{
    char text[TEXT_SIZE];
    uint64_t hash = FNV_BEGIN;
    (void)small_file_read("/proc/sys/kernel/random/boot_id", text, sizeof text);
    hash = fnv_bytes(hash, text, strlen(text));
    static const char *const spaces[] = {
        "/proc/self/ns/pid", "/proc/self/ns/net", "/proc/self/ns/user"};
    for (size_t i = 0; i < ARRAY_COUNT(spaces); i++) {
        struct stat st;
        if (stat(spaces[i], &st) == 0)
            hash = fnv_bytes(hash, &st.st_ino, sizeof st.st_ino);
    }
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return host_id_make(hash, n < 1 ? 1 : (uint64_t)n);
}

/* ------------------------------------------------------------- a process */

/* A task of it: the state letter of /proc/PID/task/TID/stat, and whether it is
 * one of the threads that send heartbeats. */
static char task_state(const char *folder, const char *task, bool *sends)
{
    char path[64];
    char text[TEXT_SIZE];
    snprintf(path, sizeof path, "%s/%.20s/stat", folder, task);
    (void)small_file_read(path, text, sizeof text);
    const char *name = strchr(text, '(');
    const char *end = strrchr(text, ')');
    if (!name || !end || end[1] != ' ') return 0;
    *sends =
        strncmp(name + 1, HOST_IO_THREAD ")", strlen(HOST_IO_THREAD) + 1) == 0;
    return end[2];
}

static struct host_thread task_times(const char *folder, const char *task)
{
    struct host_thread t = {.id = strtol(task, NULL, 10)};
    char path[64];
    char text[TEXT_SIZE];
    snprintf(path, sizeof path, "%s/%.20s/schedstat", folder, task);
    (void)small_file_read(path, text, sizeof text);
    (void)sscanf(text, "%*u %" SCNu64, &t.delay);
    snprintf(path, sizeof path, "%s/%.20s/status", folder, task);
    (void)small_file_read(path, text, sizeof text);
    const char *line = strstr(text, "\nvoluntary_ctxt_switches:");
    if (line)
        (void)sscanf(line, "\nvoluntary_ctxt_switches: %" SCNu64, &t.sleeps);
    return t;
}

struct view_of_tasks {
    bool traced, stopped;
    bool waits; /* a thread that sends waits for a CPU, or for memory */
    bool runs;  /* another thread does, or runs */
};

static bool look_at_tasks(struct host_seen *now, struct view_of_tasks *v)
{
    char folder[32];
    snprintf(folder, sizeof folder, "/proc/%" PRIu32 "/task", now->pid);
    DIR *tasks = opendir(folder);
    if (!tasks) return false;
    for (const struct dirent *d; (d = readdir(tasks));) {
        bool sends = false;
        char state =
            d->d_name[0] != '.' ? task_state(folder, d->d_name, &sends) : 0;
        bool busy = state == 'R' || state == 'D';
        v->traced |= state == 't';
        v->stopped |= state == 'T';
        v->waits |= busy && sends;
        v->runs |= busy && !sends;
        if (sends && now->count < HOST_IO_THREADS_MAX)
            now->threads[now->count++] = task_times(folder, d->d_name);
    }
    closedir(tasks);
    return true;
}

/* A thread that sends waited for a CPU for much of the time, or waits for a
 * lock whose holder does not run: in the time of two heartbeats it would have
 * slept twice. */
static bool was_held_up(const struct host_seen *old,
                        const struct host_seen *now, bool others_run)
{
    for (uint32_t i = 0; i < old->count; i++) {
        const struct host_thread *a = &old->threads[i];
        for (uint32_t k = 0; k < now->count; k++) {
            const struct host_thread *b = &now->threads[k];
            if (a->id != b->id) continue;
            uint64_t much = (uint64_t)(now->at - old->at) / 4;
            if (b->delay >= a->delay && b->delay - a->delay >= much)
                return true;
            if (others_run && b->sleeps - a->sleeps <= 1) return true;
        }
    }
    return false;
}

/* The entry of the process, or the one that is longest unused. */
static struct host_seen *entry_of(struct host_watch *w, uint32_t pid)
{
    struct host_seen *oldest = &w->seen[0];
    for (size_t i = 0; i < ARRAY_COUNT(w->seen); i++) {
        if (w->seen[i].pid == pid) return &w->seen[i];
        if (w->seen[i].at < oldest->at) oldest = &w->seen[i];
    }
    return oldest;
}

enum evidence host_look(struct host_watch *w, uint32_t pid, pccl_ns now)
{
    struct host_seen *entry = entry_of(w, pid);
    struct host_seen old = *entry;
    struct view_of_tasks v = {.traced = false};
    *entry = (struct host_seen){.pid = pid, .at = now};
    if (!look_at_tasks(entry, &v)) return EVIDENCE_NONE;
    if (v.traced) return EVIDENCE_TRACED;
    if (v.stopped) return EVIDENCE_STOPPED;
    bool known = old.pid == pid && old.at < now;
    if (v.waits || (known && was_held_up(&old, entry, v.runs)))
        return EVIDENCE_RUNNABLE;
    return EVIDENCE_NONE;
}

pccl_ns host_time(void)
{
    return clock_ns(CLOCK_BOOTTIME);
}
