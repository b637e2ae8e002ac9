/* attr.c - keyvals, and attribute lists of any kind of object. */
#include "attr_list.h"

#include <assert.h>
#include <stdlib.h>

typedef int copy_function(any_handle, int, void *, void *, void *, int *);
typedef int drop_function(any_handle, int, void *, void *);

int MPIR_Dup_fn(MPI_Comm comm, int keyval, void *extra, void *value, void *out,
                int *flag) __attribute__((visibility("default")));
int MPIR_Dup_fn(MPI_Comm comm, int keyval, void *extra, void *value, void *out,
                int *flag)
{
    (void)comm;
    (void)keyval;
    (void)extra;
    *flag = 1;
    *(void **)out = value;
    return MPI_SUCCESS;
}

static void keyval_destroy(struct object *object)
{
    if (object->handle) handle_close(object);
    free(object);
}

/* A keyval is an int in both interfaces. */
static int keyval_id(const struct keyval *keyval)
{
    return (int)HANDLE_BITS(keyval->object.handle);
}

struct keyval *keyval_find(int handle)
{
    return (struct keyval *)handle_find(HANDLE_KEYVAL, HANDLE_OF(handle));
}

int keyval_create(enum attr_owner owner, callback *copy, callback *drop,
                  int *keyval_out, void *extra)
{
    struct keyval *keyval = calloc(1, sizeof *keyval);
    if (!keyval) return note_no_memory();
    object_init(&keyval->object, keyval_destroy);
    keyval->owner = owner;
    keyval->copy = copy;
    keyval->drop = drop;
    keyval->extra = extra;
    if (!handle_open(HANDLE_KEYVAL, &keyval->object)) {
        free(keyval);
        return note_no_memory();
    }
    *keyval_out = keyval_id(keyval);
    return MPI_SUCCESS;
}

int keyval_free(enum attr_owner owner, int *handle)
{
    struct keyval *keyval = keyval_find(*handle);
    if (!keyval || keyval->owner != owner)
        return error_note(MPI_ERR_KEYVAL, "invalid keyval");
    /* Freed again, as delete callbacks may do: it stays until the last
     * attribute of it is gone. */
    facade_lock();
    bool first = !keyval->freed;
    keyval->freed = true;
    facade_unlock();
    if (first) object_release(&keyval->object);
    *handle = MPI_KEYVAL_INVALID;
    return MPI_SUCCESS;
}

static int call_copy(const struct attribute *from, any_handle handle,
                     void **out, int *flag)
{
    struct keyval *keyval = from->keyval;
    *flag = 0;
    if (!keyval->copy) return MPI_SUCCESS;
    if (keyval->copy == (callback *)MPI_COMM_DUP_FN) {
        *flag = 1;
        *out = from->value;
        return MPI_SUCCESS;
    }
    int id = keyval_id(keyval);
    if (keyval->copy_by)
        return keyval->copy_by(keyval->copy, handle, id, keyval->extra,
                               from->type, from->value, out, flag);
    copy_function *copy = (copy_function *)keyval->copy;
    return copy(handle, id, keyval->extra, from->value, out, flag);
}

static int call_drop(const struct attribute *at, any_handle handle)
{
    struct keyval *keyval = at->keyval;
    if (!keyval->drop) return MPI_SUCCESS;
    int id = keyval_id(keyval);
    if (keyval->drop_by)
        return keyval->drop_by(keyval->drop, handle, id, at->type, at->value,
                               keyval->extra);
    drop_function *drop = (drop_function *)keyval->drop;
    return drop(handle, id, at->value, keyval->extra);
}

static struct attribute *attribute_new(struct keyval *keyval, void *value,
                                       int type)
{
    struct attribute *at = calloc(1, sizeof *at);
    if (!at) return NULL;
    at->keyval = keyval;
    object_retain(&keyval->object);
    at->value = value;
    at->type = type;
    return at;
}

static void attribute_free(struct attribute *at)
{
    object_release(&at->keyval->object);
    free(at);
}

/* In the order of the list, like MPICH: the latest attribute first. */
int attr_copy_all(any_handle from_handle, struct attribute *from,
                  struct attribute **to, any_handle to_handle)
{
    struct attribute **end = to;
    int result = MPI_SUCCESS;
    for (; from && result == MPI_SUCCESS; from = from->next) {
        void *value = NULL;
        int flag;
        result = call_copy(from, from_handle, &value, &flag);
        if (result != MPI_SUCCESS || !flag) continue;
        struct attribute *at = attribute_new(from->keyval, value, from->type);
        if (!at) {
            result = MPI_ERR_NO_MEM;
            continue;
        }
        *end = at;
        end = &at->next;
    }
    if (result != MPI_SUCCESS) (void)attr_delete_all(to_handle, to);
    return result;
}

int attr_delete_all(any_handle handle, struct attribute **list)
{
    for (;;) {
        facade_lock();
        struct attribute *at = *list;
        if (at) *list = at->next;
        facade_unlock();
        if (!at) return MPI_SUCCESS;
        int result = call_drop(at, handle);
        if (result != MPI_SUCCESS) {
            facade_lock();
            at->next = *list;
            *list = at;
            facade_unlock();
            return result;
        }
        attribute_free(at);
    }
}

static struct attribute **find(struct attribute **list, struct keyval *keyval)
{
    while (*list && (*list)->keyval != keyval) list = &(*list)->next;
    return list;
}

/* Replaces or adds; the old value's delete callback runs first. */
int attr_set(any_handle handle, struct attribute **list, struct keyval *keyval,
             void *value, int type)
{
    struct attribute *fresh = attribute_new(keyval, value, type);
    if (!fresh) return MPI_ERR_NO_MEM;
    facade_lock();
    struct attribute *old = *find(list, keyval);
    facade_unlock();
    int result = old ? call_drop(old, handle) : MPI_SUCCESS;
    if (result != MPI_SUCCESS) {
        attribute_free(fresh);
        return result;
    }
    facade_lock();
    struct attribute **at = find(list, keyval);
    old = *at;
    fresh->next = old ? old->next : NULL;
    if (old)
        *at = fresh;
    else {
        fresh->next = *list;
        *list = fresh;
    }
    facade_unlock();
    if (old) attribute_free(old);
    return MPI_SUCCESS;
}

int attr_delete(any_handle handle, struct attribute **list,
                struct keyval *keyval)
{
    facade_lock();
    struct attribute *at = *find(list, keyval);
    facade_unlock();
    if (!at) return MPI_SUCCESS;
    int result = call_drop(at, handle);
    if (result != MPI_SUCCESS) return result;
    facade_lock();
    struct attribute **place = find(list, keyval);
    at = *place;
    if (at) *place = at->next;
    facade_unlock();
    if (at) attribute_free(at);
    return MPI_SUCCESS;
}

/* Reads into a copy, so that no lock is held afterwards. */
bool attr_get(struct attribute **list, struct keyval *keyval,
              struct attribute *out)
{
    facade_lock();
    struct attribute *at = *find(list, keyval);
    if (at) *out = *at;
    facade_unlock();
    return at != NULL;
}
