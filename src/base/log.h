/* log.h - one line per message on stderr, from drivers only: cores never log.
 * PCCL_LOG_LEVEL: TRACE DEBUG INFO WARN ERR FATAL NONE; default WARN. */
#ifndef PCCL_LOG_H
#define PCCL_LOG_H

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

/* Thread-safe; one write(2) per line, at most 1 KiB. */
__attribute__((format(printf, 2, 3))) void log_line(enum log_level level,
                                                    const char *format, ...);

#define LOG(level, ...)                                                        \
    do {                                                                       \
        if ((level) >= log_level_get()) log_line((level), __VA_ARGS__);        \
    } while (0)

#endif
