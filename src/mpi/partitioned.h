/* partitioned.h - partitioned point-to-point messages. */
#ifndef PARTITIONED_H
#define PARTITIONED_H

/* Number of partitioned requests made per peer and tag: the n-th send matches
 * the n-th receive. A list owned by the communicator. */
struct series;
void series_release(struct series *series);

#endif
