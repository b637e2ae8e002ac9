/* test_message_process.c - tests of messages between three real processes: one
 * repeatedly breaks its connections, one dies, one leaves early. With "late"
 * one dies at once, before any message. */
#include "../../../include/pccl.h"
#include "../../patience.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MESSAGES = 3000, CUT_EVERY = 400, BULK = 12000000, LAST = 100 };

#define CHECK(condition)                                                       \
    do {                                                                       \
        if (condition) break;                                                  \
        fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__,           \
                #condition);                                                   \
        _exit(1);                                                              \
    } while (0)

static pcclComm_t *comm;
static pcclMember_t members[3];
static uint64_t epoch;
static int rank;
static bool late;
static uint16_t master_port;

/* The next event of a kind other than room. */
static pcclEvent_t take(void)
{
    pcclEvent_t event;
    do {
        CHECK(pcclTakeEvent(comm, PATIENCE_MS, &event) == pcclSuccess);
        CHECK(event.kind != pcclEventNone); /* would hang */
    } while (event.kind == pcclEventRoom);
    return event;
}

/* Shuts down every connection to another member, like a bad network. */
static void cut(void)
{
    for (int fd = 3; fd < 256; fd++) {
        struct sockaddr_storage name;
        socklen_t size = sizeof name;
        if (getpeername(fd, (struct sockaddr *)&name, &size) != 0) continue;
        uint16_t port = 0;
        if (name.ss_family == AF_INET)
            port = ntohs(((struct sockaddr_in *)&name)->sin_port);
        if (name.ss_family == AF_INET6)
            port = ntohs(((struct sockaddr_in6 *)&name)->sin6_port);
        if (port != 0 && port != master_port) shutdown(fd, SHUT_RDWR);
    }
}

static void post(uint64_t to, int number)
{
    static char body[5000];
    pcclResult_t rc;
    pcclEvent_t event;
    size_t size = number % 10 == 0 ? sizeof body : (size_t)number % 100;
    memset(body, number, size);
    while ((rc = pcclPostMessage(comm, to, &number, sizeof number, body,
                                 size)) == pcclPendingAsyncOps)
        CHECK(pcclTakeEvent(comm, PATIENCE_MS, &event) == pcclSuccess &&
              event.kind == pcclEventRoom);
    CHECK(rc == pcclSuccess);
}

static void check_number(const pcclEvent_t *event, uint64_t from, int expected)
{
    int number = -1;
    CHECK(event->kind == pcclEventMessage && event->member == from);
    CHECK(event->header_size == sizeof number);
    memcpy(&number, event->header, sizeof number);
    CHECK(number == expected);
    for (size_t i = 0; i < event->body_size; i++)
        CHECK(((const char *)event->body)[i] == (char)number);
}

static pcclEvent_t several[7];
static size_t several_count;

/* Some of the numbers from `first` on, at once; returns the next one. */
static int take_numbers(uint64_t from, int first, int end)
{
    size_t room = sizeof several / sizeof *several;
    if (room > (size_t)(end - first)) room = (size_t)(end - first);
    CHECK(pcclTakeEvents(comm, PATIENCE_MS, several, room, &several_count) ==
          pcclSuccess);
    CHECK(several_count > 0 && several_count <= room);
    for (size_t i = 0; i < several_count; i++)
        if (several[i].kind != pcclEventRoom)
            check_number(&several[i], from, first++);
    return first;
}

/* Without room it takes none. */
static void release_several(void)
{
    CHECK(pcclTakeEvents(comm, 0, several, 0, &several_count) == pcclSuccess);
    CHECK(several_count == 0);
    CHECK(pcclTakeEvents(comm, 0, NULL, 1, &several_count) ==
          pcclInvalidArgument);
}

static void take_number(uint64_t from, int expected)
{
    pcclEvent_t event = take();
    check_number(&event, from, expected);
    CHECK(pcclReleaseEvent(comm, &event) == pcclSuccess);
}

static void exchange_bulk(uint64_t other, bool cutting)
{
    char *out = malloc(BULK), *in = calloc(1, BULK);
    CHECK(out && in);
    for (int i = 0; i < BULK; i++) out[i] = (char)(i / 1000 + i * rank);
    CHECK(pcclSendBulk(comm, other, 1, out, BULK) == pcclSuccess);
    CHECK(pcclExpectBulk(comm, other, 1, in, BULK) == pcclSuccess);
    for (int events = 0; events < 2;) {
        pcclEvent_t event;
        if (cutting) cut();
        CHECK(pcclTakeEvent(comm, cutting ? 3 : PATIENCE_MS, &event) ==
              pcclSuccess);
        CHECK(cutting || event.kind != pcclEventNone);
        cutting = false;
        if (event.kind == pcclEventNone) continue;
        CHECK(event.kind == pcclEventBulkSent ||
              event.kind == pcclEventBulkReceived);
        CHECK(event.result == pcclSuccess);
        events++;
    }
    for (int i = 0; i < BULK; i++)
        CHECK(in[i] == (char)(i / 1000 + i * (1 - rank)));
    free(out);
    free(in);
}

static void take_loss(uint64_t member)
{
    pcclEvent_t event = take();
    CHECK(event.kind == pcclEventMemberLost && event.member == member);
    CHECK(pcclPostMessage(comm, member, NULL, 0, NULL, 0) ==
          pcclRankConnectionLost);
}

/* In either order: they come from different members. */
static void take_loss_and_message(uint64_t member, uint64_t from)
{
    bool lost = false, told = false;
    while (!lost || !told) {
        pcclEvent_t event = take();
        if (event.kind == pcclEventMemberLost) {
            CHECK(!lost && event.member == member);
            lost = true;
        } else {
            CHECK(!told && event.kind == pcclEventMessage);
            CHECK(event.member == from);
            told = true;
        }
        CHECK(pcclReleaseEvent(comm, &event) == pcclSuccess);
    }
    CHECK(pcclPostMessage(comm, member, NULL, 0, NULL, 0) ==
          pcclRankConnectionLost);
}

static void be_first(void)
{
    char unused[10];
    for (int i = 0; i < MESSAGES; i++) post(members[1].id, i);
    exchange_bulk(members[1].id, false);
    CHECK(pcclExpectBulk(comm, members[2].id, 9, unused, sizeof unused) ==
          pcclSuccess);
    post(members[2].id, 0); /* tells it to die */
    for (int i = 0; i < LAST; i++) take_number(members[2].id, i);
    pcclEvent_t event = take();
    CHECK(event.kind == pcclEventBulkReceived && event.key == 9);
    CHECK(event.result == pcclRankConnectionLost);
    take_loss(members[2].id);
    post(members[1].id, 0);
    for (int i = 0; i < LAST; i++) take_number(members[1].id, i);
    take_loss(members[1].id);
    CHECK(pcclTakeEvent(comm, 0, &event) == pcclSuccess);
    CHECK(event.kind == pcclEventNone);
}

static void be_second(void)
{
    for (int i = 0, next; i < MESSAGES; i = next) {
        next = take_numbers(members[0].id, i, MESSAGES);
        if (i == 0 || next / CUT_EVERY > i / CUT_EVERY) cut();
    }
    release_several();
    exchange_bulk(members[0].id, true);
    take_loss_and_message(members[2].id, members[0].id);
    for (int i = 0; i < LAST; i++) post(members[0].id, i);
}

static void be_third(void)
{
    take_number(members[0].id, 0);
    for (int i = 0; i < LAST; i++) post(members[0].id, i);
    raise(SIGKILL);
}

/* A member is lost before this program first uses messages. */
static void meet_loss_late(void)
{
    pcclViewChange_t change;
    do CHECK(pcclGetViewChange(comm, &change) == pcclSuccess);
    while (change.epoch == epoch);
    int size = 0;
    CHECK(pcclGetView(comm, NULL, NULL, &size, NULL, 0) == pcclSuccess);
    CHECK(size == 3); /* the loss is not reported yet */
    if (rank == 0)    /* a refused call counts as use */
        CHECK(pcclPostMessage(comm, members[2].id, NULL, 0, NULL, 0) ==
              pcclRankConnectionLost);
    /* The other one's message tells that it has seen the loss too. It can come
     * before this one's report: they come from different members. */
    post(members[1 - rank].id, 0);
    take_loss_and_message(members[2].id, members[1 - rank].id);
}

static void member(int hint)
{
    pcclCommCreateParams_t params = {.p2p_connection_pool_size = 1};
    pcclCommOptions_t options = {.size = sizeof options, .rank_hint = hint};
    int size = 0;
    params.master_address.inet.ipv4 = (ccoip_ipv4_address_t){{127, 0, 0, 1}};
    params.master_address.port = master_port;
    alarm(PATIENCE_S);
    CHECK(pcclInit() == pcclSuccess);
    CHECK(pcclCreateCommunicator(&params, &comm) == pcclSuccess);
    CHECK(pcclSetOptions(comm, &options) == pcclSuccess);
    CHECK(pcclConnect(comm) == pcclSuccess);
    for (;;) {
        CHECK(pcclGetView(comm, &epoch, &rank, &size, members, 3) ==
              pcclSuccess);
        if (size == 3) break;
        CHECK(pcclUpdateTopology(comm) == pcclSuccess);
    }
    if (late && rank == 2) raise(SIGKILL);
    if (late) meet_loss_late();
    if (!late && rank == 0) be_first();
    if (!late && rank == 1) be_second();
    if (!late && rank == 2) be_third();
    CHECK(pcclDestroyCommunicator(comm) == pcclSuccess);
    _exit(0);
}

int main(int argc, char **argv)
{
    late = argc > 1 && strcmp(argv[1], "late") == 0;
    int ports[2], killed = 0, failed = 0;
    (void)setenv("PCCL_DEADLINE", "20", 1);
    CHECK(pipe(ports) == 0);
    for (int i = 0; i < 3; i++) {
        if (fork() != 0) continue;
        CHECK(read(ports[0], &master_port, sizeof master_port) ==
              sizeof master_port);
        member(i);
    }
    pcclMasterInstance_t *master;
    ccoip_socket_address_t address = {.inet.ipv4 = {{127, 0, 0, 1}}};
    CHECK(pcclCreateMaster(address, &master) == pcclSuccess);
    CHECK(pcclRunMaster(master) == pcclSuccess);
    CHECK(pcclGetMasterPort(master, &master_port) == pcclSuccess);
    for (int i = 0; i < 3; i++)
        CHECK(write(ports[1], &master_port, sizeof master_port) ==
              sizeof master_port);
    for (int i = 0; i < 3; i++) {
        int status;
        CHECK(wait(&status) > 0);
        killed += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
        failed += WIFEXITED(status) && WEXITSTATUS(status) != 0;
    }
    CHECK(pcclDestroyMaster(master) == pcclSuccess);
    CHECK(killed == 1 && failed == 0);
    return 0;
}
