/* test_sync_large.c - tensors of more than 4 GiB: tests that no offset, size or
 * byte count is truncated to 32 bits anywhere.
 *
 * The tensors are mostly address space: a few MiB of memory that repeat, with
 * separate pages where a truncated offset would show. Writing a repeated block
 * is harmless, because all its images are to get the same bytes. */
#include "cast.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define FOUR_GIB ((size_t)1 << 32)

enum {
    BLOCK = 65536,
    IMAGE = 64 * BLOCK, /* repeats */
    TAIL = 3 * BLOCK + 17,
    OWN = 3, /* ranges of pages that do not repeat */
};

#define SIZE (FOUR_GIB + TAIL)
#define MAPPED (FOUR_GIB + IMAGE)

static const size_t own_at[OWN] = {0, FOUR_GIB - BLOCK, FOUR_GIB + BLOCK};
static struct cast cast;

/* SIZE bytes: `content` everywhere. */
static uint8_t *make(uint8_t content)
{
    int fd = memfd_create("image", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, IMAGE), 0);
    uint8_t *bytes = mmap(NULL, MAPPED, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(bytes != MAP_FAILED);
    for (size_t at = 0; at < MAPPED; at += IMAGE)
        assert_true(mmap(bytes + at, IMAGE, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED);
    close(fd);
    memset(bytes + IMAGE, content, IMAGE);
    for (int i = 0; i < OWN; i++) {
        size_t size = own_at[i] > FOUR_GIB ? MAPPED - own_at[i] : BLOCK;
        assert_true(mmap(bytes + own_at[i], size, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                         0) != MAP_FAILED);
        memset(bytes + own_at[i], content, size);
    }
    return bytes;
}

static void stage(int i, uint8_t *bytes, uint64_t revision)
{
    cast_tensor(&cast, i, "large", bytes, SIZE, pcclUint8);
    cast_tensor(&cast, i, "next", bytes + IMAGE, 1000, pcclUint8);
    cast.actors[i].infos[1].allow_content_inequality = true;
    cast.actors[i].state.revision = revision;
}

static void synchronize(uint8_t *bytes[2], uint64_t revision, size_t moved)
{
    cast_clear(&cast);
    for (int i = 0; i < 2; i++) stage(i, bytes[i], revision);
    cast_run(&cast);
    for (int i = 0; i < 2; i++) {
        const struct actor *a = &cast.actors[i];
        if (a->result != pcclSuccess) fail_msg("actor %d: %s", i, a->error);
        assert_int_equal(a->info.rx_bytes, i == 1 ? moved : 0);
        assert_int_equal(a->info.tx_bytes, i == 0 ? moved : 0);
    }
    assert_true(memcmp(bytes[0], bytes[1], 2 * IMAGE) == 0);
    size_t high_rtt = FOUR_GIB - IMAGE;
    assert_true(
        memcmp(bytes[0] + high_rtt, bytes[1] + high_rtt, SIZE - high_rtt) == 0);
}

static void test_one_block_beyond_four_gib(void **state)
{
    uint8_t **bytes = *state;
    memset(bytes[0], 1, BLOCK);
    memset(bytes[1], 1, BLOCK);
    /* Where a truncated offset would hit the first or the second block. */
    bytes[0][FOUR_GIB + BLOCK] = 77;
    bytes[0][SIZE - 1] = 78;
    synchronize(bytes, 0, BLOCK + (size_t)TAIL % BLOCK);
    assert_int_equal(bytes[1][0], 1);
    assert_int_equal(bytes[1][SIZE - 1], 78);
}

static void test_more_than_four_gib_are_moved(void **state)
{
    uint8_t **bytes = *state;
    for (size_t i = 0; i < IMAGE; i++)
        bytes[0][IMAGE + i] = (uint8_t)(i / BLOCK + 2);
    for (int i = 0; i < OWN; i++) memset(bytes[0] + own_at[i], 90 + i, BLOCK);
    memset(bytes[0] + FOUR_GIB + BLOCK, 99, TAIL - BLOCK);
    synchronize(bytes, 1, SIZE);
    assert_int_equal(bytes[1][0], 90);
    assert_int_equal(bytes[1][FOUR_GIB - 1], 91);
    assert_int_equal(bytes[1][FOUR_GIB + BLOCK], 99);
    synchronize(bytes, 2, 0);
}

static int setup(void **state)
{
    static uint8_t *bytes[2];
    for (int i = 0; i < 2; i++) bytes[i] = make(1);
    cast_open(&cast, 10000);
    for (int i = 0; i < 2; i++) cast_join(&cast, i, 0);
    *state = bytes;
    return 0;
}

static int teardown(void **state)
{
    uint8_t **bytes = *state;
    cast_close(&cast);
    for (int i = 0; i < 2; i++) (void)munmap(bytes[i], MAPPED);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_block_beyond_four_gib),
        cmocka_unit_test(test_more_than_four_gib_are_moved),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
