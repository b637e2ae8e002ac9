/* shared_memory.c - see shared_memory.h. */
#include "shared_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SIZE_MIN_OFFERED = 4096, SIZE_MAX_OFFERED = 64 * 1024 * 1024 };

static atomic_bool reserves;

void shared_memory_reserve(bool reserve)
{
    atomic_store_explicit(&reserves, reserve, memory_order_relaxed);
}

static size_t file_size(uint32_t size)
{
    return CHANNEL_PAGE + 2 * (size_t)size;
}

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U /* Linux 6.3 */
#endif

/* No program will ever be run from it: some systems give no other memory. */
static int make_nameless(const char *name)
{
    int fd =
        memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    if (fd < 0 && errno == EINVAL)
        fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    return fd;
}

static bool is_there(int fd, size_t size)
{
    if (ftruncate(fd, (off_t)size) != 0) return false;
    return !atomic_load_explicit(&reserves, memory_order_relaxed) ||
           posix_fallocate(fd, 0, (off_t)size) == 0;
}

/* Memory without a name, for this user, of a size that nobody can change; -1:
 * none. */
static int make_sealed(const char *name, size_t size,
                       struct channel_offer *offer)
{
    /* Beyond this limit it would not fail, but kill the process. */
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && size > limit.rlim_cur)
        return -1;
    int fd = make_nameless(name);
    if (fd < 0) return -1;
    if (fchmod(fd, S_IRUSR | S_IWUSR) == 0 && is_there(fd, size) &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) ==
            0 &&
        getrandom(&offer->nonce, sizeof offer->nonce, 0) ==
            (ssize_t)sizeof offer->nonce) {
        offer->fd = (uint32_t)fd;
        return fd;
    }
    close(fd);
    return -1;
}

/* The page, then each queue twice in a row. */
static bool map(struct shared_memory *s, int fd, uint32_t size, uint32_t side)
{
    size_t one = size;
    s->mapped = CHANNEL_PAGE + 4 * one;
    uint8_t *at =
        mmap(NULL, s->mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return false;
    s->memory = at;
    struct {
        size_t offset, size, from;
    } parts[] = {{0, CHANNEL_PAGE, 0},
                 {CHANNEL_PAGE, one, CHANNEL_PAGE},
                 {CHANNEL_PAGE + one, one, CHANNEL_PAGE},
                 {CHANNEL_PAGE + 2 * one, one, CHANNEL_PAGE + one},
                 {CHANNEL_PAGE + 3 * one, one, CHANNEL_PAGE + one}};
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
        if (mmap(at + parts[i].offset, parts[i].size, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_FIXED, fd,
                 (off_t)parts[i].from) == MAP_FAILED)
            return false;
    }
    /* A child of this process is no end of the channel. */
    (void)madvise(at, s->mapped, MADV_DONTFORK);
    channel_init(&s->channel, (struct channel_page *)(void *)at,
                 at + CHANNEL_PAGE, size, side);
    return true;
}

bool shared_memory_make(struct shared_memory *s, uint32_t size,
                        struct channel_offer *offer)
{
    *s = (struct shared_memory){.fd = -1};
    *offer = (struct channel_offer){.pid = (uint32_t)getpid(), .size = size};
    s->fd = make_sealed("pccl", file_size(size), offer);
    if (s->fd < 0 || !map(s, s->fd, size, 0)) {
        shared_memory_free(s);
        return false;
    }
    struct channel_page *page = (struct channel_page *)(void *)s->memory;
    page->magic = CHANNEL_MAGIC;
    page->size = size;
    page->nonce = offer->nonce;
    return true;
}

/* Nameless, of that size, and of this user: root could open anybody's. */
static bool is_offered(const struct stat *st, size_t size)
{
    return S_ISREG(st->st_mode) && st->st_nlink == 0 &&
           st->st_uid == geteuid() && st->st_size == (off_t)size;
}

/* Looks before it opens: opening some kinds of file has effects. */
static int open_sealed(const struct channel_offer *offer, size_t size,
                       int flags)
{
    char path[64];
    struct stat st;
    (void)snprintf(path, sizeof path, "/proc/%u/fd/%u", offer->pid, offer->fd);
    if (stat(path, &st) != 0 || !is_offered(&st, size)) return -1;
    int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return -1;
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals >= 0 && (seals & F_SEAL_SHRINK) && fstat(fd, &st) == 0 &&
        is_offered(&st, size))
        return fd;
    close(fd);
    return -1;
}

bool shared_memory_open(struct shared_memory *s,
                        const struct channel_offer *offer)
{
    *s = (struct shared_memory){.fd = -1};
    uint32_t size = offer->size;
    if (size < SIZE_MIN_OFFERED || size > SIZE_MAX_OFFERED ||
        (size & (size - 1)) != 0)
        return false;
    int fd = open_sealed(offer, file_size(size), O_RDWR);
    if (fd < 0) return false;
    bool ok = map(s, fd, size, 1);
    close(fd);
    const struct channel_page *page = (struct channel_page *)(void *)s->memory;
    if (ok && page->magic == CHANNEL_MAGIC && page->size == size &&
        page->nonce == offer->nonce)
        return true;
    shared_memory_free(s);
    return false;
}

void shared_memory_settle(struct shared_memory *s)
{
    if (s->fd >= 0) close(s->fd);
    s->fd = -1;
}

void shared_memory_free(struct shared_memory *s)
{
    shared_memory_settle(s);
    shared_region_free(&s->lent);
    if (s->memory) munmap(s->memory, s->mapped);
    s->memory = NULL;
}

/* The owner of /proc/PID would be root's for a process that has changed its
 * user. */
bool shared_memory_is_own(uint32_t pid)
{
    char path[32], text[2048];
    unsigned real, effective;
    (void)snprintf(path, sizeof path, "/proc/%u/status", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *line = strstr(text, "\nUid:");
    return line && sscanf(line, "\nUid: %u %u", &real, &effective) == 2 &&
           real == geteuid() && effective == geteuid();
}

/* -------------------------------------------------------------- regions */

static bool map_area(struct shared_region *a, int fd, size_t size, int access)
{
    void *at = mmap(NULL, size, access, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) return false;
    (void)madvise(at, size, MADV_DONTFORK);
    a->memory = at;
    a->size = size;
    return true;
}

bool shared_region_make(struct shared_region *a, size_t size)
{
    *a = (struct shared_region){.fd = -1};
    a->offer.pid = (uint32_t)getpid();
    a->offer.size = (uint32_t)size;
    int fd = make_sealed("lent-pccl", size, &a->offer);
    if (fd < 0) return false;
    if (!map_area(a, fd, size, PROT_READ | PROT_WRITE)) {
        close(fd);
        return false;
    }
    a->fd = fd;
    memcpy(a->memory + SHARE_NONCE_AT, &a->offer.nonce, sizeof a->offer.nonce);
    return true;
}

bool shared_region_open(struct shared_region *a,
                        const struct channel_offer *offer)
{
    *a = (struct shared_region){.fd = -1};
    if (offer->size < SIZE_MIN_OFFERED) return false;
    int fd = open_sealed(offer, offer->size, O_RDONLY);
    if (fd < 0) return false;
    bool ok = map_area(a, fd, offer->size, PROT_READ);
    close(fd);
    if (ok && memcmp(a->memory + SHARE_NONCE_AT, &offer->nonce,
                     sizeof offer->nonce) == 0)
        return true;
    shared_region_free(a);
    return false;
}

void shared_region_free(struct shared_region *a)
{
    if (!a->memory) return;
    munmap(a->memory, a->size);
    if (a->fd >= 0) close(a->fd);
    a->memory = NULL;
}
