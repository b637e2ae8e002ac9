/* shared_memory.h - memory that two processes of one host share, for a channel.
 *
 * It has no name: when both ends are gone, however they ended, so is the
 * memory. The maker offers its process and descriptor; the other end opens
 * that through /proc, which the kernel allows only to who may look into the
 * maker's memory anyway. The size is sealed, so that no access can fail
 * later. */
#ifndef PCCL_SHARE_H
#define PCCL_SHARE_H

#include "channel.h"

enum { SHARE_NONCE_AT = 4096 - 8 }; /* in a share_area, not for its user */

/* Memory of one process that others read. */
struct share_area {
    uint8_t *memory; /* NULL: none */
    size_t size;
    int fd;
    struct channel_offer offer;
};

struct share {
    uint8_t *memory; /* NULL: none */
    size_t mapped;
    int fd; /* -1: none; the maker's, until the other end has answered */
    struct channel channel;
    struct share_area lent; /* by the other end, mapped to be read */
};

/* New memory with queues of `size` bytes each (a power of two, whole pages),
 * and how another process finds it. False: not possible here. */
bool share_make(struct share *s, uint32_t size, struct channel_offer *offer);

/* Memory that another process made. False: it cannot be opened, or it is not
 * what was offered. */
bool share_open(struct share *s, const struct channel_offer *offer);

/* The other end has opened it, or never will. */
void share_settle(struct share *s);
void share_free(struct share *s);

/* `size` bytes, whole pages and at least one, which others can only read.
 * False: not possible here. */
bool share_area_make(struct share_area *a, size_t size);
/* What another process made. False: as share_open(). */
bool share_area_open(struct share_area *a, const struct channel_offer *offer);
void share_area_free(struct share_area *a);

#endif
