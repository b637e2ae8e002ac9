/* log.c - formats and writes log lines. */
#include "log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static const char *const names[] = {"TRACE", "DEBUG", "INFO", "WARN",
                                    "ERR",   "FATAL", "NONE"};
static atomic_int cached = -1;

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

void log_line(enum log_level level, const char *format, ...)
{
    char line[1024];
    int used = snprintf(line, sizeof line, "pccl[%d] %s: ", (int)getpid(),
                        names[level]);
    va_list args;
    va_start(args, format);
    int more =
        vsnprintf(line + used, sizeof line - (size_t)used - 1, format, args);
    va_end(args);
    if (more < 0) return;
    size_t size = strlen(line);
    line[size++] = '\n';
    ssize_t ignored = write(STDERR_FILENO, line, size);
    (void)ignored;
}
