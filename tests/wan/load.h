/* load.h - the load that a benchmark program runs, as text:
 *
 *   BYTES[xCONCURRENT[xROW]][@REPEAT]
 *
 * vectors of BYTES (with K or M), CONCURRENT of them reduced at once (1), that
 * ROW times in a row without a pause (1), and all of it measured REPEAT times.
 * Commas part several loads: 16M,64Kx64,8Kx1x32. For C and C++. */
#ifndef WAN_LOAD_H
#define WAN_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOADS_MAX = 8, LOAD_CONCURRENT_MAX = 256, LOAD_TIMES_MAX = 1000 };

struct load {
    char name[32]; /* the text that it was parsed from */
    size_t bytes;  /* of one vector, a multiple of 4 */
    int concurrent, row, repeat;
};

static inline long load_number(char **at, long most)
{
    long value = strtol(*at, at, 10);
    return value >= 1 && value <= most ? value : 0;
}

/* Parses one load (no comma). False: malformed. */
static inline bool load_one(struct load *l, const char *text, int repeat)
{
    char *at;
    size_t length = strlen(text);
    if (length >= sizeof l->name) return false;
    memcpy(l->name, text, length + 1);
    double bytes = strtod(text, &at);
    if (*at == 'K') bytes *= 1024, at++;
    if (*at == 'M') bytes *= 1024 * 1024, at++;
    l->bytes = bytes >= 4 && bytes < 4e9 ? (size_t)bytes / 4 * 4 : 0;
    l->concurrent = l->row = 1;
    l->repeat = repeat;
    if (*at == 'x')
        at++, l->concurrent = (int)load_number(&at, LOAD_CONCURRENT_MAX);
    if (*at == 'x') at++, l->row = (int)load_number(&at, 10000);
    if (*at == '@') at++, l->repeat = (int)load_number(&at, LOAD_TIMES_MAX);
    return *at == '\0' && l->bytes > 0 && l->concurrent > 0 && l->row > 0 &&
           l->repeat > 0;
}

/* Parses a list of loads. Returns their number; 0: one of them is malformed. */
static inline int loads_read(struct load *loads, const char *list, int repeat)
{
    int count = 0;
    char text[256];
    size_t length = strlen(list);
    if (length >= sizeof text) return 0;
    memcpy(text, list, length + 1);
    char *at = text;
    while (at && count < LOADS_MAX) {
        char *comma = strchr(at, ',');
        if (comma) *comma++ = '\0';
        if (!load_one(&loads[count++], at, repeat)) return 0;
        at = comma;
    }
    return at ? 0 : count;
}

/* Size of the largest load's vectors, in bytes. */
static inline size_t loads_room(const struct load *loads, int count)
{
    size_t most = 0;
    for (int i = 0; i < count; i++) {
        size_t room = loads[i].bytes * (size_t)loads[i].concurrent;
        if (room > most) most = room;
    }
    return most;
}

/* Prints a measurement as one line for report.py. Times are in seconds. */
static inline void load_print(const struct load *l, const char *phase,
                              int peers, int pool, const double *times)
{
    printf("{\"phase\":\"%s\",\"peers\":%d,\"load\":\"%s\",\"bytes\":%zu,"
           "\"concurrent\":%d,\"row\":%d,\"pool\":%d,\"times\":[",
           phase, peers, l->name, l->bytes, l->concurrent, l->row, pool);
    for (int i = 0; i < l->repeat; i++)
        printf("%s%.6f", i ? "," : "", times[i]);
    printf("]}\n");
    fflush(stdout);
}

#endif
