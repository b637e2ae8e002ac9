/* test_unload.c LIBRARY - a program that loads the library as a plug-in, uses
 * it from several threads, closes it, and goes on; again and again. */
#include "../../../include/pccl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMES = 4, BYTES = 32 << 20 /* enough to be hashed by all threads */ };

#define CHECK(condition)                                                       \
    do {                                                                       \
        if (!(condition)) {                                                    \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__,       \
                    #condition);                                               \
            exit(EXIT_FAILURE);                                                \
        }                                                                      \
    } while (0)

/* A function of the library of the same type. */
#define GET(name)                                                              \
    __typeof__(&name) name##_;                                                 \
    get(#name, &name##_, sizeof name##_)

static void *library;
static pcclComm_t *comm;

static void get(const char *name, void *to, size_t size)
{
    void *symbol = dlsym(library, name);
    CHECK(symbol != NULL && size == sizeof symbol);
    memcpy(to, &symbol, size);
}

static void *other_thread(void *unused)
{
    (void)unused;
    char text[64];
    bool pending;
    GET(pcclGetLastError);
    GET(pcclArePeersPending);
    CHECK(pcclArePeersPending_(comm, &pending) == pcclSuccess);
    CHECK(pcclGetLastError_(comm, text, sizeof text) == pcclSuccess);
    return NULL;
}

static void use(float *data)
{
    GET(pcclInit);
    GET(pcclCreateMaster);
    GET(pcclRunMaster);
    GET(pcclGetMasterPort);
    GET(pcclDestroyMaster);
    GET(pcclCreateCommunicator);
    GET(pcclConnect);
    GET(pcclSynchronizeSharedState);
    GET(pcclDestroyCommunicator);
    pcclMasterInstance_t *master;
    pcclCommCreateParams_t params = {
        .master_address.inet = {.protocol = inetIPv4,
                                .ipv4 = {{127, 0, 0, 1}}}};
    CHECK(pcclInit_() == pcclSuccess);
    CHECK(pcclCreateMaster_(params.master_address, &master) == pcclSuccess);
    CHECK(pcclRunMaster_(master) == pcclSuccess);
    CHECK(pcclGetMasterPort_(master, &params.master_address.port) ==
          pcclSuccess);
    CHECK(pcclCreateCommunicator_(&params, &comm) == pcclSuccess);
    CHECK(pcclConnect_(comm) == pcclSuccess);
    pcclTensorInfo_t tensor = {.name = "x",
                               .data = data,
                               .count = BYTES / sizeof *data,
                               .datatype = pcclFloat};
    pcclSharedState_t state = {.count = 1, .infos = &tensor};
    CHECK(pcclSynchronizeSharedState_(
              comm, &state, PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR,
              NULL) == pcclSuccess);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, other_thread, NULL) == 0);
    pthread_join(thread, NULL);
    CHECK(pcclDestroyCommunicator_(comm) == pcclSuccess);
    CHECK(pcclDestroyMaster_(master) == pcclSuccess);
}

int main(int argc, char **argv)
{
    float *data = calloc(BYTES, 1);
    CHECK(argc == 2 && data != NULL);
    for (int i = 0; i < TIMES; i++) {
        library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        CHECK(library != NULL);
        use(data);
        CHECK(dlclose(library) == 0);
        /* Threads of the library that still ran would crash here. */
        for (int turn = 0; turn < 1000; turn++) sched_yield();
    }
    free(data);
    return EXIT_SUCCESS;
}
