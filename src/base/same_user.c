/* same_user.c - see same_user.h. */
#include "same_user.h"

#include "io_addr.h"
#include "small_file.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LISTENS = 10 /* TCP_LISTEN */, TEXT_SIZE = 48 /* of an end */ };

/* A socket as others see it: its own end and the far one. */
struct ends {
    struct wire_addr near, far;
};

struct owner {
    uint32_t uid;
    uint64_t inode; /* 0: of no process, as it is not accepted, or closed */
    bool listens;
};

/* ------------------------------------------------------------ the addresses */

/* The socket at the other end of fd. */
static bool other_end(int fd, struct ends *e)
{
    struct io_addr here = io_addr_local(fd), there = io_addr_peer(fd);
    *e = (struct ends){io_addr_to_wire(&there), io_addr_to_wire(&here)};
    return e->near.family != 0 && e->near.family == e->far.family;
}

/* It cannot be anywhere else. */
static bool is_local(const struct ends *e)
{
    return memcmp(e->near.ip, e->far.ip, sizeof e->near.ip) == 0 ||
           io_addr_is_loopback(&e->near);
}

/* --------------------------------------------------------------- sock_diag */

struct question {
    struct nlmsghdr head;
    struct inet_diag_req_v2 body;
};

static struct question question_about(const struct ends *e)
{
    struct question q = {
        .head = {.nlmsg_len = sizeof q,
                 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                 .nlmsg_flags = NLM_F_REQUEST},
        .body = {.sdiag_family = e->near.family == 4 ? AF_INET : AF_INET6,
                 .sdiag_protocol = IPPROTO_TCP,
                 .idiag_states = UINT32_MAX}};
    q.body.id.idiag_sport = htons(e->near.port);
    q.body.id.idiag_dport = htons(e->far.port);
    memcpy(q.body.id.idiag_src, e->near.ip, sizeof e->near.ip);
    memcpy(q.body.id.idiag_dst, e->far.ip, sizeof e->far.ip);
    q.body.id.idiag_cookie[0] = INET_DIAG_NOCOOKIE;
    q.body.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
    return q;
}

/* 1: *o is set; 0: there is no such socket; -1: the kernel does not say. */
static int ask_kernel(const struct ends *e, struct owner *o)
{
    struct question q = question_about(e);
    union {
        struct nlmsghdr head;
        char room[1024];
    } a;
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (fd < 0) return -1;
    ssize_t n = send(fd, &q, sizeof q, 0);
    if (n == (ssize_t)sizeof q) n = recv(fd, &a, sizeof a, MSG_DONTWAIT);
    close(fd);
    if (n < (ssize_t)sizeof a.head) return -1;
    const void *body = NLMSG_DATA(&a.head);
    size_t size = (size_t)n - NLMSG_HDRLEN;
    if (a.head.nlmsg_type == NLMSG_ERROR) {
        struct nlmsgerr error;
        if (size < sizeof error) return -1;
        memcpy(&error, body, sizeof error);
        return error.error == -ENOENT ? 0 : -1;
    }
    struct inet_diag_msg m;
    if (a.head.nlmsg_type != SOCK_DIAG_BY_FAMILY || size < sizeof m) return -1;
    memcpy(&m, body, sizeof m);
    *o = (struct owner){.uid = m.idiag_uid,
                        .inode = m.idiag_inode,
                        .listens = m.idiag_state == LISTENS};
    return 1;
}

/* ---------------------------------------------------------------- /proc/net */

/* The words of an address as the kernel has them, and its port. */
static char *print_end(char to[TEXT_SIZE], const struct wire_addr *end)
{
    size_t done = 0;
    for (int i = 0; i < (end->family == 4 ? 1 : 4); i++) {
        uint32_t word;
        memcpy(&word, end->ip + 4 * (size_t)i, sizeof word);
        done +=
            (size_t)snprintf(to + done, TEXT_SIZE - done, "%08" PRIX32, word);
    }
    (void)snprintf(to + done, TEXT_SIZE - done, ":%04X", (unsigned)end->port);
    return to;
}

static int search_file(const char *path, const struct ends *e, struct owner *o)
{
    char near[TEXT_SIZE], far[TEXT_SIZE], pair[100], line[512];
    FILE *file = fopen(path, "re");
    if (!file) return -1;
    (void)snprintf(pair, sizeof pair, ": %s %s ", print_end(near, &e->near),
                   print_end(far, &e->far));
    int found = 0;
    while (!found && fgets(line, sizeof line, file)) {
        const char *at = strstr(line, pair);
        unsigned state;
        found = at && sscanf(at + strlen(pair),
                             "%x %*s %*s %*s %" SCNu32 " %*s %" SCNu64, &state,
                             &o->uid, &o->inode) == 3;
        if (found) o->listens = state == LISTENS;
    }
    (void)fclose(file);
    return found;
}

/* A socket of IPv6 may carry IPv4. */
static struct wire_addr mapped(const struct wire_addr *four)
{
    struct wire_addr six = {.family = 6, .port = four->port};
    memset(six.ip + 10, 0xff, 2);
    memcpy(six.ip + 12, four->ip, 4);
    return six;
}

static int search_proc(const struct ends *e, struct owner *o)
{
    if (e->near.family == 6) return search_file("/proc/net/tcp6", e, o);
    int found = search_file("/proc/net/tcp", e, o);
    if (found > 0) return found;
    struct ends six = {mapped(&e->near), mapped(&e->far)};
    int other = search_file("/proc/net/tcp6", &six, o);
    return other < 0 ? found : other;
}

/* A kernel without inet_diag finds nothing, not even the own end. */
static bool kernel_knows(const struct ends *e)
{
    struct ends own = {e->far, e->near};
    struct owner o;
    return ask_kernel(&own, &o) > 0;
}

static int find(const struct ends *e, struct owner *o)
{
    int found = ask_kernel(e, o);
    if (found > 0 || (found == 0 && (!is_local(e) || kernel_knows(e))))
        return found;
    return search_proc(e, o);
}

/* ------------------------------------------------------------- the judgement
 */

/* In a user namespace the users outside of it have one number for all. */
static bool is_number_of_many(uint32_t uid)
{
    char text[256];
    uint32_t overflow = 65534, inside = 1, outside = 1, count = 0;
    if (small_file_read("/proc/sys/kernel/overflowuid", text, sizeof text))
        (void)sscanf(text, "%" SCNu32, &overflow);
    if (uid != overflow) return false;
    if (!small_file_read("/proc/self/uid_map", text, sizeof text)) return true;
    int got = sscanf(text, "%" SCNu32 " %" SCNu32 " %" SCNu32, &inside,
                     &outside, &count);
    return got != 3 || inside != 0 || outside != 0 || count != UINT32_MAX;
}

/* A socket that has ended says 0, which is root. The addresses may have a new
 * owner, but only when this connection is over. */
static enum same_user judge(int fd, const struct owner *o, uint32_t *uid)
{
    struct tcp_info info;
    socklen_t size = sizeof info;
    if (o->inode == 0) return SAME_USER_ENDED;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
        info.tcpi_state == TCP_CLOSE)
        return SAME_USER_ENDED;
    if (is_number_of_many(o->uid)) return SAME_USER_UNKNOWN;
    *uid = o->uid;
    return o->uid == 0 || o->uid == geteuid() ? SAME_USER_YES : SAME_USER_NO;
}

/* Not found; found < 0: nobody says. */
static enum same_user absent(const struct ends *e, int found)
{
    if (!is_local(e)) return SAME_USER_REMOTE;
    return found < 0 ? SAME_USER_UNKNOWN : SAME_USER_ENDED;
}

enum same_user same_user_of(int fd, bool called, uint32_t *uid)
{
    struct ends e;
    struct owner o;
    *uid = 0;
    if (!other_end(fd, &e)) return SAME_USER_ENDED;
    int found = find(&e, &o);
    if (found <= 0 || o.listens) return absent(&e, found);
    if (called && o.inode == 0) { /* not accepted yet: by whom will it be? */
        e.far = (struct wire_addr){.family = e.near.family};
        if (ask_kernel(&e, &o) <= 0 || !o.listens) return SAME_USER_ENDED;
    }
    return judge(fd, &o, uid);
}

static atomic_bool insecure;

void same_user_read_environment(void)
{
    const char *text = getenv("PCCL_INSECURE");
    atomic_store(&insecure, text && strcmp(text, "1") == 0);
}

bool same_user_admits(int fd, bool called, char *why, size_t size)
{
    uint32_t uid;
    why[0] = '\0';
    if (atomic_load(&insecure)) return true;
    enum same_user is = same_user_of(fd, called, &uid);
    if (is == SAME_USER_NO)
        (void)snprintf(why, size,
                       "it is of user %" PRIu32 " and this process of user %u",
                       uid, (unsigned)geteuid());
    if (is == SAME_USER_UNKNOWN)
        (void)snprintf(why, size,
                       "the system does not say which user of this host it "
                       "is");
    if (is == SAME_USER_REMOTE)
        (void)snprintf(why, size,
                       "it is on another host, and this run has no key: give "
                       "both ends a token file (pccl-master --token-file, "
                       "PCCL_TOKEN_FILE), or --insecure (PCCL_INSECURE=1) in a "
                       "network that you trust");
    return is == SAME_USER_YES;
}
