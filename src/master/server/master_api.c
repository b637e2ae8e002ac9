/* master_api.c - the master functions of pccl.h: a server in a thread. */
#include "../../../include/pccl.h"
#include "../../base/io_addr.h"
#include "../../base/env.h"
#include "../../base/fork_guard.h"
#include "../../base/log.h"
#include "../../base/thread.h"
#include "../../base/run_key.h"
#include "master_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ev.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct pcclMasterInstanceState_t {
    unsigned process; /* fork_guard_now() of the process that made it */
    char host[INET6_ADDRSTRLEN];
    uint16_t port;
    int stop_fd;         /* eventfd; pcclInterruptMaster only writes to it */
    atomic_bool running; /* pcclRunMaster has succeeded once */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool stopped; /* under mutex: the thread has closed the server */
    pthread_t thread;
    struct ev_loop
        *loop; /* owned by the thread once it runs, like the server */
    struct master_server *server;
};

static void on_stop(struct ev_loop *loop, ev_io *io, int events)
{
    (void)io;
    (void)events;
    ev_break(loop, EVBREAK_ALL);
}

static void *serve(void *user)
{
    pcclMasterInstance_t *m = user;
    ev_io stop;
    ev_io_init(&stop, on_stop, m->stop_fd, EV_READ);
    ev_io_start(m->loop, &stop);
    ev_run(m->loop, 0);
    ev_io_stop(m->loop, &stop);
    master_server_close(m->server);
    ev_loop_destroy(m->loop);
    pthread_mutex_lock(&m->mutex);
    m->stopped = true;
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->mutex);
    return NULL;
}

static void warn_deadline(const char *text)
{
    LOG(LOG_WARN, "PCCL_DEADLINE=%s is not a number of seconds; ignored", text);
}

static void warn_stall(const char *text)
{
    LOG(LOG_WARN, "PCCL_STALL_WARN=%s is not a number of seconds; 30 is taken",
        text);
}

static void warn_line(void *user, const char *line)
{
    (void)user;
    LOG(LOG_WARN, "%s", line);
}

pcclResult_t pcclCreateMaster(ccoip_socket_address_t listen_address,
                              pcclMasterInstance_t **p_master_out)
{
    const ccoip_inet_address_t *inet = &listen_address.inet;
    bool v6 = inet->protocol == inetIPv6;
    if (!p_master_out || (!v6 && inet->protocol != inetIPv4))
        return pcclInvalidArgument;
    pcclMasterInstance_t *m = calloc(1, sizeof *m);
    if (!m) return pcclInternalError;
    fork_guard_start();
    m->process = fork_guard_now();
    const void *ip = v6 ? inet->ipv6.data : inet->ipv4.data;
    inet_ntop(v6 ? AF_INET6 : AF_INET, ip, m->host, sizeof m->host);
    m->port = listen_address.port;
    m->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (m->stop_fd < 0) {
        free(m);
        return pcclInternalError;
    }
    pthread_mutex_init(&m->mutex, NULL);
    pthread_cond_init(&m->changed, NULL);
    *p_master_out = m;
    return pcclSuccess;
}

/* PCCL_TOKEN_FILE. *given: the run has a key. */
static bool read_key(struct run_key *key, bool *given)
{
    char error[200];
    const char *missing;
    const char *path = getenv("PCCL_TOKEN_FILE");
    *given = path && *path != '\0';
    if (!*given) return true;
    if (!secure_is_available(&missing))
        LOG(LOG_ERR, "pcclRunMaster: PCCL_TOKEN_FILE: %s", missing);
    else if (!run_key_read(key, path, error, sizeof error))
        LOG(LOG_ERR, "pcclRunMaster: PCCL_TOKEN_FILE: %s", error);
    else if (run_key_is_token(key))
        LOG(LOG_ERR,
            "pcclRunMaster: PCCL_TOKEN_FILE=%s is a participant's "
            "token, and a coordinator needs the key of the run",
            path);
    else
        return true;
    return false;
}

static pcclResult_t run(pcclMasterInstance_t *m)
{
    char error[128];
    struct run_key key;
    bool keyed;
    if (!read_key(&key, &keyed)) return pcclInvalidUsage;
    m->loop = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);
    if (!m->loop) return pcclInternalError;
    struct master_server_options options = {
        .loop = m->loop,
        .host = m->host,
        .port = m->port,
        .deadline = env_seconds_ns("PCCL_DEADLINE", warn_deadline),
        .relays = env_relays(),
        .warn_after = env_stall_ns(warn_stall),
        .warn = warn_line,
        .quorum = 1,
        .key = keyed ? key.bytes : NULL,
    };
    m->server = master_server_open(&options, error, sizeof error);
    run_key_forget(&key, sizeof key);
    if (!m->server) {
        LOG(LOG_ERR, "pcclRunMaster: %s port %u: %s", m->host,
            (unsigned)m->port, error);
        ev_loop_destroy(m->loop);
        return pcclInvalidUsage;
    }
    uint16_t port = master_server_port(m->server);
    if (!thread_start(&m->thread, "pccl-master", serve, m)) {
        master_server_close(m->server);
        ev_loop_destroy(m->loop);
        return pcclInternalError;
    }
    m->port = port;
    atomic_store(&m->running, true);
    return pcclSuccess;
}

static bool is_inherited(const pcclMasterInstance_t *m)
{
    return m->process != fork_guard_now();
}

pcclResult_t pcclRunMaster(pcclMasterInstance_t *master_instance)
{
    if (!master_instance) return pcclInvalidArgument;
    if (is_inherited(master_instance)) return pcclInvalidUsage;
    pthread_mutex_lock(&master_instance->mutex);
    pcclResult_t result = pcclInvalidUsage;
    if (!atomic_load(&master_instance->running)) result = run(master_instance);
    pthread_mutex_unlock(&master_instance->mutex);
    return result;
}

/* May run in a signal handler. */
pcclResult_t pcclInterruptMaster(pcclMasterInstance_t *master_instance)
{
    if (!master_instance) return pcclInvalidArgument;
    if (is_inherited(master_instance)) return pcclInvalidUsage;
    if (!atomic_load(&master_instance->running)) return pcclInvalidUsage;
    uint64_t one = 1;
    int keep = errno;
    ssize_t ignored = write(master_instance->stop_fd, &one, sizeof one);
    (void)ignored; /* full: the thread already has a notification */
    errno = keep;
    return pcclSuccess;
}

pcclResult_t pcclMasterAwaitTermination(pcclMasterInstance_t *master_instance)
{
    if (!master_instance) return pcclInvalidArgument;
    if (is_inherited(master_instance)) return pcclInvalidUsage;
    if (!atomic_load(&master_instance->running)) return pcclInvalidUsage;
    pthread_mutex_lock(&master_instance->mutex);
    while (!master_instance->stopped)
        pthread_cond_wait(&master_instance->changed, &master_instance->mutex);
    pthread_mutex_unlock(&master_instance->mutex);
    return pcclSuccess;
}

pcclResult_t pcclDestroyMaster(pcclMasterInstance_t *master_instance)
{
    if (!master_instance) return pcclInvalidArgument;
    /* Its thread and its connections are the parent's. */
    if (is_inherited(master_instance)) {
        close(master_instance->stop_fd);
        free(master_instance);
        return pcclSuccess;
    }
    if (pcclInterruptMaster(master_instance) == pcclSuccess)
        pthread_join(master_instance->thread, NULL);
    close(master_instance->stop_fd);
    pthread_cond_destroy(&master_instance->changed);
    pthread_mutex_destroy(&master_instance->mutex);
    free(master_instance);
    return pcclSuccess;
}

pcclResult_t pcclGetMasterPort(pcclMasterInstance_t *master, uint16_t *port_out)
{
    if (!master || !port_out) return pcclInvalidArgument;
    if (is_inherited(master)) return pcclInvalidUsage;
    if (!atomic_load(&master->running)) return pcclInvalidUsage;
    *port_out = master->port;
    return pcclSuccess;
}
