/* fuzz_host.c - what the kernel and the user of a host say of it: tasks of a
 * process, descriptors, processors, interfaces; and addresses of a coordinator,
 * of which one answers, perhaps. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The outside of these files. */
static int fuzz_open(const char *path, int flags);
static ssize_t fuzz_read(int fd, void *bytes, size_t size);
static DIR *fuzz_opendir(const char *path);
static struct dirent *fuzz_readdir(DIR *dir);
static int fuzz_closedir(DIR *dir);
static int fuzz_affinity(pid_t pid, size_t size, cpu_set_t *set);
static int fuzz_getrlimit(int which, struct rlimit *limit);
static int fuzz_setrlimit(int which, const struct rlimit *limit);
static int fuzz_getifaddrs(struct ifaddrs **all);
static void fuzz_freeifaddrs(struct ifaddrs *all);
static int fuzz_socket(int family, int type, int protocol);
static int fuzz_connect(int fd, const struct sockaddr *to, socklen_t size);
static int fuzz_getsockopt(int fd, int level, int name, void *value,
                           socklen_t *size);
static int fuzz_poll(struct pollfd *fds, nfds_t count, int ms);

#define open fuzz_open
#define read fuzz_read
#define opendir fuzz_opendir
#define readdir fuzz_readdir
#define closedir fuzz_closedir
#define sched_getaffinity fuzz_affinity
#define getrlimit fuzz_getrlimit
#define setrlimit fuzz_setrlimit
#define getifaddrs fuzz_getifaddrs
#define freeifaddrs fuzz_freeifaddrs
#define socket fuzz_socket
#define connect fuzz_connect
#define getsockopt fuzz_getsockopt
#define poll(fds, count, ms) fuzz_poll(fds, count, ms)
#include "../../src/base/descriptors.c"
#include "../../src/base/host.c"
#include "../../src/base/small_file.c"
#include "../../src/launch/bind.c"
#include "../../src/launch/reach.c"
#undef open
#undef read
#undef socket
#include "../../src/launch/host_room.h"
#include "fuzz.h"

#include <assert.h>

enum { ENTRIES_MAX = 12, INTERFACES = 4 };

static struct fuzz_input *u; /* the input that they read */

/* ------------------------------------------------------------------- files */

static char content[600];

/* A text that fits a path, or any. */
static size_t content_of(const char *path)
{
    uint8_t bits = fuzz_u8(u);
    static const char letters[] = "RSDTtZ)( ";
    size_t size = bits % 40u;
    if (bits < 160) {
        uint64_t number = bits & 1 ? fuzz_u64(u) : fuzz_u8(u);
        if (strstr(path, "/stat") && !strstr(path, "/status"))
            return (size_t)snprintf(content, sizeof content, "12 (%s) %c 1 2",
                                    bits & 2 ? HOST_IO_THREAD : "a) R (b",
                                    letters[bits % 9]);
        if (strstr(path, "/schedstat"))
            return (size_t)snprintf(content, sizeof content, "5 %" PRId64 " 3",
                                    (int64_t)number);
        if (strstr(path, "/status"))
            return (size_t)snprintf(
                content, sizeof content,
                "Name: x\nvoluntary_ctxt_switches:\t%" PRIu64 "\n", number);
        return (size_t)snprintf(content, sizeof content, "%" PRId64 "\n",
                                (int64_t)number);
    }
    if (bits == 255) size = sizeof content;
    if (size > u->left) size = u->left;
    memcpy(content, u->at, size);
    u->at += size;
    u->left -= size;
    return size;
}

static size_t content_size;

static int fuzz_open(const char *path, int flags)
{
    (void)flags;
    assert(path[0] == '/' && strlen(path) < 64);
    content_size = content_of(path);
    return content_size == 0 ? -1 : eventfd(0, EFD_CLOEXEC);
}

static ssize_t fuzz_read(int fd, void *bytes, size_t size)
{
    assert(fd >= 0);
    if (size > content_size) size = content_size;
    memcpy(bytes, content, size);
    return (ssize_t)size;
}

static struct dirent entry;
static uint32_t entries_left;

static DIR *fuzz_opendir(const char *path)
{
    assert(path[0] == '/');
    uint8_t bits = fuzz_u8(u);
    entries_left = bits % ENTRIES_MAX;
    return bits > 250 ? NULL : (DIR *)&entry;
}

static struct dirent *fuzz_readdir(DIR *dir)
{
    uint8_t bits = fuzz_u8(u);
    assert(dir == (DIR *)&entry);
    if (entries_left == 0) return NULL;
    entries_left--;
    (void)snprintf(entry.d_name, sizeof entry.d_name,
                   bits < 30    ? "node%u"
                   : bits < 40  ? ".%u"
                   : bits < 250 ? "%u"
                                : "%0200u99999999999999999999",
                   bits & 7u);
    return &entry;
}

static int fuzz_closedir(DIR *dir)
{
    assert(dir == (DIR *)&entry);
    return 0;
}

/* ------------------------------------------------------- limits, processors */

static int fuzz_affinity(pid_t pid, size_t size, cpu_set_t *set)
{
    uint8_t bits = fuzz_u8(u);
    assert(pid == 0 && size == sizeof *set);
    CPU_ZERO(set);
    for (unsigned i = 0; i < bits % 16u; i++)
        CPU_SET(bits & 16 ? fuzz_u8(u) * 4u + 3u : i, set);
    return bits == 255 ? -1 : 0;
}

static struct rlimit limit_now;

static int fuzz_getrlimit(int which, struct rlimit *limit)
{
    assert(which == RLIMIT_NOFILE);
    *limit = limit_now;
    return 0;
}

static int fuzz_setrlimit(int which, const struct rlimit *limit)
{
    assert(which == RLIMIT_NOFILE && limit->rlim_cur <= limit->rlim_max);
    if (fuzz_u8(u) & 1) return -1;
    limit_now = *limit;
    return 0;
}

/* ------------------------------------------------------------------ network */

static struct ifaddrs interfaces[INTERFACES];
static struct sockaddr_storage addresses[INTERFACES];

static int fuzz_getifaddrs(struct ifaddrs **all)
{
    static char lo[] = "lo", eth[] = "eth0";
    uint8_t count = fuzz_u8(u);
    *all = NULL;
    if (count > 250) return -1;
    for (uint32_t i = 0; i < count % (INTERFACES + 1u); i++) {
        uint8_t bits = fuzz_u8(u);
        struct sockaddr_in in4 = {.sin_family = AF_INET};
        struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
        in4.sin_addr.s_addr = htonl(bits & 8 ? INADDR_LOOPBACK : 0x0a000007u);
        in6.sin6_addr.s6_addr[0] = bits & 16 ? 0xfe : 0xfd;
        in6.sin6_addr.s6_addr[1] = 0x80;
        memset(&addresses[i], 0, sizeof addresses[i]);
        memcpy(&addresses[i], bits & 1 ? (void *)&in4 : (void *)&in6,
               bits & 1 ? sizeof in4 : sizeof in6);
        if (bits > 240) addresses[i].ss_family = AF_UNIX;
        interfaces[i] = (struct ifaddrs){
            .ifa_next = *all,
            .ifa_name = bits & 2 ? lo : eth,
            .ifa_flags =
                (bits & 4 ? IFF_UP : 0u) | (bits & 2 ? IFF_LOOPBACK : 0u),
            .ifa_addr = bits & 32 ? NULL : (struct sockaddr *)&addresses[i]};
        *all = &interfaces[i];
    }
    return 0;
}

static void fuzz_freeifaddrs(struct ifaddrs *all)
{
    (void)all;
}

static int fuzz_socket(int family, int type, int protocol)
{
    assert(family == AF_INET || family == AF_INET6);
    assert(type & SOCK_NONBLOCK && protocol == 0);
    return fuzz_u8(u) > 250 ? -1 : eventfd(0, EFD_CLOEXEC);
}

static int fuzz_connect(int fd, const struct sockaddr *to, socklen_t size)
{
    uint8_t bits = fuzz_u8(u);
    assert(fd >= 0 && to && size > 0);
    errno = bits & 1 ? EINPROGRESS : ENETUNREACH;
    return bits & 2 ? 0 : -1;
}

static int fuzz_getsockopt(int fd, int level, int name, void *value,
                           socklen_t *size)
{
    assert(fd >= 0 && level == SOL_SOCKET && name == SO_ERROR);
    assert(*size == sizeof(int));
    *(int *)value = fuzz_u8(u) & 1 ? ECONNREFUSED : 0;
    return 0;
}

/* Nothing more happens when the input is over. */
static int fuzz_poll(struct pollfd *fds, nfds_t count, int ms)
{
    int ready = 0;
    assert(ms > 0);
    for (nfds_t i = 0; i < count && u->left > 0; i++) {
        fds[i].revents = fds[i].fd >= 0 && fuzz_u8(u) & 1 ? POLLOUT : 0;
        ready += fds[i].revents != 0;
    }
    return u->left > 0 ? ready : 0;
}

/* --------------------------------------------------------------- what is read
 */

static void processes(void)
{
    static struct host_watch w;
    w = (struct host_watch){.seen = {{.pid = 0}}};
    (void)host_id();
    pccl_ns now = PCCL_S;
    for (int i = 0; i < 6 && u->left > 0; i++) {
        enum evidence e = host_look(&w, fuzz_u8(u) & 1 ? 7 : UINT32_MAX, now);
        assert(e < EVIDENCE_COUNT);
        now += (pccl_ns)fuzz_u16(u) * PCCL_MS;
    }
}

/* Ranks of a host that has so much. */
static void room(void)
{
    char error[200] = "";
    struct host_room r = {.descriptors = fuzz_u8(u),
                          .memory = (uint64_t)fuzz_u8(u) << 20};
    struct host_load load = {fuzz_u8(u), fuzz_u8(u)};
    if (fuzz_u8(u) & 1) r.memory = fuzz_u64(u);
    bool fits = host_has_room(&r, &load, error, sizeof error);
    assert(fits == (*error == '\0'));
    (void)host_room_here();
}

static void descriptors(void)
{
    limit_now = (struct rlimit){fuzz_u8(u), fuzz_u16(u)};
    if (limit_now.rlim_max < limit_now.rlim_cur)
        limit_now.rlim_max = limit_now.rlim_cur;
    uint64_t left = 0;
    uint64_t used = descriptors_used(&left);
    assert(used < ENTRIES_MAX && left <= limit_now.rlim_cur);
    (void)descriptors_afford(fuzz_u16(u));
    assert(limit_now.rlim_cur <= limit_now.rlim_max);
    room();
}

static void processors(void)
{
    static struct bind_machine machine;
    struct bind b = {.kind = BIND_CORE, .width = 1};
    static const char *const words[] = {"core",
                                        "socket:2",
                                        "numa",
                                        "hwthread:1024",
                                        "none",
                                        "core:0",
                                        "pu:x",
                                        "package:overload-allowed",
                                        "ppr:2:node:pe=2",
                                        "slot",
                                        "ppr:1:core",
                                        "numa:span,PE=3",
                                        "ppr:",
                                        "ppr:9:nowhere",
                                        "board"};
    machine.count = 0;
    bind_read_system(&machine);
    assert(machine.count <= CPU_SETSIZE);
    for (int i = 0; i < 4; i++) {
        const char *word = words[fuzz_below(u, ARRAY_COUNT(words))];
        (void)(fuzz_u8(u) & 1 ? bind_parse(&b, word)
                              : bind_parse_map(&b, word));
        cpu_set_t set;
        bool bound = bind_choose(&machine, b, fuzz_u8(u), &set);
        assert(!bound || CPU_COUNT(&set) > 0);
        char *text = bind_text(bound ? &set : NULL);
        assert(bound == (*text != '\0'));
        free(text);
        assert(bind_count(&machine, b.map) <= machine.count);
    }
}

static void coordinators(void)
{
    static const char *const words[] = {
        "127.0.0.1:80", "10.0.0.7:1", "[::1]:5",        "[fd80::]:1",
        "name:3",       "no",         "10.0.0.7:99999", "",
        "10.0.0.8:2",   "127.1.1.1:9"};
    struct link_texts all = {0}, asked = {0};
    char host[HOST_SIZE];
    reach_list(80, &all);
    struct link_texts again = {.bytes = all.bytes, .size = all.size};
    for (const char *text; (text = link_get(&again));) {
        struct address a;
        bool good = address_parse(text, 0, &a);
        assert(good && a.port == 80 && reach_is_numeric(&a));
        (void)reach_is_ours(&a);
    }
    bool found = reach_interface("eth0", host, sizeof host);
    assert(found == (*host != '\0'));
    for (uint32_t n = fuzz_u8(u) % 100u; n > 0; n--)
        link_put(&asked, words[fuzz_below(u, ARRAY_COUNT(words))]);
    struct link_texts list = {.bytes = asked.bytes, .size = asked.size};
    const char *one = reach_first(&list);
    struct address a;
    assert(!one || address_parse(one, 0, &a));
    free(asked.bytes);
    free(all.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct fuzz_input in = {bytes, size};
    u = &in;
    switch (fuzz_u8(&in) % 4) {
    case 0:
        processes();
        break;
    case 1:
        descriptors();
        break;
    case 2:
        processors();
        break;
    default:
        coordinators();
        break;
    }
    return 0;
}
