/* partitioned.h - messages whose parts get ready one by one. */
#ifndef PARTITIONED_H
#define PARTITIONED_H

/* How many partitioned requests were made for a peer and a tag: the n-th send
 * meets the n-th receive. A list that hangs on the communicator. */
struct series;
void series_release(struct series *series);

#endif
