/* state_list.c - see state_list.h. */
#include "state_list.h"

#include "../base/cursor.h"
#include "../base/dtype.h"
#include "../hash/hash.h"
#include "../base/wire.h"

#include <stdlib.h>
#include <string.h>

uint64_t state_word(const uint8_t *bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < 8; i++) value = value << 8 | bytes[i];
    return value;
}

void state_put_word(uint64_t *slot)
{
    uint64_t value = *slot;
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++) bytes[i] = (uint8_t)(value >> (56 - 8 * i));
    memcpy(slot, bytes, sizeof bytes);
}

void state_list_to_wire(struct state_list *l)
{
    if (l->wire) return;
    l->wire = true;
    for (uint64_t i = 0; i < l->block_count; i++) state_put_word(&l->blocks[i]);
    for (uint32_t i = 0; i < l->count; i++) state_put_word(&l->hashes[i]);
}

void state_list_to_host(struct state_list *l)
{
    if (!l->wire) return;
    l->wire = false;
    for (uint64_t i = 0; i < l->block_count; i++)
        l->blocks[i] = state_word((const uint8_t *)&l->blocks[i]);
    for (uint32_t i = 0; i < l->count; i++)
        l->hashes[i] = state_word((const uint8_t *)&l->hashes[i]);
}

uint64_t state_content(const uint8_t *hashes, uint32_t count)
{
    return hash_bytes(hashes, 8 * (uint64_t)count, 1);
}

/* One tensor of the encoded structure; *name points into it, not terminated. */
static void entry_field(struct cursor *c, uint8_t *dtype, bool *is_free,
                        uint64_t *count, const uint8_t **name, uint16_t *size)
{
    cursor_u8(c, dtype);
    cursor_flag(c, is_free);
    cursor_u64(c, count);
    cursor_u16(c, size);
    if (*size > c->left) c->failed = true;
    if (c->failed) return;
    if (c->out) {
        memcpy(c->out, *name, *size);
        c->out += *size;
    }
    if (c->in) {
        *name = c->in;
        c->in += *size;
    }
    c->left -= *size;
    c->done += *size;
}

static void encode_names(struct state_list *l, struct cursor *c)
{
    for (uint32_t i = 0; i < l->count; i++) {
        struct state_tensor *t = &l->tensors[i];
        const uint8_t *name = (const uint8_t *)t->name;
        uint16_t size = (uint16_t)strnlen(t->name, STATE_NAME_MAX);
        entry_field(c, &t->dtype, &t->free, &t->count, &name, &size);
    }
}

static bool make_names(struct state_list *l)
{
    struct cursor measure = {.left = STATE_NAMES_MAX};
    encode_names(l, &measure);
    if (measure.failed) return false;
    l->names_size = (uint32_t)measure.done;
    l->names = malloc(measure.done + 1);
    if (!l->names) return false;
    struct cursor c = {.out = l->names, .left = measure.done};
    encode_names(l, &c);
    l->structure = hash_bytes(l->names, l->names_size, 1);
    return true;
}

static bool hash_tensor(const struct state_tensor *t, uint64_t *blocks,
                        unsigned threads)
{
    if (t->blocks == 0) return true;
    if (t->device)
        return t->device->hash(t->device->user, t->data, t->size, blocks);
    hash_blocks(t->data, t->size, 0, t->blocks, blocks, threads);
    return true;
}

static bool make_hashes(struct state_list *l, uint8_t *wire, unsigned threads)
{
    for (uint32_t i = 0; i < l->count; i++) {
        const struct state_tensor *t = &l->tensors[i];
        uint64_t *blocks = l->blocks + t->first;
        if (!hash_tensor(t, blocks, threads)) return false;
        l->hashes[i] = hash_combine(blocks, t->size);
        uint64_t word = l->hashes[i];
        state_put_word(&word);
        memcpy(wire + 8 * (size_t)i, &word, 8);
    }
    l->content = state_content(wire, l->count);
    return true;
}

bool state_list_describe(struct state_list *l,
                         const struct state_tensor *tensors, uint32_t count)
{
    memset(l, 0, sizeof *l);
    l->count = count;
    l->failure = "out of memory for the hashes of the shared state";
    l->tensors = malloc((count + (size_t)1) * sizeof *l->tensors);
    if (!l->tensors) return false;
    if (count > 0) memcpy(l->tensors, tensors, count * sizeof *tensors);
    for (uint32_t i = 0; i < count; i++) {
        struct state_tensor *t = &l->tensors[i];
        if (t->free) t->size = 0;
        t->first = l->block_count;
        t->blocks = hash_block_count(t->size);
        l->block_count += t->blocks;
    }
    const char *failure = l->failure;
    bool ok = make_names(l);
    if (!ok) state_list_free(l);
    l->failure = ok ? NULL : failure;
    return ok;
}

bool state_list_make(struct state_list *l, const struct state_tensor *tensors,
                     uint32_t count, unsigned threads)
{
    if (!state_list_describe(l, tensors, count)) return false;
    const char *failure = "out of memory for the hashes of the shared state";
    l->blocks = malloc((l->block_count + 1) * sizeof *l->blocks);
    l->hashes = malloc((count + (size_t)1) * sizeof *l->hashes);
    uint8_t *wire = malloc((count + (size_t)1) * 8);
    bool ok = l->blocks && l->hashes && wire;
    if (ok && !make_hashes(l, wire, threads)) {
        failure = "the device could not hash a tensor of the shared state";
        ok = false;
    }
    free(wire);
    if (!ok) state_list_free(l);
    l->failure = ok ? NULL : failure;
    return ok;
}

void state_list_free(struct state_list *l)
{
    free(l->tensors);
    free(l->blocks);
    free(l->hashes);
    free(l->names);
    memset(l, 0, sizeof *l);
}

/* --- the differences, in words --- */

enum { NAME_SHOWN = 48 }; /* bytes of a name; two of them fit a line */

struct line {
    char *text;
    size_t room, used;
};

static void say(struct line *line, const char *part, size_t size)
{
    for (size_t i = 0; i < size && line->used + 1 < line->room; i++) {
        char ch = part[i];
        line->text[line->used++] = ch >= ' ' && ch < 127 ? ch : '?';
    }
    line->text[line->used] = '\0';
}

static void say_text(struct line *line, const char *text)
{
    say(line, text, strlen(text));
}

static void say_number(struct line *line, uint64_t value)
{
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    say(line, digits + at, sizeof digits - at);
}

static void say_hex(struct line *line, unsigned value)
{
    static const char digits[] = "0123456789abcdef";
    for (int shift = 12; shift >= 0; shift -= 4) {
        if (value >> shift > 0 || shift == 0)
            say(line, digits + (value >> shift & 15), 1);
    }
}

static void say_address(struct line *line, const struct wire_addr *a)
{
    if (a->family == 6) say_text(line, "[");
    for (int i = 0; i < 4 && a->family == 4; i++) {
        if (i > 0) say_text(line, ".");
        say_number(line, a->ip[i]);
    }
    for (int i = 0; i < 16 && a->family == 6; i += 2) {
        if (i > 0) say_text(line, ":");
        say_hex(line, (unsigned)a->ip[i] << 8 | a->ip[i + 1]);
    }
    say_text(line, a->family == 6 ? "]:" : ":");
    say_number(line, a->port);
}

static void say_member(struct line *line, uint32_t rank,
                       const struct wire_member *m)
{
    say_text(line, "rank ");
    say_number(line, rank);
    say_text(line, " (pid ");
    say_number(line, m->pid);
    if (m->addr.family != 0) {
        say_text(line, ", ");
        say_address(line, &m->addr);
    }
    say_text(line, ")");
}

static void say_entry(struct line *line, uint8_t dtype, bool is_free,
                      uint64_t count, const void *name, size_t name_size)
{
    say_text(line, "\"");
    say(line, name, name_size < NAME_SHOWN ? name_size : NAME_SHOWN);
    say_text(line, "\" (");
    say_number(line, count);
    say_text(line, " x ");
    say_text(line, dtype < DTYPE_COUNT ? dtype_name((enum dtype)dtype) : "?");
    if (is_free) say_text(line, ", may differ");
    say_text(line, ")");
}

void state_list_explain(const struct state_list *l, uint32_t rank,
                        const struct wire_member *owner, const uint8_t *names,
                        uint32_t size, char *text, size_t room)
{
    struct line line = {text, room, 0};
    struct cursor c = {.in = names, .left = size};
    for (uint32_t i = 0; i < l->count || c.left > 0; i++) {
        uint8_t dtype = 0;
        bool is_free = false;
        uint64_t count = 0;
        const uint8_t *name = NULL;
        uint16_t name_size = 0;
        const struct state_tensor *t = i < l->count ? &l->tensors[i] : NULL;
        bool theirs = c.left > 0;
        if (theirs)
            entry_field(&c, &dtype, &is_free, &count, &name, &name_size);
        if (c.failed) break;
        size_t own_size = t ? strnlen(t->name, STATE_NAME_MAX) : 0;
        if (t && theirs && t->dtype == dtype && t->free == is_free &&
            t->count == count && own_size == name_size &&
            memcmp(t->name, name, name_size) == 0)
            continue;
        say_text(&line, "shared state entry ");
        say_number(&line, i);
        say_text(&line, " of ");
        say_member(&line, rank, owner);
        say_text(&line, " is ");
        if (t)
            say_entry(&line, t->dtype, t->free, t->count, t->name, own_size);
        else
            say_text(&line, "missing");
        say_text(&line, "; the group has ");
        if (theirs)
            say_entry(&line, dtype, is_free, count, name, name_size);
        else
            say_text(&line, "no such entry");
        return;
    }
    say_text(&line, "the tensors are not those of the group on ");
    say_member(&line, rank, owner);
}
