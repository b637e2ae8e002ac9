/* test_disk.h - a disk under quiet_write_all() that fails at any write, takes a
 * part, or hangs until the test lets it go. Nobody's patience with it ends but
 * while it hangs: a busy machine is no slow disk. */
#ifndef PCCL_TEST_DISK_H
#define PCCL_TEST_DISK_H

#include <stdbool.h>
#include <stddef.h>

struct test_disk {
    int fails; /* the write of this number fails; -1 */
    int error;
    bool for_good; /* and all after it, as after a mount is gone */
    size_t part;   /* bytes that it takes of it before */
    int hangs;     /* the write of this number waits; -1 */
    int writes;    /* so far */
};

extern struct test_disk test_disk;

void test_disk_await_hang(void);
void test_disk_let_go(void);

#endif
