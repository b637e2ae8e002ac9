/* judge.c - test_sim --judge FIRST COUNT: who objects first, the oracle or the
 * model?
 *
 * Each universe runs in a process of its own, so that one may fail and the next
 * one begins, and goes on after the model's refusal. Ends when both have
 * objected; once one has, the other one has a third of the universes left.
 * Prints one line for each of them that has. */
#include "witness.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CPU_SECONDS = 20 }; /* of one universe: ten times as long as any */

struct finding {
    uint64_t seed; /* 0: none */
    char why[200];
};

static void keep_line(struct finding *f, uint64_t seed, const char *text)
{
    if (f->seed > 0) return;
    f->seed = seed;
    size_t size = strcspn(text, "\n");
    if (size >= sizeof f->why) size = sizeof f->why - 1;
    memcpy(f->why, text, size);
    f->why[size] = '\0';
}

/* What a failed universe has printed: the first line that says something. */
static const char *last_words(int from, int status, char *text, size_t size)
{
    size_t used = 0;
    ssize_t n;
    while (used + 1 < size &&
           (n = read(from, text + used, size - used - 1)) > 0)
        used += (size_t)n;
    text[used] = '\0';
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
        return "it does not end";
    char *assertion = strstr(text, "Assertion");
    if (assertion) return assertion;
    char *seed = strstr(text, "\nseed ");
    char *line = seed ? strchr(seed + 1, '\n') : NULL;
    if (line) return line + 3;
    return used > 0 ? text : "a signal";
}

static bool judge_one(uint64_t seed, void (*universe)(uint64_t seed),
                      struct finding *oracle, struct finding *model,
                      struct witness_note *note)
{
    FILE *words = tmpfile();
    if (!words) return false;
    note->refused = false;
    pid_t child = fork();
    if (child < 0) return false;
    if (child == 0) {
        struct rlimit limit = {CPU_SECONDS, CPU_SECONDS};
        (void)setrlimit(RLIMIT_CPU, &limit);
        (void)dup2(fileno(words), 1);
        (void)dup2(fileno(words), 2);
        universe(seed);
        (void)fflush(stdout);
        _exit(0);
    }
    int status = 0;
    (void)waitpid(child, &status, 0);
    (void)lseek(fileno(words), 0, SEEK_SET);
    char text[4096];
    if (status != 0)
        keep_line(oracle, seed,
                  last_words(fileno(words), status, text, sizeof text));
    if (note->refused) keep_line(model, seed, note->why);
    (void)fclose(words);
    return true;
}

int judge(uint64_t first, uint64_t count, void (*universe)(uint64_t seed))
{
    struct finding oracle = {0}, model = {0};
    struct witness_note *note = mmap(NULL, sizeof *note, PROT_READ | PROT_WRITE,
                                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (note == MAP_FAILED) return 2;
    witness_lenient = note;
    for (uint64_t i = 0; i < count; i++) {
        if (oracle.seed > 0 && model.seed > 0) break;
        uint64_t one = oracle.seed > 0 ? oracle.seed : model.seed;
        if (one > 0 && first + i > one + count / 3) break;
        if (!judge_one(first + i, universe, &oracle, &model, note)) return 2;
    }
    if (oracle.seed > 0)
        printf("oracle %llu: %s\n", (unsigned long long)oracle.seed,
               oracle.why);
    if (model.seed > 0)
        printf("model %llu: %s\n", (unsigned long long)model.seed, model.why);
    return oracle.seed > 0 || model.seed > 0;
}
