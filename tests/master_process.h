/* master_process.h - a coordinator in a process of its own, on a port of
 * loopback that the kernel picks: for tests whose other processes are killed.
 */
#ifndef TESTS_MASTER_PROCESS_H
#define TESTS_MASTER_PROCESS_H

#include "../include/pccl.h"

#include <signal.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

static inline ccoip_socket_address_t loopback(uint16_t port)
{
    ccoip_socket_address_t a = {.inet = {.protocol = inetIPv4}, .port = port};
    a.inet.ipv4.data[0] = 127;
    a.inet.ipv4.data[3] = 1;
    return a;
}

static inline void be_master(int out)
{
    pcclMasterInstance_t *m;
    uint16_t port;
    if (pcclCreateMaster(loopback(0), &m) != pcclSuccess ||
        pcclRunMaster(m) != pcclSuccess ||
        pcclGetMasterPort(m, &port) != pcclSuccess ||
        write(out, &port, sizeof port) != sizeof port)
        _exit(1);
    (void)pcclMasterAwaitTermination(m);
    _exit(0);
}

/* Returns its process, and its port in `port`; or -1. */
static inline pid_t start_master(uint16_t *port)
{
    int out[2];
    if (pipe(out) != 0) return -1;
    pid_t pid = fork();
    if (pid == 0) be_master(out[1]);
    (void)close(out[1]);
    bool told = pid > 0 && read(out[0], port, sizeof *port) == sizeof *port;
    (void)close(out[0]);
    return told ? pid : -1;
}

static inline void stop_master(pid_t pid)
{
    if (pid <= 0) return;
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

#endif
