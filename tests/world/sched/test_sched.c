/* test_sched.c [FIRST [COUNT [PROGRAM]]] - programs of real members under a
 * deterministic schedule, one universe for each seed. See README.md.
 *
 * A failure prints its seed; `test_sched SEED 1` is the same schedule again,
 * and with SCHED_TRACE=1 in the environment it prints the last points and what
 * each thread waits for. */
#include "sched_program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COUNT = 200, REPEAT_EVERY = 10 };

struct outcome {
    uint64_t hash, steps;
    int64_t time;
};

static const struct sched_program *program_of(uint64_t seed, const char *name)
{
    if (!name) return &sched_programs[seed % (uint64_t)sched_program_count];
    for (int i = 0; i < sched_program_count; i++)
        if (strcmp(sched_programs[i].name, name) == 0)
            return &sched_programs[i];
    fprintf(stderr, "no program %s\n", name);
    exit(2);
}

/* False: it failed, and said why. */
static bool run(const struct sched_program *program, uint64_t seed,
                struct outcome *outcome)
{
    int fds[2];
    fflush(NULL);
    if (pipe(fds) != 0) return false;
    pid_t pid = fork();
    if (pid == 0) {
        close(fds[0]);
        sched_run_program(program, seed);
        struct outcome o = {sched_hash(), sched_steps(), sched_now()};
        _exit(write(fds[1], &o, sizeof o) == sizeof o ? 0 : 1);
    }
    close(fds[1]);
    bool ok =
        pid > 0 && read(fds[0], outcome, sizeof *outcome) == sizeof *outcome;
    close(fds[0]);
    int status = -1;
    if (pid > 0) (void)waitpid(pid, &status, 0);
    if (ok && status == 0) return true;
    fprintf(stderr, "seed %llu (%s) failed with status %#x\n",
            (unsigned long long)seed, program->name, (unsigned)status);
    return false;
}

int main(int argc, char **argv)
{
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : COUNT;
    const char *name = argc > 3 ? argv[3] : NULL;
    uint64_t failed = 0, points = 0, repeated = 0;
    setenv("PCCL_DEADLINE", "20", 1);
    setenv("PCCL_INSECURE", "1", 1); /* the kernel knows no simulated socket */
    setenv("PCCL_LOG_LEVEL", "NONE", 0);
    bool stops = getenv("SCHED_STOP") != NULL; /* at the first failure */
    uint64_t end = first + count;
    for (uint64_t seed = first; seed < end; seed++) {
        const struct sched_program *program = program_of(seed, name);
        struct outcome a, b;
        if (!run(program, seed, &a)) {
            failed++;
            if (stops) break;
            continue;
        }
        points += a.steps;
        if (seed % REPEAT_EVERY != 0) continue;
        repeated++;
        if (run(program, seed, &b) && a.hash == b.hash && a.time == b.time)
            continue;
        fprintf(stderr, "seed %llu (%s) is not the same twice\n",
                (unsigned long long)seed, program->name);
        failed++;
    }
    printf("%llu schedules, %llu points, %llu repeated, %llu failed\n",
           (unsigned long long)count, (unsigned long long)points,
           (unsigned long long)repeated, (unsigned long long)failed);
    return failed > 0 || points == 0;
}
