/* traits.h - what a process of the MPI library tells of its program in its
 * traits (pcclSetTraits, rules T4 and E4), for its peers and its launcher. The
 * native library gives them no meaning. */
#ifndef PCCL_TRAITS_H
#define PCCL_TRAITS_H

enum {
    TRAIT_REFUSES = 1,    /* it names or keeps ranks (E4) */
    TRAIT_UNINFORMED = 2, /* nothing says that it bears a loss (E9) */
};

#endif
