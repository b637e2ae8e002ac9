/* json.h - reads the JSON of a merged trace, strictly; whatever is not JSON
 * fails the test. */
#ifndef PROC_JSON_H
#define PROC_JSON_H

struct json_event {
    double at, took, process, thread;
    char phase;
    char name[64], category[32];
    char result[80], kind[32]; /* of args, or empty; */
    char algorithm[32], why[128], instead_of[32], unfit[128]; /* likewise */
    double members, partner; /* of args; partner -1: none */
};

/* Calls `event` for each object of "traceEvents". */
void json_read_trace(const char *path,
                     void (*event)(void *user, const struct json_event *e),
                     void *user);

#endif
