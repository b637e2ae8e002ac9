/* wan_world.c - parser of network description files (.wan). */
#include "wan_world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Splits a line into words. */
struct reader {
    const char *at;
    char word[128];
    char *error; /* WORLD_ERROR_SIZE */
};

__attribute__((format(printf, 2, 3))) static bool fail(struct reader *r,
                                                       const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(r->error, WORLD_ERROR_SIZE, format, args);
    va_end(args);
    return false;
}

/* The next word; "" at the end of the line. */
static const char *next(struct reader *r)
{
    r->at += strspn(r->at, " \t\r");
    size_t length = strcspn(r->at, " \t\r\n#");
    if (length >= sizeof r->word) length = sizeof r->word - 1;
    memcpy(r->word, r->at, length);
    r->word[length] = '\0';
    r->at += length;
    return r->word;
}

static bool is(const struct reader *r, const char *word)
{
    return strcmp(r->word, word) == 0;
}

struct unit {
    const char *name;
    double factor;
};

/* A number with a mandatory unit. */
static bool quantity(struct reader *r, const char *what,
                     const struct unit *units, double *value)
{
    next(r);
    char *end;
    double number = strtod(r->word, &end);
    bool digit = r->word[0] == '.' || (r->word[0] >= '0' && r->word[0] <= '9');
    if (!digit || !(number >= 0) || number > 1e12) {
        return fail(r, "%s needs a number of 0 or more, not '%s'", what,
                    r->word);
    }
    for (const struct unit *u = units; u->name; u++) {
        if (strcmp(u->name, end) != 0) continue;
        *value = number * u->factor;
        return true;
    }
    return fail(r, "%s: '%s' has not one of the units %s %s %s", what, r->word,
                units[0].name, units[1].name ? units[1].name : "",
                units[1].name && units[2].name ? units[2].name : "");
}

static const struct unit rates[] = {
    {"kbit", 125}, {"mbit", 125e3}, {"gbit", 125e6}, {NULL, 0}};
static const struct unit times[] = {
    {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {NULL, 0}};
static const struct unit parts[] = {{"%", .01}, {NULL, 0}};

static bool read_rate(struct reader *r, const char *what, uint64_t *rate)
{
    double value;
    if (!quantity(r, what, rates, &value)) return false;
    *rate = (uint64_t)value;
    return true;
}

static bool read_time(struct reader *r, const char *what, wan_ns *time)
{
    double value;
    if (!quantity(r, what, times, &value)) return false;
    *time = (wan_ns)value;
    return true;
}

static bool read_count(struct reader *r, const char *what, uint64_t low,
                       uint64_t high, uint64_t *count)
{
    next(r);
    char *end;
    unsigned long long value = strtoull(r->word, &end, 10);
    bool digit = r->word[0] >= '0' && r->word[0] <= '9';
    if (!digit || *end != '\0' || value < low || value > high) {
        return fail(r, "%s needs a number from %llu to %llu, not '%s'", what,
                    (unsigned long long)low, (unsigned long long)high, r->word);
    }
    *count = value;
    return true;
}

/* ------------------------------------------------------------------- nodes */

static int region_find(const struct world *w, const char *name)
{
    for (uint32_t i = 0; i < w->regions; i++) {
        if (strcmp(w->region_name[i], name) == 0) return (int)i;
    }
    return -1;
}

static bool name_set(struct reader *r, const struct world *w, const char *name,
                     node_set *set)
{
    if (strcmp(name, "*") == 0) {
        *set |= w->nodes == NODES_MAX ? ~(node_set)0
                                      : ((node_set)1 << w->nodes) - 1;
        return true;
    }
    if (strcmp(name, "master") == 0) {
        *set |= 1;
        return true;
    }
    if (name[0] >= '0' && name[0] <= '9') {
        char *end;
        unsigned long peer = strtoul(name, &end, 10);
        if (*end != '\0' || peer == 0 || peer >= w->nodes)
            return fail(r, "there is no peer '%s'", name);
        *set |= (node_set)1 << peer;
        return true;
    }
    int region = region_find(w, name);
    if (region < 0) return fail(r, "there is no region '%s'", name);
    for (uint32_t i = 1; i < w->nodes; i++) {
        if (w->region_of[i] == region) *set |= (node_set)1 << i;
    }
    if (w->region_of[MASTER_NODE] == region) *set |= 1;
    return true;
}

/* A list of peers, regions, "master" or "*", with commas. */
static bool read_set(struct reader *r, const struct world *w, const char *what,
                     node_set *set)
{
    next(r);
    *set = 0;
    if (r->word[0] == '\0') return fail(r, "%s: whose is missing", what);
    char list[sizeof r->word];
    memcpy(list, r->word, sizeof list);
    char *name = list;
    while (name) {
        char *comma = strchr(name, ',');
        if (comma) *comma++ = '\0';
        if (!name_set(r, w, name, set)) return false;
        name = comma;
    }
    return true;
}

/* -------------------------------------------------------------- statements */

static bool read_queue(struct reader *r, struct shaped_link *link)
{
    static const struct unit units[] = {
        {"ms", -1e6}, {"kB", 1e3}, {"MB", 1e6}, {NULL, 0}};
    double value;
    if (!quantity(r, "queue", units, &value)) return false;
    if (value == 0) return fail(r, "queue must be more than 0");
    if (value < 0)
        link->rule.queue_ns = (wan_ns)-value;
    else
        link->rule.queue = (uint64_t)value;
    return true;
}

static bool read_part(struct reader *r, const char *what, double *part)
{
    if (!quantity(r, what, parts, part)) return false;
    return *part <= 1 || fail(r, "%s is above 100%%", what);
}

static bool read_mtu(struct reader *r, uint32_t least, uint32_t *mtu)
{
    uint64_t bytes;
    if (!read_count(r, "mtu", least, 65535, &bytes)) return false;
    *mtu = (uint32_t)bytes;
    return true;
}

static bool read_size(struct reader *r, const char *what, uint64_t *bytes)
{
    static const struct unit units[] = {{"kB", 1e3}, {"MB", 1e6}, {NULL, 0}};
    double value;
    if (!quantity(r, what, units, &value)) return false;
    *bytes = (uint64_t)value;
    return true;
}

static bool read_field(struct reader *r, struct statement *s)
{
    struct shaped_link *w = &s->link;
    const struct field {
        const char *word;
        enum link_field field;
    } fields[] = {{"rate", FIELD_RATE},     {"flow", FIELD_FLOW},
                  {"queue", FIELD_QUEUE},   {"fair", FIELD_FAIR},
                  {"fifo", FIELD_FAIR},     {"delay", FIELD_DELAY},
                  {"jitter", FIELD_JITTER}, {"loss", FIELD_LOSS},
                  {"block", FIELD_BLOCK},   {"open", FIELD_BLOCK | FIELD_WALL},
                  {"wall", FIELD_WALL},     {"reorder", FIELD_REORDER},
                  {"mtu", FIELD_MTU},       {"duplicate", FIELD_DUPLICATE},
                  {"first", FIELD_FIRST},   {"forget", FIELD_FORGET},
                  {"reset", FIELD_FORGET},  {NULL, 0}};
    const struct field *f = fields;
    while (f->word && !is(r, f->word)) f++;
    if (!f->word) return fail(r, "'%s' is no property of a link", r->word);
    if (s->fields & f->field)
        return fail(r, "'%s' is given twice, or against what was given",
                    r->word);
    if (s->kind != STATEMENT_PATH && f->field >= FIELD_DELAY)
        return fail(r, "'%s' is a property of paths only", r->word);
    s->fields |= f->field;
    switch (f->field) {
    case FIELD_RATE:
        return read_rate(r, "rate", &w->rule.rate);
    case FIELD_FLOW:
        return read_rate(r, "flow", &w->rule.flow_rate);
    case FIELD_QUEUE:
        return read_queue(r, w);
    case FIELD_DELAY:
        return read_time(r, "delay", &w->delay);
    case FIELD_JITTER:
        return read_time(r, "jitter", &w->jitter);
    case FIELD_LOSS:
        return read_part(r, "loss", &w->loss);
    case FIELD_REORDER:
        return read_part(r, "reorder", &w->reorder);
    case FIELD_DUPLICATE:
        return read_part(r, "duplicate", &w->duplicate);
    case FIELD_MTU:
        return read_mtu(r, 0, &w->mtu);
    case FIELD_FORGET:
        w->middlebox.resets = is(r, "reset");
        return read_time(r, f->word, &w->middlebox.forget);
    case FIELD_FIRST:
        return read_size(r, "first", &w->middlebox.first);
    case FIELD_FAIR:
        w->rule.fair = is(r, "fair");
        return true;
    case FIELD_BLOCK:
        return w->blocked = true;
    case FIELD_WALL:
        return w->firewalled = true;
    }
    return true; /* open */
}

/* A -> B, or A <-> B. */
static bool read_ends(struct reader *r, const struct world *w, const char *what,
                      struct statement *s)
{
    if (!read_set(r, w, what, &s->from)) return false;
    next(r);
    if (!is(r, "->") && !is(r, "<->"))
        return fail(r, "%s: '%s' stands where -> or <-> is needed", what,
                    r->word);
    s->both = is(r, "<->");
    return read_set(r, w, what, &s->to);
}

/* rtt A B TIME: half of it each way. */
static bool read_rtt(struct reader *r, const struct world *w,
                     struct statement *s)
{
    s->kind = STATEMENT_PATH;
    s->both = true;
    s->fields = FIELD_DELAY;
    if (!read_set(r, w, "rtt", &s->from) || !read_set(r, w, "rtt", &s->to) ||
        !read_time(r, "rtt", &s->link.delay))
        return false;
    s->link.delay /= 2;
    return true;
}

static bool read_statement(struct reader *r, const struct world *w,
                           struct statement *s)
{
    *s = (struct statement){.at = 0};
    next(r);
    if (is(r, "at")) {
        if (!read_time(r, "at", &s->at)) return false;
        next(r);
    }
    if (is(r, "rtt")) {
        if (!read_rtt(r, w, s)) return false;
    } else if (is(r, "up") || is(r, "down")) {
        s->kind = is(r, "up") ? STATEMENT_UP : STATEMENT_DOWN;
        const char *what = s->kind == STATEMENT_UP ? "up" : "down";
        if (!read_set(r, w, what, &s->from)) return false;
        s->to = s->from;
    } else if (is(r, "trunk") || is(r, "path")) {
        s->kind = is(r, "trunk") ? STATEMENT_TRUNK : STATEMENT_PATH;
        if (!read_ends(r, w, s->kind == STATEMENT_TRUNK ? "trunk" : "path", s))
            return false;
    } else {
        return fail(r, "'%s' is no statement", r->word);
    }
    while (next(r)[0] != '\0') {
        if (!read_field(r, s)) return false;
    }
    if (s->fields == 0) return fail(r, "nothing is given about the link");
    return true;
}

bool world_statement(const struct world *w, const char *line,
                     struct statement *s, char error[WORLD_ERROR_SIZE])
{
    struct reader r = {.at = line, .error = error};
    return read_statement(&r, w, s);
}

void shaped_link_apply(struct shaped_link *link, const struct statement *s)
{
    const struct shaped_link *given = &s->link;
    if (s->fields & FIELD_RATE) link->rule.rate = given->rule.rate;
    if (s->fields & FIELD_FLOW) link->rule.flow_rate = given->rule.flow_rate;
    if (s->fields & FIELD_FAIR) link->rule.fair = given->rule.fair;
    if (s->fields & FIELD_QUEUE) {
        link->rule.queue = given->rule.queue;
        link->rule.queue_ns = given->rule.queue_ns;
    }
    if (s->fields & FIELD_DELAY) link->delay = given->delay;
    if (s->fields & FIELD_JITTER) link->jitter = given->jitter;
    if (s->fields & FIELD_LOSS) link->loss = given->loss;
    if (s->fields & FIELD_BLOCK) link->blocked = given->blocked;
    if (s->fields & FIELD_WALL) link->firewalled = given->firewalled;
    if (s->fields & FIELD_REORDER) link->reorder = given->reorder;
    if (s->fields & FIELD_DUPLICATE) link->duplicate = given->duplicate;
    if (s->fields & FIELD_MTU) link->mtu = given->mtu;
    if (s->fields & FIELD_FIRST) link->middlebox.first = given->middlebox.first;
    if (s->fields & FIELD_FORGET) {
        link->middlebox.forget = given->middlebox.forget;
        link->middlebox.resets = given->middlebox.resets;
    }
}

/* -------------------------------------------------------------------- file */

static bool read_name(struct reader *r, const char *what, char name[NAME_SIZE])
{
    next(r);
    bool word = (r->word[0] >= 'a' && r->word[0] <= 'z') ||
                (r->word[0] >= 'A' && r->word[0] <= 'Z');
    if (!word || strlen(r->word) >= NAME_SIZE || strchr(r->word, ',') ||
        is(r, "master")) {
        return fail(r,
                    "%s: '%s' is no name: a letter first, at most %d "
                    "characters, no comma",
                    what, r->word, NAME_SIZE - 1);
    }
    memcpy(name, r->word, strlen(r->word) + 1);
    return true;
}

static bool read_place(struct reader *r, struct world *w, const char *what,
                       int *region)
{
    char name[NAME_SIZE];
    if (!read_name(r, what, name)) return false;
    *region = region_find(w, name);
    if (*region >= 0) return true;
    if (w->regions == REGIONS_MAX)
        return fail(r, "more than %d regions", REGIONS_MAX);
    *region = (int)w->regions++;
    memcpy(w->region_name[*region], name, sizeof name);
    return true;
}

/* peer REGION [COUNT]; master REGION */
static bool read_peer(struct reader *r, struct world *w)
{
    int region;
    uint64_t count = 1;
    if (w->statement_count > 0)
        return fail(r, "peers must stand before the links");
    bool master = is(r, "master");
    if (!read_place(r, w, master ? "master" : "peer", &region)) return false;
    if (master) {
        w->region_of[MASTER_NODE] = (uint8_t)region;
        return true;
    }
    const char *rest = r->at;
    if (next(r)[0] != '\0') {
        r->at = rest;
        if (!read_count(r, "peer", 1, NODES_MAX - 1, &count)) return false;
    }
    for (; count > 0; count--) {
        if (w->nodes == NODES_MAX)
            return fail(r, "more than %d peers", NODES_MAX - 1);
        w->region_of[w->nodes++] = (uint8_t)region;
    }
    return true;
}

static bool read_setting(struct reader *r, struct world *w, bool *known)
{
    *known = true;
    if (is(r, "title")) {
        r->at += strspn(r->at, " \t");
        size_t length = strcspn(r->at, "\r\n");
        if (length >= sizeof w->title) length = sizeof w->title - 1;
        memcpy(w->title, r->at, length);
        w->title[length] = '\0';
        r->at += strcspn(r->at, "\r\n");
        return true;
    }
    if (is(r, "limit")) return read_time(r, "limit", &w->limit);
    if (is(r, "seed")) return read_count(r, "seed", 0, UINT64_MAX, &w->seed);
    if (is(r, "congestion")) return read_name(r, "congestion", w->congestion);
    if (is(r, "peer") || is(r, "master")) return read_peer(r, w);
    if (is(r, "mtu")) return read_mtu(r, 576, &w->mtu);
    if (is(r, "offload")) {
        next(r);
        w->offload = is(r, "on") ? OFFLOAD_ON : OFFLOAD_OFF;
        return is(r, "on") || is(r, "off") ||
               fail(r, "offload is on or off, not '%s'", r->word);
    }
    *known = false;
    return true;
}

static bool read_line(struct reader *r, struct world *w, int number)
{
    const char *begin = r->at;
    bool known;
    if (next(r)[0] == '\0') return true;
    if (!read_setting(r, w, &known)) return false;
    if (known) {
        return next(r)[0] == '\0' || fail(r, "'%s' is too much", r->word);
    }
    r->at = begin;
    if (w->statement_count == STATEMENTS_MAX)
        return fail(r, "more than %d statements", STATEMENTS_MAX);
    struct statement *s = &w->statements[w->statement_count];
    if (!read_statement(r, w, s)) return false;
    s->line = number;
    w->statement_count++;
    return true;
}

static int by_time(const void *a, const void *b)
{
    const struct statement *x = a;
    const struct statement *y = b;
    if (x->at != y->at) return x->at < y->at ? -1 : 1;
    return x->line - y->line;
}

bool world_parse(struct world *w, const char *name, const char *text,
                 char error[WORLD_ERROR_SIZE])
{
    char why[WORLD_ERROR_SIZE];
    *w = (struct world){.limit = 60 * WAN_S, .mtu = 1500, .nodes = 1};
    w->statements = calloc(STATEMENTS_MAX, sizeof *w->statements);
    if (!w->statements) {
        snprintf(error, WORLD_ERROR_SIZE, "%s: out of memory", name);
        return false;
    }
    int number = 0;
    while (*text) {
        struct reader r = {.at = text, .error = why};
        if (!read_line(&r, w, ++number)) {
            snprintf(error, WORLD_ERROR_SIZE, "%s:%d: %.150s", name, number,
                     why);
            world_free(w);
            return false;
        }
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
    if (w->nodes < 2) {
        snprintf(error, WORLD_ERROR_SIZE, "%s: no peer in it", name);
        world_free(w);
        return false;
    }
    qsort(w->statements, w->statement_count, sizeof *w->statements, by_time);
    return true;
}

void world_free(struct world *w)
{
    free(w->statements);
    *w = (struct world){.nodes = 0};
}
