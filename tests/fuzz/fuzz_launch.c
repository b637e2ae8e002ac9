/* fuzz_launch.c - what the launcher reads of others: frames of agents, lists
 * of hosts, what Slurm says, addresses. */
#include "fuzz.h"

#include "../../src/launch/address.h"
#include "../../src/launch/hosts.h"
#include "../../src/launch/agent_link.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void decode(const char *bytes, size_t size)
{
    struct link_frame f;
    while (link_decode(bytes, size, &f) == LINK_OK) {
        char header[LINK_HEADER];
        assert(f.size <= LINK_FRAME_MAX && f.size + LINK_HEADER <= size);
        assert(f.bytes == bytes + LINK_HEADER);
        link_header(header, f.type, f.rank, f.size);
        assert(memcmp(header, bytes, sizeof header) == 0);
        struct link_texts texts = {.bytes = (char *)(uintptr_t)f.bytes,
                                   .size = f.size};
        int64_t number;
        while (link_get_number(&texts, &number)) continue;
        const char *text;
        while ((text = link_get(&texts))) assert(strlen(text) < f.size);
        bytes += LINK_HEADER + f.size;
        size -= LINK_HEADER + f.size;
    }
}

static void judge(struct host_list *list, bool taken)
{
    for (size_t i = 0; taken && i < list->count; i++)
        assert(list->entries[i].name && list->entries[i].name[0]);
    hosts_free(list);
    *list = (struct host_list){0};
}

/* Mostly of what has a meaning there. */
static void texts(const uint8_t *in, size_t size)
{
    static const char letters[] = "a0-b19,:[]() x=\n#slot rank*.@%";
    char *text = malloc(size + 1);
    struct host_list list = {0};
    struct address address;
    char error[200] = "";
    assert(text);
    for (size_t i = 0; i < size; i++) {
        text[i] = letters[in[i] % (sizeof letters - 1)];
        if (in[i] > 250) text[i] = (char)in[i];
    }
    text[size] = '\0';
    judge(&list, hosts_parse(&list, text, error, sizeof error));
    judge(&list, hosts_parse_file(&list, text, error, sizeof error));
    judge(&list, hosts_parse_ranks(&list, text, error, sizeof error));
    judge(&list, hosts_parse_slurm(&list, text, NULL, error, sizeof error));
    judge(&list, hosts_parse_slurm(&list, "a[1-3]", text, error, sizeof error));
    (void)address_parse(text, 1, &address);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t size)
{
    decode((const char *)in, size);
    char *framed = malloc(LINK_HEADER + size + 1);
    assert(framed);
    link_header(framed,
                (enum link_type)(1 + (size > 0 ? in[0] % LINK_ALIVE : 0)), 3,
                size);
    if (size > 0) memcpy(framed + LINK_HEADER, in, size);
    decode(framed, LINK_HEADER + size);
    free(framed);
    texts(in, size < 64 ? size : 64);
    return 0;
}
