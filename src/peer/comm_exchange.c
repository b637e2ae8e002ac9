/* comm_exchange.c - exchanges the pages of a caller's buffer with those of
 * scratch memory (rule D18), by UFFDIO_MOVE of Linux 6.8. See comm.h.
 *
 * Why not mremap(): it replaces the mapping, and with it the locks, the NUMA
 * policy and the advice that the program gave it; and for a moment another
 * thread may map something else there, or find nothing. UFFDIO_MOVE moves pages
 * and leaves mappings alone. It refuses pages that are pinned for a device,
 * shared with a child process, of a file or of a mapping with other rights.
 * What it refuses is copied. While a page is away, a thread that touches it
 * waits in the kernel until there is one again. */
#include "comm.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel's headers may be older than the kernel. */
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#ifndef UFFD_FEATURE_MOVE
#define UFFD_FEATURE_MOVE (1 << 16)
#endif

enum {
    HUGE_PAGE = 2 << 20,
    WINDOW = 4 * HUGE_PAGE, /* as many bytes are away at once */
    TRIES = 64,
    REGIONS = 8,
    SCAN_HUGE = 1 << 6,
    SCAN_FILE = 1 << 2,
};

struct move_pages { /* struct uffdio_move */
    uint64_t to, from, size, mode;
    int64_t moved;
};
#define MOVE_PAGES _IOWR(UFFDIO, 0x05, struct move_pages)

struct scan_region { /* struct page_region */
    uint64_t start, end, categories;
};
struct scan { /* struct pm_scan_arg */
    uint64_t size, flags, start, end, walk_end, regions, region_count,
        pages_most, inverted, all_of, any_of, reported;
};
#define SCAN_PAGES _IOWR('f', 16, struct scan)

/* ------------------------------------------------------------------- set-up */

static bool open_mover(struct exchange *x)
{
    /* Without the privilege, a page that is away is an error for a system call
     * of another thread that touches it, and only other accesses wait. */
    long fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        fd = syscall(SYS_userfaultfd,
                     O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
    x->fd = (int)fd;
    struct uffdio_api api = {.api = UFFD_API};
    return fd >= 0 && ioctl(x->fd, UFFDIO_API, &api) == 0 &&
           (api.features & UFFD_FEATURE_MOVE) != 0;
}

/* Faults in these pages wait, until they are let go. */
static bool hold(const struct exchange *x, const uint8_t *bytes, size_t size)
{
    struct uffdio_register r = {.range = {(uintptr_t)bytes, size},
                                .mode = UFFDIO_REGISTER_MODE_MISSING};
    return ioctl(x->fd, UFFDIO_REGISTER, &r) == 0;
}

static void let_go(const struct exchange *x, const uint8_t *bytes, size_t size)
{
    struct uffdio_range r = {(uintptr_t)bytes, size};
    (void)ioctl(x->fd, UFFDIO_UNREGISTER, &r);
}

/* Address space for the pages that are away. */
static bool open_window(struct exchange *x)
{
    void *memory = mmap(NULL, WINDOW + HUGE_PAGE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return false;
    x->memory = memory;
    size_t over = (uintptr_t)memory % HUGE_PAGE;
    x->window = x->memory + (over > 0 ? HUGE_PAGE - over : 0);
    return hold(x, x->window, WINDOW);
}

void comm_exchange_init(struct exchange *x)
{
    *x = (struct exchange){.fd = -1, .pages_fd = -1};
}

void comm_exchange_close(struct exchange *x)
{
    if (x->fd >= 0) close(x->fd);
    if (x->pages_fd >= 0) close(x->pages_fd);
    if (x->memory) (void)munmap(x->memory, WINDOW + HUGE_PAGE);
    comm_exchange_init(x);
}

static bool open_once(struct exchange *x)
{
    if (x->tried) return x->window != NULL;
    const char *text = getenv("PCCL_EXCHANGE");
    bool wanted = !text || strcmp(text, "0") != 0;
    x->pages_fd =
        wanted ? open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC) : -1;
    if (x->pages_fd < 0 || !open_mover(x) || !open_window(x))
        comm_exchange_close(x);
    x->tried = true;
    return x->window != NULL;
}

/* --------------------------------------------------------------- the choice */

static uintptr_t first_huge(uintptr_t at)
{
    return (at + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
}

/* Pages of a policy are where the program wants them. */
static bool has_policy(const void *bytes)
{
    int mode = 0;
    enum { OF_ADDRESS = 2 };
    long rc = syscall(SYS_get_mempolicy, &mode, NULL, 0UL, bytes, OF_ADDRESS);
    return rc == 0 && mode != 0;
}

/* Bytes in huge pages of no file. */
static size_t huge_bytes(const struct exchange *x, uintptr_t from, uintptr_t to)
{
    struct scan_region regions[REGIONS];
    struct scan scan = {.size = sizeof scan,
                        .start = from,
                        .end = to,
                        .regions = (uintptr_t)regions,
                        .region_count = REGIONS,
                        .inverted = SCAN_FILE,
                        .all_of = SCAN_HUGE | SCAN_FILE,
                        .reported = SCAN_HUGE};
    int count = ioctl(x->pages_fd, SCAN_PAGES, &scan);
    size_t bytes = 0;
    for (int i = 0; i < count; i++) bytes += regions[i].end - regions[i].start;
    return bytes;
}

static bool was_refused(const struct exchange *x, uintptr_t at)
{
    for (size_t i = 0; i < ARRAY_COUNT(x->refused); i++) {
        if (x->refused[i] == at) return true;
    }
    return false;
}

bool comm_exchange_may(void *comm, const void *bytes, size_t size)
{
    struct exchange *x = &((pcclComm_t *)comm)->exchange;
    uintptr_t at = (uintptr_t)bytes;
    if (!open_once(x) || was_refused(x, at)) return false;
    uintptr_t from = first_huge(at);
    uintptr_t to = (at + size) / HUGE_PAGE * HUGE_PAGE;
    size_t least = size - size / 8; /* the rest is copied */
    if (to <= from || to - from < least || has_policy(bytes)) return false;
    return huge_bytes(x, from, to) >= least;
}

/* ------------------------------------------------------------- the exchange */

/* Returns how much was moved, from the beginning on. */
static size_t move(const struct exchange *x, uint8_t *to, uint8_t *from,
                   size_t size)
{
    size_t done = 0;
    for (int tries = 0; done < size && tries < TRIES; tries++) {
        struct move_pages m = {.to = (uintptr_t)to + done,
                               .from = (uintptr_t)from + done,
                               .size = size - done};
        int rc = ioctl(x->fd, MOVE_PAGES, &m);
        if (m.moved > 0) done += (size_t)m.moved;
        if (rc != 0 && errno != EAGAIN && errno != EINTR) break;
    }
    return done;
}

/* Of a window. The caller's pages go away, the result takes their place, and
 * they become the scratch memory. Whatever stops in between, the bytes of the
 * result are in one of the two: in `to` as far as is returned. */
static size_t exchange_window(const struct exchange *x, uint8_t *to,
                              uint8_t *from, size_t size)
{
    size_t away = move(x, x->window, to, size);
    size_t done = move(x, to, from, away);
    size_t back = move(x, from, x->window, done);
    if (back < away)
        (void)madvise(x->window + back, away - back, MADV_DONTNEED);
    return done;
}

static size_t exchange_held(const struct exchange *x, uint8_t *to,
                            uint8_t *from, size_t size)
{
    size_t done = 0;
    while (done < size) {
        size_t piece = size - done < WINDOW ? size - done : WINDOW;
        pccl_ns begun = comm_now();
        size_t here = exchange_window(x, to + done, from + done, piece);
        done += here;
        /* Small pages, one by one: a copy of 4 GB/s is faster. */
        if (here < piece || comm_now() - begun > (pccl_ns)(piece / 4)) break;
    }
    return done;
}

size_t comm_exchange_pages(void *comm, void *to, void *from, size_t size)
{
    struct exchange *x = &((pcclComm_t *)comm)->exchange;
    uint8_t *here = to;
    uint8_t *there = from;
    uintptr_t at = (uintptr_t)to;
    size_t head = first_huge(at) - at;
    size_t whole = (size - head) / HUGE_PAGE * HUGE_PAGE;
    size_t done = 0;
    memcpy(here, there, head);
    here += head;
    there += head;
    if (hold(x, here, whole)) {
        if (hold(x, there, whole)) {
            done = exchange_held(x, here, there, whole);
            let_go(x, there, whole);
        }
        let_go(x, here, whole);
    }
    if (done < whole) x->refused[x->refusals++ % ARRAY_COUNT(x->refused)] = at;
    return head + done;
}
