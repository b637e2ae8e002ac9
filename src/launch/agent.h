/* agent.h - what runs on a host for a launcher elsewhere: `pccl-master
 * --agent`, started by ssh. It speaks link.h on its standard input and output,
 * starts the ranks of its host, and ends, with them, when the connection does.
 */
#ifndef PCCL_LAUNCH_AGENT_H
#define PCCL_LAUNCH_AGENT_H

/* Exit status of the process. library_path: of our libmpich.so.12, or NULL. */
int agent_run(const char *library_path);

#endif
