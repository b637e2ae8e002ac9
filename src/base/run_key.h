/* run_key.h - the key of a run (rules K1, K8): made, kept in memory without a
 * name, and read from a token file. */
#ifndef PCCL_RUN_KEY_H
#define PCCL_RUN_KEY_H

#include "secure.h"

enum {
    RUN_KEY_TEXT = 2 * SECURE_KEY_SIZE + 1, /* in hexadecimal */
    RUN_KEY_PATH = 64,                      /* of /proc/PID/fd/NUMBER */
};

struct run_key {
    uint8_t bytes[SECURE_KEY_SIZE];
};

/* False: the system gives no random bytes. */
bool run_key_make(struct run_key *key);

/* From a token file: a line "pccl-key 1 KEY", of a file that nobody but its
 * owner, who is this user or root, may read. False: `error` says why. */
bool run_key_read(struct run_key *key, const char *path, char *error,
                  size_t error_size);
/* Writes a new token file; one that exists is left alone. */
bool run_key_write(const struct run_key *key, const char *path, char *error,
                   size_t error_size);

/* A token file in memory, which this user reads at `path` as long as this
 * process lives. Returns its descriptor, for close(); -1: errno. */
int run_key_lend(const struct run_key *key, char path[RUN_KEY_PATH]);

void run_key_print(const struct run_key *key, char text[RUN_KEY_TEXT]);
bool run_key_parse(struct run_key *key, const char *text);
/* Overwrites size bytes. */
void run_key_forget(void *secret, size_t size);

#endif
