/* isa.h - instruction sets of this CPU, for the choice of kernels. CPUID can
 * trap into a hypervisor: call once. */
#ifndef PCCL_ISA_H
#define PCCL_ISA_H

#include "../base/base.h"

#ifdef KERNELS_X86
bool isa_has_avx2(void);   /* and F16C */
bool isa_has_avx512(void); /* and its parts BW, DQ, VL */
#endif

#endif
