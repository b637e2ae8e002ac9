/* namespace.c - network namespaces and TUN devices through Linux system
 * calls. */
#include "namespace.h"

#include "route.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

_Static_assert(sizeof(struct virtio_net_hdr) == VNET_SIZE, "header of TUN");

enum {
    QUEUE_PACKETS = 10000
}; /* of the device, so large that only the emulated network drops packets */

uint32_t namespace_address(uint32_t node)
{
    return 0x0a630001u + node; /* 10.99.0.1 + node */
}

static struct sockaddr address(uint32_t ip)
{
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(ip)};
    struct sockaddr a;
    memcpy(&a, &in, sizeof a);
    return a;
}

static bool set_flags(int control, const char *name, short flags)
{
    struct ifreq r = {.ifr_flags = flags};
    snprintf(r.ifr_name, sizeof r.ifr_name, "%s", name);
    return ioctl(control, SIOCSIFFLAGS, &r) == 0;
}

static bool configure(const char *name, uint32_t node, uint32_t mtu)
{
    int control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (control < 0) return false;
    struct ifreq r = {.ifr_flags = 0};
    snprintf(r.ifr_name, sizeof r.ifr_name, "%s", name);
    r.ifr_addr = address(namespace_address(node));
    bool ok = ioctl(control, SIOCSIFADDR, &r) == 0;
    r.ifr_netmask = address(0xffffff00u);
    ok = ok && ioctl(control, SIOCSIFNETMASK, &r) == 0;
    r.ifr_mtu = (int)mtu;
    ok = ok && ioctl(control, SIOCSIFMTU, &r) == 0;
    r.ifr_qlen = QUEUE_PACKETS;
    ok = ok && ioctl(control, SIOCSIFTXQLEN, &r) == 0;
    ok = ok && set_flags(control, name, IFF_UP | IFF_RUNNING);
    ok = ok && set_flags(control, "lo", IFF_UP | IFF_RUNNING);
    int error = errno;
    close(control);
    errno = error;
    return ok;
}

static int open_tun(const char *name, bool offload)
{
    int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return -1;
    struct ifreq r = {.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR};
    snprintf(r.ifr_name, sizeof r.ifr_name, "%s", name);
    unsigned long features = offload ? TUN_F_CSUM | TUN_F_TSO4 : TUN_F_CSUM;
    int size = VNET_SIZE;
    bool ok = ioctl(fd, TUNSETIFF, &r) == 0 &&
              ioctl(fd, TUNSETVNETHDRSZ, &size) == 0 &&
              ioctl(fd, TUNSETOFFLOAD, features) == 0;
    if (ok) return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

static bool set_congestion(const char *name, uint32_t node)
{
    if (*name == '\0') return true;
    return route_set_congestion(if_nametoindex("wan"), namespace_address(0) - 1,
                                namespace_address(node), name);
}

bool namespace_make(struct namespace *ns, uint32_t node, uint32_t mtu,
                    const char *congestion, bool offload,
                    char error[NAMESPACE_ERROR_SIZE])
{
    int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    const char *what = "a network namespace";
    ns->net_fd = ns->tun_fd = -1;
    bool ok = home >= 0 && unshare(CLONE_NEWNET) == 0;
    if (ok) {
        ns->net_fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
        what = "a TUN device";
        ns->tun_fd = open_tun("wan", offload);
        ok = ns->net_fd >= 0 && ns->tun_fd >= 0;
        if (ok) {
            what = "an address of the TUN device";
            ok = configure("wan", node, mtu);
        }
        if (ok) {
            what = congestion;
            ok = set_congestion(congestion, node);
        }
    }
    int why = errno;
    if (home >= 0 && setns(home, CLONE_NEWNET) != 0) ok = false;
    if (home >= 0) close(home);
    if (!ok) {
        snprintf(error, NAMESPACE_ERROR_SIZE, "cannot set up %s: %s", what,
                 strerror(why));
    }
    return ok;
}

bool namespace_enter(const struct namespace *ns)
{
    return setns(ns->net_fd, CLONE_NEWNET) == 0;
}

bool namespace_possible(char error[NAMESPACE_ERROR_SIZE])
{
    if (geteuid() != 0) {
        snprintf(error, NAMESPACE_ERROR_SIZE, "network namespaces need root");
        return false;
    }
    int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        snprintf(error, NAMESPACE_ERROR_SIZE, "/dev/net/tun: %s",
                 strerror(errno));
        return false;
    }
    close(fd);
    int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    bool ok = home >= 0 && unshare(CLONE_NEWNET) == 0;
    if (!ok) {
        snprintf(error, NAMESPACE_ERROR_SIZE, "network namespaces: %s",
                 strerror(errno));
    }
    if (ok) ok = setns(home, CLONE_NEWNET) == 0;
    if (home >= 0) close(home);
    return ok;
}
