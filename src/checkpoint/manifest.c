/* manifest.c - writes the documents of a checkpoint. See manifest.h. */
#include "manifest.h"

#include "../base/dtype.h"
#include "../base/utf8.h"
#include "../hash/hash.h"

#include <inttypes.h>

/* All twelve have a name in safetensors. */
static const char *const codes[DTYPE_COUNT] = {
    [DTYPE_U8] = "U8",     [DTYPE_I8] = "I8",   [DTYPE_I16] = "I16",
    [DTYPE_U16] = "U16",   [DTYPE_U32] = "U32", [DTYPE_I32] = "I32",
    [DTYPE_U64] = "U64",   [DTYPE_I64] = "I64", [DTYPE_F16] = "F16",
    [DTYPE_BF16] = "BF16", [DTYPE_F32] = "F32", [DTYPE_F64] = "F64",
};

void manifest_free(struct manifest *m)
{
    free(m->tensors);
    free(m->names);
    *m = (struct manifest){0};
}

const char *manifest_name(const char *name, uint32_t place, char *room)
{
    if (name && *name) return name;
    (void)snprintf(room, 16, "#%" PRIu32, place);
    return room;
}

const char *manifest_wrong_name(const char *name)
{
    if (strnlen(name, MANIFEST_NAME_MAX + 1) > MANIFEST_NAME_MAX)
        return "its name is too long";
    if (strcmp(name, "__metadata__") == 0)
        return "its name is one that safetensors keeps for itself";
    for (const char *at = name; *at != '\0';) {
        size_t length = utf8_length(at);
        if (length == 0) return "its name is not UTF-8";
        at += length;
    }
    return NULL;
}

uint64_t manifest_size(const struct manifest_tensor *t)
{
    return t->count * dtype_size((enum dtype)t->dtype);
}

void manifest_order(const struct manifest *m, uint32_t *order)
{
    uint32_t at = 0;
    for (size_t width = 8; width > 0; width /= 2)
        for (uint32_t i = 0; i < m->count; i++)
            if (dtype_size((enum dtype)m->tensors[i].dtype) == width)
                order[at++] = i;
}

static void add_entries(const struct manifest *m, const uint32_t *order,
                        struct growing_text *out, uint64_t *total)
{
    *total = 0;
    for (uint32_t i = 0; i < m->count && !out->failed; i++) {
        const struct manifest_tensor *t = &m->tensors[order[i]];
        uint64_t size = manifest_size(t);
        if (size > INT64_MAX - *total || out->size > MANIFEST_HEADER_MAX) {
            out->failed = true;
            return;
        }
        text_add_bytes(out, ",", 1);
        text_add_json(out, t->name);
        text_add(out,
                 ":{\"dtype\":\"%s\",\"shape\":[%" PRIu64
                 "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}",
                 codes[t->dtype], t->count, *total, *total + size);
        *total += size;
    }
}

bool manifest_header(const struct manifest *m, struct growing_text *out,
                     uint64_t *total)
{
    uint32_t *order = malloc((m->count + (size_t)1) * sizeof *order);
    if (!order) return false;
    manifest_order(m, order);
    size_t first = out->size;
    text_add_bytes(out, "\0\0\0\0\0\0\0\0", 8);
    text_add(out,
             "{\"__metadata__\":{\"pccl_format\":\"%d\",\"group\":\"%" PRIu32
             "\",\"revision\":\"%" PRIu64 "\"}",
             MANIFEST_FORMAT, m->group, m->revision);
    add_entries(m, order, out, total);
    text_add_bytes(out, "}", 1);
    while (!out->failed && (out->size - first) % 8 != 0)
        text_add_bytes(out, " ", 1);
    free(order);
    if (out->failed || out->size - first - 8 > MANIFEST_HEADER_MAX)
        return false;
    uint64_t size = out->size - first - 8;
    for (size_t i = 0; i < 8; i++)
        out->bytes[first + i] = (char)(size >> (8 * i) & 0xff);
    return true;
}

bool manifest_content(const struct manifest *m, uint64_t *content)
{
    uint8_t *words = malloc((m->count + (size_t)1) * 8);
    if (!words) return false;
    for (uint32_t i = 0; i < m->count; i++) {
        const struct manifest_tensor *t = &m->tensors[i];
        uint64_t digest = t->free ? hash_bytes(NULL, 0, 1) : t->digest;
        for (size_t k = 0; k < 8; k++)
            words[8 * (size_t)i + k] = (uint8_t)(digest >> (56 - 8 * k));
    }
    *content = hash_bytes(words, 8 * (uint64_t)m->count, 1);
    free(words);
    return true;
}

void manifest_write(const struct manifest *m, struct growing_text *out,
                    uint64_t *digest)
{
    uint64_t content = 0;
    size_t first = out->size;
    if (!manifest_content(m, &content)) out->failed = true;
    text_add(out,
             "{\n \"format\": %d,\n \"hash\": \"pccl-64k-1\",\n"
             " \"group\": %" PRIu32 ",\n \"revision\": %" PRIu64
             ",\n \"time_ns\": %" PRIu64 ",\n \"world_size\": %" PRIu32
             ",\n \"content\": \"%016" PRIx64 "\",\n \"tensors\": [",
             MANIFEST_FORMAT, m->group, m->revision, m->time_ns, m->world,
             content);
    for (uint32_t i = 0; i < m->count && !out->failed; i++) {
        const struct manifest_tensor *t = &m->tensors[i];
        text_add(out, "%s\n  {\"name\": ", i > 0 ? "," : "");
        text_add_json(out, t->name);
        text_add(out,
                 ", \"datatype\": \"%s\", \"count\": %" PRIu64
                 ", \"may_differ\": %s, \"digest\": \"%016" PRIx64 "\"}",
                 dtype_name((enum dtype)t->dtype), t->count,
                 t->free ? "true" : "false", t->digest);
    }
    text_add(out, "\n ],\n \"digest\": \"");
    if (out->size - first > MANIFEST_SIZE_MAX) out->failed = true;
    if (out->failed) return;
    *digest = hash_bytes(out->bytes + first, out->size - first, 1);
    text_add(out, "%016" PRIx64 "\"\n}\n", *digest);
}
