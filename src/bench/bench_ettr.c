/* bench_ettr.c - pccl-bench ettr: how many useful steps a run makes under
 * faults, of those that it makes without them (effective training time ratio).
 *
 * Two runs of the same members go on side by side, so that they share whatever
 * else the machine does. One has a fault of one kind every few seconds. */
#include "ettr.h"

#include <dirent.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char help[] =
    "usage: pccl-bench ettr [options]\n"
    "\n"
    "Useful steps per second of a run that meets faults of one kind, beside\n"
    "those of the same run without faults at the same time. A step is a wait\n"
    "that stands for computing, and a sum whose elements are all checked; it\n"
    "counts once for all members. Exit status 1: a sum was wrong, a history "
    "is\n"
    "not whole, or a fault did not happen.\n"
    "\n"
    "  --kinds LIST     kill pause stop join leave partition master (all), in\n"
    "                   turn; see churn --help. Who was killed or has left is\n"
    "                   replaced; join: a newcomer, which leaves again;\n"
    "                   partition, of one member for longer than a deadline,\n"
    "                   needs root\n"
    "  --seconds S      of each kind (60)\n"
    "  --every S        one fault in each S seconds (10)\n"
    "  --members N      of each of the two runs, 3 to 8 (4)\n"
    "  --compute MS     of a step (100)\n"
    "  --size BYTES     of a step's sum (1M)\n"
    "  --deadline S     PCCL_DEADLINE of both runs (1)\n"
    "  --seed N         of all that is random (the time)\n"
    "  --keep DIR       keeps the histories in DIR, a new folder\n"
    "  --check DIR      only checks the histories in DIR/KIND\n"
    "\n"
    "lost: seconds that a fault has cost, by the pace of the run without.\n";

static volatile sig_atomic_t interrupted;

static void interrupt(int signal)
{
    (void)signal;
    interrupted = 1;
}

static int kind_of(const char *word)
{
    for (int k = 0; k < CHURN_FAULTS; k++)
        if (strcmp(word, churn_fault_names[k]) == 0) return k;
    return -1;
}

static bool known_kinds(const char *list)
{
    char word[16];
    while (bench_word(&list, word, sizeof word))
        if (kind_of(word) < 0) return false;
    return *list == '\0';
}

static bool take_number(struct ettr_options *o, int c, double value)
{
    switch (c) {
    case 't':
        o->seconds = value;
        return value <= 1e6;
    case 'e':
        o->every = value;
        return value <= 1e6;
    case 'p':
        o->compute = value / 1e3;
        return value <= 1e6;
    case 'd':
        o->deadline = value;
        return value >= 0.1 && value <= 1e6;
    case 'm':
        o->members = (int)value;
        return value >= 3 && value <= 8;
    default:
        return false;
    }
}

static bool take_option(struct ettr_options *o, int c)
{
    const char *size = optarg;
    char *end = optarg;
    switch (c) {
    case 'f':
        o->kinds = optarg;
        return known_kinds(optarg);
    case 'b':
        return bench_size(&size, &o->bytes) && *size == '\0' &&
               o->bytes >= sizeof(float) && o->bytes <= UINT32_MAX;
    case 's':
        o->seed = strtoull(optarg, &end, 0);
        return end != optarg && *end == '\0';
    case 'k':
        o->keep = optarg;
        return true;
    case 'c':
        o->check = optarg;
        return true;
    default:
        break;
    }
    double value = optarg ? strtod(optarg, &end) : 0;
    return end != optarg && *end == '\0' && value > 0 &&
           take_number(o, c, value);
}

/* 0: run; else the exit status plus 1. */
static int parse(struct ettr_options *o, int argc, char **argv)
{
    static const struct option options[] = {
        {"kinds", 1, NULL, 'f'},   {"seconds", 1, NULL, 't'},
        {"every", 1, NULL, 'e'},   {"members", 1, NULL, 'm'},
        {"compute", 1, NULL, 'p'}, {"size", 1, NULL, 'b'},
        {"seed", 1, NULL, 's'},    {"deadline", 1, NULL, 'd'},
        {"keep", 1, NULL, 'k'},    {"check", 1, NULL, 'c'},
        {"help", 0, NULL, 'H'},    {NULL, 0, NULL, 0}};
    *o = (struct ettr_options){
        .kinds = "kill,pause,stop,join,leave,partition,master",
        .seconds = 60,
        .every = 10,
        .deadline = 1,
        .compute = 0.1,
        .members = 4,
        .bytes = 1 << 20,
        .seed = (uint64_t)time(NULL)};
    int c;
    optind = 0;
    opterr = 0;
    while ((c = getopt_long(argc, argv, ":", options, NULL)) != -1) {
        if (c == 'H') {
            fputs(help, stdout);
            return 1;
        }
        if (c != '?' && c != ':' && take_option(o, c)) continue;
        fprintf(stderr, "pccl-bench: what is '%s' in ettr? See ettr --help\n",
                argv[optind - 1]);
        return 3;
    }
    if (optind == argc) return 0;
    fprintf(stderr, "pccl-bench: what is '%s' for?\n", argv[optind]);
    return 3;
}

/* ------------------------------------------------------------------- run */

static void remove_folder(const char *folder)
{
    char path[CHURN_PATH];
    struct stat st;
    DIR *dir = opendir(folder);
    for (const struct dirent *d; dir && (d = readdir(dir));) {
        if (d->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%.250s/%.200s", folder, d->d_name);
        if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode))
            remove_folder(path);
        else
            (void)unlink(path);
    }
    if (dir) (void)closedir(dir);
    (void)rmdir(folder);
}

static void measure(struct ettr_job jobs[2], double seconds)
{
    int64_t now = bench_now();
    int64_t end = now + (int64_t)(seconds * 1e9);
    const struct timespec tick = {.tv_nsec = 5000000};
    for (int i = 0; i < 2; i++) jobs[i].begin = now;
    jobs[0].at = now + (int64_t)(jobs[0].o->every * 0.1e9);
    bool more = true;
    while (more && !interrupted) {
        for (int i = 0; i < 2; i++) ettr_job_tick(&jobs[i]);
        now = bench_now();
        more =
            now < end || jobs[0].faults < jobs[0].planned || jobs[0].begun != 0;
        bench_progress(seconds - (double)(end - now) / 1e9, seconds,
                       churn_fault_names[jobs[0].o->kind]);
        (void)nanosleep(&tick, NULL);
    }
    bench_progress_end();
}

/* Both runs of one kind, into a new folder. */
static bool run(struct ettr_options *o, const char *folder)
{
    static struct ettr_job jobs[2];
    const struct timespec tick = {.tv_nsec = 5000000};
    memset(jobs, 0, sizeof jobs);
    bool ok = mkdir(folder, 0700) == 0;
    for (int i = 0; i < 2 && ok; i++) {
        jobs[i].o = o;
        jobs[i].faulty = i == 0;
        ok = ettr_job_start(&jobs[i], folder);
    }
    jobs[0].planned = (uint64_t)(o->seconds / o->every);
    while (ok && !interrupted &&
           !(ettr_job_warm(&jobs[0]) && ettr_job_warm(&jobs[1]))) {
        for (int i = 0; i < 2; i++) ettr_job_tick(&jobs[i]);
        (void)nanosleep(&tick, NULL);
    }
    if (ok && !interrupted) measure(jobs, o->seconds);
    for (int i = 0; i < 2; i++) ettr_job_end(&jobs[i]);
    return ok;
}

/* True: nothing is wrong with it. */
static bool report(const char *kind, const char *folder)
{
    static struct churn_totals totals;
    struct ettr_figures f = {.faults = 0};
    memset(&totals, 0, sizeof totals);
    ettr_check(folder, &f, &totals);
    for (uint64_t i = 0; i < totals.violations && i < CHURN_KEPT; i++)
        fprintf(stderr, "violation: %s: %s\n", kind, totals.texts[i]);
    int n = (int)f.lost.count;
    double seconds = f.seconds > 0 ? f.seconds : 1;
    double ratio = f.faultless > 0 ? (double)f.steps / (double)f.faultless : 0;
    printf(" %-10s %8llu %9.1f %9.3f %9.3f %7.2f %9.3f %9.3f %6llu\n", kind,
           (unsigned long long)f.faults, f.seconds, (double)f.steps / seconds,
           (double)f.faultless / seconds, 100 * ratio,
           bench_quantile(f.lost.v, n, 0.5), bench_quantile(f.lost.v, n, 0.99),
           (unsigned long long)totals.violations);
    fflush(stdout);
    free(f.lost.v);
    return totals.violations == 0;
}

static bool make_root(const struct ettr_options *o, char root[CHURN_PATH])
{
    const char *tmp = getenv("TMPDIR");
    if (o->keep) {
        snprintf(root, CHURN_PATH, "%.400s", o->keep);
        return mkdir(root, 0700) == 0;
    }
    snprintf(root, CHURN_PATH, "%.400s/pccl-ettr.XXXXXX",
             tmp && *tmp ? tmp : "/tmp");
    return mkdtemp(root) != NULL;
}

/* False: something is wrong. */
static bool each_kind(struct ettr_options *o, const char *root)
{
    const char *list = o->kinds;
    char word[16];
    char why[200];
    char folder[CHURN_PATH];
    bool good = true;
    printf("#%-10s %8s %9s %9s %9s %7s %9s %9s %6s\n", "kind", "faults",
           "seconds", "steps/s", "faultless", "%", "lost p50", "lost p99",
           "wrong");
    while (!interrupted && bench_word(&list, word, sizeof word)) {
        o->kind = (enum churn_fault)kind_of(word);
        snprintf(folder, sizeof folder, "%.400s/%s", root, word);
        if (!o->check && o->kind == CHURN_PARTITION &&
            !churn_net_possible(why, sizeof why)) {
            printf(" %-10s skipped: %s\n", word, why);
            continue;
        }
        if (!o->check && !run(o, folder)) {
            fprintf(stderr, "pccl-bench: %s does not start\n", word);
            good = false;
        }
        good = report(word, folder) && good;
    }
    return good && !interrupted;
}

int bench_ettr(int argc, char **argv)
{
    static struct ettr_options o;
    char root[CHURN_PATH];
    int status = parse(&o, argc, argv);
    if (status != 0) return status - 1;
    if (o.check) return !each_kind(&o, o.check);
    if (!make_root(&o, root)) {
        perror(o.keep ? root : "pccl-bench");
        return 2;
    }
    (void)signal(SIGINT, interrupt);
    (void)signal(SIGTERM, interrupt);
    (void)signal(SIGPIPE, SIG_IGN);
    printf("# %d members, computing %g ms, sums of %zu bytes, deadline %g s, "
           "one fault every %g s; seed %llu\n",
           o.members, 1e3 * o.compute, o.bytes, o.deadline, o.every,
           (unsigned long long)o.seed);
    bool good = each_kind(&o, root);
    if (!o.keep && good) remove_folder(root);
    if (!good) fprintf(stderr, "pccl-bench: the histories are in %s\n", root);
    return !good;
}
