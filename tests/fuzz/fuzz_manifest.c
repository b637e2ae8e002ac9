/* fuzz_manifest.c - the manifest of a checkpoint, and the names in its
 * directory, of anybody's making.
 *
 * What is read is what is written: a manifest that is accepted has exactly the
 * bytes that manifest_write() makes of it, so nothing in it was left unread. */
#include "fuzz.h"

#include "../../src/base/dtype.h"
#include "../../src/checkpoint/manifest.h"
#include "../../src/checkpoint/snapshot_name.h"
#include "../../src/hash/hash.h"

#include <assert.h>

enum { TAIL = 20, NAMES = 8 };

static void names(const uint8_t *in, size_t size)
{
    struct snapshot_list list = {0};
    struct snapshot_name n;
    char text[SNAPSHOT_NAME_MAX + 8];
    size_t length = size < sizeof text - 1 ? size : sizeof text - 1;
    memcpy(text, in, length);
    text[length] = '\0';
    if (snapshot_parse(&n, text)) {
        char again[SNAPSHOT_NAME_MAX];
        snapshot_print(&n, again);
        assert(strcmp(again, text) == 0);
    }
    struct fuzz_input numbers = {in, size};
    for (int i = 0; i < 6 && numbers.left > 0; i++) {
        n = (struct snapshot_name){
            .group = fuzz_below(&numbers, 3),
            .time_ns = fuzz_u8(&numbers),
            .revision = fuzz_u8(&numbers),
            .kind = (enum snapshot_kind)fuzz_below(&numbers, 3)};
        snapshot_print(&n, text);
        snapshot_add(&list, text);
    }
    uint64_t at = snapshot_cut(&list);
    const struct snapshot_name *cut = snapshot_nearest(&list, 0, at);
    size_t left = 0;
    for (size_t i = 0; i < list.count; i++)
        left += list.names[i].group == 0 &&
                list.names[i].kind == SNAPSHOT_MANIFEST &&
                !snapshot_is_old(&list, &list.names[i], 2, cut);
    assert(left > 0 || !cut);
    assert(!cut || !snapshot_is_old(&list, cut, 1, cut));
    snapshot_free(&list);
}

static void read_one(const char *bytes, size_t size)
{
    struct manifest m;
    struct growing_text again = {0};
    struct growing_text header = {0};
    uint64_t digest = 0;
    uint64_t second = 0;
    uint64_t total = 0;
    char why[120];
    char *exact = malloc(size > 0 ? size : 1); /* for sanitizers */
    assert(exact);
    memcpy(exact, bytes, size);
    memset(why, 'x', sizeof why);
    if (manifest_read(&m, exact, size, &digest, why, sizeof why)) {
        manifest_write(&m, &again, &second);
        assert(!again.failed && again.size == size && second == digest);
        assert(memcmp(again.bytes, exact, size) == 0);
        (void)manifest_header(&m, &header, &total);
        manifest_free(&m);
    } else
        assert(memchr(why, '\0', sizeof why) && !m.tensors && !m.names);
    text_free(&again);
    text_free(&header);
    free(exact);
}

/* The digest of what comes before it, so that what comes before it is read. */
static void sign(char *bytes, size_t size)
{
    char digits[TAIL + 1];
    if (size < TAIL) return;
    uint64_t digest = hash_bytes(bytes, size - TAIL, 1);
    (void)snprintf(digits, sizeof digits, "%016llx\"\n}\n",
                   (unsigned long long)digest);
    memcpy(bytes + size - TAIL, digits, TAIL);
}

/* A manifest of some tensors, in which some bytes are changed. */
static void changed(struct fuzz_input *in)
{
    static const char *const texts[NAMES] = {
        "a", "weights", "\"", "\\u0041", "\n\t", "\xc3\xa4", "#7", "x y"};
    struct manifest_tensor tensors[NAMES];
    struct manifest m = {.tensors = tensors,
                         .count = fuzz_below(in, NAMES),
                         .group = fuzz_u8(in),
                         .revision = fuzz_u64(in) >> 1,
                         .time_ns = fuzz_u64(in) >> 1,
                         .world = fuzz_u16(in)};
    for (uint32_t i = 0; i < m.count; i++)
        tensors[i] = (struct manifest_tensor){
            .name = texts[fuzz_below(in, NAMES)],
            .count = fuzz_u32(in),
            .digest = fuzz_u16(in),
            .dtype = (uint8_t)fuzz_below(in, DTYPE_COUNT),
            .free = (fuzz_u8(in) & 1) != 0};
    struct growing_text text = {0};
    uint64_t digest = 0;
    manifest_write(&m, &text, &digest);
    assert(!text.failed);
    read_one(text.bytes, text.size);
    while (in->left > 0) {
        size_t at = fuzz_u16(in) % text.size;
        text.bytes[at] = (char)fuzz_u8(in);
    }
    sign(text.bytes, text.size);
    read_one(text.bytes, text.size);
    text_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t size)
{
    if (size == 0) return 0;
    names(in, size);
    read_one((const char *)in, size);
    char *copy = malloc(size);
    assert(copy);
    memcpy(copy, in, size);
    sign(copy, size);
    read_one(copy, size);
    free(copy);
    struct fuzz_input numbers = {in, size};
    changed(&numbers);
    return 0;
}
