/* decimal.c - see decimal.h. */
#include "decimal.h"

#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

/* It needs none of the machine's locales: "C" is a part of the library and
 * takes no memory. */
bool decimal_parse(const char *text, double *value)
{
    char *end;
    if (strchr("+-", *text) || text[strspn(text, "0123456789.eE+-")] != '\0')
        return false;
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (c == (locale_t)0) return false;
    double number = strtod_l(text, &end, c);
    freelocale(c);
    if (*end != '\0') return false;
    *value = number;
    return true;
}

bool number_parse(const char *text, uint64_t most, uint64_t *value)
{
    char *end;
    if (*text < '0' || *text > '9') return false;
    errno = 0;
    uint64_t number = strtoull(text, &end, 10);
    if (errno != 0 || *end != '\0' || number > most) return false;
    *value = number;
    return true;
}
