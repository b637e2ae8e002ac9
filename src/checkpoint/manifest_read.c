/* manifest_read.c - reads a manifest of anybody's making. See manifest.h.
 *
 * No general JSON: the document has one order of keys, one way to write a
 * number and a string, and blanks in fixed places, so what is read is exactly
 * what manifest_write() makes. Nothing here recurses, and memory grows only
 * with bytes that were read: an entry takes more than 64 of them. */
#include "manifest.h"

#include "../base/dtype.h"
#include "../base/hex.h"
#include "../hash/hash.h"

enum { ENTRY_BYTES_MIN = 64, TAIL = 16 + 4 }; /* digits, "\"\n}\n" */

struct manifest_text {
    const char *bytes;
    size_t size, at;
    const char *wanted; /* what should have stood at `at`; NULL: all is well */
};

static bool fail(struct manifest_text *t, const char *wanted)
{
    if (!t->wanted) t->wanted = wanted;
    return false;
}

static int fail_byte(struct manifest_text *t, const char *wanted)
{
    (void)fail(t, wanted);
    return -1;
}

static bool is_next(const struct manifest_text *t, const char *literal)
{
    size_t length = strlen(literal);
    return t->size - t->at >= length &&
           memcmp(t->bytes + t->at, literal, length) == 0;
}

static bool literal(struct manifest_text *t, const char *text)
{
    if (t->wanted) return false;
    if (!is_next(t, text)) return fail(t, text);
    t->at += strlen(text);
    return true;
}

static bool number(struct manifest_text *t, uint64_t most, uint64_t *value)
{
    size_t first = t->at;
    *value = 0;
    if (t->wanted) return false;
    for (; t->at < t->size; t->at++) {
        unsigned digit = (unsigned)(unsigned char)t->bytes[t->at] - '0';
        if (digit > 9) break;
        if (*value > (most - digit) / 10 || digit > most)
            return fail(t, "a smaller number");
        *value = *value * 10 + digit;
    }
    bool long_zero = t->at - first > 1 && t->bytes[first] == '0';
    if (t->at == first || long_zero) return fail(t, "a number");
    return true;
}

static bool hex(struct manifest_text *t, int digits, uint64_t *value)
{
    *value = 0;
    if (t->wanted) return false;
    for (int i = 0; i < digits; i++, t->at++) {
        int digit = t->at < t->size ? hex_digit(t->bytes[t->at]) : -1;
        if (digit < 0) return fail(t, "a hexadecimal digit");
        *value = *value << 4 | (unsigned)digit;
    }
    return true;
}

/* One character of a name, which may be escaped; -1: the name ends here. */
static int name_byte(struct manifest_text *t)
{
    if (t->at >= t->size) return fail_byte(t, "the end of a name");
    unsigned char c = (unsigned char)t->bytes[t->at];
    if (c == '"') return -1;
    if (c < ' ') return fail_byte(t, "an escaped character");
    t->at++;
    if (c != '\\') return c;
    if (is_next(t, "\"") || is_next(t, "\\")) return t->bytes[t->at++];
    uint64_t code = 0;
    if (!literal(t, "u00") || !hex(t, 2, &code)) return -1;
    if (code == 0 || code >= ' ') return fail_byte(t, "a control character");
    return (int)code;
}

/* Appends the name to *names, with a 0. */
static bool name(struct manifest_text *t, char **names)
{
    const char *first = *names;
    int c;
    if (!literal(t, "\"")) return false;
    while ((c = name_byte(t)) >= 0) *(*names)++ = (char)c;
    *(*names)++ = '\0';
    if (!literal(t, "\"")) return false;
    if (*first == '\0' || manifest_wrong_name(first))
        return fail(t, "a name that a tensor may have");
    return true;
}

static bool datatype(struct manifest_text *t, uint8_t *dtype)
{
    if (!literal(t, "\"")) return false;
    for (uint8_t i = 0; i < DTYPE_COUNT; i++) {
        const char *known = dtype_name((enum dtype)i);
        size_t length = strlen(known);
        if (!is_next(t, known) || t->size - t->at <= length ||
            t->bytes[t->at + length] != '"')
            continue;
        t->at += length + 1;
        *dtype = i;
        return true;
    }
    return fail(t, "a datatype");
}

static bool entry(struct manifest_text *t, struct manifest_tensor *tensor,
                  char **names)
{
    tensor->name = *names;
    if (!literal(t, "\n  {\"name\": ") || !name(t, names) ||
        !literal(t, ", \"datatype\": ") || !datatype(t, &tensor->dtype) ||
        !literal(t, ", \"count\": ") ||
        !number(t, INT64_MAX / dtype_size((enum dtype)tensor->dtype),
                &tensor->count) ||
        !literal(t, ", \"may_differ\": "))
        return false;
    tensor->free = is_next(t, "true");
    return literal(t, tensor->free ? "true" : "false") &&
           literal(t, ", \"digest\": \"") && hex(t, 16, &tensor->digest) &&
           literal(t, "\"}");
}

static bool entries(struct manifest_text *t, struct manifest *m)
{
    size_t room = (t->size - t->at) / ENTRY_BYTES_MIN + 1;
    char *names = m->names = malloc(t->size - t->at + 1);
    m->tensors = malloc(room * sizeof *m->tensors);
    if (!m->names || !m->tensors) return fail(t, "less: no memory");
    if (is_next(t, "\n ]")) return true;
    do {
        if (m->count == room || m->count == MANIFEST_TENSORS_MAX)
            return fail(t, "the end of the tensors");
        if (!entry(t, &m->tensors[m->count], &names)) return false;
        m->count++;
    } while (is_next(t, ",") && literal(t, ","));
    return true;
}

static bool head(struct manifest_text *t, struct manifest *m, uint64_t *content)
{
    uint64_t group, world;
    if (!literal(t, ",\n \"hash\": \"pccl-64k-1\",\n \"group\": ") ||
        !number(t, UINT32_MAX, &group) || !literal(t, ",\n \"revision\": ") ||
        !number(t, UINT64_MAX - 1, &m->revision) ||
        !literal(t, ",\n \"time_ns\": ") ||
        !number(t, INT64_MAX, &m->time_ns) ||
        !literal(t, ",\n \"world_size\": ") || !number(t, INT32_MAX, &world))
        return false;
    m->group = (uint32_t)group;
    m->world = (uint32_t)world;
    return literal(t, ",\n \"content\": \"") && hex(t, 16, content) &&
           literal(t, "\",\n \"tensors\": [");
}

static bool document(struct manifest_text *t, struct manifest *m)
{
    uint64_t content = 0;
    uint64_t own = 0;
    if (!head(t, m, &content) || !entries(t, m) ||
        !literal(t, "\n ],\n \"digest\": \""))
        return false;
    if (t->size - t->at != TAIL) return fail(t, "the end");
    if (!manifest_content(m, &own)) return fail(t, "less: no memory");
    return own == content || fail(t, "the digest of the content");
}

bool manifest_read(struct manifest *m, const char *bytes, size_t size,
                   uint64_t *digest, char *why, size_t room)
{
    struct manifest_text t = {.bytes = bytes, .size = size};
    uint64_t format = 0;
    *m = (struct manifest){0};
    if (literal(&t, "{\n \"format\": ") && number(&t, UINT32_MAX, &format) &&
        format != MANIFEST_FORMAT) {
        (void)snprintf(why, room,
                       "its format is %u; this library reads format %d",
                       (unsigned)format, MANIFEST_FORMAT);
        return false;
    }
    struct manifest_text tail = {.bytes = bytes, .size = size};
    tail.at = size > TAIL ? size - TAIL : 0;
    if (size <= TAIL || size > MANIFEST_SIZE_MAX || !hex(&tail, 16, digest) ||
        !literal(&tail, "\"\n}\n")) {
        (void)snprintf(why, room, "it does not end as a manifest does");
        return false;
    }
    if (hash_bytes(bytes, size - TAIL, 1) != *digest) {
        (void)snprintf(why, room,
                       "its bytes do not have its digest: it was damaged, or "
                       "edited");
        return false;
    }
    if (document(&t, m)) return true;
    (void)snprintf(why, room, "byte %zu should be %.60s", t.at, t.wanted);
    for (char *c = why; *c != '\0'; c++)
        if (*c == '\n') *c = ' ';
    manifest_free(m);
    return false;
}
