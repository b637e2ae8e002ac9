/* log_file.c - see log_file.h. */
#include "log_file.h"

#include "quiet_write.h"
#include "slow_call.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { END_WAITS = 1000 /* ms, when the process ends */ };

static void write_lines(void *unused);

static struct slow_call disk = SLOW_CALL(write_lines, NULL);
/* Of the one call that writes. */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static int file = -1;
static char name[PATH_MAX];
static size_t (*make_lost)(char *line, uint64_t lost, const char *why);
static bool cut; /* the last line may not be whole */
/* Of all threads. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char lines_of[2][LOG_FILE_WAITS];
static char *waiting = lines_of[0], *written = lines_of[1];
static size_t used;
static uint64_t count; /* of the lines that wait */
static uint64_t lost;
static int reason; /* errno; 0: the disk was too slow */
static bool said;  /* on stderr */

static const char *why_lost(void)
{
    return reason != 0 ? strerror(reason) : "the disk was too slow";
}

/* The lock is held. */
static void lose(uint64_t lines, int error)
{
    lost += lines;
    reason = error;
    if (said) return;
    said = true;
    quiet_print("pccl: lines of the log are lost, which cannot be written to "
                "%s: %s\n",
                name, why_lost());
}

/* How many were lost before, as a line, with the end of one that is cut. */
static int write_lost(uint64_t lines, const char *why)
{
    char line[LOG_FILE_LINE + 1] = "\n";
    size_t size = cut ? 1 : 0;
    if (lines > 0) size += make_lost(line + size, lines, why);
    return size > 0 ? quiet_write_all(file, line, size) : 0;
}

static bool take_turn(void)
{
    pthread_mutex_lock(&lock);
    size_t size = used;
    uint64_t lines = count, before = lost;
    const char *why = why_lost();
    char *bytes = waiting;
    waiting = written;
    written = bytes;
    used = 0;
    count = 0;
    pthread_mutex_unlock(&lock);
    if (size == 0) return false;
    int error = write_lost(before, why);
    if (error == 0) {
        cut = false;
        pthread_mutex_lock(&lock);
        lost -= before;
        if (before > 0) said = false;
        pthread_mutex_unlock(&lock);
        error = quiet_write_all(file, bytes, size);
    }
    if (error == 0) return true;
    cut = true;
    pthread_mutex_lock(&lock);
    lose(lines, error);
    pthread_mutex_unlock(&lock);
    return true;
}

static void write_lines(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&turn);
    while (take_turn()) continue;
    pthread_mutex_unlock(&turn);
}

void log_file_put(const char *line, size_t size)
{
    pthread_mutex_lock(&lock);
    bool room = used + size <= LOG_FILE_WAITS;
    if (room) {
        memcpy(waiting + used, line, size);
        used += size;
        count++;
    } else {
        lose(1, 0);
    }
    pthread_mutex_unlock(&lock);
    if (room) (void)slow_call_ask(&disk, SLOW_CALL_MOMENT);
}

static void in_child(void)
{
    (void)pthread_mutex_init(&lock, NULL);
    (void)pthread_mutex_init(&turn, NULL);
    used = 0;
    count = lost = 0;
    slow_call_forked(&disk);
}

void log_file_open(int fd, const char *path,
                   size_t (*lost_line)(char line[LOG_FILE_LINE], uint64_t lost,
                                       const char *why))
{
    file = fd;
    (void)snprintf(name, sizeof name, "%s", path);
    make_lost = lost_line;
    (void)pthread_atfork(NULL, NULL, in_child);
}

__attribute__((destructor)) static void finish(void)
{
    if (file >= 0) (void)slow_call_end(&disk, END_WAITS);
}
