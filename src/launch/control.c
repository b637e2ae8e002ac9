/* control.c - requests to a running launcher. */
#include "control.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* "\0pccl-master.UID.PID" */
#define CONTROL_NAME "pccl-master.%u."
enum { CONTROL_PATIENCE = 10000 }; /* ms for an answer */

static socklen_t name_make(struct sockaddr_un *to, unsigned user, pid_t pid)
{
    *to = (struct sockaddr_un){.sun_family = AF_UNIX};
    int size = snprintf(to->sun_path + 1, sizeof to->sun_path - 1,
                        CONTROL_NAME "%d", user, (int)pid);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                       (size_t)size);
}

/* Both ends learn from the kernel who sends. */
static int socket_open(const struct sockaddr_un *name, socklen_t size)
{
    int yes = 1;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -1;
    if (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes) == 0 &&
        bind(fd, (const struct sockaddr *)name, size) == 0)
        return fd;
    close(fd);
    return -1;
}

/* A text that ends with '\0'. False: nothing, or not from `pid` (0: anybody) of
 * this user or root. */
static bool text_receive(int fd, char *text, size_t size, pid_t pid,
                         struct sockaddr_un *from, socklen_t *from_size)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(struct ucred))];
    } room;
    struct iovec part = {text, size - 1};
    struct msghdr message = {.msg_name = from,
                             .msg_namelen = sizeof *from,
                             .msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = room.bytes,
                             .msg_controllen = sizeof room.bytes};
    ssize_t got = recvmsg(fd, &message, 0);
    if (got < 0) return false;
    text[got] = '\0';
    *from_size = message.msg_namelen;
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    struct ucred who;
    if (!head || head->cmsg_level != SOL_SOCKET ||
        head->cmsg_type != SCM_CREDENTIALS)
        return false;
    memcpy(&who, CMSG_DATA(head), sizeof who);
    return (who.uid == geteuid() || who.uid == 0) && (!pid || who.pid == pid);
}

static void request_came(struct ev_loop *loop, ev_io *io, int events)
{
    (void)loop;
    (void)events;
    struct control *control = io->data;
    struct sockaddr_un from;
    socklen_t size;
    char text[MESSAGE_SIZE], answer[MESSAGE_SIZE] = "";
    if (!text_receive(io->fd, text, sizeof text, 0, &from, &size)) return;
    control->request(control->user, text, answer, sizeof answer);
    (void)sendto(io->fd, answer, strlen(answer), MSG_DONTWAIT,
                 (struct sockaddr *)&from, size);
}

void control_open(struct control *control, struct ev_loop *loop)
{
    struct sockaddr_un name;
    socklen_t size = name_make(&name, geteuid(), getpid());
    control->loop = loop;
    int fd = socket_open(&name, size);
    ev_io_init(&control->io, request_came, fd, EV_READ);
    control->io.data = control;
    if (fd >= 0) ev_io_start(loop, &control->io);
}

void control_close(struct control *control)
{
    if (!control->loop || control->io.fd < 0) return;
    ev_io_stop(control->loop, &control->io);
    close(control->io.fd);
    control->io.fd = -1;
}

/* The launchers of this user: their number, and the last one. */
static uint32_t launchers_find(pid_t *pid)
{
    char line[512], begin[64];
    uint32_t count = 0;
    FILE *sockets = fopen("/proc/net/unix", "re");
    snprintf(begin, sizeof begin, " @" CONTROL_NAME, geteuid());
    while (sockets && fgets(line, sizeof line, sockets)) {
        const char *at = strstr(line, begin);
        if (!at) continue;
        *pid = (pid_t)strtol(at + strlen(begin), NULL, 10);
        count++;
    }
    if (sockets) fclose(sockets);
    return count;
}

/* Returns whether an answer came. */
static bool exchange(int fd, const char *text, pid_t pid, char *answer,
                     size_t size)
{
    struct sockaddr_un to;
    socklen_t to_size = name_make(&to, geteuid(), pid);
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    if (sendto(fd, text, strlen(text), 0, (struct sockaddr *)&to, to_size) < 0)
        return false;
    return poll(&ready, 1, CONTROL_PATIENCE) == 1 &&
           text_receive(fd, answer, size, pid, &to, &to_size);
}

int control_ask(const char *text, pid_t pid)
{
    char answer[MESSAGE_SIZE] = "";
    const struct sockaddr_un any = {.sun_family = AF_UNIX};
    uint32_t count = pid ? 1 : launchers_find(&pid);
    if (count != 1) {
        complain("%s", count
                           ? "several jobs of yours run here; --pid names the "
                             "pccl-master of one"
                           : "no job of yours runs on this host");
        return EXIT_FAILURE;
    }
    int fd = socket_open(&any, sizeof any.sun_family);
    bool good = fd >= 0 && exchange(fd, text, pid, answer, sizeof answer);
    if (fd >= 0) close(fd);
    if (!good)
        complain("process %d does not answer", (int)pid);
    else
        fprintf(*answer == '+' ? stdout : stderr, "pccl-master: %s\n",
                answer + 1);
    return good && *answer == '+' ? EXIT_SUCCESS : EXIT_FAILURE;
}
