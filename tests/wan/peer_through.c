/* peer_through.c - the mode "through": collectives, a newcomer and a
 * synchronization, while the network is as it is in life. */
#include "peer.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ROUNDS = 3, STATE = 300000 };

/* Ends the test with that text if it is not well. */
static void must(const struct peer *p, bool well, const char *what)
{
    if (!well) peer_fail(p, "%s", what);
}

/* No operation, and nobody is lost, for that time. */
static void idle(const struct peer *p)
{
    pcclEvent_t event = {.kind = pcclEventNone};
    if (p->idle <= 0) return;
    must(p,
         pcclTakeEvent(p->comm, (int)(p->idle * 1000), &event) == pcclSuccess,
         "out of the run while idle");
    must(p, event.kind == pcclEventNone, "somebody is lost while idle");
}

/* The device gets the second address of its node, and loses the first: so does
 * a DHCP server that does not renew, or a VPN that comes up. */
static void move(const struct peer *p)
{
    struct ifreq r = {.ifr_name = "wan"};
    struct sockaddr_in in;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool ok = fd >= 0 && ioctl(fd, SIOCGIFADDR, &r) == 0;
    memcpy(&in, &r.ifr_addr, sizeof in);
    in.sin_addr.s_addr = htonl(ntohl(in.sin_addr.s_addr) + WAN_PEERS_MAX + 1);
    memcpy(&r.ifr_addr, &in, sizeof in);
    ok = ok && ioctl(fd, SIOCSIFADDR, &r) == 0;
    in.sin_addr.s_addr = htonl(0xffffff00u);
    memcpy(&r.ifr_netmask, &in, sizeof in);
    ok = ok && ioctl(fd, SIOCSIFNETMASK, &r) == 0;
    if (fd >= 0) close(fd);
    must(p, ok, "the address does not change");
}

/* A member that is evicted is told why, and comes back. True: it was. */
static bool came_back(struct peer *p, pcclResult_t rc)
{
    char why[512] = "";
    if (rc != pcclMasterConnectionFailed && rc != pcclUpdateTopologyFailed)
        return false;
    (void)pcclGetLastError(p->comm, why, sizeof why);
    printf("{\"through\":\"evicted\",\"peer\":%d,\"why\":\"%s\"}\n", p->number,
           why);
    fflush(stdout);
    must(p, peer_loses(p, p->number), "evicted, though others reach it");
    must(p, why[0] != '\0', "evicted without a reason");
    if (p->after) peer_control(p, "%s", p->after);
    (void)setenv("PCCL_JOIN", "1", 1);
    peer_connect(p);
    return true;
}

/* One all-reduce of all who are there. False: this member has been out, and the
 * others do not wait for its rounds any more. */
static bool reduce(struct peer *p)
{
    pcclAsyncReduceOp_t handles[LOAD_CONCURRENT_MAX];
    pcclResult_t rc;
    peer_fill(p);
    do {
        rc = peer_launch(p, handles);
        if (rc == pcclSuccess) rc = peer_await(p, handles);
        if (came_back(p, rc)) return false;
    } while (rc == pcclRankConnectionLost);
    if (rc != pcclSuccess)
        peer_fail(p, "all-reduce: %s", pcclGetErrorString(rc));
    peer_verify(p);
    return true;
}

static bool rounds(struct peer *p)
{
    for (int i = 0; i < ROUNDS; i++)
        for (int k = 0; k < p->load_count; k++) {
            peer_take(p, &p->loads[k]);
            if (!reduce(p)) return false;
        }
    return true;
}

/* All are members: also the last peer, and those who have come back. */
static void gather(struct peer *p)
{
    while (peer_world(p) < p->peers) {
        pcclResult_t rc = pcclUpdateTopology(p->comm);
        if (came_back(p, rc)) continue;
        if (rc != pcclSuccess)
            peer_fail(p, "update: %s", pcclGetErrorString(rc));
    }
}

static uint8_t state_byte(size_t i)
{
    return (uint8_t)(i * 7 + i / 1000);
}

/* The last peer lacks the state, and gets it. */
static void synchronize(struct peer *p)
{
    uint8_t *bytes = malloc(STATE);
    must(p, bytes != NULL, "out of memory");
    for (size_t i = 0; i < STATE; i++)
        bytes[i] = p->number == p->peers ? 0 : state_byte(i);
    pcclTensorInfo_t tensor = {
        .name = "state", .data = bytes, .count = STATE, .datatype = pcclUint8};
    pcclSharedState_t state = {1, 1, &tensor};
    pcclResult_t rc = pcclSynchronizeSharedState(
        p->comm, &state, PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR, NULL);
    if (rc != pcclSuccess)
        peer_fail(p, "synchronization: %s", pcclGetErrorString(rc));
    for (size_t i = 0; i < STATE; i++)
        must(p, bytes[i] == state_byte(i), "a byte of the state is wrong");
    free(bytes);
}

int peer_through(struct peer *p)
{
    double begin = peer_now();
    /* It comes to a run that there is, so the world keeps it out at first. */
    if (p->number == 1) peer_control(p, "path %d <-> master open", p->peers);
    bool stays = p->number == p->peers || rounds(p);
    if (stays && p->number == 1 && p->say) peer_control(p, "%s", p->say);
    if (stays && p->moves && peer_loses(p, p->number)) move(p);
    if (stays && p->number < p->peers) {
        idle(p);
        (void)rounds(p);
    }
    gather(p);
    synchronize(p);
    must(p, rounds(p), "evicted late");
    must(p, peer_world(p) == p->peers, "somebody is missing");
    if (p->number == 1) peer_control(p, "mark through");
    printf("{\"through\":%.3f,\"peer\":%d,\"peers\":%d}\n", peer_now() - begin,
           p->number, peer_world(p));
    fflush(stdout);
    return 0;
}
