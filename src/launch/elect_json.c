/* elect_json.c - see elect_json.h. */
#include "elect_json.h"

#include <string.h>

enum { DEPTH_MAX = 16 };

struct json_reader {
    const char *at, *end;
};

static void skip_blanks(struct json_reader *r)
{
    while (r->at < r->end && strchr(" \t\r\n", *r->at) && *r->at) r->at++;
}

static bool take(struct json_reader *r, char wanted)
{
    skip_blanks(r);
    if (r->at == r->end || *r->at != wanted) return false;
    r->at++;
    return true;
}

static bool skip_string(struct json_reader *r)
{
    if (!take(r, '"')) return false;
    for (; r->at < r->end && *r->at != '"'; r->at++) {
        if ((unsigned char)*r->at < ' ') return false;
        if (*r->at == '\\' && ++r->at == r->end) return false;
    }
    return r->at++ < r->end;
}

/* A number, true, false or null. */
static bool skip_word(struct json_reader *r)
{
    static const char letters[] = "+-.0123456789Eabcdefghijklmnopqrstuvwxyz";
    const char *from = r->at;
    while (r->at < r->end && *r->at && strchr(letters, *r->at)) r->at++;
    return r->at > from;
}

/* Opens an object or an array, or closes it, or passes a comma. */
static bool skip_value(struct json_reader *r)
{
    char closes[DEPTH_MAX];
    int depth = 0;
    for (;;) {
        skip_blanks(r);
        if (r->at == r->end) return false;
        if (*r->at == '{' || *r->at == '[') {
            if (depth == DEPTH_MAX) return false;
            closes[depth++] = *r->at++ == '{' ? '}' : ']';
            if (take(r, closes[depth - 1])) {
                depth--;
            } else {
                if (closes[depth - 1] == '}' &&
                    (!skip_string(r) || !take(r, ':')))
                    return false;
                continue;
            }
        } else if (*r->at == '"' ? !skip_string(r) : !skip_word(r)) {
            return false;
        }
        while (depth > 0 && take(r, closes[depth - 1])) depth--;
        if (depth == 0) return true;
        if (!take(r, ',')) return false;
        if (closes[depth - 1] == '}' && (!skip_string(r) || !take(r, ':')))
            return false;
    }
}

struct json_value json_read(const char *text, size_t size)
{
    struct json_reader r = {text, text + size};
    skip_blanks(&r);
    const char *from = r.at;
    if (!skip_value(&r)) return (struct json_value){NULL, 0};
    return (struct json_value){from, (size_t)(r.at - from)};
}

struct json_value json_member(struct json_value object, const char *name)
{
    struct json_value none = {NULL, 0};
    if (!object.at) return none;
    struct json_reader r = {object.at, object.at + object.size};
    if (!take(&r, '{')) return none;
    do {
        skip_blanks(&r);
        const char *key = r.at;
        if (!skip_string(&r)) return none;
        size_t length = (size_t)(r.at - key) - 2;
        if (!take(&r, ':')) return none;
        skip_blanks(&r);
        const char *from = r.at;
        if (!skip_value(&r)) return none;
        if (length == strlen(name) && memcmp(key + 1, name, length) == 0)
            return (struct json_value){from, (size_t)(r.at - from)};
    } while (take(&r, ','));
    return none;
}

struct json_value json_first(struct json_value array)
{
    if (!array.at || *array.at != '[') return (struct json_value){NULL, 0};
    return json_read(array.at + 1, array.size - 1);
}

bool json_is_true(struct json_value value)
{
    return value.size == 4 && memcmp(value.at, "true", 4) == 0;
}

bool json_number(struct json_value value, uint64_t *number)
{
    if (value.size > 2 && *value.at == '"') {
        value.at++;
        value.size -= 2;
    }
    *number = 0;
    if (value.size == 0 || value.size > 19) return false;
    for (size_t i = 0; i < value.size; i++) {
        if (value.at[i] < '0' || value.at[i] > '9') return false;
        *number = *number * 10 + (uint64_t)(value.at[i] - '0');
    }
    return *number <= INT64_MAX;
}

bool json_string(struct json_value value, char *to, size_t size)
{
    size_t length = 0;
    if (value.size < 2 || *value.at != '"') return false;
    for (size_t i = 1; i + 1 < value.size && length + 1 < size; i++) {
        char c = value.at[i];
        bool escaped = c == '\\';
        to[length++] = c >= ' ' && c <= '~' && !escaped ? c : '?';
        i += escaped;
    }
    to[length] = '\0';
    return true;
}

static const char digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

bool base64_write(const char *from, char *to, size_t size)
{
    size_t left = strlen(from);
    if (size < (left + 2) / 3 * 4 + 1) return false;
    for (; left > 0; from += 3) {
        uint32_t bits = 0;
        for (size_t i = 0; i < 3; i++)
            bits = bits << 8 | (i < left ? (unsigned char)from[i] : 0u);
        for (size_t i = 0; i < 4; i++)
            *to++ = i <= left ? digits[bits >> (18 - 6 * i) & 63] : '=';
        if (left <= 3) break;
        left -= 3;
    }
    *to = '\0';
    return true;
}

bool base64_read(struct json_value value, char *to, size_t size)
{
    uint32_t bits = 0;
    size_t have = 0, length = 0;
    if (value.size < 2 || *value.at != '"' || value.size % 4 != 2) return false;
    const char *at = value.at + 1, *end = value.at + value.size - 1;
    for (int i = 0; i < 2 && end > at && end[-1] == '='; i++) end--;
    for (; at < end; at++) {
        const char *digit = *at ? strchr(digits, *at) : NULL;
        if (!digit) return false;
        bits = bits << 6 | (uint32_t)(digit - digits);
        have += 6;
        if (have < 8) continue;
        have -= 8;
        char c = (char)(bits >> have & 0xff);
        if (c < ' ' || c > '~' || length + 1 >= size) return false;
        to[length++] = c;
    }
    to[length] = '\0';
    return true;
}
