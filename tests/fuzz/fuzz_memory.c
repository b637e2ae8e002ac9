/* fuzz_memory.c - offers of shared memory, and the memory behind them, of
 * another process: it is mapped if all of it is what was offered, and else
 * nothing is left open. */
#include "fuzz.h"

#include "../../src/link/shared_memory.h"

#include <assert.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SIZES = 10, LEAST = 4096, MOST_BITS = 16 };

/* Faults of the memory or of its offer: bits of a number. */
enum {
    WRONG_SIZE_OFFERED = 1,
    WRONG_SIZE_OF_FILE = 2,
    WRONG_MAGIC = 4,
    WRONG_SIZE_INSIDE = 8,
    WRONG_NONCE = 16,
    NOT_SEALED = 32,
    WRONG_PROCESS = 64,
    WRONG_DESCRIPTOR = 128,
    ON_DISK = 256,
    ALL_WRONG = 511,
};

static uint32_t size_of(struct fuzz_input *in)
{
    uint8_t kind = fuzz_u8(in);
    uint32_t size = (uint32_t)LEAST << kind % 4;
    if (kind < 200) return size;
    return kind < 220 ? size + fuzz_u8(in) : fuzz_u32(in);
}

/* A file on a disk cannot be sealed. */
static int make_file(bool on_disk)
{
    if (on_disk) return open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    return memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

/* Makes memory of `length` bytes with one thing or another wrong. */
static int make(struct fuzz_input *in, uint32_t wrong, size_t length,
                uint32_t size, bool region, struct channel_offer *offer)
{
    int fd = make_file(wrong & ON_DISK);
    assert(fd >= 0);
    if (wrong & WRONG_SIZE_OF_FILE) length += 1 + fuzz_u16(in);
    assert(ftruncate(fd, (off_t)length) == 0);
    *offer = (struct channel_offer){.pid = (uint32_t)getpid(),
                                    .fd = (uint32_t)fd,
                                    .size = size,
                                    .nonce = 1 + fuzz_u64(in)};
    struct channel_page page = {
        .magic = CHANNEL_MAGIC, .size = size, .nonce = offer->nonce};
    if (wrong & WRONG_MAGIC) page.magic ^= 1 + fuzz_u16(in);
    if (wrong & WRONG_SIZE_INSIDE) page.size ^= 1 + fuzz_u16(in);
    if (wrong & WRONG_NONCE) page.nonce = ~page.nonce;
    ssize_t n = region
                    ? pwrite(fd, &page.nonce, sizeof page.nonce, SHARE_NONCE_AT)
                    : pwrite(fd, &page, sizeof page, 0);
    assert(n > 0);
    if (!(wrong & (NOT_SEALED | ON_DISK)))
        assert(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0);
    if (wrong & WRONG_PROCESS) offer->pid = fuzz_u32(in) | 1u << 30;
    if (wrong & WRONG_DESCRIPTOR) offer->fd = 1000 + fuzz_u32(in) % 100000;
    return fd;
}

static int descriptors(void)
{
    int fd = dup(STDIN_FILENO);
    assert(fd >= 0);
    close(fd);
    return fd;
}

static bool fits(uint32_t size, bool region)
{
    if (region) return size >= LEAST;
    return size >= LEAST && size <= 64u << 20 && (size & (size - 1)) == 0;
}

/* Memory that another one has made. */
static void open_it(struct fuzz_input *in, bool region)
{
    uint32_t wrong = fuzz_u16(in) & ALL_WRONG;
    if (fuzz_u8(in) % 4 > 0) wrong &= 1u << fuzz_below(in, 9);
    uint32_t real = (uint32_t)LEAST << fuzz_below(in, 4), size = real;
    if (wrong & WRONG_SIZE_OFFERED) size = size_of(in);
    size_t length = region ? real : CHANNEL_PAGE + 2 * (size_t)real;
    struct channel_offer offer;
    int before = descriptors();
    int fd = make(in, wrong, length, size, region, &offer);
    struct shared_memory memory;
    struct shared_region area;
    bool opened = region ? shared_region_open(&area, &offer)
                         : shared_memory_open(&memory, &offer);
    uint32_t matters = wrong & ~(uint32_t)WRONG_SIZE_OFFERED;
    if (region) matters &= ~(uint32_t)(WRONG_MAGIC | WRONG_SIZE_INSIDE);
    assert(opened == (matters == 0 && size == real && fits(size, region)));
    if (opened && region) shared_region_free(&area);
    if (opened && !region) shared_memory_free(&memory);
    close(fd);
    assert(descriptors() == before);
}

/* Both ends, while the memory says whatever it says. */
static void make_it(struct fuzz_input *in)
{
    struct shared_memory maker, other;
    struct shared_region area, seen;
    struct channel_offer offer;
    uint32_t size = size_of(in);
    shared_memory_reserve(fuzz_u8(in) % 8 == 0);
    if (size > 1u << MOST_BITS) size = LEAST;
    int before = descriptors();
    if (shared_memory_make(&maker, size & ~(LEAST - 1u), &offer)) {
        if (shared_memory_open(&other, &offer)) {
            assert(other.channel.size == offer.size);
            shared_memory_free(&other);
        }
        if (fuzz_u8(in) % 2) shared_memory_settle(&maker);
        shared_memory_free(&maker);
    }
    if (shared_region_make(&area, size & ~(LEAST - 1u))) {
        assert(shared_region_open(&seen, &area.offer));
        assert(seen.size == area.size);
        shared_region_free(&seen);
        shared_region_free(&area);
    }
    assert(descriptors() == before);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct fuzz_input in = {bytes, size};
    switch (fuzz_u8(&in) % 4) {
    case 0:
        make_it(&in);
        break;
    case 1:
        (void)shared_memory_is_own(fuzz_u32(&in));
        assert(shared_memory_is_own((uint32_t)getpid()));
        break;
    case 2:
        open_it(&in, true);
        break;
    default:
        open_it(&in, false);
        break;
    }
    return 0;
}
