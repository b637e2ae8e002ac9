/* route.c - replaces a route through netlink. */
#include "route.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct route_request {
    struct nlmsghdr head;
    struct rtmsg route;
    char attributes[128];
};

static struct rtattr *add(struct route_request *q, unsigned short type,
                          const void *value, size_t size)
{
    struct rtattr a = {.rta_type = type,
                       .rta_len = (unsigned short)RTA_LENGTH(size)};
    char *at = (char *)q + NLMSG_ALIGN(q->head.nlmsg_len);
    memcpy(at, &a, sizeof a);
    if (size > 0) memcpy(at + RTA_LENGTH(0), value, size);
    q->head.nlmsg_len =
        NLMSG_ALIGN(q->head.nlmsg_len) + (uint32_t)RTA_SPACE(size);
    return (struct rtattr *)(void *)at;
}

static bool ask(const struct route_request *q)
{
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (fd < 0) return false;
    struct {
        struct nlmsghdr head;
        struct nlmsgerr answer;
        char more[512];
    } reply;
    bool ok = send(fd, q, q->head.nlmsg_len, 0) == (ssize_t)q->head.nlmsg_len;
    ssize_t n = ok ? recv(fd, &reply, sizeof reply, 0) : -1;
    int error = errno;
    close(fd);
    if (n >= 0) error = EPROTO;
    if (n >= (ssize_t)NLMSG_LENGTH(sizeof reply.answer) &&
        reply.head.nlmsg_type == NLMSG_ERROR)
        error = -reply.answer.error;
    errno = error;
    return error == 0;
}

bool route_set_congestion(unsigned device, uint32_t network, uint32_t source,
                          const char *congestion)
{
    struct route_request q = {
        .head = {.nlmsg_len = NLMSG_LENGTH(sizeof q.route),
                 .nlmsg_type = RTM_NEWROUTE,
                 .nlmsg_flags =
                     NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE},
        .route = {.rtm_family = AF_INET,
                  .rtm_dst_len = 24,
                  .rtm_table = RT_TABLE_MAIN,
                  .rtm_protocol = RTPROT_KERNEL,
                  .rtm_scope = RT_SCOPE_LINK,
                  .rtm_type = RTN_UNICAST}};
    network = htonl(network);
    source = htonl(source);
    (void)add(&q, RTA_DST, &network, sizeof network);
    (void)add(&q, RTA_PREFSRC, &source, sizeof source);
    (void)add(&q, RTA_OIF, &device, sizeof device);
    struct rtattr *metrics = add(&q, RTA_METRICS, NULL, 0);
    struct rtattr *name =
        add(&q, RTAX_CC_ALGO, congestion, strlen(congestion) + 1);
    size_t nested = (size_t)((char *)name - (char *)metrics) +
                    RTA_SPACE(strlen(congestion) + 1);
    metrics->rta_len = (unsigned short)nested;
    return ask(&q);
}
