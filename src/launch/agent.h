/* agent.h - the process that starts ranks on a remote host: `pccl-master
 * --agent`, started by ssh. Its standard input and output carry the frames of
 * agent_link.h. It ends with all its ranks when that connection ends. */
#ifndef PCCL_LAUNCH_AGENT_H
#define PCCL_LAUNCH_AGENT_H

/* Returns the exit status of the process. library_path: folder of our
 * libmpich.so.12, or NULL. */
int agent_run(const char *library_path);

#endif
