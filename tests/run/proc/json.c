/* json.c - see json.h. */
#include "json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A scalar value: its key, and the text without quotes. */
typedef void take_value(void *user, const char *key, const char *text);

struct parser {
    const char *begin, *at;
    take_value *take;
    void *user;
    int depth;
    void (*event)(void *user, const struct json_event *e);
    void *event_user;
};

static void parse_value(struct parser *p, const char *key);

static void bad(const struct parser *p, const char *what)
{
    fail_msg("JSON: %s at byte %ld: %.60s", what, (long)(p->at - p->begin),
             p->at);
}

static char next(struct parser *p)
{
    while (*p->at == ' ' || *p->at == '\n' || *p->at == '\t') p->at++;
    return *p->at;
}

static void expect(struct parser *p, char c)
{
    if (next(p) != c) bad(p, "another character expected");
    p->at++;
}

/* Escapes are not decoded. */
static void parse_string(struct parser *p, char *to, size_t size)
{
    size_t used = 0;
    expect(p, '"');
    while (*p->at != '"') {
        if ((unsigned char)*p->at < ' ') bad(p, "a string has no end");
        if (*p->at == '\\') p->at++;
        if (used + 1 < size) to[used++] = *p->at;
        p->at++;
    }
    to[used] = '\0';
    p->at++;
}

static void parse_number(struct parser *p, char *to, size_t size)
{
    char *end;
    (void)strtod(p->at, &end);
    size_t length = (size_t)(end - p->at);
    bool leading = p->at[0] == '0' && isdigit((unsigned char)p->at[1]);
    if (length == 0 || length >= size || leading) bad(p, "no number");
    memcpy(to, p->at, length);
    to[length] = '\0';
    p->at = end;
}

static void take_choice(struct json_event *e, const char *key, const char *text)
{
    if (strcmp(key, "algorithm") == 0)
        (void)snprintf(e->algorithm, sizeof e->algorithm, "%s", text);
    if (strcmp(key, "why") == 0)
        (void)snprintf(e->why, sizeof e->why, "%s", text);
    if (strcmp(key, "instead_of") == 0)
        (void)snprintf(e->instead_of, sizeof e->instead_of, "%s", text);
    if (strcmp(key, "unfit") == 0)
        (void)snprintf(e->unfit, sizeof e->unfit, "%s", text);
}

static void take_event_field(void *event, const char *key, const char *text)
{
    struct json_event *e = event;
    double number = strtod(text, NULL);
    if (strcmp(key, "ts") == 0) e->at = number;
    if (strcmp(key, "dur") == 0) e->took = number;
    if (strcmp(key, "pid") == 0) e->process = number;
    if (strcmp(key, "tid") == 0) e->thread = number;
    if (strcmp(key, "ph") == 0) e->phase = text[0];
    if (strcmp(key, "members") == 0) e->members = number;
    if (strcmp(key, "partner") == 0) e->partner = number;
    if (strcmp(key, "name") == 0 && e->name[0] == '\0')
        (void)snprintf(e->name, sizeof e->name, "%s", text);
    if (strcmp(key, "cat") == 0)
        (void)snprintf(e->category, sizeof e->category, "%s", text);
    if (strcmp(key, "result") == 0)
        (void)snprintf(e->result, sizeof e->result, "%s", text);
    if (strcmp(key, "kind") == 0)
        (void)snprintf(e->kind, sizeof e->kind, "%s", text);
    take_choice(e, key, text);
}

static void parse_object(struct parser *p)
{
    char key[64];
    expect(p, '{');
    if (next(p) == '}') {
        p->at++;
        return;
    }
    for (;;) {
        parse_string(p, key, sizeof key);
        expect(p, ':');
        parse_value(p, key);
        if (next(p) == '}') break;
        expect(p, ',');
    }
    p->at++;
}

static void parse_array(struct parser *p, bool events)
{
    expect(p, '[');
    if (next(p) == ']') {
        p->at++;
        return;
    }
    for (;;) {
        struct json_event e = {.partner = -1};
        if (events) {
            p->take = take_event_field;
            p->user = &e;
        }
        parse_value(p, "");
        p->take = NULL;
        if (events) p->event(p->event_user, &e);
        if (next(p) == ']') break;
        expect(p, ',');
    }
    p->at++;
}

static void parse_value(struct parser *p, const char *key)
{
    char text[512];
    char c = next(p);
    if (++p->depth > 8) bad(p, "too deep");
    if (c == '{') {
        parse_object(p);
    } else if (c == '[') {
        parse_array(p, strcmp(key, "traceEvents") == 0);
    } else {
        if (c == '"')
            parse_string(p, text, sizeof text);
        else
            parse_number(p, text, sizeof text);
        if (p->take) p->take(p->user, key, text);
    }
    p->depth--;
}

static char *read_all(const char *path)
{
    FILE *in = fopen(path, "re");
    assert_non_null(in);
    assert_int_equal(fseek(in, 0, SEEK_END), 0);
    long size = ftell(in);
    rewind(in);
    char *text = malloc((size_t)size + 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, (size_t)size, in), size);
    text[size] = '\0';
    fclose(in);
    return text;
}

void json_read_trace(const char *path,
                     void (*event)(void *user, const struct json_event *e),
                     void *user)
{
    char *text = read_all(path);
    struct parser p = {
        .begin = text, .at = text, .event = event, .event_user = user};
    parse_value(&p, "");
    if (next(&p) != '\0') bad(&p, "something behind the end");
    free(text);
}
