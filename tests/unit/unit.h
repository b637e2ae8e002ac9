/* unit.h - the headers that CMocka requires, in its order. */
#ifndef PCCL_TESTS_UNIT_H
#define PCCL_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#endif
