/* launch.h - all of pccl-master but main. */
#ifndef PCCL_LAUNCH_H
#define PCCL_LAUNCH_H

/* Does what the command line says; returns the exit status. */
int launch_main(int argc, char **argv);

#endif
