/* comm_device.c - tensors on a GPU, by the CUDA runtime, or "not built". See
 * comm_device.h.
 *
 * The first tensor on a device opens it, and it stays open. Copies and kernels
 * use a stream of their own. That stream is ordered after the default stream,
 * as a program that uses no streams expects. */
#include "comm_device.h"

#ifdef PCCL_HAVE_CUDA
#include "../hash/hash_cuda.h"

#include <cuda_runtime_api.h>

enum { DEVICES_MAX = 64 };

struct device {
    int number;
    struct hash_cuda *hash;
    cudaStream_t stream;
    pthread_mutex_t lock; /* of `hash` */
    struct state_device face;
};

static struct device devices[DEVICES_MAX];
static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;

bool comm_device_built(void)
{
    return true;
}

static bool done(cudaError_t error)
{
    if (error == cudaSuccess) return true;
    (void)cudaGetLastError(); /* the program's next check would see it otherwise
                               */
    return false;
}

/* Runs one copy with the device selected, and waits for it. */
static bool copy(struct device *d, void *to, const void *from, uint64_t size,
                 enum cudaMemcpyKind kind)
{
    int before = 0;
    if (!done(cudaGetDevice(&before)) || !done(cudaSetDevice(d->number)))
        return false;
    bool ok = done(cudaMemcpyAsync(to, from, size, kind, d->stream)) &&
              done(cudaStreamSynchronize(d->stream));
    return done(cudaSetDevice(before)) && ok;
}

static bool device_read(void *user, uint8_t *host, const uint8_t *data,
                        uint64_t size)
{
    return copy(user, host, data, size, cudaMemcpyDeviceToHost);
}

static bool device_write(void *user, uint8_t *data, const uint8_t *host,
                         uint64_t size)
{
    return copy(user, data, host, size, cudaMemcpyHostToDevice);
}

static bool device_hash(void *user, const uint8_t *data, uint64_t size,
                        uint64_t *blocks)
{
    struct device *d = user;
    pthread_mutex_lock(&d->lock);
    bool ok = hash_cuda_blocks(d->hash, data, size, 0, hash_block_count(size),
                               d->stream, blocks);
    pthread_mutex_unlock(&d->lock);
    if (!ok) (void)cudaGetLastError();
    return ok;
}

static uint8_t *device_take(void *user, uint64_t size)
{
    void *bytes = NULL;
    (void)user;
    if (!done(cudaHostAlloc(&bytes, size, cudaHostAllocPortable))) return NULL;
    return bytes;
}

static void device_give(void *user, uint8_t *host)
{
    (void)user;
    (void)done(cudaFreeHost(host));
}

static bool open_device(struct device *d, int number)
{
    int before = 0;
    if (!done(cudaGetDevice(&before)) || !done(cudaSetDevice(number)))
        return false;
    d->number = number;
    d->hash = hash_cuda_open(number);
    bool ok = d->hash && done(cudaStreamCreate(&d->stream));
    (void)done(cudaSetDevice(before));
    if (!ok) {
        hash_cuda_close(d->hash);
        d->hash = NULL;
        return false;
    }
    (void)pthread_mutex_init(&d->lock, NULL);
    d->face = (struct state_device){.user = d,
                                    .hash = device_hash,
                                    .read = device_read,
                                    .write = device_write,
                                    .take = device_take,
                                    .give = device_give};
    return true;
}

const struct state_device *comm_device_of(const void *data, const char **wrong)
{
    struct cudaPointerAttributes a;
    if (!done(cudaPointerGetAttributes(&a, data))) {
        *wrong = "there is no usable CUDA device";
        return NULL;
    }
    bool there =
        a.type == cudaMemoryTypeDevice || a.type == cudaMemoryTypeManaged;
    if (!there || a.device < 0 || a.device >= DEVICES_MAX) {
        *wrong = "data is not memory of a CUDA device";
        return NULL;
    }
    struct device *d = &devices[a.device];
    pthread_mutex_lock(&devices_lock);
    bool ok = d->hash || open_device(d, a.device);
    pthread_mutex_unlock(&devices_lock);
    if (!ok) *wrong = "its CUDA device could not be opened";
    return ok ? &d->face : NULL;
}

#else

bool comm_device_built(void)
{
    return false;
}

const struct state_device *comm_device_of(const void *data, const char **wrong)
{
    (void)data;
    *wrong = "this library was built without CUDA";
    return NULL;
}
#endif
