/* scarce.h - memory of the simulated cores, which may be refused. They are
 * compiled with malloc and the like defined to be those of scarce.c
 * (CMakeLists.txt); the simulator itself always has memory. */
#ifndef PCCL_SIM_SCARCE_H
#define PCCL_SIM_SCARCE_H

#include <stdbool.h>

/* Asked before each allocation. NULL: there is memory. */
extern bool (*scarce_refuses)(void);

#endif
