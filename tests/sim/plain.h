/* plain.h - memory of the simulator itself, which never fails. Its files are
 * compiled with malloc and the like defined to be these (CMakeLists.txt). */
#ifndef PCCL_SIM_PLAIN_H
#define PCCL_SIM_PLAIN_H

#include <stdint.h>

/* Allocations of the simulator under way. Volatile, as a compiler knows that
 * malloc reads no variable. */
extern volatile uint32_t sim_plain;

#endif
