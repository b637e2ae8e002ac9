/* decimal.h - numbers as people write them in options and environment
 * variables, whatever locale the program has set: strtod() reads "2.5" as 2 in
 * a German one. */
#ifndef PCCL_DECIMAL_H
#define PCCL_DECIMAL_H

#include <stdbool.h>
#include <stdint.h>

/* Reads the whole text: digits, with a point or an exponent ("3", "2.5", ".5",
 * "1e-3"); no sign. False: it is something else, and *value is untouched. */
bool decimal_parse(const char *text, double *value);

/* Reads the whole text: digits alone, a number of `most` at most. False: it is
 * something else, and *value is untouched. */
bool number_parse(const char *text, uint64_t most, uint64_t *value);

#endif
