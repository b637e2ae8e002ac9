/* bench_message.c - ping-pong of two processes: messages and rendezvous
 * transfers of the library, compared to a bare TCP connection.
 *
 *   bench_message [bytes [rounds]]      half of a round trip, microseconds */
#include "../../include/pccl.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static size_t bytes = 8;
static int rounds = 20000;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void report(const char *what, double started)
{
    double half = (now() - started) / rounds / 2;
    printf("%-8s %9zu bytes  %9.2f us  %9.1f MB/s\n", what, bytes, half,
           (double)bytes / half);
    fflush(stdout);
}

/* ----------------------------------------------------------------- bare TCP */

static void move(int fd, char *buf, int way)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t n = way ? send(fd, buf + done, bytes - done, 0)
                        : recv(fd, buf + done, bytes - done, 0);
        if (n <= 0) exit(1);
        done += (size_t)n;
    }
}

static void bare(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof a;
    int one = 1;
    int l = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(l, (struct sockaddr *)&a, size) || listen(l, 1) ||
        getsockname(l, (struct sockaddr *)&a, &size))
        exit(1);
    char *buf = calloc(1, bytes + 1);
    pid_t child = fork();
    int fd;
    if (child == 0) {
        fd = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(fd, (struct sockaddr *)&a, size)) _exit(1);
    } else {
        fd = accept(l, NULL, NULL);
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    double started = 0;
    for (int i = -rounds / 10; i < rounds; i++) {
        if (i == 0) started = now();
        if (child) move(fd, buf, 1);
        move(fd, buf, 0);
        if (!child) move(fd, buf, 1);
    }
    if (!child) _exit(0);
    report("tcp", started);
    close(fd);
    close(l);
    free(buf);
    waitpid(child, NULL, 0);
}

/* ------------------------------------------------------------- the library */

static void take_kind(pcclComm_t *comm, pcclEventKind_t kind)
{
    pcclEvent_t event;
    for (;;) {
        if (pcclTakeEvent(comm, -1, &event) != pcclSuccess) exit(1);
        pcclEventKind_t got = event.kind;
        (void)pcclReleaseEvent(comm, &event);
        if (got == kind) return;
    }
}

static void exchange(pcclComm_t *comm, uint64_t other, char *buf, bool send,
                     bool bulk)
{
    pcclResult_t rc;
    if (bulk)
        rc = send ? pcclSendBulk(comm, other, 1, buf, bytes)
                  : pcclExpectBulk(comm, other, 1, buf, bytes);
    else
        rc = send ? pcclPostMessage(comm, other, NULL, 0, buf, bytes)
                  : pcclSuccess;
    if (rc != pcclSuccess) exit(1);
    if (bulk)
        take_kind(comm, send ? pcclEventBulkSent : pcclEventBulkReceived);
    else if (!send)
        take_kind(comm, pcclEventMessage);
}

static int member(uint16_t port, bool bulk)
{
    pcclCommCreateParams_t params = {.p2p_connection_pool_size = 1};
    params.master_address.inet.ipv4 = (ccoip_ipv4_address_t){{127, 0, 0, 1}};
    params.master_address.port = port;
    pcclComm_t *comm;
    int size = 0, rank = 0;
    pcclMember_t members[2];
    if (pcclInit() || pcclCreateCommunicator(&params, &comm) ||
        pcclConnect(comm))
        return 1;
    while (size < 2) {
        if (pcclGetView(comm, NULL, &rank, &size, members, 2)) return 1;
        if (size < 2 && pcclUpdateTopology(comm)) return 1;
    }
    uint64_t other = members[1 - rank].id;
    char *buf = calloc(1, bytes + 1);
    double started = 0;
    for (int i = -rounds / 10; i < rounds; i++) {
        if (i == 0) started = now();
        exchange(comm, other, buf, rank == 0, bulk);
        exchange(comm, other, buf, rank != 0, bulk);
    }
    if (rank == 0) report(bulk ? "bulk" : "message", started);
    free(buf);
    return pcclDestroyCommunicator(comm) != pcclSuccess;
}

int main(int argc, char **argv)
{
    if (argc > 1) bytes = strtoull(argv[1], NULL, 10);
    if (argc > 2) rounds = atoi(argv[2]);
    bare();
    for (int bulk = 0; bulk < 2; bulk++) {
        if (!bulk && bytes > PCCL_MESSAGE_MAX) continue;
        int port_pipe[2];
        uint16_t port = 0;
        if (pipe(port_pipe)) return 1;
        pid_t children[2];
        for (int i = 0; i < 2; i++) {
            children[i] = fork();
            if (children[i] != 0) continue;
            if (read(port_pipe[0], &port, sizeof port) != sizeof port) _exit(1);
            _exit(member(port, bulk));
        }
        pcclMasterInstance_t *master;
        ccoip_socket_address_t address = {.inet.ipv4 = {{127, 0, 0, 1}}};
        if (pcclCreateMaster(address, &master) || pcclRunMaster(master) ||
            pcclGetMasterPort(master, &port))
            return 1;
        for (int i = 0; i < 2; i++)
            if (write(port_pipe[1], &port, sizeof port) < 0) return 1;
        for (int i = 0; i < 2; i++) {
            int status;
            waitpid(children[i], &status, 0);
            if (status != 0) printf("member failed\n");
        }
        pcclDestroyMaster(master);
    }
    return 0;
}
