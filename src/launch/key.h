/* key.h - the key of a job (rules K1, K7, K8): where it comes from, and how its
 * ranks get it. */
#ifndef PCCL_LAUNCH_KEY_H
#define PCCL_LAUNCH_KEY_H

#include "options.h"

/* Before the first coordinator or agent: the key of --token-file or
 * PCCL_TOKEN_FILE; or a new one, if `far`: there are ranks on other hosts. Sets
 * options->key, and the environment that ranks of this host inherit. False: it
 * has printed why. */
bool key_begin(struct options *options, bool far);

/* The key, or NULL: the run has none. */
static inline const struct run_key *key_of(const struct options *options)
{
    return options->keyed ? &options->key : NULL;
}

/* In an agent, with the text of SETUP; "": there is no key. */
bool key_take(const char *text);

/* NAME=VALUE for the environment of ranks, or NULL: no key. */
const char *key_variable(void);

/* With the run's key in options->key: a coordinator has that, and no token. */
bool key_coordinates(const struct options *options);

/* --make-token. Returns the exit status. */
int key_make_file(const char *path);

#endif
