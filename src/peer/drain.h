/* drain.h - whether this process is to leave its run. */
#ifndef PCCL_DRAIN_H
#define PCCL_DRAIN_H

/* Takes over PCCL_DRAIN_SIGNAL, if that is set; a handler of the program is
 * still called. Once per process. */
void drain_start(void);

#endif
