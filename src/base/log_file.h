/* log_file.h - lines for a file on a disk that may be full, slow or gone. No
 * line keeps the program: what the disk does not take is counted, and said in
 * the file when it takes lines again, and on stderr at once. */
#ifndef PCCL_LOG_FILE_H
#define PCCL_LOG_FILE_H

#include <stddef.h>
#include <stdint.h>

enum {
    LOG_FILE_LINE = 2560,       /* bytes of a line at most */
    LOG_FILE_WAITS = 64 * 1024, /* of lines that wait for the disk */
};

/* Once in a process. `lost_line` makes the line that says how many are lost. */
void log_file_open(int fd, const char *path,
                   size_t (*lost_line)(char line[LOG_FILE_LINE], uint64_t lost,
                                       const char *why));

/* Written when this returns, or the disk is slow or takes nothing. Any
 * thread. */
void log_file_put(const char *line, size_t size);

#endif
