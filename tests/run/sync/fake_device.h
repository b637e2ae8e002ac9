/* fake_device.h - a stand-in for comm_device.c. Its "device" memory faults when
 * the host touches it, so that a test without a GPU detects wrong accesses. */
#ifndef PCCL_TEST_FAKE_DEVICE_H
#define PCCL_TEST_FAKE_DEVICE_H

#include "../../../src/peer/comm_device.h"

struct fake_device {
    atomic_ulong hashed, read, written; /* bytes */
    atomic_bool hash_fails, read_fails, write_fails;
};

/* Two devices, so that one peer of a process can fail alone. */
extern struct fake_device fake_devices[2];

void *fake_alloc(int device, size_t size); /* a device address */
void *
fake_host(const void *data); /* the same data in host memory, for the test */
void fake_free_all(void);

#endif
