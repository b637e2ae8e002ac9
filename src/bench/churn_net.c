/* churn_net.c - network namespaces for pccl-bench churn, and the process that
 * moves packets between their TUN devices, or drops them.
 *
 * Nothing of it has a name: what is left is gone with the last process that is
 * in a namespace or holds its descriptor. */
#include "churn.h"

#include "namespace.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

bool churn_net_possible(char *error, size_t room)
{
    char why[NAMESPACE_ERROR_SIZE];
    bool ok = namespace_possible(why);
    if (!ok) snprintf(error, room, "%s", why);
    return ok;
}

/* Node of an address 10.99.0.1 + node, or CHURN_NODES. */
static unsigned node_of(const uint8_t *address)
{
    unsigned last = address[3];
    return last >= 1 && last <= CHURN_NODES ? last - 1 : CHURN_NODES;
}

static void move_packet(const struct churn_board *board, const int *tuns,
                        unsigned from)
{
    static uint8_t packet[1 << 17];
    ssize_t size;
    /* A few at a time, so that no node keeps the others waiting. */
    for (int i = 0; i < 32; i++) {
        size = read(tuns[from], packet, sizeof packet);
        if (size < VNET_SIZE + 20) return;
        const uint8_t *ip = packet + VNET_SIZE;
        if (ip[0] >> 4 != 4) continue;
        unsigned to = node_of(ip + 16);
        if (to == CHURN_NODES || to == from) continue;
        if (atomic_load(&board->blocked[from][to])) continue;
        ssize_t ignored = write(tuns[to], packet, (size_t)size);
        (void)ignored;
    }
}

static _Noreturn void forward(const struct churn_board *board, const int *tuns)
{
    struct pollfd fds[CHURN_NODES];
    for (int i = 0; i < CHURN_NODES; i++)
        fds[i] = (struct pollfd){.fd = tuns[i], .events = POLLIN};
    for (;;) {
        if (poll(fds, CHURN_NODES, -1) < 0) continue;
        for (unsigned i = 0; i < CHURN_NODES; i++)
            if (fds[i].revents) move_packet(board, tuns, i);
    }
}

bool churn_net_start(struct churn_net *net, struct churn_board *board,
                     char *error, size_t room)
{
    struct namespace ns[CHURN_NODES];
    int tuns[CHURN_NODES];
    char why[NAMESPACE_ERROR_SIZE];
    int made = 0;
    while (made < CHURN_NODES &&
           namespace_make(&ns[made], (uint32_t)made, 9000, "", true, why))
        made++;
    for (int i = 0; i < made; i++) {
        net->net_fd[i] = ns[i].net_fd;
        tuns[i] = ns[i].tun_fd;
    }
    bool ok = made == CHURN_NODES;
    if (!ok) snprintf(error, room, "%s", why);
    net->forwarder = ok ? churn_fork() : -1;
    if (net->forwarder == 0) forward(board, tuns);
    for (int i = 0; i < made; i++) {
        close(tuns[i]);
        if (!ok) close(net->net_fd[i]);
    }
    return ok && net->forwarder > 0;
}

bool churn_net_enter(const struct churn_net *net, int node)
{
    return namespace_enter(&(struct namespace){.net_fd = net->net_fd[node]});
}

void churn_net_stop(struct churn_net *net)
{
    (void)kill(net->forwarder, SIGKILL);
    for (int i = 0; i < CHURN_NODES; i++) close(net->net_fd[i]);
}
