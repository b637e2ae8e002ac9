/* main.c - pccl-master: the coordinator of a run, and its mpirun. */
#include "launch.h"

int main(int argc, char **argv)
{
    return launch_main(argc, argv);
}
