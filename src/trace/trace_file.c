/* trace_file.c - see trace_file.h. */
#include "trace_file.h"

#include <stdlib.h>
#include <string.h>

size_t trace_value(const char *line, const char *key, const char **value)
{
    size_t length = strlen(key);
    for (const char *at = line; (at = strchr(at, '"')) != NULL; at++) {
        if (strncmp(at + 1, key, length) != 0 ||
            strncmp(at + 1 + length, "\":", 2) != 0)
            continue;
        at += length + 3;
        bool text = *at == '"';
        *value = at + text;
        return strcspn(*value, text ? "\"" : ",}");
    }
    return 0;
}

int64_t trace_number(const char *line, const char *key)
{
    const char *value;
    return trace_value(line, key, &value) > 0 ? strtoll(value, NULL, 10) : 0;
}

static int64_t clamp(int64_t number, int64_t least, int64_t most)
{
    return number < least ? least : number > most ? most : number;
}

int64_t trace_time(const char *text)
{
    enum { NS = 1000 };
    char *end;
    int64_t most = TRACE_TIME_MAX / NS - 1;
    int64_t time = clamp(strtoll(text, &end, 10), -most, most) * NS;
    int64_t scale = 100;
    if (*end != '.') return time;
    for (end++; *end >= '0' && *end <= '9'; end++, scale /= 10)
        time += (*end - '0') * scale;
    return time;
}

static void copy(char *to, size_t size, const char *line, const char *key)
{
    const char *value;
    size_t length = trace_value(line, key, &value);
    if (length >= size) length = size - 1;
    if (length > 0) memcpy(to, value, length);
    to[length] = '\0';
}

/* The process tells of itself. */
static void read_head(struct trace_file *f, const struct trace_entry *entry)
{
    const char *name;
    size_t length = trace_value(entry->rest, "name", &name);
    if (length == 8 && strncmp(name, "pccl_end", 8) == 0) f->is_last = true;
    if (length != 10 || strncmp(name, "pccl_clock", 10) != 0) return;
    f->known = true;
    f->rank = (int)trace_number(entry->rest, "rank");
    f->wall =
        clamp(trace_number(entry->rest, "realtime_ns"), 0, TRACE_WALL_MAX) -
        clamp(trace_number(entry->rest, "monotonic_ns"), 0, TRACE_TIME_MAX);
    copy(f->host, sizeof f->host, entry->rest, "host");
    copy(f->clock_name, sizeof f->clock_name, entry->rest, "clock");
}

static bool parse(struct trace_file *f, struct trace_entry *entry)
{
    static const char begin[] = "{\"ts\":", pid[] = ",\"pid\":";
    size_t size = strlen(f->line);
    if (size > 0 && f->line[size - 1] == ',') f->line[--size] = '\0';
    if (strncmp(f->line, begin, sizeof begin - 1) != 0) return false;
    if (size < 2 || strcmp(f->line + size - 2, "}}") != 0) return false;
    char *at = strstr(f->line, pid);
    const char *phase;
    if (!at) return false;
    entry->at = trace_time(f->line + sizeof begin - 1);
    entry->pid = at + sizeof pid - 1;
    entry->rest = entry->pid + strspn(entry->pid, "0123456789");
    if (trace_value(entry->rest, "ph", &phase) != 1) return false;
    entry->phase = *phase;
    return true;
}

bool trace_file_open(struct trace_file *f, const char *path)
{
    *f = (struct trace_file){.path = path, .rank = -1, .first = INT64_MAX};
    f->in = fopen(path, "re");
    return f->in != NULL;
}

void trace_file_close(struct trace_file *f)
{
    if (f->in) fclose(f->in);
    f->in = NULL;
}

void trace_file_rewind(struct trace_file *f)
{
    rewind(f->in);
    f->events = f->broken = 0;
}

/* False: the file is over. *whole: it was a line, of a length that a line may
 * have, and a text. */
static bool read_line(struct trace_file *f, bool *whole)
{
    size_t size = 0;
    int c;
    while ((c = getc_unlocked(f->in)) != EOF && c != '\n')
        if (size++ < sizeof f->line - 1) f->line[size - 1] = (char)c;
    bool fits = size < sizeof f->line;
    f->line[fits ? size : 0] = '\0';
    *whole = c == '\n' && fits && strlen(f->line) == size;
    return c != EOF || size > 0;
}

bool trace_file_next(struct trace_file *f, struct trace_entry *entry)
{
    bool whole;
    while (read_line(f, &whole)) {
        if (strcmp(f->line, "[") == 0 || strcmp(f->line, "]") == 0) continue;
        if (!whole || !parse(f, entry)) {
            f->broken++;
            continue;
        }
        if (entry->phase == 'M') {
            read_head(f, entry);
            return true;
        }
        f->events++;
        if (entry->at < f->first) f->first = entry->at;
        if (entry->at > f->last) f->last = entry->at;
        return true;
    }
    return false;
}
