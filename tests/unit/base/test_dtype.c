/* test_dtype.c - the table agrees with the public enums and with C's sizes. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "../../../include/pccl.h"
#include "../../../src/base/dtype.h"

static const struct {
    int value;
    size_t size;
    const char *name;
} types[] = {
    {pcclUint8, 1, "u8"},      {pcclInt8, 1, "i8"},    {pcclInt16, 2, "i16"},
    {pcclUint16, 2, "u16"},    {pcclUint32, 4, "u32"}, {pcclInt32, 4, "i32"},
    {pcclUint64, 8, "u64"},    {pcclInt64, 8, "i64"},  {pcclFloat16, 2, "f16"},
    {pcclBFloat16, 2, "bf16"}, {pcclFloat, 4, "f32"},  {pcclDouble, 8, "f64"},
};

static const struct {
    int value;
    const char *name;
} ops[] = {
    {pcclSum, "sum"}, {pcclAvg, "avg"}, {pcclProd, "prod"},
    {pcclMax, "max"}, {pcclMin, "min"},
};

static void test_types(void **state)
{
    (void)state;
    assert_int_equal(ARRAY_COUNT(types), DTYPE_COUNT);
    for (size_t i = 0; i < ARRAY_COUNT(types); i++) {
        enum dtype type = (enum dtype)types[i].value;
        assert_int_equal(dtype_size(type), types[i].size);
        assert_string_equal(dtype_name(type), types[i].name);
    }
}

static void test_ops(void **state)
{
    (void)state;
    assert_int_equal(ARRAY_COUNT(ops), REDOP_COUNT);
    for (size_t i = 0; i < ARRAY_COUNT(ops); i++)
        assert_string_equal(redop_name((enum redop)ops[i].value), ops[i].name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_ops),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
