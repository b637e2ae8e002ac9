/* comm_resolve.c - looks names up by a thread of its own: a resolver may hang
 * for half a minute, and pcclCancel and the limit of a call end the waiting for
 * it like any other. See comm.h. */
#include "comm.h"

#include "../base/address.h"
#include "../base/io_addr.h"
#include "../base/log.h"
#include "../base/thread.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { ADDRESSES_MAX = 16 };

/* Of the thread, and of the call as long as it waits. */
struct lookup {
    atomic_int holders;
    int done_fd; /* readable when the answer is there */
    char host[HOST_SIZE];
    uint16_t port;
    struct io_addr found[ADDRESSES_MAX];
    uint32_t count;
    const char *error;
};

static void let_go(struct lookup *l)
{
    if (atomic_fetch_sub(&l->holders, 1) > 1) return;
    close(l->done_fd);
    free(l);
}

static void *run(void *argument)
{
    struct lookup *l = argument;
    const uint64_t one = 1;
    l->count =
        io_addr_resolve(l->host, l->port, l->found, ADDRESSES_MAX, &l->error);
    ssize_t ignored = write(l->done_fd, &one, sizeof one);
    (void)ignored; /* an empty counter has room */
    let_go(l);
    return NULL;
}

/* NULL: there is no memory or no thread for it. */
static struct lookup *begin(const char *host, uint16_t port)
{
    pthread_t thread;
    struct lookup *l = calloc(1, sizeof *l);
    if (!l) return NULL;
    (void)snprintf(l->host, sizeof l->host, "%s", host);
    l->port = port;
    atomic_store(&l->holders, 2);
    l->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (l->done_fd >= 0 && thread_start(&thread, "pccl-name", run, l)) {
        (void)pthread_detach(thread);
        return l;
    }
    if (l->done_fd >= 0) close(l->done_fd);
    free(l);
    return NULL;
}

/* 0, or what ended the waiting. */
static int await(pcclComm_t *c, const struct lookup *l, pccl_ns until)
{
    pccl_ns patience = comm_now() + comm_own_deadline(c);
    if (patience > until) patience = until;
    int rc = comm_await(c, l->done_fd, POLLIN, patience);
    if (rc != ETIMEDOUT || patience == until) return rc;
    LOG(LOG_WARN, "the resolver has not answered for %s yet; waiting for it",
        l->host);
    return comm_await(c, l->done_fd, POLLIN, until);
}

uint32_t comm_resolve(pcclComm_t *c, const struct address *a, pccl_ns until,
                      struct io_addr *out, uint32_t max, const char **error)
{
    if (io_addr_numeric(a->host, a->port, false, out)) return 1;
    struct lookup *l = begin(a->host, a->port);
    if (!l) return io_addr_resolve(a->host, a->port, out, max, error);
    uint32_t count = 0;
    if (await(c, l, until) == 0) {
        count = l->count < max ? l->count : max;
        memcpy(out, l->found, count * sizeof *out);
        *error = l->error;
    } else {
        *error = "the resolver has not answered";
    }
    let_go(l);
    return count;
}
