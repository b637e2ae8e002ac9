/* wan_emulator.c - runs a program in every node of an emulated wide-area
 * network.
 *
 *   wan-emulator [--log FILE] [--connections N] [--master COMMAND] --peer
 * COMMAND WORLD wan-emulator --check WORLD
 *
 * Commands are for /bin/sh and find in their environment WAN_PEER (1 and up; 0
 * for the master), WAN_PEERS, WAN_REGION, WAN_ADDRESS, WAN_MASTER (the master's
 * address) and WAN_CONTROL, a descriptor that takes lines: a statement of the
 * world's file, or "mark NAME". Exit status: 0 all peers ended well, 1 not all,
 * 2 usage, 77 not possible here, 124 out of time. See README.md. */
#include "bound.h"
#include "emulator.h"
#include "../../src/bench/namespace.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const char usage[] =
    "usage: wan-emulator [--log FILE] [--connections N] [--master COMMAND]\n"
    "              --peer COMMAND WORLD\n"
    "       wan-emulator --check WORLD\n";

/* Reads a file; the caller frees the text. NULL: see errno. */
static char *read_file(const char *name)
{
    enum { TEXT_MAX = 1 << 20 };
    FILE *file = fopen(name, "re");
    if (!file) return NULL;
    char *text = malloc(TEXT_MAX + 1);
    size_t size = text ? fread(text, 1, TEXT_MAX, file) : 0;
    fclose(file);
    if (text) text[size] = '\0';
    return text;
}

/* Prints the links and the best ring of a world. */
static int check(const struct world *w, uint32_t connections)
{
    struct network *net = network_make(w);
    if (!net) return 1;
    printf("%s: %u peers\n", w->title, w->nodes - 1);
    printf("%4s %-16s round trips in ms to peers 1, 2, ...\n", "peer",
           "region");
    for (uint32_t a = 1; a < w->nodes; a++) {
        printf("%4u %-16s", a, w->region_name[w->region_of[a]]);
        for (uint32_t b = 1; b < w->nodes; b++) {
            wan_ns both =
                network_path(net, a, b)->delay + network_path(net, b, a)->delay;
            printf(" %5.1f", a == b ? 0 : (double)both / 1e6);
        }
        printf("\n");
    }
    struct ring best = bound_best(net, connections);
    uint64_t rate = bound_of(net, &best, connections);
    if (best.count == 0) {
        printf("no ring%s\n",
               w->nodes - 1 > BOUND_EXACT_MAX ? " sought: too many peers" : "");
    } else if (rate == UINT64_MAX) {
        printf("nothing limits the rate\n");
    } else {
        printf("best ring: %.3f Mbit/s:", (double)rate / 125e3);
        for (uint32_t i = 0; i < best.count; i++) printf(" %u", best.node[i]);
        printf("\n");
    }
    network_destroy(net);
    return 0;
}

static volatile sig_atomic_t child;

static void on_signal(int signal)
{
    if (child > 0) (void)kill(child, SIGKILL);
    _exit(128 + signal);
}

/* The emulator is the first process of a PID namespace and dies with this
 * process, so that nothing of the run survives it. */
static int run(const struct world *w, const struct emulator_options *o)
{
    int alive[2]; /* reaches EOF when this process is gone */
    if (unshare(CLONE_NEWPID) != 0) {
        fprintf(stderr, "wan-emulator: PID namespaces: %s\n", strerror(errno));
        return EMULATOR_SKIPPED;
    }
    if (pipe2(alive, O_CLOEXEC) != 0) return 1;
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0) {
        fprintf(stderr, "wan-emulator: fork: %s\n", strerror(errno));
        return 1;
    }
    if (pid == 0) {
        struct pollfd parent = {.fd = alive[0], .events = POLLIN};
        close(alive[1]);
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || poll(&parent, 1, 0) != 0)
            _exit(1);
        int status = emulator_run(w, o);
        fflush(NULL);
        _exit(status);
    }
    child = pid;
    struct sigaction action = {.sa_handler = on_signal};
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        (void)sigaction(signals[i], &action, NULL);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static int with_world(const char *name, const struct emulator_options *o,
                      bool only_check)
{
    struct world w;
    char error[WORLD_ERROR_SIZE];
    char *text = read_file(name);
    if (!text) {
        fprintf(stderr, "wan-emulator: %s: %s\n", name, strerror(errno));
        return 2;
    }
    bool good = world_parse(&w, name, text, error);
    free(text);
    if (!good) {
        fprintf(stderr, "%s\n", error);
        return 2;
    }
    int status;
    if (only_check) {
        status = check(&w, o->connections);
    } else if (!namespace_possible(error)) {
        fprintf(stderr, "wan-emulator: skipped: %s\n", error);
        status = EMULATOR_SKIPPED;
    } else {
        status = run(&w, o);
    }
    world_free(&w);
    return status;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"log", 1, NULL, 'l'},    {"connections", 1, NULL, 'c'},
        {"master", 1, NULL, 'm'}, {"peer", 1, NULL, 'p'},
        {"check", 0, NULL, 'k'},  {NULL, 0, NULL, 0}};
    struct emulator_options o = {.connections = 1};
    bool only_check = false;
    const char *log = NULL;
    int c;
    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (c == 'l')
            log = optarg;
        else if (c == 'c')
            o.connections = (uint32_t)strtoul(optarg, NULL, 10);
        else if (c == 'm')
            o.master = optarg;
        else if (c == 'p')
            o.peer = optarg;
        else if (c == 'k')
            only_check = true;
        else
            optind = argc + 1;
    }
    if (optind != argc - 1 || (!o.peer && !only_check) || o.connections < 1 ||
        o.connections > 4096) {
        fputs(usage, stderr);
        return 2;
    }
    if (log && !(o.log = fopen(log, "we"))) {
        fprintf(stderr, "wan-emulator: %s: %s\n", log, strerror(errno));
        return 2;
    }
    int status = with_world(argv[optind], &o, only_check);
    if (o.log) fclose(o.log);
    return status;
}
