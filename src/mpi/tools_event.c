/* tools_event.c - events (MPI_T_event_) and their source: changes of the
 * members, when a call of this process takes note of them.
 *
 * A callback runs in the thread of that call, with no lock of the library held,
 * so every level of safety is the lowest one. Registrations are never moved:
 * one is freed when no callback of it runs. */
#include "info.h"
#include "mpi_comm.h"
#include "tools.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#pragma GCC diagnostic ignored "-Wunused-parameter"

enum event_number { EVENT_VIEW, EVENT_LOST, EVENT_JOINED };
enum { REGISTRATION_MAGIC = 0x7077, SAFETIES = 4 };

/* Elements of every event, in this order and layout. */
struct event_data {
    unsigned long long epoch;
    int members; /* in the view */
    int rank;    /* as launched, of the member, or -1 */
};
enum { ELEMENTS_OF_VIEW = 2, ELEMENTS_OF_MEMBER = 3 };

static const struct {
    const char *name, *text;
    int elements;
} events[TOOLS_EVENTS] = {
    [EVENT_VIEW] = {"pccl_view",
                    "another view came into force: epoch, number of members",
                    ELEMENTS_OF_VIEW},
    [EVENT_LOST] = {"pccl_member_lost",
                    "a member was lost or left: epoch, number of members, its "
                    "rank as launched or -1",
                    ELEMENTS_OF_MEMBER},
    [EVENT_JOINED] = {"pccl_member_joined",
                      "a member joined: epoch, number of members, its rank as "
                      "launched or -1",
                      ELEMENTS_OF_MEMBER},
};

struct EVENT_INSTANCE {
    int number;
    MPI_Count at; /* ns */
    struct event_data data;
};

struct EVENT_REGISTRATION {
    int magic;
    int number;
    int running; /* callbacks */
    bool freed;
    struct {
        MPI_T_event_cb_function *function;
        void *user;
    } calls[SAFETIES];
    MPI_T_event_dropped_cb_function *dropped; /* kept; none is */
    MPI_T_event_free_cb_function *at_end;
    void *at_end_user;
    MPI_T_event_registration next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static MPI_T_event_registration registrations;

static MPI_Count now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (MPI_Count)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int safety_index(MPI_T_cb_safety safety)
{
    static const MPI_T_cb_safety all[SAFETIES] = {
        MPI_T_CB_REQUIRE_NONE, MPI_T_CB_REQUIRE_MPI_RESTRICTED,
        MPI_T_CB_REQUIRE_THREAD_SAFE, MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE};
    for (int i = 0; i < SAFETIES; i++)
        if (all[i] == safety) return i;
    return -1;
}

/* ----------------------------------------------------------------- queries */

/* The caller's room for elements, and their number. */
static void give_layout(int number, MPI_Datatype types[], MPI_Aint places[],
                        int *elements)
{
    const MPI_Datatype all_types[] = {MPI_UNSIGNED_LONG_LONG, MPI_INT, MPI_INT};
    static const MPI_Aint all_places[] = {offsetof(struct event_data, epoch),
                                          offsetof(struct event_data, members),
                                          offsetof(struct event_data, rank)};
    if (!elements) return;
    for (int i = 0; i < events[number].elements && i < *elements; i++) {
        if (types) types[i] = all_types[i];
        if (places) places[i] = all_places[i];
    }
    *elements = events[number].elements;
}

int mpi_T_event_get_info(int index, char *name, int *name_length,
                         int *verbosity, MPI_Datatype types[],
                         MPI_Aint displs[], int *elements,
                         MPI_T_enum *enumeration, MPI_Info *info, char *text,
                         int *text_length, int *bind)
{
    if (index < 0 || index >= TOOLS_EVENTS) return MPI_T_ERR_INVALID_INDEX;
    tools_give(events[index].name, name, name_length);
    tools_give(events[index].text, text, text_length);
    tools_give_number(MPI_T_VERBOSITY_USER_BASIC, verbosity);
    give_layout(index, types, displs, elements);
    if (enumeration) *enumeration = MPI_T_ENUM_NULL;
    if (info) *info = MPI_INFO_NULL;
    tools_give_number(MPI_T_BIND_NO_OBJECT, bind);
    return MPI_SUCCESS;
}

int mpi_T_event_get_index(const char *name, int *index)
{
    if (!name || !index) return MPI_T_ERR_INVALID;
    for (int i = 0; i < TOOLS_EVENTS; i++) {
        if (strcmp(events[i].name, name) != 0) continue;
        *index = i;
        return MPI_SUCCESS;
    }
    return MPI_T_ERR_INVALID_NAME;
}

int mpi_T_source_get_info(int index, char *name, int *name_length, char *text,
                          int *text_length, MPI_T_source_order *order,
                          MPI_Count *ticks_per_second, MPI_Count *max_ticks,
                          MPI_Info *info)
{
    if (index != 0) return MPI_T_ERR_INVALID_INDEX;
    tools_give("pccl", name, name_length);
    tools_give("the calls of this process; CLOCK_MONOTONIC", text, text_length);
    if (order) *order = MPI_T_SOURCE_ORDERED;
    if (ticks_per_second) *ticks_per_second = 1000000000;
    if (max_ticks) *max_ticks = INT64_MAX;
    if (info) *info = MPI_INFO_NULL;
    return MPI_SUCCESS;
}

int mpi_T_source_get_timestamp(int index, MPI_Count *time)
{
    if (index != 0) return MPI_T_ERR_INVALID_INDEX;
    if (!time) return MPI_T_ERR_INVALID;
    *time = now_ns();
    return MPI_SUCCESS;
}

/* ----------------------------------------------------------- registrations */

static int check(MPI_T_event_registration r)
{
    bool known = r && r->magic == REGISTRATION_MAGIC && !r->freed;
    return known ? MPI_SUCCESS : MPI_T_ERR_INVALID_HANDLE;
}

int mpi_T_event_handle_alloc(int index, void *object, MPI_Info info,
                             MPI_T_event_registration *handle)
{
    if (index < 0 || index >= TOOLS_EVENTS) return MPI_T_ERR_INVALID_INDEX;
    if (!handle) return MPI_T_ERR_INVALID;
    MPI_T_event_registration r = calloc(1, sizeof *r);
    if (!r) return MPI_T_ERR_OUT_OF_HANDLES;
    r->magic = REGISTRATION_MAGIC;
    r->number = index;
    pthread_mutex_lock(&lock);
    r->next = registrations;
    registrations = r;
    pthread_mutex_unlock(&lock);
    *handle = r;
    return MPI_SUCCESS;
}

/* Unlinks those that are freed and whose callbacks have ended, and returns
 * them as a list. Locked. */
static MPI_T_event_registration take_freed(void)
{
    MPI_T_event_registration list = NULL;
    MPI_T_event_registration *at = &registrations;
    while (*at) {
        MPI_T_event_registration r = *at;
        if (!r->freed || r->running > 0) {
            at = &r->next;
            continue;
        }
        *at = r->next;
        r->next = list;
        list = r;
    }
    return list;
}

/* Unlocked: tells their owners, who may call anything. */
static void end_freed(MPI_T_event_registration list)
{
    while (list) {
        MPI_T_event_registration r = list;
        list = r->next;
        if (r->at_end) r->at_end(r, MPI_T_CB_REQUIRE_NONE, r->at_end_user);
        r->magic = 0;
        free(r);
    }
}

int mpi_T_event_handle_free(MPI_T_event_registration handle, void *data,
                            MPI_T_event_free_cb_function function)
{
    int result = check(handle);
    if (result != MPI_SUCCESS) return result;
    pthread_mutex_lock(&lock);
    handle->freed = true;
    handle->at_end = function;
    handle->at_end_user = data;
    MPI_T_event_registration over = take_freed();
    pthread_mutex_unlock(&lock);
    end_freed(over);
    return MPI_SUCCESS;
}

int mpi_T_event_register_callback(MPI_T_event_registration handle,
                                  MPI_T_cb_safety safety, MPI_Info info,
                                  void *data, MPI_T_event_cb_function function)
{
    int result = check(handle);
    int index = safety_index(safety);
    if (result != MPI_SUCCESS) return result;
    if (index < 0) return MPI_T_ERR_INVALID;
    pthread_mutex_lock(&lock);
    handle->calls[index].function = function;
    handle->calls[index].user = data;
    pthread_mutex_unlock(&lock);
    return MPI_SUCCESS;
}

int mpi_T_event_set_dropped_handler(MPI_T_event_registration handle,
                                    MPI_T_event_dropped_cb_function function)
{
    int result = check(handle);
    if (result == MPI_SUCCESS) handle->dropped = function;
    return result;
}

/* There are no hints: an empty info. */
static int give_info(MPI_T_event_registration handle, MPI_Info *info)
{
    int result = check(handle);
    if (result != MPI_SUCCESS) return result;
    if (!info) return MPI_T_ERR_INVALID;
    return info_publish(info_copy(NULL), info) == MPI_SUCCESS
               ? MPI_SUCCESS
               : MPI_T_ERR_MEMORY;
}

int mpi_T_event_handle_get_info(MPI_T_event_registration handle, MPI_Info *info)
{
    return give_info(handle, info);
}

int mpi_T_event_handle_set_info(MPI_T_event_registration handle, MPI_Info info)
{
    return check(handle);
}

int mpi_T_event_callback_get_info(MPI_T_event_registration handle,
                                  MPI_T_cb_safety safety, MPI_Info *info)
{
    if (check(handle) == MPI_SUCCESS && safety_index(safety) < 0)
        return MPI_T_ERR_INVALID;
    return give_info(handle, info);
}

int mpi_T_event_callback_set_info(MPI_T_event_registration handle,
                                  MPI_T_cb_safety safety, MPI_Info info)
{
    int result = check(handle);
    if (result != MPI_SUCCESS) return result;
    return safety_index(safety) < 0 ? MPI_T_ERR_INVALID : MPI_SUCCESS;
}

/* --------------------------------------------------------------- instances */

int mpi_T_event_read(MPI_T_event_instance event, int element, void *buffer)
{
    if (!event) return MPI_T_ERR_INVALID_HANDLE;
    if (element < 0 || element >= events[event->number].elements)
        return MPI_T_ERR_INVALID_ITEM;
    if (!buffer) return MPI_T_ERR_INVALID;
    const struct event_data *d = &event->data;
    if (element == 0)
        memcpy(buffer, &d->epoch, sizeof d->epoch);
    else
        memcpy(buffer, element == 1 ? &d->members : &d->rank, sizeof(int));
    return MPI_SUCCESS;
}

int mpi_T_event_copy(MPI_T_event_instance event, void *buffer)
{
    if (!event) return MPI_T_ERR_INVALID_HANDLE;
    if (!buffer) return MPI_T_ERR_INVALID;
    bool member = events[event->number].elements == ELEMENTS_OF_MEMBER;
    memcpy(buffer, &event->data,
           member ? sizeof event->data : offsetof(struct event_data, rank));
    return MPI_SUCCESS;
}

int mpi_T_event_get_source(MPI_T_event_instance event, int *source)
{
    if (!event) return MPI_T_ERR_INVALID_HANDLE;
    tools_give_number(0, source);
    return MPI_SUCCESS;
}

int mpi_T_event_get_timestamp(MPI_T_event_instance event, MPI_Count *time)
{
    if (!event) return MPI_T_ERR_INVALID_HANDLE;
    if (!time) return MPI_T_ERR_INVALID;
    *time = event->at;
    return MPI_SUCCESS;
}

/* The callback with the least safety that the tool has given. Locked; unlocked
 * while it runs. */
static void call(MPI_T_event_registration r, MPI_T_event_instance event)
{
    static const MPI_T_cb_safety safeties[SAFETIES] = {
        MPI_T_CB_REQUIRE_NONE, MPI_T_CB_REQUIRE_MPI_RESTRICTED,
        MPI_T_CB_REQUIRE_THREAD_SAFE, MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE};
    for (int i = 0; i < SAFETIES; i++) {
        MPI_T_event_cb_function *function = r->calls[i].function;
        void *user = r->calls[i].user;
        if (!function) continue;
        r->running++;
        pthread_mutex_unlock(&lock);
        function(event, r, safeties[i], user);
        pthread_mutex_lock(&lock);
        r->running--;
        return;
    }
}

static void raise(int number, struct event_data data, MPI_Count at)
{
    struct EVENT_INSTANCE event = {.number = number, .at = at, .data = data};
    pthread_mutex_lock(&lock);
    /* One that runs stays in the list, and so does what comes after it. */
    for (MPI_T_event_registration r = registrations; r; r = r->next)
        if (r->number == number && !r->freed) call(r, &event);
    MPI_T_event_registration over = take_freed();
    pthread_mutex_unlock(&lock);
    end_freed(over);
}

/* One event for each member of `of` that is not in `other`. */
static void raise_each(int event, struct event_data data,
                       const struct group *of, const struct group *other,
                       MPI_Count at)
{
    for (int i = 0; i < of->size; i++) {
        data.rank = of->view->members[i].hint;
        if (group_rank_of(other, of->ids[i]) == MPI_UNDEFINED)
            raise(event, data, at);
    }
}

void tools_view(const struct group *before, const struct group *now)
{
    pthread_mutex_lock(&lock);
    bool listens = registrations != NULL;
    pthread_mutex_unlock(&lock);
    if (!listens || !tools_active()) return;
    MPI_Count at = now_ns();
    struct event_data data = {
        .epoch = now->view->epoch, .members = now->size, .rank = -1};
    raise(EVENT_VIEW, data, at);
    raise_each(EVENT_LOST, data, before, now, at);
    raise_each(EVENT_JOINED, data, now, before, at);
}
