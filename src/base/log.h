/* log.h - one line per message, from drivers only: cores never log.
 *
 * PCCL_LOG_LEVEL: TRACE DEBUG INFO WARN ERR FATAL NONE; default WARN.
 * PCCL_LOG_FILE: a file that lines are added to in place of stderr; %r is the
 * rank as launched, %p the process, %h the host (base/file_pattern.h).
 * PCCL_LOG_FORMAT: text, or json: an object per line. */
#ifndef PCCL_LOG_H
#define PCCL_LOG_H

#include <stdint.h>

enum log_level {
    LOG_TRACE,
    LOG_DEBUG,
    LOG_INFO,
    LOG_WARN,
    LOG_ERR,
    LOG_FATAL,
    LOG_NONE,
};

/* Reads PCCL_LOG_LEVEL once; any thread. */
enum log_level log_level_get(void);

/* Who speaks: the rank as launched, -1 for none; the epoch of the view in
 * force, 0 for none. A process with several communicators has those of the one
 * that set them last. Any thread. Before the first call the rank is
 * PCCL_RANK. */
void log_set_rank(int32_t rank);
void log_set_epoch(uint32_t epoch);

/* Thread-safe; one write(2) per line, of about 1 KiB at most. */
__attribute__((format(printf, 2, 3))) void log_line(enum log_level level,
                                                    const char *format, ...);

#define LOG(level, ...)                                                        \
    do {                                                                       \
        if ((level) >= log_level_get()) log_line((level), __VA_ARGS__);        \
    } while (0)

#endif
