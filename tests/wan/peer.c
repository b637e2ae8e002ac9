/* peer.c - wan-peer: the benchmark and test program in the nodes of an emulated
 * network.
 *
 * wan-peer reduce|vanish|partition|outage|stranded|split|messages|through
 * [options]
 *
 * wan-emulator starts it. The member of rank 0 prints the measurements, one
 * JSON object per line. Every peer checks every result; exit status 1 if one is
 * wrong. */
#include "peer.h"

#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

double peer_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void peer_fail(const struct peer *p, const char *format, ...)
{
    char why[256] = "";
    va_list args;
    va_start(args, format);
    fprintf(stderr, "wan-peer %d: ", p->number);
    vfprintf(stderr, format, args);
    va_end(args);
    if (p->comm) (void)pcclGetLastError(p->comm, why, sizeof why);
    fprintf(stderr, "%s%s\n", *why ? "; last error: " : "", why);
    exit(1);
}

static const char *environment(const char *name)
{
    const char *text = getenv(name);
    if (text && *text) return text;
    fprintf(stderr, "wan-peer: %s is not set: run me under wan-emulator\n",
            name);
    exit(2);
}

void peer_control(const struct peer *p, const char *format, ...)
{
    char line[256];
    va_list args;
    va_start(args, format);
    int size = vsnprintf(line, sizeof line - 1, format, args);
    va_end(args);
    line[size++] = '\n';
    int fd = (int)strtol(environment("WAN_CONTROL"), NULL, 10);
    if (write(fd, line, (size_t)size) != size)
        peer_fail(p, "the emulator does not listen");
}

static void create(struct peer *p)
{
    pcclCommCreateParams_t params = {.p2p_connection_pool_size =
                                         (uint32_t)p->pool};
    pcclCommOptions_t options = {.size = sizeof options,
                                 .rank_hint = p->number - 1,
                                 .evicts_nobody = p->stays};
    const char *master = environment("WAN_MASTER");
    unsigned ip[4];
    if (sscanf(master, "%u.%u.%u.%u", &ip[0], &ip[1], &ip[2], &ip[3]) != 4)
        peer_fail(p, "WAN_MASTER=%s is not an address", master);
    params.master_address.inet.protocol = inetIPv4;
    for (int i = 0; i < 4; i++)
        params.master_address.inet.ipv4.data[i] = (uint8_t)ip[i];
    params.master_address.port = 48148;
    if (pcclInit() != pcclSuccess ||
        pcclCreateCommunicator(&params, &p->comm) != pcclSuccess ||
        pcclSetOptions(p->comm, &options) != pcclSuccess)
        peer_fail(p, "cannot create a communicator");
}

void peer_connect(struct peer *p)
{
    if (!p->comm) create(p);
    pcclResult_t rc;
    /* The master may not listen yet, or be unreachable. */
    while ((rc = pcclConnect(p->comm)) == pcclMasterConnectionFailed) {
        struct timespec pace = {.tv_nsec = 20 * 1000 * 1000};
        (void)nanosleep(&pace, NULL);
    }
    if (rc != pcclSuccess) peer_fail(p, "connect: %s", pcclGetErrorString(rc));
}

int peer_rank(const struct peer *p)
{
    int rank = -1;
    (void)pcclGetView(p->comm, NULL, &rank, NULL, NULL, 0);
    return rank;
}

int peer_world(const struct peer *p)
{
    int size = 0;
    (void)pcclGetView(p->comm, NULL, NULL, &size, NULL, 0);
    return size;
}

/* -------------------------------------------------------------- operations */

static float element(int number, size_t i)
{
    return (float)(number * 3 + (int)(i % 17));
}

void peer_take(struct peer *p, const struct load *load)
{
    p->count = load->bytes / sizeof(float);
    p->concurrent = load->concurrent;
    peer_fill(p);
}

void peer_fill(struct peer *p)
{
    size_t total = p->count * (size_t)p->concurrent;
    for (size_t i = 0; i < total; i++) p->send[i] = element(p->number, i);
    memset(p->recv, 0, total * sizeof *p->recv);
}

static pcclReduceDescriptor_t describe(const struct peer *p, int i)
{
    pcclReduceDescriptor_t d = {.count = p->count,
                                .op = pcclSum,
                                .tag = (uint64_t)i,
                                .src_descriptor.datatype = pcclFloat};
    if (p->quantize)
        d.quantization_options = (pcclQuantizationOptions_t){
            .quantized_datatype = pcclUint8, .algorithm = pcclQuantMinMax};
    return d;
}

pcclResult_t peer_launch(struct peer *p, pcclAsyncReduceOp_t *handles)
{
    for (int i = 0; i < p->concurrent; i++) {
        pcclReduceDescriptor_t d = describe(p, i);
        size_t at = (size_t)i * p->count;
        pcclResult_t rc = pcclAllReduceAsync(p->send + at, p->recv + at, &d,
                                             p->comm, &handles[i]);
        if (rc == pcclSuccess) continue;
        while (i-- > 0) (void)pcclAwaitAsyncReduce(&handles[i], NULL);
        return rc;
    }
    return pcclSuccess;
}

pcclResult_t peer_await(struct peer *p, pcclAsyncReduceOp_t *handles)
{
    pcclResult_t rc = pcclSuccess;
    for (int i = 0; i < p->concurrent; i++) {
        pcclResult_t one = pcclAwaitAsyncReduce(&handles[i], NULL);
        if (rc == pcclSuccess) rc = one;
    }
    return rc;
}

void peer_verify(struct peer *p)
{
    pcclMember_t members[WAN_PEERS_MAX];
    int size = 0;
    if (pcclGetView(p->comm, NULL, NULL, &size, members, WAN_PEERS_MAX) !=
        pcclSuccess)
        peer_fail(p, "there is no view");
    float sum = 0;
    for (int i = 0; i < size; i++) sum += element(members[i].hint + 1, 0);
    /* Every hop adds at most half a quantization step of the partial sum, whose
     * range is that of the sum at most. Rounding comes on top. */
    float step = (float)size * 16 / 255;
    float most = p->quantize ? (float)(size + 1) * step / 2 + 0.01f : 0;
    size_t total = p->count * (size_t)p->concurrent;
    for (size_t i = 0; i < total; i++) {
        float want = sum + (float)size * (float)(i % 17);
        if (fabsf(p->recv[i] - want) <= most) continue;
        peer_fail(p, "element %zu is %g, not %g", i, (double)p->recv[i],
                  (double)want);
    }
}

/* Element-wise maximum over the members. */
static void agree(struct peer *p, double *values, size_t count)
{
    double own[2];
    pcclReduceDescriptor_t d = {.count = count,
                                .op = pcclMax,
                                .tag = UINT64_MAX,
                                .src_descriptor.datatype = pcclDouble};
    memcpy(own, values, count * sizeof *own);
    pcclResult_t rc = pcclAllReduce(own, values, &d, p->comm, NULL);
    if (rc != pcclSuccess) peer_fail(p, "agree: %s", pcclGetErrorString(rc));
}

double peer_most(struct peer *p, double value)
{
    agree(p, &value, 1);
    return value;
}

double peer_span(struct peer *p, double begin, double end)
{
    double times[2] = {-begin, end};
    agree(p, times, 2);
    return times[1] + times[0];
}

/* -------------------------------------------------------------------- main */

static const char help[] =
    "usage: wan-peer reduce|vanish|partition|outage|stranded|split|messages|"
    "through [options]\n"
    "  --load LIST      what is reduced, see load.h; reduce: all of "
    "them, else the first (8M)\n"
    "  --repeat R       measurements of each load (3)\n"
    "  --pool P         TCP connections per neighbour (0: the library's "
    "choice)\n"
    "  --optimize       reduce: again on an optimized ring\n"
    "  --quantize       reduce: 8-bit codes, minimum and maximum\n"
    "  --lose LIST      vanish, partition: peers that are lost (the last)\n"
    "                   messages: peers that only listen\n"
    "                   through: peers that may be, and come back\n"
    "  --say STATEMENT  through: about links, in the middle\n"
    "  --after STATEMENT  through: by who was evicted, before it comes back\n"
    "  --idle SECONDS   through: nothing is done then\n"
    "  --move           through: the lost get another address in the middle\n"
    "  --stay           nobody is evicted where members lack links\n"
    "  --relay          peer 1 leaves when all others have\n";

static bool options_read(struct peer *p, int argc, char **argv)
{
    static const struct option options[] = {
        {"load", 1, NULL, 'L'},     {"repeat", 1, NULL, 'r'},
        {"pool", 1, NULL, 'p'},     {"optimize", 0, NULL, 'o'},
        {"quantize", 0, NULL, 'q'}, {"lose", 1, NULL, 'l'},
        {"stay", 0, NULL, 's'},     {"relay", 0, NULL, 'R'},
        {"say", 1, NULL, 'S'},      {"idle", 1, NULL, 'i'},
        {"after", 1, NULL, 'a'},    {"move", 0, NULL, 'm'},
        {NULL, 0, NULL, 0}};
    const char *list = "8M";
    int repeat = 3;
    int c;
    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (c == 'L')
            list = optarg;
        else if (c == 'r')
            repeat = (int)strtol(optarg, NULL, 10);
        else if (c == 'p')
            p->pool = (int)strtol(optarg, NULL, 10);
        else if (c == 'o')
            p->optimize = true;
        else if (c == 'q')
            p->quantize = true;
        else if (c == 's')
            p->stays = true;
        else if (c == 'R')
            p->relays = true;
        else if (c == 'l')
            p->lose = optarg;
        else if (c == 'S')
            p->say = optarg;
        else if (c == 'a')
            p->after = optarg;
        else if (c == 'i')
            p->idle = strtod(optarg, NULL);
        else if (c == 'm')
            p->moves = true;
        else
            return false;
    }
    p->load_count = loads_read(p->loads, list, repeat);
    return optind == argc && p->load_count > 0 && repeat >= 1 &&
           repeat <= LOAD_TIMES_MAX && p->pool >= 0 && p->pool <= 64;
}

int main(int argc, char **argv)
{
    static const struct mode {
        const char *name;
        int (*run)(struct peer *p);
    } modes[] = {{"reduce", peer_reduce},       {"vanish", peer_vanish},
                 {"partition", peer_partition}, {"outage", peer_outage},
                 {"stranded", peer_stranded},   {"split", peer_split},
                 {"messages", peer_messages},   {"through", peer_through}};
    struct peer p = {.load_count = 0};
    const struct mode *mode = NULL;
    for (size_t i = 0; i < sizeof modes / sizeof *modes && argc > 1; i++)
        if (strcmp(argv[1], modes[i].name) == 0) mode = &modes[i];
    if (!mode || !options_read(&p, argc - 1, argv + 1)) {
        fputs(help, stderr);
        return 2;
    }
    p.number = (int)strtol(environment("WAN_PEER"), NULL, 10);
    p.peers = (int)strtol(environment("WAN_PEERS"), NULL, 10);
    size_t room = loads_room(p.loads, p.load_count);
    p.send = malloc(room);
    p.recv = malloc(room);
    if (!p.send || !p.recv) peer_fail(&p, "out of memory");
    peer_take(&p, &p.loads[0]);
    if (mode->run == peer_through && p.number == p.peers)
        (void)setenv("PCCL_JOIN", "1", 1);
    peer_connect(&p);
    int status = mode->run(&p);
    while (p.relays && p.number == 1 && peer_world(&p) > 1)
        if (pcclUpdateTopology(p.comm) != pcclSuccess) break;
    if (pcclDestroyCommunicator(p.comm) != pcclSuccess) status = 1;
    free(p.send);
    free(p.recv);
    return status;
}
