/* run.h - runs pccl-master in a test, with a limit for every wait. */
#ifndef PCCL_TEST_LAUNCH_RUN_H
#define PCCL_TEST_LAUNCH_RUN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <cmocka.h>

struct run {
    pid_t pid;
    int in, out, err; /* our ends of the pipes; -1: closed */
    char *output;     /* all output so far, NUL-terminated */
    char *errors;
    size_t output_size, errors_size;
    size_t output_space, errors_space; /* allocated */
    int status;                        /* like $? of a shell */
};

/* From the command line of the test program. Shells find them in LAUNCHER and
 * HELPER, because a path may contain blanks. */
extern const char *run_master;
extern const char *run_helper;
void run_arguments(int argc, char **argv);

/* args ends with NULL and lacks the program's name. */
void run_start(struct run *run, const char *const *args);
#define RUN(run, ...) run_start(run, (const char *const[]){__VA_ARGS__, NULL})

/* The next line of stdout, without newline; fails the test if none comes. */
void run_line(struct run *run, char *line, size_t size);
/* Reads a line "WORD PID"; returns a pidfd, which reports the process's end. */
int run_process(struct run *run, const char *word, pid_t *pid);
/* Waits until `errors` contains text. */
void run_errors_await(struct run *run, const char *text);

/* Closes stdin, reads all output, and waits for the end. */
void run_finish(struct run *run);
void run_free(struct run *run);

/* Asserts that the process ends within PATIENCE_MS; closes pidfd. */
void assert_gone(int pidfd);
void assert_has(const char *text, const char *part);
void assert_has_not(const char *text, const char *part);
size_t count_lines(const char *text);

#endif
