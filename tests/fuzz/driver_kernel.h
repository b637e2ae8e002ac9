/* driver_kernel.h - the kernel as a member's driver sees it, in one thread and
 * without the real one: sockets, sets of them, bells, timers, the clock, and
 * the thread of the communicator, which has turns. Calls fail as a tape wants.
 *
 * The linker leads the calls of the driver's sources here (driver_wrap.c).
 * Descriptors from KERNEL_FD on are of this file. */
#ifndef PCCL_FUZZ_DRIVER_KERNEL_H
#define PCCL_FUZZ_DRIVER_KERNEL_H

#include "../../src/base/base.h"

#include <pthread.h>
#include <sys/socket.h>

enum {
    KERNEL_FD = 1000,
    KERNEL_FDS = 200,
    KERNEL_STREAMS = 96,
    KERNEL_PIPE = 64 * 1024, /* bytes that a socket holds */
    KERNEL_WATCHED = 64,     /* of one set */
    KERNEL_THREADS = 2,
    KERNEL_FAULTS = 6,
    KERNEL_TEXT = 256,
    PORT_OWN = 2000, /* and up: where the driver listens */
};

#define NO_STREAM UINT32_MAX

/* Calls that may fail. */
enum kernel_call {
    KERNEL_SOCKET,
    KERNEL_CONNECT,
    KERNEL_BIND, /* ... and listen */
    KERNEL_ACCEPT,
    KERNEL_RECV,
    KERNEL_SEND,
    KERNEL_POLL,
    KERNEL_WATCH, /* epoll_ctl */
    KERNEL_BELL,  /* whatever makes a descriptor that is no socket */
    KERNEL_OPTION,
    KERNEL_THREAD,
    KERNEL_MEMORY,
    KERNEL_SHARE, /* memory to share */
    KERNEL_CMA,
    KERNEL_OPEN,  /* a text about this process */
    KERNEL_ADMIT, /* who is at the other end */
    KERNEL_SHORT, /* no failure: few bytes are taken or given */
    KERNEL_CALLS
};

struct kernel_pipe {
    size_t first, count;
    bool ended, reset;
    uint8_t bytes[KERNEL_PIPE];
};

/* Side 0 has called side 1. */
struct kernel_stream {
    bool used, connecting, taken; /* taken: by the end that was called */
    bool held[2];
    uint16_t port;
    int error;
    struct kernel_pipe pipe[2]; /* of what that side has sent */
};

/* What TCP_INFO says of all connections. */
struct kernel_path {
    uint32_t rtt_us, least_us, unacked, segments, again;
};

extern pccl_ns kernel_now;
extern volatile bool
    kernel_on; /* the driver runs, and no other code of this process */
extern struct kernel_path kernel_path;
extern uint32_t kernel_processors;
extern bool kernel_at_once;               /* connect() does not wait */
extern char kernel_texts[2][KERNEL_TEXT]; /* of /proc/self */

/* --- for the fuzzer --- */
/* `outside`: the driver waits, at most until then: others do something, or
 * time passes. `yields`: it lets others run, and holds its lock. */
void kernel_begin(void (*outside)(pccl_ns until), void (*yields)(void),
                  bool (*listens)(uint16_t port));
/* Nothing is left. */
void kernel_end(void);
/* The lock that the thread takes. */
void kernel_own(pthread_mutex_t *lock);
void kernel_fail(enum kernel_call call, uint8_t after, uint8_t times,
                 int error);
/* The byte that comes after so many to the driver changes. */
void kernel_spoil(uint32_t after, uint8_t change);
/* Each call of the program ends after so many steps of the others. */
void kernel_call_begins(void);
/* A turn of each thread whose lock is free. False: none had one. */
bool kernel_turn(void);
bool kernel_has_thread(void);

/* --- for the others: streams --- */
/* To the driver's listener; NO_STREAM: there is none. */
uint32_t kernel_call_driver(uint16_t port);
/* Between two others. */
uint32_t kernel_pair(uint16_t port);
uint16_t kernel_own_port(void); /* where the driver listens, or 0 */
/* The next one that was called at the port, and is not taken. */
uint32_t kernel_take(uint16_t port);
struct kernel_stream *kernel_stream(uint32_t number);
size_t kernel_put(uint32_t number, int side, const void *bytes, size_t size);
size_t kernel_get(uint32_t number, int side, void *bytes, size_t size);
void kernel_hang_up(uint32_t number, int side, bool reset);
/* The driver's connect() calls come through. */
bool kernel_connects(void);
/* A stream of the driver, by any number; NO_STREAM: it has none. */
uint32_t kernel_any(uint32_t which, int *side);

/* --- driver_wrap.c --- */
bool kernel_fails(enum kernel_call call);
void kernel_wait(pccl_ns until);

#endif
