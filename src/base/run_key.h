/* run_key.h - the key by which a process dials (rules K1, K8, K11): that of the
 * run, or a participant's. Made, kept in memory without a name, and read from a
 * token file. */
#ifndef PCCL_RUN_KEY_H
#define PCCL_RUN_KEY_H

#include "secure.h"

enum {
    /* "KEY" in hexadecimal, or "IDENTITY KEY", with its '\0' */
    RUN_KEY_TEXT = SECURE_NAME_SIZE + 2 * SECURE_KEY_SIZE + 1,
    RUN_KEY_PATH = 64,                /* of /proc/PID/fd/NUMBER */
    RUN_KEY_LINE = RUN_KEY_TEXT + 32, /* of a file, with its '\0' */
};

struct run_key {
    uint8_t bytes[SECURE_KEY_SIZE];
    char identity[SECURE_NAME_SIZE]; /* of a token; "": it is the run's key */
};

static inline bool run_key_is_token(const struct run_key *key)
{
    return key->identity[0] != '\0';
}
/* By which a process with that key dials. */
void run_key_psk(const struct run_key *key, struct secure_psk *psk);

/* False: the system gives no random bytes. */
bool run_key_make(struct run_key *key);

/* From a token file: a line "pccl-key 1 KEY" or "pccl-token 1 IDENTITY KEY", of
 * a file that nobody but its owner, who is this user or root, may read. False:
 * `error` says why. */
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
/* The line of a token file, with '\n' and '\0'. */
size_t run_key_line(const struct run_key *key, char line[RUN_KEY_LINE]);
/* Overwrites size bytes. */
void run_key_forget(void *secret, size_t size);

/* --- files of one line, as those of issuers (run_key_issuer.c) --- */

/* The first line without '\n'. A `secret` one has the owner and the mode of a
 * token file. False: `error` says why. */
bool run_key_read_line(const char *path, bool secret, char line[RUN_KEY_LINE],
                       char *error, size_t error_size);
/* Writes a new file with the mode 0600, or 0644. */
bool run_key_write_line(const char *path, bool secret, const char *line,
                        char *error, size_t error_size);

/* The private key of an issuer is a line "pccl-issuer 1 SEED" with the mode
 * 0600, the public one "pccl-issuer-public 1 KEY" (rule K10). */
enum { ISSUER_KEY_SIZE = 32 };
/* Writes both: to `path`, and to `path` with ".pub". */
bool run_issuer_make(const char *path, char *error, size_t error_size);
/* The private key (secret), or the public one. */
bool run_issuer_read(const char *path, bool secret,
                     uint8_t key[ISSUER_KEY_SIZE], char *error,
                     size_t error_size);

#endif
