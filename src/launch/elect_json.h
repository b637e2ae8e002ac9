/* elect_json.h - reads JSON that a server sent. Pure; a value is a part of the
 * text. */
#ifndef PCCL_LAUNCH_ELECT_JSON_H
#define PCCL_LAUNCH_ELECT_JSON_H

#include "../base/base.h"

struct json_value {
    const char *at; /* NULL: there is none */
    size_t size;
};

/* The first value of the text, if it is whole; what follows it is not read. */
struct json_value json_read(const char *text, size_t size);
/* Of that name in an object; the first one. */
struct json_value json_member(struct json_value object, const char *name);
struct json_value json_first(struct json_value array);
bool json_is_true(struct json_value value);
/* A number from 0 to INT64_MAX, also in quotes, as etcd writes its own. */
bool json_number(struct json_value value, uint64_t *number);
/* A string without its quotes, cut to size - 1; what is not ASCII, and \ with
 * what follows, become '?'. False: no string. */
bool json_string(struct json_value value, char *to, size_t size);

/* Writes `from` in base64. False: no room. */
bool base64_write(const char *from, char *to, size_t size);
/* Of a JSON string in base64, as a text: at most size - 1 bytes, all printable
 * ASCII. False: something else. */
bool base64_read(struct json_value value, char *to, size_t size);

#endif
