/* hosts.h - hosts of a job, and placement of its ranks; pure.
 *
 * Hosts come from -hosts, from a host file of MPICH or Open MPI, or from
 * Slurm's allocation. */
#ifndef PCCL_LAUNCH_HOSTS_H
#define PCCL_LAUNCH_HOSTS_H

#include "launch_base.h"

struct host_entry {
    char *name; /* [USER@]NAME, owned */
    uint32_t slots;
    char *ports, *announce; /* of its ranks, owned; NULL: not given */
};

/* In the order in which they are filled; a name may occur twice. */
struct host_list {
    struct host_entry *entries;
    size_t count;
};

/* "a,b:4,[::1]:2". False: see error, which may be "". */
bool hosts_parse(struct host_list *list, const char *text, char *error,
                 size_t error_size);

/* The text of a host file: one host a line, NAME[:COUNT] or NAME slots=COUNT,
 * perhaps with user=NAME, ports=FIRST-LAST and announce=HOST[:PORT]; comments
 * after '#'. The error names the line. */
bool hosts_parse_file(struct host_list *list, const char *text, char *error,
                      size_t error_size);

/* The text of Open MPI's rank file: "rank N=HOST slot=...", one rank per line,
 * in any order. Makes one entry per rank, in their order; slots are ignored. */
bool hosts_parse_ranks(struct host_list *list, const char *text, char *error,
                       size_t error_size);

/* Slurm's SLURM_JOB_NODELIST ("n[01-03,7],m[1-2]-ib") and, unless NULL,
 * SLURM_TASKS_PER_NODE ("2(x3),1"). */
bool hosts_parse_slurm(struct host_list *list, const char *nodes,
                       const char *tasks, char *error, size_t error_size);

/* The entry of a host that has its rank number `local`: by the slots of its
 * entries in turn. Beyond them, or NULL if the host is not listed, the last. */
const struct host_entry *hosts_entry_of(const struct host_list *list,
                                        const char *name, uint32_t local);

/* The sum of all slots. */
uint32_t hosts_slots(const struct host_list *list);

/* Makes a list without the hosts of `out`. Where there is one entry for each
 * rank, an entry of such a host names one of the others in turn, so that the
 * ranks of those stay. False: no host is left. */
bool hosts_without(struct host_list *made, const struct host_list *list,
                   const struct host_list *out, bool ranked);
void hosts_add(struct host_list *list, const char *name);
void hosts_free(struct host_list *list);

struct place {
    uint32_t host;  /* index into hosts */
    uint32_t local; /* number of the rank among those of its host */
};

struct placement {
    const char **hosts; /* every name once; the list owns them */
    uint32_t *locals;   /* number of ranks of each */
    uint32_t host_count;
    struct place *ranks;
};

/* Fills the slots of the entries in turn, or places per_host ranks on each if
 * that is not 0, and starts again when all are full. An empty list means
 * "localhost". */
void placement_make(struct placement *placement, const struct host_list *list,
                    uint32_t per_host, uint32_t ranks);
void placement_free(struct placement *placement);

#endif
