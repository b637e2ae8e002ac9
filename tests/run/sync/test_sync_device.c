/* test_sync_device.c - tests of shared state on a GPU, on the host, and mixed.
 * The GPU is fake_device.c: the library crashes if it accesses a device address
 * itself. */
#include "cast.h"
#include "fake_device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Many pieces, a single block, and a few bytes at an odd address. */
enum { TENSORS = 3 };
static const size_t sizes[TENSORS] = {1300 * 1000 + 7, 65536, 13};
static const size_t total = 1300 * 1000 + 7 + 65536 + 13;

static struct cast cast;

static int setup(void **state)
{
    (void)state;
    cast_open(&cast, 20000);
    memset(fake_devices, 0, sizeof fake_devices);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    cast_close(&cast);
    fake_free_all();
    return 0;
}

static uint8_t *bytes_of(int i, int t)
{
    const pcclTensorInfo_t *info = &cast.actors[i].infos[t];
    return info->device_type == pcclDeviceCuda ? fake_host(info->data)
                                               : info->data;
}

static void fill(int i, int content)
{
    for (int t = 0; t < TENSORS; t++)
        for (size_t k = 0; k < sizes[t]; k++)
            bytes_of(i, t)[k] = (uint8_t)(k * 31 + k / 65536 + (size_t)content);
}

/* Tensor t of the actor is on a device if bit t of `where` is set. */
static void stage(int i, unsigned where, int device, int content)
{
    static uint8_t host[CAST_MAX][TENSORS][1400 * 1000];
    if (!cast.actors[i].comm) cast_join(&cast, i, 0);
    for (int t = 0; t < TENSORS; t++) {
        bool there = where >> t & 1;
        uint8_t *data = host[i][t];
        if (there) data = fake_alloc(device, sizes[t] + 8);
        cast_tensor(&cast, i, NULL, data + t, sizes[t], pcclUint8);
        if (there) cast.actors[i].infos[t].device_type = pcclDeviceCuda;
    }
    fill(i, content);
}

static void assert_all(int count, int content)
{
    for (int i = 0; i < count; i++) {
        assert_int_equal(cast.actors[i].result, pcclSuccess);
        for (int t = 0; t < TENSORS; t++)
            for (size_t k = 0; k < sizes[t]; k++)
                assert_int_equal(
                    bytes_of(i, t)[k],
                    (uint8_t)(k * 31 + k / 65536 + (size_t)content));
    }
}

static void test_mixed_peers_agree_bit_for_bit(void **state)
{
    (void)state;
    cast_clear(&cast);
    stage(0, 0, 0, 1);
    stage(1, 7, 0, 1);
    stage(2, 5, 1, 2);
    stage(3, 0, 0, 3);
    cast_run(&cast);
    assert_all(4, 1);
    size_t tx = 0;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(cast.actors[i].info.rx_bytes, i < 2 ? 0 : total);
        tx += cast.actors[i].info.tx_bytes;
    }
    assert_int_equal(tx, 2 * total);
    assert_int_equal(fake_devices[0].hashed, total);
    assert_int_equal(fake_devices[1].written, sizes[0] + sizes[2]);
    /* Without a difference nothing is copied. */
    unsigned long read = fake_devices[0].read + fake_devices[1].read;
    for (int i = 0; i < 4; i++) cast.actors[i].state.revision = 1;
    cast_run(&cast);
    assert_all(4, 1);
    assert_int_equal(fake_devices[0].read + fake_devices[1].read, read);
}

static void test_devices_only(void **state)
{
    (void)state;
    cast_clear(&cast);
    stage(0, 7, 0, 5);
    stage(1, 7, 1, 6);
    cast_run(&cast);
    assert_all(2, 5);
    assert_int_equal(cast.actors[0].info.tx_bytes, total);
    assert_int_equal(fake_devices[0].read, total);
    assert_int_equal(fake_devices[1].written, total);
    /* One block of a tensor. */
    bytes_of(1, 0)[70000] ^= 1;
    for (int i = 0; i < 2; i++) cast.actors[i].state.revision = 1;
    cast_run(&cast);
    assert_all(2, 5);
    assert_int_equal(cast.actors[1].info.rx_bytes, 65536);
    assert_int_equal(fake_devices[1].written, total + 65536);
}

static void test_host_memory_is_not_the_devices(void **state)
{
    (void)state;
    cast_clear(&cast);
    stage(0, 0, 0, 1);
    cast.actors[0].infos[1].device_type = pcclDeviceCuda;
    cast_run(&cast);
    assert_int_equal(cast.actors[0].result, pcclInvalidArgument);
    assert_non_null(strstr(cast.actors[0].error, "entry 1"));
    assert_non_null(strstr(cast.actors[0].error, "not memory of a CUDA"));
    cast.actors[0].infos[1].device_type = (pcclDeviceType_t)2;
    cast_run(&cast);
    assert_int_equal(cast.actors[0].result, pcclInvalidArgument);
    assert_non_null(strstr(cast.actors[0].error, "unknown device"));
}

static void test_device_that_cannot_be_written(void **state)
{
    (void)state;
    cast_clear(&cast);
    stage(0, 0, 0, 1);
    stage(1, 0, 0, 1);
    stage(2, 7, 1, 2);
    fake_devices[1].write_fails = true;
    cast_run(&cast);
    assert_int_equal(cast.actors[2].result, pcclInternalError);
    assert_non_null(strstr(cast.actors[2].error, "could not be written"));
    assert_int_equal(cast.actors[0].result, pcclSuccess);
    assert_int_equal(cast.actors[0].info.tx_bytes, 0);
    assert_int_equal(cast.actors[1].info.tx_bytes, 0);
    /* It is still a member, and the device may recover. */
    fake_devices[1].write_fails = false;
    for (int i = 0; i < 3; i++) cast.actors[i].state.revision = 1;
    cast_run(&cast);
    assert_all(3, 1);
}

static void test_device_that_cannot_be_read(void **state)
{
    (void)state;
    cast_clear(&cast);
    stage(0, 0, 0, 1);
    stage(1, 7, 0, 1);
    stage(2, 0, 1, 2);
    fake_devices[0].read_fails = true;
    cast_run(&cast);
    assert_all(3, 1);
    assert_int_equal(cast.actors[0].info.tx_bytes, total);
    assert_int_equal(cast.actors[1].info.tx_bytes, 0);
}

static void test_device_that_cannot_hash(void **state)
{
    (void)state;
    cast_clear(&cast);
    stage(0, 7, 0, 1);
    fake_devices[0].hash_fails = true;
    cast_run(&cast);
    assert_int_equal(cast.actors[0].result, pcclInternalError);
    assert_non_null(strstr(cast.actors[0].error, "could not hash"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_mixed_peers_agree_bit_for_bit),
        TEST(test_devices_only),
        TEST(test_host_memory_is_not_the_devices),
        TEST(test_device_that_cannot_be_written),
        TEST(test_device_that_cannot_be_read),
        TEST(test_device_that_cannot_hash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
