/* judge.c - test_sim --judge [KIND:]SEED...: who objects first, the oracle or
 * the model?
 *
 * Each universe runs in a process of its own, so that one may fail and the next
 * one begins, and goes on after the model's refusal. Ends when both have
 * objected; once one has, the other one has a third of the universes, and at
 * least one. Prints one line for each of them that has. */
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
    const char *name; /* of the universe, or NULL */
    char why[200];
};

static void keep_line(struct finding *f, const char *name, const char *text)
{
    if (f->name) return;
    f->name = name;
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

static bool judge_one(const char *name, void (*universe)(const char *name),
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
        universe(name);
        (void)fflush(stdout);
        _exit(0);
    }
    int status = 0;
    (void)waitpid(child, &status, 0);
    (void)lseek(fileno(words), 0, SEEK_SET);
    char text[4096];
    if (status != 0)
        keep_line(oracle, name,
                  last_words(fileno(words), status, text, sizeof text));
    if (note->refused) keep_line(model, name, note->why);
    (void)fclose(words);
    return true;
}

int judge(char **names, uint32_t count, void (*universe)(const char *name))
{
    struct finding oracle = {0}, model = {0};
    struct witness_note *note = mmap(NULL, sizeof *note, PROT_READ | PROT_WRITE,
                                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (note == MAP_FAILED || count == 0) return 2;
    witness_lenient = note;
    uint32_t one_at = count; /* where the first of the two has objected */
    for (uint32_t i = 0; i < count && i <= one_at + (count + 2) / 3; i++) {
        if (!judge_one(names[i], universe, &oracle, &model, note)) return 2;
        if (oracle.name && model.name) break;
        if ((oracle.name || model.name) && one_at == count) one_at = i;
    }
    if (oracle.name) printf("oracle %s: %s\n", oracle.name, oracle.why);
    if (model.name) printf("model %s: %s\n", model.name, model.why);
    return oracle.name || model.name;
}
