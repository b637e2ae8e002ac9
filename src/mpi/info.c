/* info.c - MPI_Info: ordered key/value pairs. */
#include "info.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    struct entry *next;
    char *value;
    char key[];
};

struct info {
    struct object object;
    struct entry *first; /* in the order of insertion */
};

static struct info info_env = {
    .object = {.handle = MPI_INFO_ENV, .references = 1}};

static void info_destroy(struct object *object)
{
    struct info *info = (struct info *)object;
    for (struct entry *at = info->first; at;) {
        struct entry *next = at->next;
        free(at->value);
        free(at);
        at = next;
    }
    free(info);
}

static struct info *info_new(void)
{
    struct info *info = calloc(1, sizeof *info);
    if (info) object_init(&info->object, info_destroy);
    return info;
}

struct info *info_find(MPI_Info handle)
{
    if (handle == MPI_INFO_ENV) return &info_env;
    return (struct info *)handle_find(HANDLE_INFO, handle);
}

void info_release(struct info *info)
{
    if (info) object_release(&info->object);
}

static struct entry **find(struct info *info, const char *key)
{
    struct entry **at = &info->first;
    while (*at && strcmp((*at)->key, key) != 0) at = &(*at)->next;
    return at;
}

static const struct entry *value_of(const struct info *info, const char *key)
{
    const struct entry *at = info ? info->first : NULL;
    while (at && strcmp(at->key, key) != 0) at = at->next;
    return at;
}

static bool put(struct info *info, const char *key, const char *value)
{
    char *copy = strdup(value);
    if (!copy) return false;
    struct entry **at = find(info, key);
    if (!*at) {
        size_t size = strlen(key) + 1;
        struct entry *entry = calloc(1, sizeof *entry + size);
        if (!entry) {
            free(copy);
            return false;
        }
        memcpy(entry->key, key, size);
        *at = entry;
    }
    free((*at)->value);
    (*at)->value = copy;
    return true;
}

bool info_put(struct info *info, const char *key, const char *value)
{
    facade_lock();
    bool done = put(info, key, value);
    facade_unlock();
    return done;
}

int info_publish(struct info *info, MPI_Info *out)
{
    if (!info || !handle_open(HANDLE_INFO, &info->object)) {
        info_release(info);
        return note_no_memory();
    }
    *out = info->object.handle;
    return MPI_SUCCESS;
}

struct info *info_copy(const struct info *from)
{
    struct info *info = info_new();
    for (struct entry *at = from ? from->first : NULL; info && at;
         at = at->next) {
        if (put(info, at->key, at->value)) continue;
        info_release(info);
        return NULL;
    }
    return info;
}

struct info *info_hints(const struct info *given, const struct info *before)
{
    static const struct {
        const char *key;
        const char *value;
    } hints[] = {{"mpi_assert_no_any_tag", "false"},
                 {"mpi_assert_no_any_source", "false"},
                 {"mpi_assert_exact_length", "false"},
                 {"mpi_assert_allow_overtaking", "false"},
                 {"mpi_assert_strict_persistent_collective_ordering", "false"}};
    struct info *info = info_new();
    for (size_t i = 0; info && i < sizeof hints / sizeof *hints; i++) {
        const struct entry *at = value_of(given, hints[i].key);
        if (!at) at = value_of(before, hints[i].key);
        if (put(info, hints[i].key, at ? at->value : hints[i].value)) continue;
        info_release(info);
        return NULL;
    }
    return info;
}

int mpi_Info_create(MPI_Info *out)
{
    return info_publish(info_new(), out);
}

int mpi_Info_dup(struct info *info, MPI_Info *out)
{
    return info_publish(info_copy(info), out);
}

int mpi_Info_create_env(int argc, char *argv[], MPI_Info *out)
{
    struct info *info = info_new();
    if (info && argc > 0 && argv && argv[0] && !put(info, "command", argv[0])) {
        info_release(info);
        info = NULL;
    }
    return info_publish(info, out);
}

int mpi_Info_free(MPI_Info *handle)
{
    struct info *info = info_find(*handle);
    if (!info) return error_note(MPI_ERR_INFO, "invalid info");
    if (info == &info_env)
        return error_note(MPI_ERR_INFO, "MPI_INFO_ENV cannot be freed");
    handle_close(&info->object);
    info_release(info);
    *handle = MPI_INFO_NULL;
    return MPI_SUCCESS;
}

static int key_check(const char *key)
{
    size_t length = key ? strnlen(key, MPI_MAX_INFO_KEY + 1) : 0;
    if (length > 0 && length <= MPI_MAX_INFO_KEY) return MPI_SUCCESS;
    return error_note(MPI_ERR_INFO_KEY, "null, empty or too long key");
}

int mpi_Info_set(struct info *info, const char *key, const char *value)
{
    int result = key_check(key);
    if (result != MPI_SUCCESS) return result;
    if (!value || strnlen(value, MPI_MAX_INFO_VAL + 1) > MPI_MAX_INFO_VAL)
        return error_note(MPI_ERR_INFO_VALUE, "null or too long value");
    return info_put(info, key, value) ? MPI_SUCCESS : note_no_memory();
}

int mpi_Info_delete(struct info *info, const char *key)
{
    int result = key_check(key);
    if (result != MPI_SUCCESS) return result;
    facade_lock();
    struct entry **at = find(info, key), *entry = *at;
    if (entry) *at = entry->next;
    facade_unlock();
    if (!entry) return error_note(MPI_ERR_INFO_NOKEY, "no key %.100s", key);
    free(entry->value);
    free(entry);
    return MPI_SUCCESS;
}

/* Copies at most capacity-1 characters. Returns the value's length, or -1. */
static int value_copy(struct info *info, const char *key, char *value,
                      size_t capacity)
{
    int length = -1;
    facade_lock();
    struct entry *entry = *find(info, key);
    if (entry) {
        length = (int)strlen(entry->value);
        if (capacity > 0) snprintf(value, capacity, "%s", entry->value);
    }
    facade_unlock();
    return length;
}

int mpi_Info_get(struct info *info, const char *key, int length, char *value,
                 int *flag)
{
    int result = key_check(key);
    if (result != MPI_SUCCESS) return result;
    if (length < 0 || (length > 0 && !value))
        return note_argument("null pointer or negative length");
    /* MPI_Info_get's length does not count the final zero. */
    *flag = value_copy(info, key, value, value ? (size_t)length + 1 : 0) >= 0;
    return MPI_SUCCESS;
}

int mpi_Info_get_string(struct info *info, const char *key, int *length,
                        char *value, int *flag)
{
    int result = key_check(key);
    if (result != MPI_SUCCESS) return result;
    if (*length < 0 || (*length > 0 && !value))
        return note_argument("null pointer or negative length");
    int found = value_copy(info, key, value, (size_t)*length);
    *flag = found >= 0;
    if (found >= 0) *length = found + 1;
    return MPI_SUCCESS;
}

int mpi_Info_get_valuelen(struct info *info, const char *key, int *length,
                          int *flag)
{
    int result = key_check(key);
    if (result != MPI_SUCCESS) return result;
    int found = value_copy(info, key, NULL, 0);
    *flag = found >= 0;
    if (found >= 0) *length = found;
    return MPI_SUCCESS;
}

int mpi_Info_get_nkeys(struct info *info, int *count)
{
    *count = 0;
    facade_lock();
    for (struct entry *at = info->first; at; at = at->next) (*count)++;
    facade_unlock();
    return MPI_SUCCESS;
}

int mpi_Info_get_nthkey(struct info *info, int n, char *key)
{
    if (!key) return note_argument("null key");
    facade_lock();
    struct entry *at = n >= 0 ? info->first : NULL;
    for (int i = 0; at && i < n; i++) at = at->next;
    if (at) memcpy(key, at->key, strlen(at->key) + 1);
    facade_unlock();
    return at ? MPI_SUCCESS : note_argument("there is no such key");
}

/* No kind of hardware resource limits a process here. */
int mpi_Get_hw_resource_info(MPI_Info *out)
{
    return info_publish(info_new(), out);
}
