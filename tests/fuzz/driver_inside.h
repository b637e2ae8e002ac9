/* driver_inside.h - what driver_kernel.c and driver_wrap.c share. */
#ifndef PCCL_FUZZ_DRIVER_INSIDE_H
#define PCCL_FUZZ_DRIVER_INSIDE_H

#include "driver_kernel.h"

#include <sys/epoll.h>

enum kernel_kind {
    FD_NONE,
    FD_SOCKET, /* not connected */
    FD_LISTENER,
    FD_STREAM,
    FD_BELL,
    FD_TIMER,
    FD_SET,
    FD_TEXT,
};

struct kernel_watched {
    int fd;
    struct epoll_event event;
};

struct kernel_fd {
    enum kernel_kind kind;
    uint32_t stream;
    int side;
    uint16_t port;
    uint64_t count;      /* of a bell; bytes of a text that were read */
    pccl_ns due, period; /* of a timer */
    const char *text;
    uint32_t watched;
    struct kernel_watched set[KERNEL_WATCHED];
};

/* NULL: it is none of these. */
struct kernel_fd *kernel_fd(int fd);
int kernel_new_fd(enum kernel_kind kind); /* -1: there is none left */
void kernel_close(int fd);
bool kernel_connect(struct kernel_fd *f, uint16_t port); /* false: refused */
/* Events of poll(), whatever was asked for. */
short kernel_ready(const struct kernel_fd *f);
/* Bytes that come to the driver. */
size_t kernel_read(const struct kernel_fd *f, uint8_t *to, size_t size,
                   bool peeks);
bool kernel_listens(uint16_t port);
uint16_t kernel_free_port(void);
void kernel_ask_yields(void);
void kernel_start(void *(*start)(void *user), void *user, pthread_t *thread);
/* False: it is not one of these threads. */
bool kernel_join(pthread_t thread);
/* The thread of the turn under way has nothing more to do. */
void kernel_idle(void);
int kernel_error(void); /* of the call that fails */

/* The prototypes of a call and of what it leads to. */
/* clang-format off */
#define WRAPPED(result, name, ...) \
    result __real_##name(__VA_ARGS__); \
    result __wrap_##name(__VA_ARGS__)
/* clang-format on */

#endif
