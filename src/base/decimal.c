/* decimal.c - see decimal.h. */
#include "decimal.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>

/* Where the machine's locales are missing, too: "C" is a part of the library
 * and takes no memory. */
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
