/* bench_churn.c - pccl-bench churn: jobs under faults, whose histories are then
 * compared.
 *
 * Several jobs run side by side, each with its own coordinator and transports.
 * Members write what they were told (churn.h); churn_check.c has what must
 * hold. A job lives for a few minutes; then it ends well, is checked, and
 * another one begins. */
#include "churn.h"

#include <dirent.h>
#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NET = 3, MPI, JOBS, GENERATION_S = 120 };

#define PATIENCE_NS (BENCH_PATIENCE_S * INT64_C(1000000000))

static const char *const job_names[JOBS] = {"shm", "tcp", "mixed", "net",
                                            "mpi"};

static const char help[] =
    "usage: pccl-bench churn [options]\n"
    "\n"
    "Runs jobs whose processes are killed, stopped, cut off, and replaced,\n"
    "compares what all of them were told, and prints a report. Exit status 1:\n"
    "something contradicts the contract, or a kind of fault never happened.\n"
    "\n"
    "  --hours H, --seconds S   how long (60 s); longer where a kind of fault\n"
    "                   has not happened yet\n"
    "  --seed N         of all that is random (the time)\n"
    "  --members N      processes of each job, 3 to 12 (6)\n"
    "  --deadline S     PCCL_DEADLINE of the jobs (1)\n"
    "  --faults LIST    kill pause stop join leave partition master (all);\n"
    "                   pause: SIGSTOP for less than half a deadline; stop:\n"
    "                   for longer than one; partition needs root; master:\n"
    "                   SIGSTOP of the coordinator\n"
    "  --jobs LIST      shm tcp mixed net mpi (all): shared memory; TCP; "
    "both;\n"
    "                   four network namespaces; an MPI program under\n"
    "                   pccl-master --elastic --respawn\n"
    "  --keep DIR       keeps histories and logs in DIR, a new folder\n"
    "  --check DIR      only checks the histories in DIR\n"
    "  --json           the report as one JSON object\n";

static volatile sig_atomic_t interrupted;

static void interrupt(int signal)
{
    (void)signal;
    interrupted = 1;
}

/* --------------------------------------------------------------- options */

static bool take_faults(struct churn_options *o, const char *list)
{
    char word[16];
    memset(o->wanted, 0, sizeof o->wanted);
    o->explicit_faults = true;
    while (bench_word(&list, word, sizeof word)) {
        bool known = false;
        for (int k = 0; k < CHURN_FAULTS; k++) {
            if (strcmp(word, churn_fault_names[k]) != 0) continue;
            known = o->wanted[k] = true;
        }
        if (!known) return false;
    }
    return *list == '\0';
}

static bool has_word(const char *list, const char *wanted)
{
    char word[16];
    while (bench_word(&list, word, sizeof word))
        if (strcmp(word, wanted) == 0) return true;
    return false;
}

static bool known_jobs(const char *list)
{
    char word[16];
    while (bench_word(&list, word, sizeof word)) {
        bool known = false;
        for (int i = 0; i < JOBS; i++) known |= strcmp(word, job_names[i]) == 0;
        if (!known) return false;
    }
    return *list == '\0';
}

static bool take_option(struct churn_options *o, int c)
{
    char *end = optarg;
    double value = optarg ? strtod(optarg, &end) : 0;
    bool number = end != optarg && *end == '\0' && value > 0;
    switch (c) {
    case 'h':
        o->seconds = value * 3600;
        return number;
    case 't':
        o->seconds = value;
        return number;
    case 'd':
        o->deadline = value;
        return number && value >= 0.1;
    case 's':
        o->seed = strtoull(optarg, &end, 0);
        return end != optarg && *end == '\0';
    case 'm':
        o->members = (int)value;
        return number && value >= 3 && value <= CHURN_SLOTS;
    case 'f':
        return take_faults(o, optarg);
    case 'J':
        o->jobs = optarg;
        return known_jobs(optarg);
    case 'k':
        o->keep = optarg;
        return true;
    case 'c':
        o->check = optarg;
        return true;
    case 'j':
        o->json = true;
        return true;
    default:
        return false;
    }
}

/* 0: run; else the exit status plus 1. */
static int parse(struct churn_options *o, int argc, char **argv)
{
    static const struct option options[] = {
        {"hours", 1, NULL, 'h'},  {"seconds", 1, NULL, 't'},
        {"seed", 1, NULL, 's'},   {"members", 1, NULL, 'm'},
        {"faults", 1, NULL, 'f'}, {"deadline", 1, NULL, 'd'},
        {"keep", 1, NULL, 'k'},   {"check", 1, NULL, 'c'},
        {"jobs", 1, NULL, 'J'},   {"json", 0, NULL, 'j'},
        {"help", 0, NULL, 'H'},   {NULL, 0, NULL, 0}};
    *o = (struct churn_options){.seconds = 60,
                                .seed = (uint64_t)time(NULL),
                                .members = 6,
                                .deadline = 1,
                                .jobs = "shm,tcp,mixed,net,mpi"};
    for (int k = 0; k < CHURN_FAULTS; k++) o->wanted[k] = true;
    int c;
    optind = 0;
    opterr = 0;
    while ((c = getopt_long(argc, argv, ":", options, NULL)) != -1) {
        if (c == 'H') {
            fputs(help, stdout);
            return 1;
        }
        if (c != '?' && c != ':' && take_option(o, c)) continue;
        fprintf(stderr, "pccl-bench: what is '%s' in churn? See churn --help\n",
                argv[optind - 1]);
        return 3;
    }
    if (optind == argc) return 0;
    fprintf(stderr, "pccl-bench: what is '%s' for?\n", argv[optind]);
    return 3;
}

/* ------------------------------------------------------------------- run */

struct churn_run {
    const struct churn_options *o;
    bool wanted[JOBS];
    struct churn_job jobs[JOBS];
    struct churn_totals *totals;
    char root[CHURN_PATH];
    char skipped[256];
    uint32_t wants, had;        /* kinds of faults, as bits */
    uint64_t steps, seen[JOBS]; /* of all jobs; of each one that runs */
    bool failed;
};

static void remove_folder(const char *folder)
{
    DIR *dir = opendir(folder);
    for (const struct dirent *d; dir && (d = readdir(dir));) {
        char path[CHURN_PATH];
        snprintf(path, sizeof path, "%.250s/%.200s", folder, d->d_name);
        if (d->d_name[0] != '.') (void)unlink(path);
    }
    if (dir) (void)closedir(dir);
    (void)rmdir(folder);
}

static bool begin(struct churn_run *r, int k)
{
    struct churn_job *j = &r->jobs[k];
    uint32_t generation = j->generation;
    *j = (struct churn_job){.o = r->o,
                            .name = job_names[k],
                            .number = (uint32_t)k,
                            .generation = generation};
    for (int i = 0; i < CHURN_SLOTS; i++) j->child[i].pidfd = -1;
    if (churn_job_start(j, r->root)) return true;
    bench_progress_end();
    fprintf(stderr, "pccl-bench: job %s does not start\n", j->name);
    churn_violation(r->totals, "job %s does not start", j->name);
    churn_job_kill(j);
    j->ended = true;
    return false;
}

/* All processes have ended: what do they tell? */
static void settle(struct churn_run *r, int k)
{
    struct churn_job *j = &r->jobs[k];
    uint64_t before = r->totals->violations;
    churn_job_kill(j);
    churn_check(j->folder, r->totals);
    (void)malloc_trim(0); /* what is forked next begins small */
    if (r->totals->violations != before) {
        r->failed = true;
        bench_progress_end();
        fprintf(stderr, "pccl-bench: violations in %s\n", j->folder);
    } else if (!r->o->keep) {
        remove_folder(j->folder);
    }
    (void)munmap(j->board, sizeof *j->board);
    j->generation++;
    j->ended = true;
}

/* A job that makes no step for so long hangs, on the busiest machine. */
static void watch(struct churn_run *r, struct churn_job *j)
{
    bool still = bench_now() - j->progress_at > PATIENCE_NS;
    if (still)
        churn_violation(r->totals, "%s: no step for %d s", j->folder,
                        BENCH_PATIENCE_S);
    /* Without a coordinator nothing goes on; its end is a violation itself. */
    if (still || (!j->ending && j->master == 0)) j->ending = j->hung = true;
}

static bool drive(struct churn_run *r, int k, int64_t end)
{
    struct churn_job *j = &r->jobs[k];
    int64_t now = bench_now();
    if (j->ended) return false;
    /* On a busy machine it takes longer until each kind has happened. */
    r->wants |= churn_faults_wanted(j);
    r->had |= j->had;
    bool all = (r->wants & ~r->had) == 0 || now >= end + PATIENCE_NS;
    bool last = (now >= end && all) || interrupted;
    if (!j->hung && !j->ending && !last && !atomic_load(&j->board->lost) &&
        now < j->born + GENERATION_S * INT64_C(1000000000)) {
        churn_job_tick(j);
        watch(r, j);
        return true;
    }
    if (!j->hung && !churn_job_over(j)) {
        watch(r, j);
        return true;
    }
    settle(r, k);
    return !last && begin(r, k);
}

static void show(struct churn_run *r, int64_t end)
{
    char text[96];
    double left = (double)(end - bench_now()) / 1e9;
    for (int k = 0; k < JOBS; k++) {
        const struct churn_job *j = &r->jobs[k];
        if (!r->wanted[k] || j->ended) continue;
        uint64_t steps = atomic_load(&j->board->steps);
        if (steps > r->seen[k]) r->steps += steps - r->seen[k];
        r->seen[k] = steps;
    }
    snprintf(text, sizeof text, "%llu steps, %llu violations",
             (unsigned long long)r->steps,
             (unsigned long long)r->totals->violations);
    bench_progress(r->o->seconds - left, r->o->seconds, text);
}

static void run_all(struct churn_run *r)
{
    const struct timespec tick = {.tv_nsec = 1000000};
    int64_t end = bench_now() + (int64_t)(r->o->seconds * 1e9);
    bool more = true;
    for (int k = 0; k < JOBS; k++) {
        r->jobs[k].ended = true;
        if (r->wanted[k]) (void)begin(r, k);
    }
    while (more) {
        more = false;
        for (int k = 0; k < JOBS; k++) more |= drive(r, k, end);
        show(r, end);
        if (more) (void)nanosleep(&tick, NULL);
    }
    bench_progress_end();
}

/* ------------------------------------------------------------------- all */

static void skip(struct churn_run *r, int k, const char *why)
{
    size_t at = strlen(r->skipped);
    snprintf(r->skipped + at, sizeof r->skipped - at, "%s%s: %s",
             at ? "; " : "", job_names[k], why);
    r->wanted[k] = false;
}

static void choose_jobs(struct churn_run *r)
{
    char why[200];
    char path[CHURN_PATH];
    for (int k = 0; k < JOBS; k++)
        r->wanted[k] = has_word(r->o->jobs, job_names[k]);
    if (r->wanted[NET] && !churn_net_possible(why, sizeof why))
        skip(r, NET, why);
    churn_beside("churn-mpi", path);
    if (r->wanted[MPI] && access(path, X_OK) != 0) skip(r, MPI, "no churn-mpi");
    churn_beside("pccl-master", path);
    if (r->wanted[MPI] && access(path, X_OK) != 0)
        skip(r, MPI, "no pccl-master");
}

static bool make_root(struct churn_run *r)
{
    const char *tmp = getenv("TMPDIR");
    if (r->o->keep) {
        snprintf(r->root, sizeof r->root, "%.400s", r->o->keep);
        return mkdir(r->root, 0700) == 0;
    }
    snprintf(r->root, sizeof r->root, "%.400s/pccl-churn.XXXXXX",
             tmp && *tmp ? tmp : "/tmp");
    return mkdtemp(r->root) != NULL;
}

/* The kinds of faults that must have happened, as bits. */
static uint32_t required(const struct churn_run *r)
{
    uint32_t bits = r->totals->wanted;
    bool can_cut = strncmp(r->skipped, job_names[NET], 3) != 0;
    for (int k = 0; r->o->explicit_faults && k < CHURN_FAULTS; k++)
        if (r->o->wanted[k] && (k != CHURN_PARTITION || can_cut))
            bits |= 1u << k;
    return bits;
}

int bench_churn(int argc, char **argv)
{
    static struct churn_options o;
    static struct churn_run r;
    static struct churn_totals totals;
    int status = parse(&o, argc, argv);
    if (status != 0) return status - 1;
    r.o = &o;
    r.totals = &totals;
    int64_t begun = bench_now();
    if (o.check) {
        if (!churn_check_all(o.check, &totals))
            churn_violation(&totals, "%s: no histories", o.check);
    } else {
        if (!make_root(&r)) {
            perror(*r.root ? r.root : "pccl-bench");
            return 2;
        }
        (void)signal(SIGINT, interrupt);
        (void)signal(SIGTERM, interrupt);
        (void)signal(SIGPIPE, SIG_IGN);
        fprintf(stderr, "pccl-bench: churn, seed %llu, in %s\n",
                (unsigned long long)o.seed, r.root);
        choose_jobs(&r);
        run_all(&r);
        if (!r.failed && !o.keep) remove_folder(r.root);
    }
    double seconds = (double)(bench_now() - begun) / 1e9;
    churn_require(required(&r), &totals);
    churn_report(&o, &totals, seconds, r.skipped);
    for (int k = 0; k < CHURN_FAULTS; k++) free(totals.stalls[k].v);
    return totals.violations != 0;
}
