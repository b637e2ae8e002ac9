/* key.c - see key.h. */
#include "key.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOKEN_FILE "PCCL_TOKEN_FILE"

/* "PCCL_TOKEN_FILE=/proc/PID/fd/NUMBER": the key in memory of this process,
 * as long as it lives (rule K8). */
static char variable[sizeof TOKEN_FILE + 1 + RUN_KEY_PATH];

static bool lend(const struct run_key *key)
{
    char path[RUN_KEY_PATH];
    if (run_key_lend(key, path) < 0) return false;
    snprintf(variable, sizeof variable, "%s=%s", TOKEN_FILE, path);
    return setenv(TOKEN_FILE, path, 1) == 0;
}

const char *key_variable(void)
{
    return *variable ? variable : NULL;
}

/* Whether the job gets a key, and which. */
static bool choose(struct options *o, bool far, char *error, size_t error_size)
{
    const char *missing;
    const char *file = o->token_file ? o->token_file : getenv(TOKEN_FILE);
    bool makes = far && !o->join && !o->insecure;
    o->keyed = (file && *file) || makes;
    if (!o->keyed) return true;
    if (!secure_is_available(&missing)) {
        snprintf(error, error_size,
                 "%s, and there is no TLS: %s; --insecure runs in clear",
                 makes ? "ranks on several hosts need a key"
                       : "there is a token file",
                 missing);
        return false;
    }
    if (file && *file) return run_key_read(&o->key, file, error, error_size);
    if (run_key_make(&o->key)) return true;
    snprintf(error, error_size, "no random bytes for a key: %s",
             strerror(errno));
    return false;
}

bool key_begin(struct options *options, bool far)
{
    char error[MESSAGE_SIZE / 2];
    const char *insecure = getenv("PCCL_INSECURE");
    if (!options->token_file && insecure && strcmp(insecure, "1") == 0)
        options->insecure = true;
    if (options->insecure) {
        setenv("PCCL_INSECURE", "1", 1);
        unsetenv(TOKEN_FILE);
        if (options->mode != MODE_STATUS)
            complain("warning: --insecure: whoever reaches "
                     "a port of this run can take part in it and read "
                     "it");
        return true;
    }
    bool chosen = choose(options, far, error, sizeof error);
    if (chosen && (!options->keyed || lend(&options->key))) return true;
    if (chosen)
        snprintf(error, sizeof error, "cannot keep the key of the job: %s",
                 strerror(errno));
    complain("%s", error);
    return false;
}

bool key_coordinates(const struct options *options)
{
    const char *fault = NULL;
    if (options->keyed && run_key_is_token(&options->key))
        fault = "the token file is a participant's: a coordinator needs the "
                "key of the run (--make-token), and others join it with "
                "--join HOST:PORT";
    else if (options->issuer && !options->keyed)
        fault = "--issuer needs the key of the run: --token-file FILE "
                "(--make-token makes one)";
    if (fault) complain("%s", fault);
    return !fault;
}

bool key_take(const char *text)
{
    struct run_key key;
    if (*text == '\0') return true;
    bool done = run_key_parse(&key, text) && lend(&key);
    run_key_forget(&key, sizeof key);
    return done;
}

int key_make_file(const char *path)
{
    char error[MESSAGE_SIZE / 2];
    struct run_key key;
    bool made = run_key_make(&key);
    if (!made) snprintf(error, sizeof error, "%s", strerror(errno));
    bool done = made && run_key_write(&key, path, error, sizeof error);
    run_key_forget(&key, sizeof key);
    if (done) return EXIT_SUCCESS;
    complain("--make-token: %s", error);
    return EXIT_FAILURE;
}
