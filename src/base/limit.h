/* limit.h - the limits that decide which way a call takes, beside the rows of
 * the two tables of ring/: bytes, members, operations. A limit stands here,
 * with its reason, and nowhere else. pccl-bench --algorithms prints them, and
 * docs/tuning.md lists them.
 *
 * Not here: sizes of what lies in memory or on the wire (slots, queues,
 * tables), turns between connections, and times (progress_policy.h). */
#ifndef PCCL_LIMIT_H
#define PCCL_LIMIT_H

#include <stdint.h>

/* Name, value, unit; what it decides; why; the row of tests/bench/NOTES.md with
 * the figures. */
/* clang-format off */
#define LIMITS(X) \
    X(HOST_MESH_MAX, 64, "members", \
      "of one host, up to which all pairs are linked and have regions", \
      "more links cost more than they save", "many ranks") \
    X(SURVEY_ALL_MAX, 24, "members", \
      "of several hosts, up to which all pairs are linked and surveyed", \
      "a grid has 2 sqrt(n) links, where all pairs have n-1", "many hosts") \
    X(GRID_WORLD_MAX, 1024, "members", \
      "up to which a grid is linked", \
      "a member has 62 links then", "many hosts") \
    X(HIERARCHY_MAX, 32, "members", \
      "up to which those that are near each other form sites", \
      "each member knows the site of every other one", "allreduce, sites") \
    X(SINGLE_COPY_LEAST, 3, "members", \
      "from which on vectors are put into regions", \
      "two have a queue that is large enough", "put once, taken by all") \
    X(EAGER_MAX, 65536, "bytes", \
      "of a transfer that goes before its receiver has launched", \
      "the receiver keeps it until then", "early transfers") \
    X(EAGER_LINK_MAX, 1048576, "bytes", \
      "of all such transfers of a link", \
      "they are what a receiver keeps", "early transfers") \
    X(PAIR_MAX, 16384, "bytes", \
      "of a vector of two members that is written whole before it is read", \
      "of more one reads what the other one still writes", "small pairs") \
    X(SUMS_LEAST, 4096, "bytes", \
      "of the vectors of all others from which on each member adds up a part", \
      "a second post is cheaper than to add them all", "posts") \
    X(SUMS_LOOKS, 512, "looks", \
      "in vain, after which a member adds up the parts of others", \
      "a late member may lack a processor", "posts") \
    X(MANY_OPS, 3, "operations", \
      "at once or in a row, above which a result is confirmed and not kept", \
      "DONE hides behind the data of the next one", "Many at once") \
    X(MANY_SIZE, 4096, "bytes", \
      "of such a result at least", \
      "the copy of a smaller one costs less than DONE", "Many at once") \
    X(LAUNCH_MAX, 4096, "bytes", \
      "of a connection that a launch moves in each direction", \
      "small operations are done at once, and no launch takes long", \
      "Launches") \
    X(PLAN_SEGMENT_MIN, 65536, "bytes", \
      "of the smallest segment within a host", \
      "transfer and reduction overlap, and a frame's header is cheap", \
      "segments") \
    X(PLAN_SEGMENT_WAN_MIN, 16384, "bytes", \
      "of the smallest segment between hosts", \
      "each of many connections has one under way and a next one", \
      "segments") \
    X(PLAN_SEGMENT_MAX, 524288, "bytes", \
      "of the largest transfer", \
      "it is one frame, and one call of a socket", "TCP") \
    X(INTERLEAVED_MAX, 262144, "bytes", \
      "of a ring's segment where no cache holds the vectors", \
      "it is passed on while it is in a cache", "queues") \
    X(REGION_SEGMENT_MIN, 32768, "bytes", \
      "of a segment that is put for each other member, unless there is less " \
      "room", \
      "each costs a word to all others", "segments in regions") \
    X(REGION_SEGMENTS, 4194304, "bytes", \
      "of one segment of all pairs", \
      "they stay in a cache until they are taken", "segments in regions") \
    X(PLAN_CACHED, 16777216, "bytes", \
      "of a host's vectors from which on stores go past the caches", \
      "no cache holds them", "queues") \
    X(PLAN_CROWDED, 1048576, "bytes", \
      "the same for copies of results, where members share processors", \
      "each finds less of its own in a cache", "put once, taken by all") \
    X(INPUT_LARGE, 4194304, "bytes", \
      "of a vector in place from which on pages change places", \
      "the copy of a smaller one stays in the caches", "in place") \
    X(PULL_LEAST, 131072, "bytes", \
      "of a block that its receiver copies out of the sender's memory, with " \
      "a processor each", \
      "a queue copies it twice", "posts") \
    X(CHANNEL_SIZE, 524288, "bytes", \
      "of the queue of two members, of more than two on a host", \
      "the queues of all do not fit into a cache", "queues") \
    X(CHANNEL_SIZE_PAIR, 2097152, "bytes", \
      "of the queue of two members that are all of a host", \
      "what is written next has left the reader's caches", "queues") \
    X(CHANNEL_REWIND, 8192, "bytes", \
      "after which an empty queue begins anew", \
      "small frames find its beginning in the caches", "queues") \
    X(CHANNEL_REWIND_END, 24576, "bytes", \
      "after which it goes on to its end", \
      "to see whether it is empty takes a line of the reader's", "queues") \
    X(MESSAGE_EAGER_MAX, 32768, "bytes", \
      "of a message that is sent with its data", \
      "the data of larger ones are pulled, and copied once less", \
      "sizes of messages") \
    X(MESSAGE_CREDIT, 4194304, "bytes", \
      "of messages without a receive up to which data are sent along", \
      "the receiver keeps them", "sizes of messages") \
    X(MESSAGE_WHOLE_MAX, 12288, "bytes", \
      "of a message that is shown when all of it is written", \
      "of more its receiver reads a part meanwhile", "sizes of messages") \
    X(CMA_TRY_MIN, 65536, "bytes", \
      "of a pulled message that may be read out of the sender's memory", \
      "two copies by two processors take 0.3 to 2 times as long as one: it " \
      "is measured, but for small ones", \
      "Which stores fill the queue") \
    X(CMA_MIN, 8388608, "bytes", \
      "of a pulled message that is always read there", \
      "the sender's processor is left to the program", \
      "Which stores fill the queue") \
    X(FOLD_MEMORY, 16777216, "bytes", \
      "that a reduction by the program's operator gathers at once", \
      "each member holds the vectors of all", "folds") \
    X(STATE_FEW, 8, "members", \
      "that lack shared state, up to which all of them ask each other", \
      "not each may reach a holder; more ask at distances of a power of two", \
      "shared state") \
    X(RANKS_CROWDED, 8, "ranks", \
      "for each processor, from which on waiting takes longer turns", \
      "a turn of all takes longer than a rank polls otherwise", "patience")
/* clang-format on */

enum {
#define X(name, value, unit, decides, why, measured) name = value,
    LIMITS(X)
#undef X
};

struct limit {
    const char *name;
    uint64_t value;
    const char *unit;
    const char *decides, *why;
    const char *measured; /* row of tests/bench/NOTES.md */
};

/* By number, for printing; NULL after the last. */
const struct limit *limit_by_number(uint32_t i);

#endif
