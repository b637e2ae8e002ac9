/* run.h - runs pccl-master in a test: talks to it, waits with a deadline. */
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
    int in, out, err; /* our ends; -1: closed */
    char *output;     /* NUL-terminated, all that came so far */
    char *errors;
    size_t output_size, errors_size;
    size_t output_space, errors_space; /* allocated */
    int status;                        /* as a shell's $? */
};

/* From the command line of the test program; for shells also in LAUNCHER and
 * HELPER, because a path may have blanks. */
extern const char *run_master;
extern const char *run_helper;
void run_arguments(int argc, char **argv);

/* args ends with NULL and does not name the program. */
void run_start(struct run *run, const char *const *args);
#define RUN(run, ...) run_start(run, (const char *const[]){__VA_ARGS__, NULL})

/* Next line of stdout, without newline; fails the test when none comes. */
void run_line(struct run *run, char *line, size_t size);
/* Reads a line "WORD PID" and returns a descriptor that tells its end. */
int run_process(struct run *run, const char *word, pid_t *pid);
/* Until text is in errors. */
void run_errors_await(struct run *run, const char *text);

/* Closes stdin, reads everything, waits. */
void run_finish(struct run *run);
void run_free(struct run *run);

/* The process is gone within the deadline; closes pidfd. */
void assert_gone(int pidfd);
void assert_has(const char *text, const char *part);
void assert_has_not(const char *text, const char *part);
size_t count_lines(const char *text);

#endif
