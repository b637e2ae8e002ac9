/* hosts.c - parses lists of hosts and places ranks. */
#include "hosts.h"

#include "../base/decimal.h"
#include "../base/port_range.h"
#include "launch_base.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    struct host_list *list;
    char *error;
    size_t error_size;
};

__attribute__((format(printf, 2, 3))) static bool
fail(const struct reader *reader, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(reader->error, reader->error_size, format, args);
    va_end(args);
    return false;
}

static void list_add(struct host_list *list, const char *name, uint32_t slots)
{
    list->entries =
        memory_grow(list->entries, list->count + 1, sizeof *list->entries);
    list->entries[list->count++] =
        (struct host_entry){.name = memory_text(name), .slots = slots};
}

/* A whole number of 1 to RANKS_MAX. */
static bool number_read(const char *text, uint32_t *number)
{
    uint64_t value;
    if (!number_parse(text, RANKS_MAX, &value) || value == 0) return false;
    *number = (uint32_t)value;
    return true;
}

/* NAME[:COUNT], as an address with a port; one of IPv6 with a count needs
 * brackets. */
static bool entry_add(const struct reader *reader, const char *text)
{
    struct address a;
    size_t digits = strspn(text, "0123456789");
    if (digits > 0 && digits < HOST_SIZE && text[digits] == '\0') {
        list_add(reader->list, text, 1); /* a name of digits is no port here */
        return true;
    }
    if (!address_parse(text, 1, &a) || *a.host == '\0' || *a.host == '-' ||
        a.port == 0 || a.port > RANKS_MAX)
        return fail(reader, "'%s' is no host; write NAME or NAME:RANKS", text);
    list_add(reader->list, a.host, a.port);
    return true;
}

/* Gives take() the words of text[0, length), until it refuses one. */
static bool words_read(const char *text, size_t length, const char *between,
                       bool (*take)(const struct reader *reader,
                                    const char *word, bool first),
                       const struct reader *reader)
{
    char *copy = memory_print("%.*s", (int)length, text), *rest = NULL;
    const char *word = strtok_r(copy, between, &rest);
    bool good = true;
    for (bool first = true; word && good; first = false) {
        good = take(reader, word, first);
        word = strtok_r(NULL, between, &rest);
    }
    free(copy);
    return good;
}

static bool name_take(const struct reader *reader, const char *word, bool first)
{
    (void)first;
    return entry_add(reader, word);
}

bool hosts_parse(struct host_list *list, const char *text, char *error,
                 size_t error_size)
{
    struct reader reader = {list, error, error_size};
    size_t before = list->count;
    return words_read(text, strlen(text), ",", name_take, &reader) &&
           (list->count > before || fail(&reader, "no host is named"));
}

/* Rules N1, N3. */
static bool way_apply(const struct reader *reader, struct host_entry *entry,
                      const char *word)
{
    bool ports = *word == 'p';
    char **to = ports ? &entry->ports : &entry->announce;
    free(*to);
    *to = memory_text(strchr(word, '=') + 1);
    if (ports)
        return port_range_is_text(*to) ||
               fail(reader, "'%s' is no range of ports like 49148-49159", word);
    return address_is_host(*to) ||
           fail(reader, "'%s' is not HOST or HOST:PORT", word);
}

/* A word behind the name in a host file. */
static bool attribute_apply(const struct reader *reader, const char *word)
{
    static const char *const ignored[] = {
        "max_slots=", "max-slots=", "binding=", "ifname="};
    struct host_entry *entry = &reader->list->entries[reader->list->count - 1];
    if (strncmp(word, "slots=", 6) == 0 && word[6] != '\0')
        return number_read(word + 6, &entry->slots) ||
               fail(reader, "'%s' is no number of ranks", word);
    if (strncmp(word, "user=", 5) == 0 && word[5] != '\0') {
        /* As entry_add(): it becomes a word of a command line. */
        if (word[5] == '-' ||
            strlen(word) - 4 + strlen(entry->name) >= HOST_SIZE)
            return fail(reader, "'%s' is no name of a user", word);
        char *name = memory_print("%s@%s", word + 5, entry->name);
        free(entry->name);
        entry->name = name;
        return true;
    }
    if (strncmp(word, "ports=", 6) == 0 || strncmp(word, "announce=", 9) == 0)
        return way_apply(reader, entry, word);
    for (size_t i = 0; i < ARRAY_COUNT(ignored); i++)
        if (strncmp(word, ignored[i], strlen(ignored[i])) == 0) return true;
    return fail(reader,
                "'%s' is not known here; only slots=N, user=NAME, "
                "ports=FIRST-LAST and announce=HOST[:PORT]",
                word);
}

static bool line_take(const struct reader *reader, const char *word, bool first)
{
    return first ? entry_add(reader, word) : attribute_apply(reader, word);
}

bool hosts_parse_file(struct host_list *list, const char *text, char *error,
                      size_t error_size)
{
    char detail[MESSAGE_SIZE / 2];
    struct reader reader = {list, detail, sizeof detail};
    size_t before = list->count;
    for (int line = 1; *text; line++) {
        if (!words_read(text, strcspn(text, "#\n"), " \t\r", line_take,
                        &reader)) {
            snprintf(error, error_size, "line %d: %s", line, detail);
            return false;
        }
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
    reader = (struct reader){list, error, error_size};
    return list->count > before || fail(&reader, "no host is named");
}

static bool rank_line(const struct reader *reader, const char *line)
{
    struct host_list *list = reader->list;
    unsigned rank;
    char name[HOST_SIZE];
    static_assert(HOST_SIZE > 255, "the width below");
    if (sscanf(line, " rank %u = %255[^] \t\r\n,=]", &rank, name) != 2 ||
        rank >= RANKS_MAX || strchr("+-", *name))
        return fail(reader, "'%s' is no line like rank 0=HOST", line);
    while (list->count <= rank) list_add(list, "", 1);
    if (*list->entries[rank].name != '\0')
        return fail(reader, "rank %u is there twice", rank);
    free(list->entries[rank].name);
    list->entries[rank].name = memory_text(name);
    return true;
}

bool hosts_parse_ranks(struct host_list *list, const char *text, char *error,
                       size_t error_size)
{
    struct reader reader = {list, error, error_size};
    char line[HOST_SIZE + 128];
    hosts_free(list);
    for (const char *end; *text; text = *end ? end + 1 : end) {
        size_t length = strcspn(text, "\n#");
        end = text + strcspn(text, "\n");
        if (strspn(text, " \t\r") >= length) continue;
        snprintf(line, sizeof line, "%.*s", (int)length, text);
        if (!rank_line(&reader, line)) return false;
    }
    for (size_t i = 0; i < list->count; i++)
        if (*list->entries[i].name == '\0')
            return fail(&reader, "there is no rank %zu", i);
    return list->count > 0 || fail(&reader, "no rank is named");
}

/* "2(x3),1": the number for the node at index; the last one repeats. */
static bool tasks_at(const char *tasks, size_t index, uint32_t *slots)
{
    size_t first = 0;
    while (*tasks) {
        char count[10], more[10];
        uint32_t times = 1;
        int used = 0, all = 0;
        int got =
            sscanf(tasks, "%9[0-9]%n(x%9[0-9])%n", count, &used, more, &all);
        if (got < 1 || !number_read(count, slots) ||
            (all > 0 && !number_read(more, &times)))
            return false;
        tasks += all > 0 ? all : used;
        if (*tasks != ',' && *tasks != '\0') return false;
        if (index < first + times) return true;
        first += times;
        tasks += *tasks == ',';
    }
    return first > 0;
}

/* Copies one item of a node list, up to a ',' outside of brackets. */
static size_t item_length(const char *nodes)
{
    size_t length = 0;
    bool inside = false;
    for (; nodes[length] && (inside || nodes[length] != ','); length++) {
        if (nodes[length] == '[') inside = true;
        if (nodes[length] == ']') inside = false;
    }
    return length;
}

static bool item_expand(const struct reader *reader, const char *item);

/* "7" or "01-03"; returns the digits of a number, 0 for an error. */
static size_t range_read(const char **at, uint32_t *low, uint32_t *high)
{
    size_t width = strspn(*at, "0123456789");
    if (width == 0 || width > 9) return 0;
    *low = *high = (uint32_t)strtoul(*at, NULL, 10);
    *at += width;
    if (**at != '-') return width;
    size_t digits = strspn(++*at, "0123456789");
    if (digits == 0 || digits > 9) return 0;
    *high = (uint32_t)strtoul(*at, NULL, 10);
    *at += digits;
    return *high >= *low && *high - *low < RANKS_MAX ? width : 0;
}

/* prefix, every number of "01-03,7" with its zeros, suffix. */
static bool ranges_expand(const struct reader *reader, const char *item,
                          const char *open, const char *close)
{
    const char *at = open + 1;
    for (bool more = true; more; more = *at++ == ',') {
        uint32_t low, high;
        size_t width = range_read(&at, &low, &high);
        if (width == 0 || (*at != ',' && at != close))
            return fail(reader, "'%s' is no node list", item);
        for (uint32_t number = low; number <= high; number++) {
            char *name = memory_print("%.*s%0*u%s", (int)(open - item), item,
                                      (int)width, number, close + 1);
            bool good = item_expand(reader, name);
            free(name);
            if (!good) return false;
        }
    }
    return true;
}

/* Expands the first bracket; the rest may contain more. */
static bool item_expand(const struct reader *reader, const char *item)
{
    const char *open = strchr(item, '[');
    const char *close = open ? strchr(open, ']') : NULL;
    if (open && close) return ranges_expand(reader, item, open, close);
    if (open || strpbrk(item, "] \t:/") || *item == '-' || *item == '\0' ||
        strlen(item) >= HOST_SIZE || reader->list->count >= RANKS_MAX) {
        return fail(reader, "'%s' is no node list", item);
    }
    list_add(reader->list, item, 1);
    return true;
}

bool hosts_parse_slurm(struct host_list *list, const char *nodes,
                       const char *tasks, char *error, size_t error_size)
{
    struct reader reader = {list, error, error_size};
    size_t before = list->count;
    while (*nodes) {
        size_t length = item_length(nodes);
        char *item = memory_print("%.*s", (int)length, nodes);
        bool good = item_expand(&reader, item);
        free(item);
        if (!good) return false;
        nodes += length;
        nodes += *nodes == ',';
    }
    for (size_t i = before; tasks && *tasks && i < list->count; i++)
        if (!tasks_at(tasks, i - before, &list->entries[i].slots))
            return fail(&reader, "SLURM_TASKS_PER_NODE=%s is not understood",
                        tasks);
    return list->count > before || fail(&reader, "no node is named");
}

uint32_t hosts_slots(const struct host_list *list)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < list->count; i++) sum += list->entries[i].slots;
    return sum > RANKS_MAX ? RANKS_MAX + 1u : (uint32_t)sum;
}

void hosts_add(struct host_list *list, const char *name)
{
    list_add(list, name, 1);
}

static bool is_listed(const struct host_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->entries[i].name, name) == 0) return true;
    return false;
}

bool hosts_without(struct host_list *made, const struct host_list *list,
                   const struct host_list *out, bool ranked)
{
    size_t turn = 0;
    size_t left = 0;
    *made = (struct host_list){0};
    for (size_t i = 0; i < list->count; i++)
        left += !is_listed(out, list->entries[i].name);
    if (left == 0) return list->count == 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct host_entry *entry = &list->entries[i];
        bool gone = is_listed(out, entry->name);
        if (gone && !ranked) continue;
        while (gone && is_listed(out, list->entries[turn % list->count].name))
            turn++;
        if (gone) entry = &list->entries[turn++ % list->count];
        list_add(made, entry->name, entry->slots);
        struct host_entry *copy = &made->entries[made->count - 1];
        if (entry->ports) copy->ports = memory_text(entry->ports);
        if (entry->announce) copy->announce = memory_text(entry->announce);
    }
    return true;
}

const struct host_entry *hosts_entry_of(const struct host_list *list,
                                        const char *name, uint32_t local)
{
    const struct host_entry *last = NULL;
    for (size_t i = 0; i < list->count; i++) {
        const struct host_entry *entry = &list->entries[i];
        if (strcmp(entry->name, name) != 0) continue;
        last = entry;
        if (local < entry->slots) return entry;
        local -= entry->slots;
    }
    return last;
}

void hosts_free(struct host_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->entries[i].name);
        free(list->entries[i].ports);
        free(list->entries[i].announce);
    }
    free(list->entries);
    *list = (struct host_list){0};
}

static uint32_t host_index(struct placement *placement, const char *name)
{
    uint32_t i = 0;
    while (i < placement->host_count && strcmp(placement->hosts[i], name) != 0)
        i++;
    if (i == placement->host_count)
        placement->hosts[placement->host_count++] = name;
    return i;
}

void placement_make(struct placement *placement, const struct host_list *list,
                    uint32_t per_host, uint32_t ranks)
{
    struct host_entry here = {.name = NULL, .slots = ranks};
    const struct host_entry *entries = list->count ? list->entries : &here;
    size_t count = list->count ? list->count : 1;
    *placement = (struct placement){
        .hosts = memory_get(count, sizeof *placement->hosts),
        .locals = memory_get(count, sizeof *placement->locals),
        .ranks = memory_get(ranks, sizeof *placement->ranks)};
    uint32_t rank = 0;
    for (size_t i = 0; rank < ranks; i = (i + 1) % count) {
        const char *name = list->count ? entries[i].name : "localhost";
        uint32_t slots = per_host ? per_host : entries[i].slots;
        uint32_t host = host_index(placement, name);
        for (uint32_t k = 0; k < slots && rank < ranks; k++, rank++)
            placement->ranks[rank] =
                (struct place){host, placement->locals[host]++};
    }
}

void placement_free(struct placement *placement)
{
    free(placement->hosts);
    free(placement->locals);
    free(placement->ranks);
    *placement = (struct placement){0};
}
