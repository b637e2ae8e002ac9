/* elect_child.c - see elect_child.h. */
#include "elect_child.h"

#include "../base/host.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

bool child_open(struct elect_child *c, char **argv, bool hangs_up)
{
    sigset_t taken;
    *c = (struct elect_child){.argv = argv, .hangs_up = hangs_up};
    c->right = right_make(&c->right_fd);
    if (!c->right) return false;
    sigemptyset(&taken);
    sigaddset(&taken, SIGTERM);
    sigaddset(&taken, SIGINT);
    sigaddset(&taken, SIGUSR1);
    sigaddset(&taken, SIGCHLD);
    if (hangs_up) sigaddset(&taken, SIGHUP);
    if (sigprocmask(SIG_BLOCK, &taken, &c->mask) != 0) return false;
    c->signals = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
    return c->signals >= 0;
}

/* A program of its own: threads of libcurl may hold locks of this one. */
static void become(const struct elect_child *c, pid_t elector)
{
    char number[16];
    size_t count = 0;
    while (c->argv[count]) count++;
    char **argv = calloc(count + 3, sizeof *argv);
    if (!argv) _exit(EXIT_FAILURE);
    argv[0] = c->argv[0];
    argv[1] = "--elected";
    argv[2] = number;
    memcpy(argv + 3, c->argv + 1, (count - 1) * sizeof *argv);
    (void)snprintf(number, sizeof number, "%d", c->right_fd);
    /* It dies with its elector, also if that is dead already. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != elector ||
        fcntl(c->right_fd, F_SETFD, 0) != 0 ||
        sigprocmask(SIG_SETMASK, &c->mask, NULL) != 0)
        _exit(EXIT_FAILURE);
    execv("/proc/self/exe", argv);
    (void)dprintf(STDERR_FILENO, "pccl-master: cannot start again: %s\n",
                  strerror(errno));
    _exit(EXIT_FAILURE);
}

bool child_start(struct elect_child *c, pccl_ns until, pccl_ns pace)
{
    pid_t elector = getpid();
    right_grant(c->right, until, pace);
    c->until = until;
    c->killed = false;
    c->status = 0;
    (void)fflush(NULL);
    c->pid = fork();
    if (c->pid == 0) become(c, elector);
    if (c->pid > 0) return true;
    c->pid = 0;
    return false;
}

void child_extend(struct elect_child *c, pccl_ns until)
{
    c->until = until;
    right_extend(c->right, until);
}

/* WNOHANG, or 0 to wait. */
static void reap(struct elect_child *c, int how)
{
    pid_t got;
    if (c->pid == 0) return;
    do {
        got = waitpid(c->pid, &c->status, how);
    } while (got == -1 && errno == EINTR);
    if (got != 0) c->pid = 0;
}

void child_kill(struct elect_child *c)
{
    right_extend(c->right, 0);
    reap(c, WNOHANG);
    if (c->pid == 0) return;
    c->killed = true;
    kill(c->pid, SIGKILL);
    reap(c, 0);
}

void child_look(struct elect_child *c)
{
    struct signalfd_siginfo info;
    while (read(c->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        int number = (int)info.ssi_signo;
        bool ends = number == SIGTERM || number == SIGINT;
        if (ends) c->stopping = true;
        if (number != SIGCHLD && c->pid > 0)
            kill(c->pid, ends ? SIGTERM : number);
    }
    reap(c, WNOHANG);
    if (c->pid > 0 && host_time() >= c->until) child_kill(c);
}

void child_wait(struct elect_child *c, pccl_ns until)
{
    bool runs = c->pid > 0, stopping = c->stopping;
    for (;;) {
        child_look(c);
        pccl_ns now = host_time(), next = until;
        if (now >= until || (runs && c->pid == 0) || stopping != c->stopping)
            return;
        if (c->pid > 0 && c->until < next) next = c->until;
        pccl_ns ms = (next - now) / PCCL_MS + 1;
        struct pollfd signals = {.fd = c->signals, .events = POLLIN};
        (void)poll(&signals, 1, ms < 1000 ? (int)ms : 1000);
    }
}

void child_close(struct elect_child *c)
{
    if (c->signals > 0) (void)close(c->signals);
    if (c->right) (void)close(c->right_fd);
}
