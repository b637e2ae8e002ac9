/* smoke.c - a coordinator and two members in one process, for an emulator. */
#include <pccl.h>

#include <pthread.h>
#include <stdio.h>

enum { COUNT = 300000 };
static uint16_t port;
static pcclComm_t *comms[2];

static pcclComm_t *member(void)
{
    pcclCommCreateParams_t params = {
        .master_address = {
            .inet = {.protocol = inetIPv4, .ipv4.data = {127, 0, 0, 1}},
            .port = port}};
    pcclComm_t *comm = NULL;
    if (pcclCreateCommunicator(&params, &comm) != pcclSuccess ||
        pcclConnect(comm) != pcclSuccess)
        return NULL;
    return comm;
}

static void *join(void *unused)
{
    (void)unused;
    comms[1] = member();
    return NULL;
}

/* Returns NULL where the sum is wrong. */
static void *reduce(void *comm)
{
    static float vectors[2][COUNT];
    float *v = vectors[comm == comms[1]];
    for (int i = 0; i < COUNT; i++) v[i] = (float)(i % 100);
    pcclReduceDescriptor_t d = {
        .count = COUNT, .op = pcclSum, .src_descriptor.datatype = pcclFloat};
    if (pcclAllReduce(v, v, &d, comm, NULL) != pcclSuccess) return NULL;
    for (int i = 0; i < COUNT; i++)
        if (v[i] != (float)(2 * (i % 100))) return NULL;
    return comm;
}

int main(void)
{
    ccoip_socket_address_t any = {
        .inet = {.protocol = inetIPv4, .ipv4.data = {127, 0, 0, 1}}};
    pcclMasterInstance_t *master = NULL;
    pthread_t other;
    void *good;
    int size = 0;
    if (pcclInit() != pcclSuccess ||
        pcclCreateMaster(any, &master) != pcclSuccess ||
        pcclRunMaster(master) != pcclSuccess ||
        pcclGetMasterPort(master, &port) != pcclSuccess ||
        !(comms[0] = member()) || pthread_create(&other, NULL, join, NULL))
        return 1;
    while (size != 2) {
        if (pcclUpdateTopology(comms[0]) != pcclSuccess ||
            pcclGetAttribute(comms[0], PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE,
                             &size) != pcclSuccess)
            return 2;
    }
    if (pthread_join(other, NULL) || !comms[1] ||
        pthread_create(&other, NULL, reduce, comms[1]))
        return 3;
    if (!reduce(comms[0]) || pthread_join(other, &good) || !good) return 4;
    puts("two members have reduced 1.2 MB");
    return 0;
}
