/* mpich_name.c - nothing: a library with a name of MPICH that needs ours, for
 * packages that cannot have symbolic links. */
extern int pccl_mpich_name;
