/* bench_options.c - the command line of pccl-bench. */
#include "bench.h"
#include "bench_data.h"

#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static bool complain(char *error, size_t room, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static bool complain(char *error, size_t room, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(error, room, format, args);
    va_end(args);
    return false;
}

struct option_state {
    struct bench_options *o;
    char *error;
    size_t room;
    bool ranks_given;
};

static bool number(struct option_state *s, const char *name, int low, int high,
                   int *to)
{
    char *end;
    long value = strtol(optarg, &end, 10);
    if (end == optarg || *end != '\0' || value < low || value > high)
        return complain(s->error, s->room,
                        "--%s needs a number from %d to %d, not '%s'", name,
                        low, high, optarg);
    *to = (int)value;
    return true;
}

static bool check_sizes(struct option_state *s)
{
    const char *left = s->o->sizes;
    size_t size;
    bool any = false;
    while (bench_size(&left, &size)) any = true;
    if (any && *left == '\0') return true;
    return complain(s->error, s->room,
                    "--sizes: '%s' is no list of sizes such as 8,64K,1M", left);
}

static bool check_ops(struct option_state *s)
{
    const char *left = s->o->ops;
    char word[16];
    enum bench_op op;
    bool any = false;
    while (bench_word(&left, word, sizeof word)) {
        bool sync = strcmp(word, "sync") == 0 || strcmp(word, "latency") == 0;
        any = true;
        if (!sync && !bench_op_named(word, &op))
            return complain(s->error, s->room,
                            "--op: '%s' is none of allreduce, bcast, "
                            "allgather, alltoall, barrier, sync, latency",
                            word);
        if (s->o->in_place && (sync || op != BENCH_ALLREDUCE))
            return complain(s->error, s->room,
                            "--in-place is for allreduce, not for '%s'", word);
        if (s->o->quantize.algorithm != pcclQuantNone &&
            (sync || op != BENCH_ALLREDUCE))
            return complain(s->error, s->room,
                            "--quantize is for allreduce, not for '%s'", word);
    }
    if (any && *left == '\0') return true;
    return complain(s->error, s->room, "--op: '%s' is no list of operations",
                    s->o->ops);
}

static bool check_types(struct option_state *s)
{
    const char *left = s->o->types;
    char word[16];
    pcclDataType_t type;
    bool any = false;
    while (bench_word(&left, word, sizeof word)) {
        any = true;
        if (!bench_type_named(word, &type))
            return complain(s->error, s->room,
                            "--types: '%s' is none of (u)int8 to (u)int64, "
                            "float16, bfloat16, float, double",
                            word);
    }
    if (any && *left == '\0') return true;
    return complain(s->error, s->room, "--types: '%s' is no list of types",
                    s->o->types);
}

static bool check_rest(struct option_state *s)
{
    struct bench_options *o = s->o;
    pcclRedOp_t redop;
    static const char *const transports[] = {"auto", "tcp", "shm"};
    bool known = o->transport == NULL;
    for (size_t i = 0; i < sizeof transports / sizeof transports[0]; i++)
        known |= o->transport && strcmp(o->transport, transports[i]) == 0;
    if (!known)
        return complain(s->error, s->room,
                        "--transport: '%s' is none of auto, tcp, shm",
                        o->transport);
    if (!bench_reduce_named(o->reduce, &redop))
        return complain(s->error, s->room,
                        "--redop: '%s' is none of sum, prod, max, min, avg",
                        o->reduce);
    if (strcmp(o->mode, "collective") == 0) return true;
    if (!s->ranks_given) o->ranks = 3;
    if (o->ranks > 1) return true;
    return complain(s->error, s->room, "%s takes at least 2 ranks", o->mode);
}

/* "u8-minmax" and the like. */
static bool take_quantize(struct option_state *s)
{
    static const struct {
        const char *name;
        pcclDataType_t type;
    } types[] = {{"u8-", pcclUint8},
                 {"i8-", pcclInt8},
                 {"u16-", pcclUint16},
                 {"i16-", pcclInt16}};
    pcclQuantizationOptions_t *q = &s->o->quantize;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        size_t size = strlen(types[i].name);
        if (strncmp(optarg, types[i].name, size) != 0) continue;
        q->quantized_datatype = types[i].type;
        if (strcmp(optarg + size, "minmax") == 0)
            q->algorithm = pcclQuantMinMax;
        if (strcmp(optarg + size, "zps") == 0)
            q->algorithm = pcclQuantZeroPointScale;
    }
    s->o->check = false;
    if (q->algorithm != pcclQuantNone) return true;
    return complain(s->error, s->room,
                    "--quantize: '%s' is none of u8-minmax, i16-zps and the "
                    "like",
                    optarg);
}

static bool take(struct option_state *s, int c, bool *help)
{
    struct bench_options *o = s->o;
    char *end;
    switch (c) {
    case 'o':
        o->ops = optarg;
        return true;
    case 's':
        o->sizes = optarg;
        return true;
    case 'y':
        o->types = optarg;
        return true;
    case 'd':
        o->reduce = optarg;
        return true;
    case 'x':
        o->transport = optarg;
        return true;
    case 'q':
        return take_quantize(s);
    case 'i':
        o->in_place = true;
        return true;
    case 'w':
        o->dirty = true;
        return true;
    case 'H':
        o->huge_pages = true;
        return true;
    case 'c':
        return number(s, "concurrent", 1, 256, &o->concurrent);
    case 'p':
        return number(s, "pool", 0, 64, &o->pool);
    case 'n':
        s->ranks_given = true;
        return number(s, "ranks", 1, 64, &o->ranks);
    case 'r':
        return number(s, "rounds", 1, 1000, &o->rounds);
    case 't':
        o->seconds = strtod(optarg, &end);
        if (end != optarg && *end == '\0' && o->seconds > 0) return true;
        return complain(s->error, s->room,
                        "--seconds needs a number above 0, not '%s'", optarg);
    case 'j':
        o->json = true;
        return true;
    case 'k':
    case 'K':
        o->check = c == 'k';
        return true;
    case 'a':
        o->algorithms = true;
        return true;
    case 'S':
        o->signal = SIGSTOP;
        return true;
    case 'h':
        *help = true;
        return true;
    }
    return false;
}

static bool take_mode(struct option_state *s, int *argc, char ***argv)
{
    if (*argc < 2 || (*argv)[1][0] == '-') return true;
    const char *mode = (*argv)[1];
    ++*argv;
    --*argc;
    const bool latency = strcmp(mode, "latency") == 0;
    if (latency) s->o->sizes = "400000"; /* 100,000 parameters */
    if (latency || strcmp(mode, "sync") == 0) {
        s->o->ops = mode;
        return true;
    }
    static const char *const modes[] = {"recovery", "join"};
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        if (strcmp(mode, modes[i]) != 0) continue;
        s->o->mode = modes[i];
        return true;
    }
    return complain(s->error, s->room,
                    "'%s' is none of recovery, join, sync, latency", mode);
}

bool bench_parse(struct bench_options *o, int argc, char **argv, bool *help,
                 char *error, size_t room)
{
    static const struct option options[] = {{"op", 1, NULL, 'o'},
                                            {"sizes", 1, NULL, 's'},
                                            {"types", 1, NULL, 'y'},
                                            {"redop", 1, NULL, 'd'},
                                            {"transport", 1, NULL, 'x'},
                                            {"quantize", 1, NULL, 'q'},
                                            {"in-place", 0, NULL, 'i'},
                                            {"concurrent", 1, NULL, 'c'},
                                            {"pool", 1, NULL, 'p'},
                                            {"seconds", 1, NULL, 't'},
                                            {"json", 0, NULL, 'j'},
                                            {"check", 0, NULL, 'k'},
                                            {"no-check", 0, NULL, 'K'},
                                            {"ranks", 1, NULL, 'n'},
                                            {"rounds", 1, NULL, 'r'},
                                            {"stop", 0, NULL, 'S'},
                                            {"help", 0, NULL, 'h'},
                                            {"algorithms", 0, NULL, 'a'},
                                            {"huge-pages", 0, NULL, 'H'},
                                            {"dirty", 0, NULL, 'w'},
                                            {NULL, 0, NULL, 0}};
    *o = (struct bench_options){.mode = "collective",
                                .ops = "allreduce",
                                .sizes = "8,1K,64K,1M,16M",
                                .types = "float",
                                .reduce = "sum",
                                .ranks = 2,
                                .rounds = 20,
                                .pool = 1,
                                .concurrent = 1,
                                .signal = SIGKILL,
                                .seconds = 1,
                                .check = true};
    struct option_state s = {o, error, room, false};
    *help = false;
    if (!take_mode(&s, &argc, &argv)) return false;
    int c;
    optind = 0; /* may have run before */
    opterr = 0;
    while ((c = getopt_long(argc, argv, ":", options, NULL)) != -1) {
        const char *word = argv[optind - 1];
        if (c == '?') return complain(error, room, "unknown option '%s'", word);
        if (c == ':') return complain(error, room, "%s needs a value", word);
        if (!take(&s, c, help)) return false;
    }
    if (optind < argc)
        return complain(error, room, "what is '%s' for?", argv[optind]);
    return check_sizes(&s) && check_ops(&s) && check_types(&s) &&
           check_rest(&s);
}
