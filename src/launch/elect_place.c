/* elect_place.c - see elect_place.h. */
#include "elect_place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_SIZE_MAX = 8192 };

__attribute__((format(printf, 2, 3))) static bool fail(char *why,
                                                       const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(why, ETCD_WHY_SIZE, format, args);
    va_end(args);
    return false;
}

static size_t scheme_of(const char *text)
{
    static const char *const schemes[] = {"http://", "https://"};
    for (size_t i = 0; i < ARRAY_COUNT(schemes); i++)
        if (strncmp(text, schemes[i], strlen(schemes[i])) == 0)
            return strlen(schemes[i]);
    return 0;
}

static bool is_plain(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (text[i] <= ' ' || text[i] > '~' || strchr("\"<>\\^`{|}", text[i]))
            return false;
    return length > 0;
}

bool elect_place_parse(const char *text, struct elect_place *place,
                       char why[static ETCD_WHY_SIZE])
{
    place->count = 0;
    for (const char *at = text;; at++) {
        size_t scheme = scheme_of(at);
        size_t host = strcspn(at + scheme, ",/?#");
        if (scheme == 0)
            return fail(why, "'%.100s' does not begin with http:// or https://",
                        at);
        if (!is_plain(at + scheme, host) || scheme + host >= ENDPOINT_SIZE)
            return fail(why, "'%.100s' has no host", at);
        if (memchr(at + scheme, '@', host))
            return fail(why, "a user and a password belong into the file of "
                             "--elect-auth");
        if (place->count == ENDPOINTS_MAX)
            return fail(why, "more than %d places", ENDPOINTS_MAX);
        memcpy(place->endpoints[place->count], at, scheme + host);
        place->endpoints[place->count++][scheme + host] = '\0';
        at += scheme + host;
        if (*at != ',') {
            const char *name = *at == '/' ? at + 1 : "";
            size_t length = strlen(name);
            if (!is_plain(name, length) || strpbrk(name, ",?#") ||
                length > ETCD_NAME_MAX)
                return fail(why,
                            "the last place has to end with /NAME of the "
                            "election, of at most %d letters",
                            ETCD_NAME_MAX);
            memcpy(place->name, name, length + 1);
            return true;
        }
    }
}

/* Nobody else may read it. */
static char *read_private(const char *path, char *why)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    char *text = memory_get(FILE_SIZE_MAX + 1, 1);
    ssize_t got = 0;
    bool good = false;
    if (fd < 0 || fstat(fd, &st) != 0)
        fail(why, "%s: %s", path, strerror(errno));
    else if (!S_ISREG(st.st_mode))
        fail(why, "%s: it is no file", path);
    else if ((st.st_mode & (S_IRWXG | S_IRWXO)) != 0)
        fail(why, "%s: others than its owner may read or write it: chmod 600",
             path);
    else if ((got = read(fd, text, FILE_SIZE_MAX + 1)) < 0)
        fail(why, "%s: %s", path, strerror(errno));
    else if (got > FILE_SIZE_MAX || memchr(text, '\0', (size_t)got))
        fail(why, "%s: it is too large, or no text", path);
    else
        good = true;
    if (fd >= 0) (void)close(fd);
    if (good) text[got] = '\0';
    if (good) return text;
    free(text);
    return NULL;
}

static char **field_of(struct elect_account *a, const char *name)
{
    if (strcmp(name, "user") == 0) return &a->user;
    if (strcmp(name, "password") == 0) return &a->password;
    if (strcmp(name, "token") == 0) return &a->token;
    if (strcmp(name, "ca") == 0) return &a->ca;
    if (strcmp(name, "certificate") == 0) return &a->certificate;
    if (strcmp(name, "key") == 0) return &a->key;
    return NULL;
}

/* Lines of a name, a blank and a value. */
static bool read_lines(struct elect_account *a, const char *path, char *why)
{
    int number = 1;
    for (char *line = a->text; line; number++) {
        char *next = strchr(line, '\n');
        if (next) *next++ = '\0';
        char *blank = strchr(line, ' ');
        char **field = NULL;
        if (blank) *blank = '\0';
        if (*line != '\0' && *line != '#') {
            field = field_of(a, line);
            if (!field || !blank || blank[1] == '\0')
                return fail(why,
                            "%s: line %d is not user, password, token, ca, "
                            "certificate or key with its value",
                            path, number);
            *field = blank + 1;
        }
        line = next;
    }
    if (!a->user != !a->password)
        return fail(why, "%s: a user needs a password, and the other way round",
                    path);
    if (a->user && a->token)
        return fail(why, "%s: a user or a token, not both", path);
    if (a->token && strlen(a->token) >= ETCD_TOKEN_SIZE)
        return fail(why, "%s: the token is too long", path);
    return true;
}

bool elect_account_read(const char *path, struct elect_account *account,
                        char why[static ETCD_WHY_SIZE])
{
    *account = (struct elect_account){.text = NULL};
    if (!path) return true;
    account->text = read_private(path, why);
    return account->text && read_lines(account, path, why);
}

void elect_account_free(struct elect_account *account)
{
    if (account->text) explicit_bzero(account->text, FILE_SIZE_MAX);
    free(account->text);
}
