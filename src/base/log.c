/* log.c - formats and writes log lines. */
#include "log.h"

#include "file_pattern.h"
#include "json_char.h"
#include "log_file.h"
#include "quiet_write.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

enum {
    HEAD_SIZE = 512,
    TEXT_SIZE = 1024,
    LINE_SIZE = LOG_FILE_LINE,
    RANK_UNSET = -2
};

static const char *const names[] = {"TRACE", "DEBUG", "INFO", "WARN",
                                    "ERR",   "FATAL", "NONE"};
static atomic_int cached = -1;
static _Atomic int32_t own_rank = RANK_UNSET;
static _Atomic uint32_t own_epoch;

/* Where lines go: read from the environment by the first one. */
static pthread_once_t opened = PTHREAD_ONCE_INIT;
static bool to_file;
static bool json;

enum log_level log_level_get(void)
{
    int level = atomic_load_explicit(&cached, memory_order_relaxed);
    if (level >= 0) return (enum log_level)level;
    level = LOG_WARN;
    const char *text = getenv("PCCL_LOG_LEVEL");
    bool known = text == NULL || *text == '\0';
    for (int i = 0; text && i <= LOG_NONE; i++) {
        if (strcasecmp(text, names[i]) != 0) continue;
        level = i;
        known = true;
    }
    atomic_store_explicit(&cached, level, memory_order_relaxed);
    if (!known) {
        log_line(LOG_WARN,
                 "PCCL_LOG_LEVEL=%s is not one of TRACE DEBUG INFO WARN ERR "
                 "FATAL NONE; using WARN",
                 text);
    }
    return (enum log_level)level;
}

void log_set_rank(int32_t rank)
{
    atomic_store_explicit(&own_rank, rank, memory_order_relaxed);
}

void log_set_epoch(uint32_t epoch)
{
    atomic_store_explicit(&own_epoch, epoch, memory_order_relaxed);
}

static int32_t rank_now(void)
{
    int32_t rank = atomic_load_explicit(&own_rank, memory_order_relaxed);
    if (rank != RANK_UNSET) return rank;
    const char *text = getenv("PCCL_RANK");
    bool digits = text && *text && text[strspn(text, "0123456789")] == '\0';
    return digits ? (int32_t)strtol(text, NULL, 10) : -1;
}

/* ---------------------------------------------------------------- the line */

/* The moment, to a microsecond, in UTC. */
static void print_time(char *to, size_t size)
{
    struct timespec now;
    struct tm utc;
    char seconds[32];
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    strftime(seconds, sizeof seconds, "%Y-%m-%dT%H:%M:%S", &utc);
    (void)snprintf(to, size, "%s.%06ldZ", seconds, now.tv_nsec / 1000);
}

/* Appends a text as the inside of a string of JSON. */
static size_t print_json(char *to, size_t used, size_t size, const char *text)
{
    while (*text != '\0' && used + 8 < size)
        used += json_char(&text, to + used);
    return used;
}

static size_t make_json(char *line, size_t size, enum log_level level,
                        const char *text)
{
    char when[64], host[256], rank[32] = "";
    print_time(when, sizeof when);
    (void)file_pattern(host, sizeof host, "%h", "");
    int32_t number = rank_now();
    if (number >= 0)
        (void)snprintf(rank, sizeof rank, "\"rank\":%d,", (int)number);
    int used = snprintf(line, HEAD_SIZE, "{\"time\":\"%s\",\"host\":\"", when);
    size_t at = print_json(line, (size_t)used, HEAD_SIZE / 2, host);
    used = snprintf(line + at, HEAD_SIZE - at,
                    "\",\"pid\":%d,%s\"epoch\":%u,\"level\":\"%s\",\"text\":\"",
                    (int)getpid(), rank, (unsigned)atomic_load(&own_epoch),
                    names[level]);
    at = print_json(line, at + (size_t)used, size - 4, text);
    memcpy(line + at, "\"}\n", 3);
    return at + 3;
}

static size_t make_text(char *line, size_t size, enum log_level level,
                        const char *text)
{
    char when[64], host[256], rank[32] = "", epoch[32] = "";
    print_time(when, sizeof when);
    (void)file_pattern(host, sizeof host, "%h", "");
    int32_t number = rank_now();
    uint32_t now = atomic_load_explicit(&own_epoch, memory_order_relaxed);
    if (number >= 0) (void)snprintf(rank, sizeof rank, " rank %d", (int)number);
    if (now > 0) (void)snprintf(epoch, sizeof epoch, " epoch %u", now);
    int used =
        snprintf(line, size - 1, "pccl[%d] %s %s%s%s %s: %s", (int)getpid(),
                 when, host, rank, epoch, names[level], text);
    size_t end = used < 0 ? 0 : (size_t)used;
    if (end > size - 2) end = size - 2;
    /* Names and reasons are of others: they make no line of their own. */
    for (size_t i = 0; i < end; i++)
        if ((unsigned char)line[i] < ' ') line[i] = '?';
    line[end] = '\n';
    return end + 1;
}

static size_t make_line(char line[LINE_SIZE], enum log_level level,
                        const char *text)
{
    return json ? make_json(line, LINE_SIZE, level, text)
                : make_text(line, LINE_SIZE, level, text);
}

static void write_line(enum log_level level, const char *text)
{
    char line[LINE_SIZE];
    size_t size = make_line(line, level, text);
    int error = errno;
    if (to_file) {
        log_file_put(line, size);
    } else {
        ssize_t ignored = quiet_write(STDERR_FILENO, line, size);
        (void)ignored;
    }
    errno = error;
}

/* The first line of a file that takes lines again. */
static size_t lost_line(char line[LINE_SIZE], uint64_t lost, const char *why)
{
    char text[TEXT_SIZE];
    (void)snprintf(text, sizeof text,
                   "%llu lines of the log were lost before this one: %s",
                   (unsigned long long)lost, why);
    return make_line(line, LOG_WARN, text);
}

/* ---------------------------------------------------------- where it goes */

static void open_file(const char *pattern)
{
    char rank[16] = "none", path[PATH_MAX], text[TEXT_SIZE];
    int32_t number = rank_now();
    if (number >= 0) (void)snprintf(rank, sizeof rank, "%d", (int)number);
    errno = ENAMETOOLONG;
    int fd = -1;
    if (file_pattern(path, sizeof path, pattern, rank))
        fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    to_file = fd >= 0;
    if (to_file) {
        log_file_open(fd, path, lost_line);
        return;
    }
    (void)snprintf(text, sizeof text,
                   "PCCL_LOG_FILE=%.512s cannot be opened: %s; logging to "
                   "stderr",
                   pattern, strerror(errno));
    write_line(LOG_WARN, text);
}

static void open_once(void)
{
    const char *format = getenv("PCCL_LOG_FORMAT");
    const char *file = getenv("PCCL_LOG_FILE");
    json = format && strcasecmp(format, "json") == 0;
    if (file && *file != '\0') open_file(file);
    if (!format || *format == '\0' || json || strcasecmp(format, "text") == 0)
        return;
    char text[TEXT_SIZE];
    (void)snprintf(text, sizeof text,
                   "PCCL_LOG_FORMAT=%.512s is not text or json; using text",
                   format);
    write_line(LOG_WARN, text);
}

void log_line(enum log_level level, const char *format, ...)
{
    char text[TEXT_SIZE];
    va_list args;
    va_start(args, format);
    int size = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (size < 0) return;
    pthread_once(&opened, open_once);
    write_line(level, text);
}
