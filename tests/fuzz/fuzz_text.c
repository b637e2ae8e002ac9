/* fuzz_text.c - texts of the environment that every member reads: the
 * algorithms to force, and what the coordinator tells of tensors. And what a
 * stranger asks of the coordinator's web server. */
#include "fuzz.h"

#include "../../src/base/wire.h"
#include "../../src/elastic/state_list.h"
#include "../../src/master/server/http_gate.h"
#include "../../src/ring/algorithm_table.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void algorithms(const uint8_t *in, size_t size)
{
    static const char *const words[] = {
        "ring",      "flat",    "direct",    "tree",      "single_copy",
        "chain",     "linear",  "confirmed", "pairwise",  "allreduce",
        "broadcast", "barrier", "allgather", "alltoallv", ":",
        ",",         "",        " ",         "x",         "tree"};
    const char *forced[COLL_COUNT] = {NULL};
    char text[512] = "";
    size_t at = 0;
    for (size_t i = 0; i < size && at + 32 < sizeof text; i++) {
        const char *word = words[in[i] % (sizeof words / sizeof words[0])];
        size_t length = strlen(word);
        memcpy(text + at, word, length);
        at += length;
        if (in[i] >= 250) text[at++] = (char)(in[i] - 200);
    }
    text[at] = '\0';
    (void)algorithm_parse(text, forced);
}

/* The names of others, which differ from the own ones anywhere. */
static void names(const uint8_t *in, size_t size)
{
    static uint8_t data[64];
    static const struct wire_member owner = {.addr.family = 4};
    struct state_tensor tensors[3] = {
        {.name = "first", .data = data, .count = 4, .size = 16, .dtype = 1},
        {.name = "second", .data = data, .count = 0, .size = 0},
        {.name = "third", .data = data, .count = 64, .size = 64, .free = true}};
    struct state_list list;
    char text[240];
    if (!state_list_make(&list, tensors, in[0] % 4u, 1)) return;
    uint32_t room = list.names_size + 64;
    uint8_t *theirs = calloc(1, room);
    assert(theirs);
    uint32_t length = list.names_size;
    memcpy(theirs, list.names, length);
    for (size_t i = 1; i + 1 < size && length > 0; i += 2) {
        if (in[i] == 255)
            length = in[i + 1] % room;
        else
            theirs[in[i] % room] = in[i + 1];
    }
    uint8_t *exact = malloc(length > 0 ? length : 1); /* for sanitizers */
    assert(exact);
    memcpy(exact, theirs, length);
    memset(text, 'x', sizeof text);
    state_list_explain(&list, 1, &owner, exact, length, text, sizeof text);
    assert(memchr(text, '\0', sizeof text));
    free(exact);
    free(theirs);
    state_list_free(&list);
}

/* A word of a list, one that is cut or changed, or bytes. */
static const char *word(struct fuzz_input *in, char to[64])
{
    static const char *const words[] = {"/",
                                        "/status.json",
                                        "/metrics",
                                        "/healthz",
                                        "GET",
                                        "HEAD",
                                        "localhost:80",
                                        "127.0.0.1:1",
                                        "[::1]",
                                        "example.org",
                                        "Bearer 0123456789abcdef",
                                        "0123456789abcdef",
                                        "18446744073709551615",
                                        ""};
    uint8_t which = fuzz_u8(in), change = fuzz_u8(in);
    if (which % 16 == 15) return NULL;
    (void)snprintf(to, 64, "%s", words[which % ARRAY_COUNT(words)]);
    size_t size = strlen(to);
    if (change > 128 && size > 0) to[change % size] = (char)fuzz_u8(in);
    if (change > 240) to[fuzz_u8(in) % (size + 1)] = '\0';
    return to;
}

/* Without the token, and as another user, nobody reads more than whether the
 * server lives. */
static void web(struct fuzz_input in)
{
    static const char token[] = "0123456789abcdef";
    char to[4][64], text[64];
    struct http_request r = {.method = word(&in, to[0]),
                             .path = word(&in, to[1]),
                             .host = word(&in, to[2]),
                             .authorization = word(&in, to[3]),
                             .own = fuzz_u8(&in) & 1};
    enum http_route route;
    if (!r.method) r.method = "";
    if (!r.path) r.path = "";
    bool knows = r.authorization && strstr(r.authorization, token);
    int status = http_gate(&r, token, &route);
    assert(status != 200 || knows || route == HTTP_HEALTH ||
           route == HTTP_PAGE);
    status = http_gate(&r, NULL, &route);
    assert(status != 200 || r.own || route == HTTP_HEALTH);
    const char *number = word(&in, text);
    uint64_t after;
    if (number && !http_token_fault(number))
        assert(strlen(number) >= HTTP_TOKEN_MIN);
    if (!http_after(number, &after)) return;
    uint64_t last = fuzz_u8(&in);
    size_t begin = in.left > 0 ? in.at[0] % (in.left + 1) : 0;
    size_t at =
        http_events_after((const char *)in.at, in.left, begin, last, after);
    assert(at >= begin && at <= in.left);
}

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t size)
{
    if (size == 0) return 0;
    web((struct fuzz_input){in, size});
    algorithms(in, size);
    names(in, size);
    return 0;
}
