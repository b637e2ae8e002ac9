/* copy_choice.h - which of two ways to move data is the faster one. Pure: time
 * is an argument.
 *
 * It depends on the machine and on where the two processes run now ("Which
 * stores fill the queue", tests/bench/NOTES.md). So it is measured, for frames
 * of similar sizes together. A *stretch* is data that are moved the same way;
 * its time ends when the other end has them. The way that seems slower is tried
 * again in one stretch now and then, so rarely that this costs little. */
#ifndef PCCL_COPY_CHOICE_H
#define PCCL_COPY_CHOICE_H

#include "../base/base.h"

enum {
    COPY_CLASS_MIN = 12, /* log2 of the smallest frame of the first class */
    COPY_CLASSES = 11,   /* the last one has all larger frames */
    COPY_KNOWN = 8,      /* stretches before the other way is tried */
    COPY_SAMPLE = 8,     /* then one stretch of so many is measured */
    COPY_PAUSE = 32,     /* times a trial that pass before the next, at most */
    COPY_LOSS = 2,       /* times what it took longer, which pass too */
    COPY_LIMIT = 4,      /* times of what is usual after which a trial ends */
    COPY_NOISE = 64,     /* usual times that a longer trial counts as */
};
#define COPY_STRETCH_MAX ((uint64_t)4 << 20)

/* The second one is taken only if it is faster by an eighth. */
enum copy_way { COPY_FIRST, COPY_SECOND, COPY_WAYS };

/* Times of copies of similar sizes. */
struct copy_class {
    uint64_t cost[COPY_WAYS]; /* ns for a MiB; 0: unknown */
    uint32_t stretches;       /* up to COPY_KNOWN */
    uint32_t factor;          /* of the next pause: doubles to COPY_PAUSE */
    uint64_t pause;           /* ns of stretches before the next trial */
};

struct copy_choice {
    struct copy_class classes[COPY_CLASSES];
    enum copy_way way; /* of the data under way */
    /* The stretch: */
    bool runs;
    bool trial; /* of the way that seems slower */
    uint32_t class;
    pccl_ns since;
    uint64_t bytes;
    uint64_t skip; /* bytes before the next one */
};

/* The way to move the rest of data, `size` bytes. A stretch may begin with the
 * `first` bytes of the data. now() is called only where one begins or may have
 * to end. */
enum copy_way copy_choose(struct copy_choice *c, size_t size, bool first,
                          pccl_ns (*now)(void));
/* Chooses for data that are not measured. */
enum copy_way copy_best(const struct copy_choice *c, size_t size);
/* So many bytes were moved. */
void copy_moved(struct copy_choice *c, size_t bytes, pccl_ns (*now)(void));
/* The other end has all of them. */
void copy_over(struct copy_choice *c, pccl_ns now);

#endif
