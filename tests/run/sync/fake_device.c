/* fake_device.c - simulated device memory: device addresses are pages without
 * access; the data are in a second mapping that only this file knows. */
#include "fake_device.h"

#include "../../../src/hash/hash.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { AREAS_MAX = 32 };

struct area {
    int device;
    uint8_t *data; /* PROT_NONE */
    uint8_t *bytes;
    size_t size;
};

struct fake_device fake_devices[2];
static struct area areas[AREAS_MAX];
static int area_count;

void *fake_alloc(int device, size_t size)
{
    struct area *a = &areas[area_count++];
    assert(area_count <= AREAS_MAX);
    a->device = device;
    a->size = size;
    a->data = mmap(NULL, size, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    a->bytes = calloc(1, size);
    assert(a->data != MAP_FAILED && a->bytes);
    return a->data;
}

void fake_free_all(void)
{
    while (area_count > 0) {
        struct area *a = &areas[--area_count];
        (void)munmap(a->data, a->size);
        free(a->bytes);
    }
}

static const struct area *area_of(const void *data)
{
    const uint8_t *at = data;
    for (int i = 0; i < area_count; i++) {
        if (at >= areas[i].data && at < areas[i].data + areas[i].size)
            return &areas[i];
    }
    return NULL;
}

void *fake_host(const void *data)
{
    const struct area *a = area_of(data);
    assert(a);
    return a->bytes + ((const uint8_t *)data - a->data);
}

static bool hash(void *user, const uint8_t *data, uint64_t size,
                 uint64_t *blocks)
{
    struct fake_device *d = user;
    d->hashed += size;
    if (d->hash_fails) return false;
    hash_blocks(fake_host(data), size, 0, hash_block_count(size), blocks, 1);
    return true;
}

static bool copy_out(void *user, uint8_t *host, const uint8_t *data,
                     uint64_t size)
{
    struct fake_device *d = user;
    if (d->read_fails) return false;
    d->read += size;
    memcpy(host, fake_host(data), size);
    return true;
}

static bool copy_in(void *user, uint8_t *data, const uint8_t *host,
                    uint64_t size)
{
    struct fake_device *d = user;
    if (d->write_fails) return false;
    d->written += size;
    memcpy(fake_host(data), host, size);
    return true;
}

static uint8_t *take(void *user, uint64_t size)
{
    (void)user;
    return malloc(size);
}

static void give(void *user, uint8_t *host)
{
    (void)user;
    free(host);
}

bool comm_device_built(void)
{
    return true;
}

const struct state_device *comm_device_of(const void *data, const char **wrong)
{
    static const struct state_device faces[2] = {
        {&fake_devices[0], hash, copy_out, copy_in, take, give},
        {&fake_devices[1], hash, copy_out, copy_in, take, give}};
    const struct area *a = area_of(data);
    if (!a) *wrong = "data is not memory of a CUDA device";
    return a ? &faces[a->device] : NULL;
}
