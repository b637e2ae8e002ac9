/* isa.h - instruction sets of this CPU, for the choice of kernels. */
#ifndef PCCL_ISA_H
#define PCCL_ISA_H

#include "../base/base.h"

/* 0: the base; 1: AVX2 and F16C, too; 2: and AVX-512 with BW, DQ and VL. Asked
 * once: CPUID can trap into a hypervisor. */
unsigned isa_level(void);

/* The index-th of the variants of this CPU, the fastest first; NULL: the end.
 * `name` has them as name_base and, on x86, name_avx2 and name_avx512. */
#ifdef KERNELS_X86
#define ISA_VARIANT(name, index)                                               \
    ((index) > isa_level()        ? NULL                                       \
     : isa_level() - (index) == 2 ? &name##_avx512                             \
     : isa_level() - (index) == 1 ? &name##_avx2                               \
                                  : &name##_base)
#else
#define ISA_VARIANT(name, index) ((index) > 0 ? NULL : &name##_base)
#endif

#endif
