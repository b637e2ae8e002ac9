/* test_launch_agent.c - test of an agent alone: what it tells of a silent
 * process of its host (rule M10). */
#include "run.h"

#include "../../../src/base/host.h"
#include "../../../src/launch/agent_link.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void bytes_write(int fd, const void *bytes, size_t size)
{
    assert_int_equal(write(fd, bytes, size), (ssize_t)size);
}

static void look(const struct run *run, int64_t id, uint64_t host, pid_t pid)
{
    char header[LINK_HEADER];
    struct link_texts texts = {0};
    link_put_number(&texts, id);
    link_put_number(&texts, (int64_t)host);
    link_put_number(&texts, pid);
    link_header(header, LINK_LOOK, 0, texts.size);
    bytes_write(run->in, header, sizeof header);
    bytes_write(run->in, texts.bytes, texts.size);
    free(texts.bytes);
}

static void bytes_read(int fd, char *bytes, size_t size)
{
    while (size > 0) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        (void)poll(&p, 1, -1);
        ssize_t n = read(fd, bytes, size);
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        assert_true(n > 0);
        bytes += n;
        size -= (size_t)n;
    }
}

/* The next answer; heartbeats are passed over. */
static void seen(const struct run *run, int64_t id, int64_t evidence)
{
    char bytes[LINK_HEADER + 64];
    struct link_frame frame;
    do {
        bytes_read(run->out, bytes, LINK_HEADER);
        size_t size = (unsigned char)bytes[3];
        assert_in_range(size, 0, 64);
        bytes_read(run->out, bytes + LINK_HEADER, size);
        assert_int_equal(link_decode(bytes, LINK_HEADER + size, &frame),
                         LINK_OK);
    } while (frame.type == LINK_ALIVE);
    assert_int_equal(frame.type, LINK_SEEN);
    struct link_texts texts = {.bytes = bytes + LINK_HEADER,
                               .size = frame.size};
    int64_t got = 0;
    assert_true(link_get_number(&texts, &got));
    assert_int_equal(got, id);
    assert_true(link_get_number(&texts, &got));
    assert_int_equal(got, evidence);
}

static pid_t stopped_child(void)
{
    pid_t parent = getpid();
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(1);
        for (;;) pause();
    }
    assert_int_equal(kill(pid, SIGSTOP), 0);
    assert_int_equal(waitpid(pid, NULL, WUNTRACED), pid);
    return pid;
}

static void test_a_silent_process(void **state)
{
    (void)state;
    struct run run;
    char magic[sizeof LINK_MAGIC - 1];
    pid_t pid = stopped_child();
    uint64_t host = host_id();
    RUN(&run, "--agent");
    bytes_read(run.out, magic, sizeof magic);
    assert_memory_equal(magic, LINK_MAGIC, sizeof magic);
    look(&run, 4, host + 2, pid); /* of another host: no answer */
    look(&run, 5, host, pid);
    seen(&run, 5, EVIDENCE_STOPPED);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    look(&run, 6, host, pid);
    seen(&run, 6, EVIDENCE_NONE);
    run_finish(&run);
    run_free(&run);
}

int main(int argc, char **argv)
{
    run_arguments(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_silent_process),
    };
    return cmocka_run_group_tests_name("launch/agent", tests, NULL, NULL);
}
