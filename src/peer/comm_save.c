/* comm_save.c - see comm_save.h. */
#include "comm_save.h"

#include "../base/clock.h"
#include "../base/log.h"
#include "../base/thread.h"
#include "../checkpoint/checkpoint.h"
#include "../elastic/state_list.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

enum { SHOWN = 60, HUGE_PAGE = 2 << 20 }; /* characters of a path */

/* The tensors of a call, in the words of src/checkpoint/. */
struct save_tensors {
    struct manifest m;
    struct checkpoint_data *data;
};

struct comm_save {
    pcclComm_t *comm;
    pthread_t thread;
    bool started; /* there is a thread */
    bool kept;    /* the call that began it ends it */
    bool over;    /* it has set what follows */
    bool good;
    struct checkpoint_error error;
    uint64_t size;
    /* Of the thread, until it is over. */
    struct file_layer files;
    bool open; /* there are files to end */
    struct save_tensors tensors;
    uint8_t *copy;
    size_t keep;
    char directory[SHOWN + 4]; /* for texts */
};

/* ------------------------------------------------------------- the tensors */

static bool device_get(const void *device, void *host, const void *bytes,
                       uint64_t size)
{
    const struct state_device *d = device;
    return d->read(d->user, host, bytes, size);
}

static bool device_put(const void *device, void *bytes, const void *host,
                       uint64_t size)
{
    const struct state_device *d = device;
    return d->write(d->user, bytes, host, size);
}

static void tensors_free(struct save_tensors *t)
{
    manifest_free(&t->m);
    free(t->data);
    *t = (struct save_tensors){0};
}

static int no_memory(pcclComm_t *c)
{
    comm_set_error(c, "out of memory for a checkpoint");
    return pcclInternalError;
}

static int wrong_entry(pcclComm_t *c, uint32_t i, const char *name,
                       const char *wrong)
{
    comm_set_error(c, "shared state entry %u (\"%.64s\"): %s", i, name, wrong);
    return pcclInvalidArgument;
}

/* Copies the names. */
static int name_tensors(pcclComm_t *c, struct save_tensors *t,
                        const struct state_tensor *from, uint32_t count)
{
    size_t size = 0;
    for (uint32_t i = 0; i < count; i++) size += strlen(from[i].name) + 16;
    char *at = t->m.names = malloc(size + 1);
    if (!at) return no_memory(c);
    for (uint32_t i = 0; i < count; i++) {
        const char *wrong = manifest_wrong_name(from[i].name);
        if (from[i].name[0] == '#') wrong = "its name begins with '#'";
        if (wrong) return wrong_entry(c, i, from[i].name, wrong);
        char room[16];
        const char *name = manifest_name(from[i].name, i, room);
        size_t length = strlen(name) + 1;
        memcpy(at, name, length);
        t->m.tensors[i].name = at;
        at += length;
    }
    return pcclSuccess;
}

static int describe(pcclComm_t *c, struct save_tensors *t,
                    const struct state_tensor *from, uint32_t count)
{
    t->m.tensors = calloc(count + (size_t)1, sizeof *t->m.tensors);
    t->data = calloc(count + (size_t)1, sizeof *t->data);
    if (!t->m.tensors || !t->data) return no_memory(c);
    t->m.count = count;
    t->m.group = c->params.peer_group;
    for (uint32_t i = 0; i < count; i++) {
        t->m.tensors[i] = (struct manifest_tensor){.count = from[i].count,
                                                   .dtype = from[i].dtype,
                                                   .free = from[i].free};
        t->data[i] = (struct checkpoint_data){.bytes = from[i].data,
                                              .device = from[i].device,
                                              .get = device_get,
                                              .put = device_put};
    }
    return name_tensors(c, t, from, count);
}

static int tensors_of(pcclComm_t *c, const pcclSharedState_t *state,
                      struct save_tensors *t)
{
    *t = (struct save_tensors){0};
    if (state->count > STATE_TENSORS_MAX) {
        comm_set_error(c, "shared state of %zu tensors; at most %u",
                       state->count, (unsigned)STATE_TENSORS_MAX);
        return pcclInvalidArgument;
    }
    struct state_tensor *from = malloc((state->count + 1) * sizeof *from);
    if (!from) return no_memory(c);
    int result = (int)comm_read_tensors(c, state, from);
    if (result == pcclSuccess)
        result = describe(c, t, from, (uint32_t)state->count);
    free(from);
    if (result != pcclSuccess) tensors_free(t);
    return result;
}

int comm_save_check(pcclComm_t *c, const pcclSharedState_t *state)
{
    struct save_tensors t;
    int result = tensors_of(c, state, &t);
    tensors_free(&t);
    return result;
}

/* ------------------------------------------------------------------- save */

static void set_error(struct checkpoint_error *error,
                      enum checkpoint_result result, const char *what,
                      const char *why)
{
    error->result = result;
    (void)snprintf(error->text, sizeof error->text, "%s: %s", what, why);
}

static int report(pcclComm_t *c, const struct checkpoint_error *error,
                  const char *directory)
{
    static const int results[] = {
        [CHECKPOINT_NONE] = pcclNoSharedStateAvailable,
        [CHECKPOINT_DIFFERS] = pcclInvalidArgument,
        [CHECKPOINT_FAILED] = pcclFileError,
        [CHECKPOINT_MEMORY] = pcclInternalError,
    };
    comm_set_error(c, "%s (directory %.*s)", error->text, SHOWN, directory);
    return results[error->result];
}

static void save_free(struct comm_save *s)
{
    if (s->open) s->files.end(s->files.user);
    tensors_free(&s->tensors);
    free(s->copy);
    free(s);
}

static void *write_thread(void *user)
{
    struct comm_save *s = user;
    uint64_t unique;
    if (getrandom(&unique, sizeof unique, 0) != sizeof unique)
        unique = (uint64_t)comm_now() ^ (uint64_t)getpid() << 40;
    bool good = checkpoint_write(&s->files, &s->tensors.m, s->tensors.data,
                                 s->keep, unique, &s->size, &s->error);
    if (!good)
        LOG(LOG_WARN, "checkpoint: %s (directory %s)", s->error.text,
            s->directory);
    /* With the lock held, because a child that is forked now frees its copy. */
    comm_lock(s->comm);
    uint8_t *copy = s->copy;
    s->copy = NULL;
    s->good = good;
    pthread_mutex_unlock(&s->comm->lock);
    free(copy);
    comm_lock(s->comm);
    s->over = true;
    pthread_cond_broadcast(&s->comm->changed);
    pthread_mutex_unlock(&s->comm->lock);
    return NULL;
}

/* As large as the tensors: huge pages spare it most of the page faults. */
static uint8_t *room_for_copy(uint64_t size)
{
    if (size < HUGE_PAGE) return malloc((size_t)size + 1);
    if (size > SIZE_MAX - 2 * (uint64_t)HUGE_PAGE) return NULL;
    size_t rounded = ((size_t)size / HUGE_PAGE + 1) * HUGE_PAGE;
    uint8_t *bytes = aligned_alloc(HUGE_PAGE, rounded);
    if (bytes) (void)madvise(bytes, rounded, MADV_HUGEPAGE);
    return bytes;
}

/* The tensors one behind the other in memory of the library. */
static bool copy_tensors(struct comm_save *s)
{
    const struct manifest *m = &s->tensors.m;
    uint64_t total = 0;
    for (uint32_t i = 0; i < m->count; i++) {
        uint64_t size = manifest_size(&m->tensors[i]);
        if (size > SIZE_MAX / 2 - total) total = SIZE_MAX;
        if (total < SIZE_MAX) total += size;
    }
    s->copy = room_for_copy(total);
    if (!s->copy) {
        set_error(&s->error, CHECKPOINT_MEMORY, "out of memory",
                  "for the copy of the tensors");
        return false;
    }
    uint8_t *at = s->copy;
    for (uint32_t i = 0; i < m->count; i++) {
        struct checkpoint_data *d = &s->tensors.data[i];
        uint64_t size = manifest_size(&m->tensors[i]);
        if (d->device && size > 0 && !d->get(d->device, at, d->bytes, size)) {
            set_error(&s->error, CHECKPOINT_FAILED, m->tensors[i].name,
                      "its device could not be read");
            return false;
        }
        if (!d->device && size > 0) memcpy(at, d->bytes, (size_t)size);
        *d = (struct checkpoint_data){.bytes = at};
        at += size;
    }
    return true;
}

/* What may take a while, unlocked. */
static bool prepare(struct comm_save *s, const struct comm_save_how *how)
{
    int error = file_layer_open(&s->files, how->directory);
    s->open = error == 0;
    if (error != 0) {
        set_error(&s->error, CHECKPOINT_FAILED,
                  "cannot save: the directory cannot be opened",
                  strerror(error));
        return false;
    }
    uint64_t clock = (uint64_t)clock_ns(CLOCK_REALTIME);
    struct manifest *m = &s->tensors.m;
    return checkpoint_time(&s->files, m->group, clock, &m->time_ns,
                           &s->error) &&
           (how->synchronous || copy_tensors(s));
}

static bool start_thread(struct comm_save *s)
{
    /* A file that grows too large is an error, and no signal where that is
     * blocked. */
    s->started = thread_start(&s->thread, "pccl-save", write_thread, s);
    if (!s->started)
        set_error(&s->error, CHECKPOINT_MEMORY, "cannot save",
                  "no thread could be started");
    return s->started;
}

/* Until no save is under way; 0, or why the waiting ended. */
static int wait_for_save(pcclComm_t *c, pccl_ns until)
{
    while (c->save && (!c->save->over || c->save->kept)) {
        int why = comm_interrupted(c, until);
        if (why != 0) return comm_stop_waiting(c, why, "the save goes on");
        comm_wait(c, until);
    }
    return 0;
}

/* The end of a save that is over. */
static int finish(pcclComm_t *c, pcclCheckpointInfo_t *info)
{
    struct comm_save *s = c->save;
    int result = pcclSuccess;
    c->save = NULL;
    pthread_cond_broadcast(&c->changed);
    /* The thread has done all but return. */
    (void)pthread_join(s->thread, NULL);
    if (s->good && info) {
        const struct manifest *m = &s->tensors.m;
        info->revision = m->revision;
        info->time_ns = info->cut_ns = (int64_t)m->time_ns;
        info->world_size = m->world;
        info->bytes = s->size;
    }
    if (!s->good) result = report(c, &s->error, s->directory);
    save_free(s);
    return result;
}

int comm_save_await(pcclComm_t *c, pccl_ns until, pcclCheckpointInfo_t *info)
{
    int why = wait_for_save(c, until);
    if (why != 0) return why;
    return c->save ? finish(c, info) : pcclSuccess;
}

void comm_save_end(pcclComm_t *c)
{
    while (c->save && !c->save->over) pthread_cond_wait(&c->changed, &c->lock);
    if (c->save) (void)finish(c, NULL);
}

void comm_save_abandon(pcclComm_t *c)
{
    if (c->save) free(c->save->copy);
}

static struct comm_save *make_save(pcclComm_t *c,
                                   const pcclSharedState_t *state,
                                   const struct comm_save_how *how, int *result)
{
    struct comm_save *s = calloc(1, sizeof *s);
    *result = s ? tensors_of(c, state, &s->tensors) : no_memory(c);
    if (*result != pcclSuccess) {
        free(s);
        return NULL;
    }
    s->comm = c;
    s->keep = how->keep;
    s->kept = how->synchronous;
    s->tensors.m.revision = state->revision;
    s->tensors.m.world = how->world;
    (void)snprintf(s->directory, sizeof s->directory, "%.*s", SHOWN,
                   how->directory);
    return s;
}

int comm_save_begin(pcclComm_t *c, const pcclSharedState_t *state,
                    const struct comm_save_how *how)
{
    pccl_ns until = comm_limit(c);
    int result = pcclSuccess;
    while (c->save && result == pcclSuccess)
        result = comm_save_await(c, until, NULL);
    if (result != pcclSuccess) return result;
    struct comm_save *s = make_save(c, state, how, &result);
    if (!s) return result;
    c->save = s;
    pthread_mutex_unlock(&c->lock);
    bool good = prepare(s, how);
    comm_lock(c);
    if (!good || !start_thread(s)) {
        c->save = NULL;
        pthread_cond_broadcast(&c->changed);
        LOG(LOG_WARN, "checkpoint: %s (directory %s)", s->error.text,
            s->directory);
        result = report(c, &s->error, s->directory);
        save_free(s);
        return result;
    }
    if (!how->synchronous) return pcclSuccess;
    while (!s->over) pthread_cond_wait(&c->changed, &c->lock);
    return finish(c, NULL);
}

/* ------------------------------------------------------------------- load */

static bool load(struct save_tensors *t, const char *directory,
                 const pcclLoadOptions_t *options, pcclCheckpointInfo_t *info,
                 struct checkpoint_error *error)
{
    struct file_layer files;
    int failed = file_layer_open(&files, directory);
    if (failed != 0) {
        set_error(error, CHECKPOINT_FAILED,
                  "cannot load: the directory cannot be opened",
                  strerror(failed));
        return false;
    }
    static const enum checkpoint_choice choices[] = {
        [pcclLoadCut] = CHECKPOINT_CUT,
        [pcclLoadNewest] = CHECKPOINT_NEWEST,
        [pcclLoadNearest] = CHECKPOINT_NEAREST,
        [pcclLoadRevision] = CHECKPOINT_REVISION,
    };
    uint64_t value = options->choice == pcclLoadRevision
                         ? options->revision
                         : (uint64_t)options->time_ns;
    uint64_t cut = 0;
    bool good =
        checkpoint_read(&files, &t->m, t->data, choices[options->choice], value,
                        &info->bytes, &cut, error);
    files.end(files.user);
    info->cut_ns = (int64_t)cut;
    return good;
}

int comm_load(pcclComm_t *c, pcclSharedState_t *state, const char *directory,
              const pcclLoadOptions_t *options, pcclCheckpointInfo_t *info)
{
    struct save_tensors t;
    struct checkpoint_error error;
    int result = tensors_of(c, state, &t);
    if (result != pcclSuccess) return result;
    pthread_mutex_unlock(&c->lock);
    bool good = load(&t, directory, options, info, &error);
    comm_lock(c);
    if (good) {
        state->revision = info->revision = t.m.revision;
        info->time_ns = (int64_t)t.m.time_ns;
        info->world_size = t.m.world;
    } else
        result = report(c, &error, directory);
    tensors_free(&t);
    return result;
}
