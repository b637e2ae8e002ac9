/* master_open.c - see master_open.h. */
#include "master_open.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void open_free(struct master_open *o)
{
    free(o->revoked);
    o->revoked = NULL;
    o->revoked_count = 0;
}

/* ----------------------------------------------------------- revoked names */

static int compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

struct list {
    char (*names)[GRANT_NAME_MAX + 1];
    size_t count, room;
};

static const char *add(struct list *l, const char *name)
{
    if (!token_name_is_valid(name)) return "is no name of a participant";
    if (l->count == REVOKED_MAX) return "is one name too many";
    if (l->count == l->room) {
        size_t room = l->room > 0 ? 2 * l->room : 64;
        void *more = realloc(l->names, room * sizeof *l->names);
        if (!more) return "finds no memory";
        l->names = more;
        l->room = room;
    }
    snprintf(l->names[l->count++], sizeof *l->names, "%s", name);
    return NULL;
}

/* One name, or nothing; blanks around it do not count. */
static const char *read_line(struct list *l, char *line)
{
    line[strcspn(line, "#\r\n")] = '\0';
    line += strspn(line, " \t");
    size_t size = strlen(line);
    while (size > 0 && strchr(" \t", line[size - 1])) line[--size] = '\0';
    return size > 0 ? add(l, line) : NULL;
}

static bool read_list(struct list *l, FILE *file, const char *path, char *error,
                      size_t error_size)
{
    char line[256];
    for (unsigned long number = 1; fgets(line, sizeof line, file); number++) {
        bool whole = strchr(line, '\n') || feof(file);
        const char *fault = whole ? read_line(l, line) : "is too long";
        if (!fault) continue;
        snprintf(error, error_size, "%s: line %lu %s", path, number, fault);
        return false;
    }
    if (!ferror(file)) return true;
    snprintf(error, error_size, "%s: %s", path, strerror(errno));
    return false;
}

bool open_read_revoked(struct master_open *o, const char *path, char *error,
                       size_t error_size)
{
    struct list list = {NULL, 0, 0};
    FILE *file = fopen(path, "re");
    if (!file) {
        snprintf(error, error_size, "%s: %s", path, strerror(errno));
        return false;
    }
    bool done = read_list(&list, file, path, error, error_size);
    fclose(file);
    if (!done) {
        free(list.names);
        return false;
    }
    if (list.count > 0)
        qsort(list.names, list.count, sizeof *list.names, compare);
    open_free(o);
    o->revoked = list.names;
    o->revoked_count = list.count;
    return true;
}

static bool is_revoked(const struct master_open *o, const char *name)
{
    return o->revoked_count > 0 && bsearch(name, o->revoked, o->revoked_count,
                                           sizeof *o->revoked, compare);
}

/* -------------------------------------------------------------- judgement */

enum secure_fault open_find(void *open, const char *identity,
                            uint8_t key[SECURE_KEY_SIZE])
{
    const struct master_open *o = open;
    const struct secure_psk *known[] = {&o->links, &o->own};
    for (size_t i = 0; i < ARRAY_COUNT(known); i++) {
        if (strcmp(identity, known[i]->identity) != 0) continue;
        memcpy(key, known[i]->key, SECURE_KEY_SIZE);
        return SECURE_FINE;
    }
    return token_secret(identity, o->key, key) == TOKEN_FINE ? SECURE_FINE
                                                             : SECURE_WRONG_KEY;
}

bool open_holds(const struct master_open *o, const struct token *token,
                uint64_t now, char *text, size_t size)
{
    enum token_fault fault = token_at(token, now);
    if (fault == TOKEN_FINE && is_revoked(o, token->grant.name))
        fault = TOKEN_REVOKED;
    if (fault == TOKEN_FINE) return true;
    token_fault_text(fault, token, text, size);
    return false;
}

bool open_judge(const struct master_open *o, const char *identity, uint64_t now,
                struct token *token, char *text, size_t size)
{
    *token = (struct token){.grant = {.rights = GRANT_RELAY}};
    if (strcmp(identity, o->links.identity) == 0) return true;
    enum token_fault fault = token_open(identity, o->key, o->issuer, token);
    if (fault == TOKEN_FINE) return open_holds(o, token, now, text, size);
    token_fault_text(fault, NULL, text, size);
    return false;
}
