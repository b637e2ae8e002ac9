/* decimal.c - see decimal.h. */
#include "decimal.h"

enum { EXPONENT_MAX = 400 }; /* beyond it every double is 0 or infinite */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Returns the number of digits; adds them to *value. */
static int digits(const char **at, double *value)
{
    int count = 0;
    for (; is_digit(**at); (*at)++, count++)
        *value = *value * 10 + (**at - '0');
    return count;
}

static bool exponent(const char **at, int *power)
{
    bool negative = **at == '-';
    int value = 0;
    if (**at == '-' || **at == '+') (*at)++;
    if (!is_digit(**at)) return false;
    for (; is_digit(**at); (*at)++)
        if (value < EXPONENT_MAX) value = value * 10 + (**at - '0');
    *power += negative ? -value : value;
    return true;
}

bool decimal_parse(const char *text, double *value)
{
    double number = 0;
    double scale = 1;
    int whole = digits(&text, &number);
    int after = 0;
    if (*text == '.') {
        text++;
        after = digits(&text, &number);
    }
    int power = -after;
    if (whole + after == 0) return false;
    if (*text == 'e' || *text == 'E') {
        text++;
        if (!exponent(&text, &power)) return false;
    }
    if (*text != '\0') return false;
    for (int i = power < 0 ? -power : power; i > 0; i--) scale *= 10;
    *value = power < 0 ? number / scale : number * scale;
    return true;
}
