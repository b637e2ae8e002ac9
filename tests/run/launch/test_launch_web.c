/* test_launch_web.c - tests of --status-http: where it listens, who may read,
 * and what is refused. */
#include "run.h"

#include "../../patience.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#ifdef PCCL_USE_HTTP

static int loopback(bool listens, uint16_t *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons(*port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    struct timeval limit = {.tv_sec = PATIENCE_S};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (!listens) {
        assert_int_equal(connect(fd, (struct sockaddr *)&at, size), 0);
        return fd;
    }
    assert_int_equal(bind(fd, (struct sockaddr *)&at, size), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &size), 0);
    *port = ntohs(at.sin_port);
    return fd;
}

/* The answer to GET PATH, with such a token unless it is NULL; asks again where
 * the coordinator had no processor. */
static void get_with(uint16_t port, const char *path, const char *token,
                     char *answer, size_t size)
{
    do {
        char request[512];
        size_t got = 0;
        int fd = loopback(false, &port);
        snprintf(request, sizeof request,
                 "GET %s HTTP/1.1\r\nHost: localhost\r\n"
                 "Connection: close\r\n%s%s\r\n\r\n",
                 path, token ? "Authorization: Bearer " : "X: y",
                 token ? token : "");
        assert_int_equal(send(fd, request, strlen(request), 0),
                         strlen(request));
        for (ssize_t n = 1; n > 0; got += (size_t)n) {
            n = recv(fd, answer + got, size - 1 - got, 0);
            assert_true(n >= 0);
        }
        answer[got] = '\0';
        close(fd);
    } while (strstr(answer, "coordinator does not answer"));
}

static void get(uint16_t port, const char *path, char *answer, size_t size)
{
    get_with(port, path, NULL, answer, size);
}

/* What follows `text` in the first line that has it. */
static const char *after(const char *lines, const char *text)
{
    const char *found = strstr(lines, text);
    if (!found) fail_msg("%s: not in %s", text, lines);
    return found + strlen(text);
}

/* Beside ranks, for this host alone. */
static void test_of_a_job(void **state)
{
    (void)state;
    struct run run;
    char answer[4096];
    RUN(&run, "-n", "1", "--status-http", "0", run_helper, "hold", "up");
    int one = run_process(&run, "up", NULL);
    run_errors_await(&run, "status at http://127.0.0.1:");
    uint16_t port = (uint16_t)atoi(after(run.errors, "http://127.0.0.1:"));
    if (geteuid() == 0) { /* a process of another user */
        assert_int_equal(seteuid(12345), 0);
        get(port, "/status.json", answer, sizeof answer);
        assert_has(answer, "HTTP/1.1 403");
        assert_has(answer, "for the user who runs the job");
        get(port, "/healthz", answer, sizeof answer);
        assert_int_equal(seteuid(0), 0);
        assert_has(answer, "HTTP/1.1 200");
    }
    get(port, "/healthz", answer, sizeof answer);
    assert_has(answer, "HTTP/1.1 200");
    get(port, "/status.json", answer, sizeof answer);
    assert_has(answer, "form 1, 0 members");
    get(port, "/metrics", answer, sizeof answer);
    assert_has(answer, "form 2, 0 members");
    close(one);
    kill(run.pid, SIGTERM);
    run_finish(&run);
    assert_int_equal(run.status, 128 + SIGTERM);
    run_free(&run);
}

/* All addresses: nobody reads without the token, which no rank gets. */
static void test_of_others(void **state)
{
    (void)state;
    struct run run;
    char answer[4096];
    RUN(&run, "--listen", "127.0.0.1:0", "--status-http", "*:0");
    char line[1024];
    run_line(&run, line, sizeof line);
    assert_has(line, "pccl-master: status at http://");
    const char *at = after(line, "http://");
    uint16_t port = (uint16_t)atoi(strrchr(at, ':') + 1);
    get(port, "/status.json", answer, sizeof answer);
    assert_has(answer, "HTTP/1.1 401");
    get_with(port, "/status.json", after(line, "/#token="), answer,
             sizeof answer);
    assert_has(answer, "form 1");
    kill(run.pid, SIGTERM);
    run_finish(&run);
    run_free(&run);
    setenv("PCCL_STATUS_TOKEN", "my-own-secret-token", 1);
    RUN(&run, "-n", "1", "--status-http", "127.0.0.1:0", "sh", "-c",
        "echo \"token ${PCCL_STATUS_TOKEN-none}\"; exec sleep 1000");
    unsetenv("PCCL_STATUS_TOKEN");
    run_line(&run, line, sizeof line);
    assert_string_equal(line, "token none");
    run_errors_await(&run, "status at http://127.0.0.1:");
    port = (uint16_t)atoi(after(run.errors, "http://127.0.0.1:"));
    assert_has_not(run.errors, "secret");
    get(port, "/metrics?token=my-own-secret-token", answer, sizeof answer);
    assert_has(answer, "HTTP/1.1 401");
    get_with(port, "/metrics", "my-own-secret-token", answer, sizeof answer);
    assert_has(answer, "form 2");
    kill(run.pid, SIGTERM);
    run_finish(&run);
    run_free(&run);
}

static void test_refusals_at_start(void **state)
{
    (void)state;
    struct run run;
    uint16_t port = 0;
    char text[64];
    int taken = loopback(true, &port);
    snprintf(text, sizeof text, "%u", (unsigned)port);
    RUN(&run, "-n", "1", "--status-http", text, run_helper, "hold", "up");
    run_finish(&run);
    assert_int_equal(run.status, 1);
    snprintf(text, sizeof text, "--status-http 127.0.0.1:%u: ", (unsigned)port);
    assert_has(run.errors, text);
    assert_has(run.errors, "in use");
    assert_has_not(run.output, "up");
    run_free(&run);
    close(taken);
    setenv("PCCL_STATUS_TOKEN", "short", 1);
    RUN(&run, "--status-http", "0");
    unsetenv("PCCL_STATUS_TOKEN");
    run_finish(&run);
    assert_int_equal(run.status, 1);
    assert_has(run.errors, "PCCL_STATUS_TOKEN: it has fewer than 16");
    run_free(&run);
}

#else

static void test_without_the_library(void **state)
{
    (void)state;
    struct run run;
    RUN(&run, "-n", "1", "--status-http", "0", run_helper, "hold", "up");
    run_finish(&run);
    assert_int_equal(run.status, 1);
    assert_has(run.errors, "built without libmicrohttpd");
    assert_has_not(run.output, "up");
    run_free(&run);
}

#endif

static void test_wrong_options(void **state)
{
    (void)state;
    struct run run;
    RUN(&run, "--status-http", "1:2:3:x]");
    run_finish(&run);
    assert_int_equal(run.status, 2);
    assert_has(run.errors, "is no address; write PORT, ADDRESS:PORT");
    run_free(&run);
    RUN(&run, "--status-http", "70000");
    run_finish(&run);
    assert_int_equal(run.status, 2);
    run_free(&run);
    RUN(&run, "--status", "127.0.0.1:1", "--status-http", "0");
    run_finish(&run);
    assert_int_equal(run.status, 2);
    assert_has(run.errors, "belongs to the pccl-master that coordinates");
    run_free(&run);
    RUN(&run, "--join", "127.0.0.1:1", "-n", "1", "--status-http", "0", "true");
    run_finish(&run);
    assert_int_equal(run.status, 2);
    run_free(&run);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
#ifdef PCCL_USE_HTTP
        cmocka_unit_test(test_of_a_job),
        cmocka_unit_test(test_of_others),
        cmocka_unit_test(test_refusals_at_start),
#else
        cmocka_unit_test(test_without_the_library),
#endif
        cmocka_unit_test(test_wrong_options),
    };
    run_arguments(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
