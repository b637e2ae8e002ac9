/* test_log.c - tests lines of the log: what each has, where it goes, and that a
 * line of JSON is one. Each case is a child: the log reads its settings once.
 */
#include "../../../src/base/file_pattern.h"
#include "../../../src/base/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/pccl_log_XXXXXX";
static char text[4096];

/* What lines(), in a child with these variables, leaves in the file. */
static void run(const char *file, const char *format, void (*lines)(void))
{
    char pattern[256], path[256];
    (void)snprintf(pattern, sizeof pattern, "%s/%s", folder, file);
    assert_true(file_pattern(path, sizeof path, pattern, "7"));
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setenv("PCCL_LOG_FILE", pattern, 1);
        setenv("PCCL_LOG_FORMAT", format, 1);
        setenv("PCCL_LOG_LEVEL", "INFO", 1);
        setenv("PCCL_RANK", "7", 1);
        lines();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    FILE *in = fopen(path, "re");
    assert_non_null(in);
    size_t size = fread(text, 1, sizeof text - 1, in);
    text[size] = '\0';
    fclose(in);
    unlink(path);
}

static void two_lines(void)
{
    LOG(LOG_DEBUG, "nobody reads this");
    LOG(LOG_INFO, "first");
    log_set_rank(3);
    log_set_epoch(5);
    LOG(LOG_WARN, "a \"name\"\n\\ of %d", 2);
}

static void test_text(void **state)
{
    (void)state;
    char host[65], want[256];
    int pid, year, used = 0;
    assert_int_equal(gethostname(host, sizeof host), 0);
    run("log.%r", "text", two_lines);
    assert_int_equal(sscanf(text, "pccl[%d] %d-%*d-%*dT%*d:%*d:%*d.%*6dZ%n",
                            &pid, &year, &used),
                     2);
    assert_true(used > 0 && year > 2000 && pid > 0);
    (void)snprintf(want, sizeof want, " %s rank 7 INFO: first\n", host);
    assert_memory_equal(text + used, want, strlen(want));
    (void)snprintf(want, sizeof want,
                   " %s rank 3 epoch 5 WARN: a \"name\"?\\ of 2\n", host);
    assert_non_null(strstr(text, want));
    assert_null(strstr(text, "nobody"));
}

static void test_json(void **state)
{
    (void)state;
    run("%%log", "json", two_lines);
    assert_memory_equal(text, "{\"time\":\"2", 10);
    assert_non_null(strstr(text, ",\"rank\":7,\"epoch\":0,\"level\":\"INFO\","
                                 "\"text\":\"first\"}\n{"));
    assert_non_null(strstr(text, ",\"rank\":3,\"epoch\":5,\"level\":\"WARN\","
                                 "\"text\":\"a \\\"name\\\"\\u000a\\\\ of 2\""
                                 "}\n"));
}

static void odd_line(void)
{
    LOG(LOG_WARN, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 \xc3( \xff "
                  "\xed\xa0\x80 \xc0\xaf \xf4\x90\x80\x80 \xe2\x82");
}

/* JSON is UTF-8: what others say and is none takes no reader the line. */
static void test_json_of_others(void **state)
{
    (void)state;
    run("log", "json", odd_line);
    assert_non_null(
        strstr(text, "\"text\":\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 \\ufffd( "
                     "\\ufffd \\ufffd\\ufffd\\ufffd \\ufffd\\ufffd "
                     "\\ufffd\\ufffd\\ufffd\\ufffd \\ufffd\\ufffd\"}\n"));
}

static void long_line(void)
{
    char many[3000];
    memset(many, '"', sizeof many);
    many[sizeof many - 1] = '\0';
    LOG(LOG_WARN, "%s", many);
    LOG(LOG_WARN, "next");
}

/* A line that is too long is cut, and ends as a line. */
static void test_long(void **state)
{
    (void)state;
    run("long", "json", long_line);
    char *next = strchr(text, '\n');
    assert_non_null(next);
    assert_memory_equal(next - 2, "\"}", 2);
    assert_int_equal(next[1], '{');
    run("long", "text", long_line);
    next = strchr(text, '\n');
    assert_non_null(next);
    assert_memory_equal(next + 1, "pccl[", 5);
}

static void test_pattern(void **state)
{
    (void)state;
    char to[64], want[64];
    assert_true(file_pattern(to, sizeof to, "a%r.%p%%%x", "4"));
    (void)snprintf(want, sizeof want, "a4.%d%%%%x", (int)getpid());
    assert_string_equal(to, want);
    assert_false(file_pattern(to, 4, "abcd", ""));
    assert_true(file_pattern(to, 5, "abcd", ""));
}

int main(void)
{
    if (!mkdtemp(folder)) return EXIT_FAILURE;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),           cmocka_unit_test(test_json),
        cmocka_unit_test(test_json_of_others), cmocka_unit_test(test_long),
        cmocka_unit_test(test_pattern),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(folder);
    return failed;
}
