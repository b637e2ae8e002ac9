/* run.c - runs pccl-master and reads its output. */
#include "run.h"

#include "../../patience.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

const char *run_master;
const char *run_helper;

void run_arguments(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: %s PCCL-MASTER HELPER\n", argv[0]);
        exit(1);
    }
    run_master = argv[1];
    run_helper = argv[2];
    setenv("LAUNCHER", run_master, 1);
    setenv("HELPER", run_helper, 1);
    signal(SIGPIPE, SIG_IGN);
}

void run_start(struct run *run, const char *const *args)
{
    int in[2], out[2], err[2];
    const char *argv[64] = {run_master};
    for (int i = 0; args[i]; i++) argv[i + 1] = args[i];
    *run = (struct run){0};
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    assert_int_equal(pipe2(err, O_CLOEXEC), 0);
    run->pid = fork();
    assert_true(run->pid >= 0);
    if (run->pid == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        dup2(err[1], 2);
        signal(SIGPIPE, SIG_DFL);
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* no child survives a failed test */
        execv(run_master, (char *const *)argv);
        _exit(98);
    }
    close(in[0]);
    close(out[1]);
    close(err[1]);
    run->in = in[1];
    run->out = out[0];
    run->err = err[0];
    run->output = calloc(1, 1);
    run->errors = calloc(1, 1);
}

static void take(int *fd, char **text, size_t *size, size_t *space)
{
    if (*size + 65536 >= *space) {
        *space = 2 * (*size + 65536) + 1;
        *text = realloc(*text, *space);
        assert_non_null(*text);
    }
    ssize_t got = read(*fd, *text + *size, 65536);
    if (got > 0) {
        *size += (size_t)got;
    } else {
        close(*fd);
        *fd = -1;
    }
    (*text)[*size] = '\0';
}

/* Reads available output; fails the test if none comes in time. */
static void run_read(struct run *run)
{
    struct pollfd fds[2] = {{.fd = run->out, .events = POLLIN},
                            {.fd = run->err, .events = POLLIN}};
    if (poll(fds, 2, PATIENCE_MS) <= 0) {
        kill(run->pid, SIGKILL);
        fail_msg("no output and no end; out: %s err: %s", run->output,
                 run->errors);
    }
    if (fds[0].revents)
        take(&run->out, &run->output, &run->output_size, &run->output_space);
    if (fds[1].revents)
        take(&run->err, &run->errors, &run->errors_size, &run->errors_space);
}

void run_line(struct run *run, char *line, size_t size)
{
    char *end;
    while (!(end = strchr(run->output, '\n'))) {
        if (run->out < 0) fail_msg("no line; err: %s", run->errors);
        run_read(run);
    }
    size_t length = (size_t)(end - run->output);
    assert_true(length < size);
    memcpy(line, run->output, length);
    line[length] = '\0';
    run->output_size -= length + 1;
    memmove(run->output, end + 1, run->output_size + 1);
}

int run_process(struct run *run, const char *word, pid_t *pid)
{
    char line[256], got[64];
    int number = 0;
    run_line(run, line, sizeof line);
    assert_int_equal(sscanf(line, "%63s %d", got, &number), 2);
    assert_string_equal(got, word);
    int fd = (int)syscall(SYS_pidfd_open, number, 0);
    assert_true(fd >= 0);
    if (pid) *pid = number;
    return fd;
}

void run_errors_await(struct run *run, const char *text)
{
    while (!strstr(run->errors, text)) {
        if (run->err < 0) fail_msg("no '%s' in: %s", text, run->errors);
        run_read(run);
    }
}

void run_finish(struct run *run)
{
    if (run->in >= 0) close(run->in);
    run->in = -1;
    while (run->out >= 0 || run->err >= 0) run_read(run);
    int status;
    while (waitpid(run->pid, &status, 0) == -1 && errno == EINTR) continue;
    run->status =
        WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void run_free(struct run *run)
{
    free(run->output);
    free(run->errors);
}

void assert_gone(int pidfd)
{
    struct pollfd pollfd = {.fd = pidfd, .events = POLLIN};
    assert_int_equal(poll(&pollfd, 1, PATIENCE_MS), 1);
    close(pidfd);
}

void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part)) fail_msg("no '%s' in: %s", part, text);
}

void assert_has_not(const char *text, const char *part)
{
    if (strstr(text, part)) fail_msg("'%s' in: %s", part, text);
}

size_t count_lines(const char *text)
{
    size_t count = 0;
    for (; *text; text++) count += *text == '\n';
    return count;
}
