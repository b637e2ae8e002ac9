/* launch.h - entry point of pccl-master. */
#ifndef PCCL_LAUNCH_H
#define PCCL_LAUNCH_H

/* Runs the command line; returns the exit status. */
int launch_main(int argc, char **argv);

#endif
