/* trace_file.h - the trace of one process, as peer/timeline_text.c writes it.
 *
 * Only these files are read: an object is a line, which begins with ts and pid.
 * What else a line has is looked for by its key, and copied as it is. */
#ifndef PCCL_TRACE_FILE_H
#define PCCL_TRACE_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { TRACE_LINE_MAX = 16384 };

/* Times are within this, 18 years: sums of some of them have no overflow. A
 * wall clock differs by less than 109 years from one that begins at a boot. */
#define TRACE_TIME_MAX (INT64_MAX / 16)
#define TRACE_WALL_MAX (INT64_MAX / 8 * 3)

struct trace_file {
    const char *path;
    FILE *in;
    char line[TRACE_LINE_MAX]; /* the present one, without its end */
    bool is_last;              /* the line that ends the trace has been read */
    /* Of the line with the clocks; */
    int rank;
    char host[65], clock_name[64];
    int64_t wall;            /* its wall clock less its monotonic one */
    bool known;              /* the file has its wall clock */
    int clock;               /* number of the clock */
    int64_t first, last;     /* times of events, ns; first > last: none */
    uint64_t events, broken; /* lines */
};

/* A line of an event. */
struct trace_entry {
    int64_t at;       /* ns */
    const char *pid;  /* the text of its number */
    const char *rest; /* what comes after that */
    char phase;
};

/* False: it cannot be opened or read; see errno. */
bool trace_file_open(struct trace_file *f, const char *path);
void trace_file_close(struct trace_file *f);
/* To the first line again. */
void trace_file_rewind(struct trace_file *f);

/* The next event. False: there is none. A line that was cut when the process
 * was killed is left out, as is one that no process has written. */
bool trace_file_next(struct trace_file *f, struct trace_entry *entry);

/* The value behind "key": in a line, without quotes: its size, 0 if there is
 * none. */
size_t trace_value(const char *line, const char *key, const char **value);
int64_t trace_number(const char *line, const char *key);
/* A time in microseconds with three decimals, as nanoseconds; at most
 * TRACE_TIME_MAX, and at least that below 0. */
int64_t trace_time(const char *text);

#endif
