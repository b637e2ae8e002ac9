/* test_save_device.c - checkpoints of tensors on a GPU, which is fake_device.c:
 * the library crashes if it accesses a device address itself. */
#include "../sync/fake_device.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SIZE = 3000001 }; /* several pieces and an odd rest */

static pcclComm_t *comm;
static pcclTensorInfo_t info;
static pcclSharedState_t shared;

static const pcclSaveOptions_t later = {.size = sizeof later, .this_peer = 1};
static const pcclSaveOptions_t at_once = {
    .size = sizeof at_once, .synchronous = 1, .this_peer = 1};

static uint8_t content(size_t i, int which)
{
    return (uint8_t)(i * 31 + i / 65536 + (size_t)which);
}

static void put(pcclDeviceType_t type, int which)
{
    static uint8_t host[SIZE];
    info = (pcclTensorInfo_t){.name = "weights",
                              .data = host,
                              .count = SIZE,
                              .datatype = pcclUint8,
                              .device_type = type};
    if (type == pcclDeviceCuda) info.data = fake_alloc(0, SIZE);
    uint8_t *bytes = type == pcclDeviceCuda ? fake_host(info.data) : info.data;
    for (size_t i = 0; i < SIZE; i++) bytes[i] = content(i, which);
    shared = (pcclSharedState_t){(uint64_t)which, 1, &info};
}

static void assert_content(int which)
{
    const uint8_t *bytes =
        info.device_type == pcclDeviceCuda ? fake_host(info.data) : info.data;
    for (size_t i = 0; i < SIZE; i++)
        assert_int_equal(bytes[i], content(i, which));
    assert_int_equal(shared.revision, which);
}

static pcclResult_t save(const pcclSaveOptions_t *options)
{
    return pcclSaveState(comm, &shared, scratch, options);
}

static pcclResult_t load(void)
{
    return pcclLoadState(comm, &shared, scratch, NULL, NULL);
}

static void test_from_any_memory_to_any_other(void **state)
{
    (void)state;
    static const pcclDeviceType_t types[] = {pcclDeviceCpu, pcclDeviceCuda};
    for (int i = 0; i < 8; i++) {
        put(types[i & 1], 10 + i);
        assert_int_equal(save(i & 2 ? &at_once : &later), pcclSuccess);
        assert_int_equal(pcclAwaitSave(comm, NULL), pcclSuccess);
        put(types[i >> 2 & 1], 50);
        assert_int_equal(load(), pcclSuccess);
        assert_content(10 + i);
    }
}

static void test_a_device_that_fails(void **state)
{
    (void)state;
    put(pcclDeviceCuda, 20);
    atomic_store(&fake_devices[0].read_fails, true);
    assert_int_equal(save(&later), pcclFileError);
    assert_int_equal(save(&at_once), pcclFileError);
    atomic_store(&fake_devices[0].read_fails, false);
    assert_int_equal(save(&at_once), pcclSuccess);
    atomic_store(&fake_devices[0].write_fails, true);
    assert_int_equal(load(), pcclFileError);
    atomic_store(&fake_devices[0].write_fails, false);
    assert_int_equal(load(), pcclSuccess);
    assert_content(20);
}

static int setup(void **state)
{
    (void)state;
    pcclCommCreateParams_t params = {.peer_group = 0};
    if (scratch_make(NULL) != 0 || pcclInit() != pcclSuccess) return -1;
    return (int)pcclCreateCommunicator(&params, &comm);
}

static int teardown(void **state)
{
    (void)state;
    (void)pcclDestroyCommunicator(comm);
    fake_free_all();
    return scratch_remove(NULL);
}

int main(void)
{
    (void)setenv("PCCL_LOG_LEVEL", "ERR", 1); /* failures are wanted here */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_from_any_memory_to_any_other),
        cmocka_unit_test(test_a_device_that_fails),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
