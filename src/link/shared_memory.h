/* shared_memory.h - memory that two processes of one host share, for a channel.
 *
 * It has no name: when both ends are gone, for whatever reason, so is the
 * memory. The maker offers its process and descriptor. The other end opens the
 * descriptor through /proc, which the kernel allows only to processes that may
 * read the maker's memory anyway. The size is sealed, so that no access can
 * fail later. */
#ifndef PCCL_SHARED_MEMORY_H
#define PCCL_SHARED_MEMORY_H

#include "channel.h"

/* In a shared_region; its user must not write there. */
enum { SHARE_NONCE_AT = 4096 - 8 };

/* Region: memory of one process that others read. */
struct shared_region {
    uint8_t *memory; /* NULL: none */
    size_t size;
    int fd;
    struct channel_offer offer;
};

struct shared_memory {
    uint8_t *memory; /* NULL: none */
    size_t mapped;
    int fd; /* -1: none; the maker's, until the other end has answered */
    struct channel channel;
    struct shared_region lent; /* region of the other end, mapped to be read */
};

/* From now on all that is made in this process is reserved at once: where the
 * kernel counts what it promises, it would refuse a page by ending the process
 * that touches it. Otherwise a page is taken when it is touched: there is
 * always one, and most queues are never full. */
void shared_memory_reserve(bool reserve);

/* Makes memory with queues of `size` bytes each (a power of two, whole pages),
 * and describes how another process finds it. False: not possible here. */
bool shared_memory_make(struct shared_memory *s, uint32_t size,
                        struct channel_offer *offer);

/* Memory that another process made. False: it cannot be opened, or it is not
 * what was offered. */
bool shared_memory_open(struct shared_memory *s,
                        const struct channel_offer *offer);

/* The process is of this user (rule L10): memory of others is not read, even if
 * this user may. */
bool shared_memory_is_own(uint32_t pid);

/* The other end has opened it, or never will. */
void shared_memory_settle(struct shared_memory *s);
void shared_memory_free(struct shared_memory *s);

/* `size` bytes, whole pages and at least one, which others can only read.
 * False: not possible here. */
bool shared_region_make(struct shared_region *a, size_t size);
/* Opens a region that another process made. False: as shared_memory_open(). */
bool shared_region_open(struct shared_region *a,
                        const struct channel_offer *offer);
void shared_region_free(struct shared_region *a);

#endif
