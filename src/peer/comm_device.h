/* comm_device.h - tensors of shared state that lie on a GPU. */
#ifndef PCCL_COMM_DEVICE_H
#define PCCL_COMM_DEVICE_H

#include "comm.h"

/* Whether this library was built with CUDA. */
bool comm_device_built(void);

/* The device that holds the memory at `data`; it lives as long as the process.
 * NULL: *wrong is the reason (static text). Any thread may call it. */
const struct state_device *comm_device_of(const void *data, const char **wrong);

#endif
