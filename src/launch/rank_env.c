/* rank_env.c - builds the environment of one rank. */
#include "rank_env.h"

#include "key.h"

#include <stdlib.h>
#include <string.h>

static size_t list_find(const struct env_list *list, const char *name)
{
    size_t length = strcspn(name, "=");
    for (size_t i = 0; i < list->count; i++) {
        if (strncmp(list->items[i], name, length) == 0 &&
            list->items[i][length] == '=') {
            return i;
        }
    }
    return list->count;
}

void env_put(struct env_list *list, char *item)
{
    size_t i = list_find(list, item);
    if (i < list->count) {
        free(list->items[i]);
        list->items[i] = item;
        return;
    }
    list->items =
        memory_grow(list->items, list->count + 2, sizeof *list->items);
    list->items[list->count++] = item;
    list->items[list->count] = NULL;
}

static void list_remove(struct env_list *list, const char *name)
{
    size_t i = list_find(list, name);
    if (i == list->count) return;
    free(list->items[i]);
    list->items[i] = list->items[--list->count];
    list->items[list->count] = NULL;
}

static void put_text(struct env_list *list, const char *name, const char *value)
{
    env_put(list, memory_print("%s=%s", name, value));
}

static void put_number(struct env_list *list, const char *const *names,
                       size_t count, uint32_t value)
{
    for (size_t i = 0; i < count; i++)
        env_put(list, memory_print("%s=%u", names[i], value));
}

static const char *const rank_names[] = {
    "PCCL_RANK",           "PMI_RANK", "PMI_ID", "OMPI_COMM_WORLD_RANK",
    "MV2_COMM_WORLD_RANK", "RANK"};
static const char *const size_names[] = {"PCCL_WORLD_SIZE", "PMI_SIZE",
                                         "OMPI_COMM_WORLD_SIZE",
                                         "MV2_COMM_WORLD_SIZE", "WORLD_SIZE"};
static const char *const local_rank_names[] = {
    "MPI_LOCALRANKID",           "PMI_LOCAL_RANK",
    "OMPI_COMM_WORLD_NODE_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
    "MV2_COMM_WORLD_LOCAL_RANK", "LOCAL_RANK"};
static const char *const local_size_names[] = {
    "MPI_LOCALNRANKS", "PMI_LOCAL_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE",
    "MV2_COMM_WORLD_LOCAL_SIZE", "LOCAL_WORLD_SIZE"};

bool env_is_foreign(const char *item)
{
    return strncmp(item, "PMIX_", 5) == 0 || strncmp(item, "PMI_FD=", 7) == 0 ||
           strncmp(item, "PMI_PORT=", 9) == 0;
}

static bool name_listed(const char *names, const char *item)
{
    size_t length = strcspn(item, "=");
    while (*names) {
        size_t name = strcspn(names, ",");
        if (name == length && strncmp(names, item, length) == 0) return true;
        names += name;
        names += strspn(names, ",");
    }
    return false;
}

/* With -genvnone a rank gets only the variables of a login. */
static bool may_pass(const struct rank_env *in, const char *item)
{
    const char *pass = in->app->pass ? in->app->pass : in->options->pass;
    if (!pass || strcmp(pass, ENV_ALL) == 0) return true;
    return name_listed("PATH,HOME,USER,LOGNAME,SHELL,TERM,LANG,TMPDIR", item) ||
           name_listed(pass, item);
}

static void put_place(struct env_list *list, const struct rank_env *in)
{
    uint32_t world = in->options->rank_count;
    put_number(list, local_rank_names, ARRAY_COUNT(local_rank_names),
               in->local);
    put_number(list, local_size_names, ARRAY_COUNT(local_size_names),
               in->local_count);
    if (!in->options->join && !in->spare) {
        put_number(list, rank_names, ARRAY_COUNT(rank_names), in->index);
        put_number(list, size_names, ARRAY_COUNT(size_names), world);
    }
    /* MPI_APPNUM and MPI_UNIVERSE_SIZE */
    env_put(list, memory_print("PMI_APPNUM=%zu",
                               (size_t)(in->app - in->options->apps)));
    list_remove(list, "PMI_UNIVERSE_SIZE");
    if (in->options->universe)
        put_text(list, "PMI_UNIVERSE_SIZE", in->options->universe);
    if (in->newcomer) {
        list_remove(list, "PCCL_RANK");
        list_remove(list, "PCCL_WORLD_SIZE");
        put_text(list, "PCCL_JOIN", "1");
        if (in->spare) put_text(list, "PCCL_SPARE", "1");
    }
}

/* As launch.c has set them, also where -genvnone holds back the rest. */
static void put_log(struct env_list *list, const struct options *o)
{
    static const char *const names[] = {"PCCL_LOG_FILE", "PCCL_LOG_LEVEL",
                                        "PCCL_LOG_FORMAT"};
    if (!o->log_file && !o->log_json) return;
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        const char *value = getenv(names[i]);
        bool set = i == 2 ? o->log_json : o->log_file != NULL;
        if (set && value) put_text(list, names[i], value);
    }
}

static void put_policy(struct env_list *list, const struct rank_env *in)
{
    const struct options *o = in->options;
    if (o->elastic)
        put_text(list, "PCCL_ON_FAILURE",
                 o->force    ? "force"
                 : o->shrink ? "shrink"
                             : "return");
    else if (list_find(list, "PCCL_ON_FAILURE") == list->count)
        put_text(list, "PCCL_ON_FAILURE", "abort");
    if (o->elastic && list_find(list, "PCCL_DRAIN_SIGNAL") == list->count)
        put_text(list, "PCCL_DRAIN_SIGNAL", "URG");
    if (o->deadline) put_text(list, "PCCL_DEADLINE", o->deadline);
    put_log(list, o);
    /* otherwise gfortran buffers output to a pipe and loses it in a crash */
    if (list_find(list, "GFORTRAN_UNBUFFERED_PRECONNECTED") == list->count)
        put_text(list, "GFORTRAN_UNBUFFERED_PRECONNECTED", "y");
}

static void put_settings(struct env_list *list, const struct env_list *settings)
{
    for (size_t i = 0; i < settings->count; i++)
        env_put(list, memory_text(settings->items[i]));
}

void env_put_library_path(struct env_list *list, const char *path)
{
    if (!path) return;
    const char *old = rank_env_get(list->items, "LD_LIBRARY_PATH");
    bool empty = !old || *old == '\0';
    env_put(list, memory_print("LD_LIBRARY_PATH=%s%s%s", path, empty ? "" : ":",
                               empty ? "" : old));
}

char **rank_env_build(const struct rank_env *in)
{
    struct env_list list = {0};
    for (char *const *item = in->inherited; item && *item; item++)
        if (strchr(*item, '=') && !env_is_foreign(*item) && may_pass(in, *item))
            env_put(&list, memory_text(*item));
    for (size_t i = 0; i < ARRAY_COUNT(rank_names); i++)
        list_remove(&list, rank_names[i]);
    for (size_t i = 0; i < ARRAY_COUNT(size_names); i++)
        list_remove(&list, size_names[i]);
    list_remove(&list, "PCCL_JOIN");
    list_remove(&list, "PCCL_SPARE");
    put_text(&list, "PCCL_MASTER", in->master);
    if (key_variable()) env_put(&list, memory_text(key_variable()));
    env_put(&list, memory_print("PCCL_RESTART=%u", in->restart));
    if (in->ports) put_text(&list, "PCCL_PORTS", in->ports);
    if (in->announce) put_text(&list, "PCCL_ANNOUNCE", in->announce);
    put_place(&list, in);
    put_policy(&list, in);
    put_settings(&list, &in->options->settings);
    put_settings(&list, &in->app->settings);
    env_put_library_path(&list, in->library_path);
    return list.items;
}

void rank_env_free(char **env)
{
    for (char **item = env; item && *item; item++) free(*item);
    free(env);
}

const char *rank_env_get(char *const *env, const char *name)
{
    size_t length = strlen(name);
    for (; env && *env; env++) {
        if (strncmp(*env, name, length) == 0 && (*env)[length] == '=')
            return *env + length + 1;
    }
    return NULL;
}
