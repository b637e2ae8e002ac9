/* bench_algorithms.c - pccl-bench --algorithms: the table of algorithms, and
 * what it chooses. Asks the library's own table; no job is needed. */
#include "bench.h"

#include "../master/master.h"
#include "../ring/algorithm_table.h"
#include "../ring/choose.h"

#include <string.h>

enum { WORLDS = 6, SIZES = 26 };
enum layout { ROOM, MEMORY, SOCKETS, HOSTS, LAYOUTS };

static const uint32_t worlds[WORLDS] = {2, 3, 4, 8, 16, 64};
static const char *const layouts[LAYOUTS] = {
    "one host, shared memory, a processor for each rank",
    "one host, shared memory", "one host, TCP", "several hosts"};

static const char *size_text(uint64_t size, char text[16])
{
    if (size >= 1 << 20)
        snprintf(text, 16, "%dM", (int)(size >> 20));
    else if (size >= 1024)
        snprintf(text, 16, "%dK", (int)(size >> 10));
    else
        snprintf(text, 16, "%d", (int)size);
    return text;
}

static struct plan_request request(enum plan_coll coll, uint32_t layout,
                                   uint32_t world, uint64_t size)
{
    static size_t none[64];
    bool one_host = layout < HOSTS;
    struct plan_request r = {
        .coll = coll,
        .world = world,
        .mesh = world <= (one_host ? HOST_MESH_MAX : SURVEY_ALL_MAX),
        .tree = true,
        .grid = !one_host && world > SURVEY_ALL_MAX,
        .one_host = one_host,
        .shared_memory = layout <= MEMORY,
        .single_copy_world = HOST_MESH_MAX,
        .boards = layout <= MEMORY && world <= HOST_MESH_MAX,
        .roomy = layout == ROOM,
        .cached = PLAN_CACHED,
        .count = size,
        .element = 1,
        .send_bytes = none,
        .recv_bytes = none};
    /* As the library does where a host has more members than that. */
    if (world > HOST_MESH_MAX) r.single_copy_world = 0;
    return r;
}

static const char *choice(enum plan_coll coll, uint32_t layout, uint32_t world,
                          uint64_t size)
{
    struct plan_request r = request(coll, layout, world, size);
    return algorithm_row_of(&r)->algorithm->name;
}

/* The reasons for which an algorithm does not fit a collective, each once, with
 * the first request that has it. */
static void print_unfit(enum plan_coll coll, const struct algorithm *a)
{
    const char *known[8];
    uint32_t count = 0;
    for (uint32_t k = 0; k < LAYOUTS * WORLDS * SIZES; k++) {
        uint32_t layout = k / SIZES / WORLDS,
                 world = worlds[k / SIZES % WORLDS];
        uint64_t size = 8ull << k % SIZES;
        struct plan_request r = request(coll, layout, world, size);
        char text[16];
        const char *why = a->unfit ? a->unfit(&r) : NULL;
        uint32_t i = 0;
        while (why && i < count && strcmp(known[i], why) != 0) i++;
        if (!why || i < count || count == ARRAY_COUNT(known)) continue;
        known[count++] = why;
        printf("  %s %s: %s (%s, %u ranks, %s)\n", algorithm_coll_name(coll),
               a->name, why, layouts[layout], world, size_text(size, text));
    }
}

static void print_all_unfit(enum plan_coll coll)
{
    const struct algorithm *a;
    for (uint32_t i = 0; (a = algorithm_by_number(i)) != NULL; i++)
        if ((a->colls >> coll & 1) && !a->codes) print_unfit(coll, a);
}

static bool same_line(enum plan_coll coll, uint32_t layout, uint64_t a,
                      uint64_t b)
{
    for (uint32_t w = 0; w < WORLDS; w++) {
        if (strcmp(choice(coll, layout, worlds[w], a),
                   choice(coll, layout, worlds[w], b)) != 0)
            return false;
    }
    return true;
}

static void print_grid(enum plan_coll coll, uint32_t layout)
{
    char first[16], last[16], range[40];
    printf("\n%s, %s\n%-14s", algorithm_coll_name(coll), layouts[layout],
           "bytes");
    for (uint32_t w = 0; w < WORLDS; w++) printf(" %8u ranks", worlds[w]);
    printf("\n");
    for (uint32_t i = 0; i < SIZES;) {
        uint32_t end = i + 1;
        while (end < SIZES && same_line(coll, layout, 8ull << i, 8ull << end))
            end++;
        snprintf(range, sizeof range, "%s to %s", size_text(8ull << i, first),
                 size_text(8ull << (end - 1), last));
        printf("%-14s", range);
        for (uint32_t w = 0; w < WORLDS; w++)
            printf(" %14s", choice(coll, layout, worlds[w], 8ull << i));
        printf("\n");
        i = end;
    }
}

static const char *const places[] = {
    [WHERE_ANY] = "anywhere",
    [WHERE_MEMORY] = "shared memory",
    [WHERE_BOARDS] = "shared memory, boards",
    [WHERE_ROOM] = "shared memory, a processor for each rank",
    [WHERE_CROWDED] = "shared memory, no processor for each rank",
    [WHERE_SOCKETS] = "one host, TCP",
    [WHERE_HOST] = "one host",
    [WHERE_HOSTS] = "several hosts",
    [WHERE_GRID] = "many hosts, grid",
    [WHERE_SITES] = "sites"};

static const char *const flows[] = {[FLOW_ALL] = "",
                                    [FLOW_TO_ROOT] = "to a root; ",
                                    [FLOW_FROM_ROOT] = "from a root; ",
                                    [FLOW_EVEN] = "equal blocks; "};

static void print_ranks(uint32_t min, uint32_t max)
{
    if (min > 0) printf(", from %u ranks on", min);
    if (max > 0) printf(", up to %u ranks", max);
}

static void print_way(const struct detour *d)
{
    static const char *const times[] = {[OF_EACH] = "",
                                        [OF_SHARE] = "by ranks ",
                                        [OF_OTHERS] = "times others ",
                                        [OF_ALL] = "times ranks ",
                                        [OF_PAIRS] = "times ranks squared "};
    static const char *const ways[] = {[AS_ASKED] = "as it is",
                                       [AS_ALL] = "everybody gets all",
                                       [AS_STAR] = "to one and back"};
    char text[16];
    for (unsigned coll = 0; coll <= COLL_SCAN; coll++)
        if (d->colls >> coll & 1)
            printf("%s (", coll == COLL_SCAN
                               ? "scan"
                               : algorithm_coll_name((enum plan_coll)coll));
    for (unsigned flow = 0; flow < FLOW_COUNT; flow++)
        if (d->flows >> flow & 1) printf("%s", flows[flow]);
    printf("%s", places[d->where]);
    if (d->max > 0)
        printf(", %sup to %s", times[d->of], size_text(d->max, text));
    print_ranks(d->world_min, d->world_max);
    printf("): %s\n    %s", ways[d->as], d->why);
    if (d->measured) printf(" [NOTES.md: %s]", d->measured);
    printf("\n");
}

static void print_row(const struct choice *c)
{
    char text[16];
    for (unsigned coll = 0; coll < COLL_COUNT; coll++) {
        if (c->colls != ~0u && (c->colls >> coll & 1))
            printf("%s ", algorithm_coll_name((enum plan_coll)coll));
    }
    printf("%s(%s%s", c->colls == ~0u ? "all " : "", flows[c->flow],
           places[c->where]);
    if (c->bytes_max > 0) printf(", up to %s", size_text(c->bytes_max, text));
    if (c->total_max > 0)
        printf(", times others up to %s", size_text(c->total_max, text));
    print_ranks(c->world_min, c->world_max);
    printf("): %s%s\n    %s", c->algorithm->name,
           c->algorithm->codes ? " of codes" : "", c->why);
    if (c->measured) printf(" [NOTES.md: %s]", c->measured);
    printf("\n");
}

static void print_limit(const struct limit *l)
{
    char text[16];
    printf("%s, %s %s %s\n    %s [NOTES.md: %s]\n", l->name,
           size_text(l->value, text), l->unit, l->decides, l->why, l->measured);
}

int bench_algorithms(void)
{
    const struct choice *c;
    const struct detour *d;
    const struct limit *l;
    printf("What carries out an MPI collective: the first row that applies.\n"
           "Bytes are those of the vector, or of a block.\n\n");
    for (uint32_t i = 0; (d = choose_row(i)) != NULL; i++) print_way(d);
    printf("\nThe first row that applies and fits is taken; PCCL_ALGORITHM= "
           "forces one.\nBytes are those of the vector, or of a block.\n\n");
    for (uint32_t i = 0; (c = algorithm_row(i)) != NULL; i++) print_row(c);
    printf("\nLimits that decide beside these rows:\n\n");
    for (uint32_t i = 0; (l = limit_by_number(i)) != NULL; i++) print_limit(l);
    static const enum plan_coll colls[] = {COLL_ALLREDUCE, COLL_BROADCAST,
                                           COLL_ALLGATHER, COLL_ALLTOALLV,
                                           COLL_REDUCE_SCATTER};
    for (size_t i = 0; i < ARRAY_COUNT(colls); i++) {
        for (uint32_t layout = 0; layout < LAYOUTS; layout++)
            print_grid(colls[i], layout);
    }
    printf("\nWhat does not fit, so that a later row is taken, and why; the "
           "first case of each:\n");
    for (size_t i = 0; i < ARRAY_COUNT(colls); i++) print_all_unfit(colls[i]);
    return 0;
}
