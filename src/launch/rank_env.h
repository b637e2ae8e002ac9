/* rank_env.h - the environment of one rank. Pure: inherited variables and
 * facts in, a list of NAME=VALUE out. */
#ifndef PCCL_LAUNCH_RANK_ENV_H
#define PCCL_LAUNCH_RANK_ENV_H

#include "options.h"

struct rank_env {
    char *const *inherited; /* environ */
    const struct options *options;
    const struct app *app;
    const char *master;       /* HOST:PORT for PCCL_MASTER */
    const char *ports;        /* PCCL_PORTS, or NULL */
    const char *announce;     /* PCCL_ANNOUNCE, or NULL */
    const char *library_path; /* of our libmpich.so.12, or NULL */
    uint32_t index;           /* rank, or number within --join's ranks */
    uint32_t local;           /* number on its host, of local_count */
    uint32_t local_count;
    uint32_t restart; /* number of the start; 0: the first */
    bool newcomer;    /* joins the running job: --join, respawn, spares */
    bool spare; /* waits for its release on standard input before it joins */
};

/* A variable of another launcher; a PMI client would contact that one. */
bool env_is_foreign(const char *item);

/* Adds item, a NAME=VALUE, or replaces the variable of that name. */
void env_put(struct env_list *list, char *item);
/* Prepends path to LD_LIBRARY_PATH; NULL does nothing. */
void env_put_library_path(struct env_list *list, const char *path);

/* NULL-terminated; free with rank_env_free. */
char **rank_env_build(const struct rank_env *in);
void rank_env_free(char **env);

/* Value of a variable in a NULL-terminated list, or NULL. */
const char *rank_env_get(char *const *env, const char *name);

#endif
