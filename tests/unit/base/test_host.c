/* test_host.c - what a host sees of a process: children whose state is made
 * here, and waited for before they are looked at. */
#include "../../../src/base/host.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static struct host_watch *watch;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The thread that sends heartbeats: blocks at once. */
static void *sender(void *arg)
{
    int *pipes = arg;
    (void)pthread_setname_np(pthread_self(), HOST_IO_THREAD);
    if (write(pipes[1], "r", 1) != 1) _exit(1);
    (void)pthread_mutex_lock(&lock);
    return NULL;
}

/* A child whose sender waits for a lock, whose holder computes or sleeps. */
static pid_t child(bool computes)
{
    int pipes[2];
    char byte;
    assert_int_equal(pipe(pipes), 0);
    pid_t parent = getpid();
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        pthread_t thread;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(1);
        (void)pthread_mutex_lock(&lock);
        (void)pthread_create(&thread, NULL, sender, pipes);
        volatile uint64_t turns = 0;
        while (computes) turns++;
        for (;;) pause();
    }
    assert_int_equal(read(pipes[0], &byte, 1), 1);
    close(pipes[0]);
    close(pipes[1]);
    return pid;
}

static void end(pid_t pid)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static enum evidence look(pid_t pid, pccl_ns now)
{
    return host_look(watch, (uint32_t)pid, now);
}

/* Looks until the process is seen so: its threads need time to get there. */
static void await(pid_t pid, enum evidence want)
{
    for (pccl_ns now = 1; look(pid, now) != want; now++) usleep(1000);
}

static int setup(void **state)
{
    (void)state;
    watch = calloc(1, sizeof *watch);
    return watch == NULL;
}

static int teardown(void **state)
{
    (void)state;
    free(watch);
    return 0;
}

static void test_gone(void **state)
{
    (void)state;
    pid_t pid = child(false);
    end(pid);
    assert_int_equal(look(pid, 1), EVIDENCE_NONE);
    assert_int_equal(look(0x7ffffff0, 2), EVIDENCE_NONE);
}

static void test_stopped(void **state)
{
    (void)state;
    pid_t pid = child(true);
    assert_int_equal(kill(pid, SIGSTOP), 0);
    assert_int_equal(waitpid(pid, NULL, WUNTRACED), pid);
    await(pid, EVIDENCE_STOPPED);
    end(pid);
}

static void test_traced(void **state)
{
    (void)state;
    pid_t pid = child(false);
    if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) != 0) {
        end(pid);
        skip();
    }
    assert_int_equal(ptrace(PTRACE_INTERRUPT, pid, NULL, NULL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    await(pid, EVIDENCE_TRACED);
    assert_int_equal(ptrace(PTRACE_DETACH, pid, NULL, NULL), 0);
    end(pid);
}

/* It sleeps, and nobody holds it up: once all threads are where they stay,
 * every look says so. */
static void test_sleeping(void **state)
{
    (void)state;
    pid_t pid = child(false);
    int same = 0;
    for (pccl_ns now = PCCL_S; same < 100; now += PCCL_S) {
        same = look(pid, now) == EVIDENCE_NONE ? same + 1 : 0;
        usleep(1000);
    }
    end(pid);
}

/* The sender sleeps, but not of its own will: the holder of its lock is not
 * through. One look alone cannot tell that from a program that computes. */
static void test_held_up_by_a_lock(void **state)
{
    (void)state;
    pid_t pid = child(true);
    await(pid, EVIDENCE_RUNNABLE);
    /* The sender may still be on its way to the lock. */
    do memset(watch, 0, sizeof *watch);
    while (look(pid, 1) != EVIDENCE_NONE);
    await(pid, EVIDENCE_RUNNABLE);
    end(pid);
}

static void test_this_host(void **state)
{
    (void)state;
    assert_true(host_id() != 0);
    assert_int_equal(host_id() & 1, 0);
    assert_true(host_id() == host_id());
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_gone),     TEST(test_stopped),           TEST(test_traced),
        TEST(test_sleeping), TEST(test_held_up_by_a_lock), TEST(test_this_host),
    };
    return cmocka_run_group_tests_name("server/host", tests, NULL, NULL);
}
