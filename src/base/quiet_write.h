/* quiet_write.h - writes to files, pipes and the terminal of the process, of
 * which none is ours alone, and which may be full, closed or limited: no write
 * raises SIGPIPE or SIGXFSZ in the program (contract C7). Its handlers and
 * masks are as before afterwards, and errno is that of the write. */
#ifndef PCCL_QUIET_WRITE_H
#define PCCL_QUIET_WRITE_H

#include <stdarg.h>
#include <stddef.h>
#include <sys/types.h>

/* As write(2): EPIPE or EFBIG is all that there is of the signal. */
ssize_t quiet_write(int fd, const void *bytes, size_t size);
/* All of it. 0 or an errno; ENOSPC where nothing is written. */
int quiet_write_all(int fd, const void *bytes, size_t size);
/* To stderr, flushed. errno stays. */
void quiet_print(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Of a process that is ours alone, such as the launcher: no write of it ever
 * raises one. */
void quiet_process(void);
/* What the program has printed so far goes out before the process ends. */
void quiet_flush(void);

#endif
