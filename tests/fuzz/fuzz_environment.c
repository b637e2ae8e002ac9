/* fuzz_environment.c - variables of a user and of batch systems: the ones of
 * this project, and what other launchers say of a process. */
#include "fuzz.h"

#include "../../src/base/env.h"
#include "../../src/mpi/slurm.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {
    "PCCL_RANK",
    "PCCL_DEADLINE",
    "PCCL_MASTER_PATIENCE",
    "PCCL_MASTER_GRACE",
    "PCCL_STALL_WARN",
    "PCCL_DRAIN_SIGNAL",
    "PCCL_RELAY",
    "PCCL_MULTIPLEX_CHUNK_SIZE",
    "PCCL_TRANSPROT", /* misspelt */
    "SLURM_STEP_NODELIST",
    "SLURM_JOB_ID",
    "SLURM_STEP_ID",
    "SLURM_PROCID",
    "SLURM_STEP_NUM_TASKS",
    "SLURM_STEP_NUM_NODES",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "PMI_RANK",
    "PMI_SIZE",
};

static const char *const values[] = {
    "0",          "1",
    "2",          "64",
    "4294967290", "n[01-03,7],m",
    "n1",         "n[1",
    "[",          "9223372036854775807",
    "SIGUSR2",    "TERM",
    "0.5",        "1e9",
    "-1",         "",
    "nan",        "2147483648",
    "x[0-9]y,z",  "99999999999999999999",
};

static uint32_t warned;

static void warn(const char *text)
{
    assert(text);
    warned++;
}

static void set(struct fuzz_input *in)
{
    const char *name = names[fuzz_below(in, sizeof names / sizeof *names)];
    uint8_t kind = fuzz_u8(in);
    char text[600];
    size_t size = 0;
    if (kind < 200) {
        (void)setenv(name, values[kind % (sizeof values / sizeof *values)], 1);
        return;
    }
    size_t most = kind < 250 ? 16 : sizeof text - 1;
    while (size < most && in->left > 0) {
        char c = (char)fuzz_u8(in);
        if (c == '\0') break;
        text[size++] = c;
    }
    text[size] = '\0';
    (void)setenv(name, text, 1);
}

static bool is_seconds(int64_t ns)
{
    return ns == 0 || (ns >= 10000000 && ns <= (int64_t)1e15);
}

static void read_all(void)
{
    assert(is_seconds(env_deadline_ns(warn)));
    assert(is_seconds(env_patience_ns(warn)));
    assert(is_seconds(env_master_grace_ns(warn)));
    assert(is_seconds(env_stall_ns(warn)));
    assert(env_rank() >= -1);
    assert(env_drain_signal() >= 0);
    (void)env_relays();
    env_warn_unknown(warn);
    env_warn_idle(warn);
    int rank, size;
    const char *launcher;
    if (foreign_task_read(&rank, &size, &launcher))
        assert(rank >= 0 && rank < size && size >= 2 && launcher);
    struct slurm_task task;
    if (!slurm_task_read(&task)) return;
    const char *colon = strrchr(task.master, ':');
    long port = colon ? strtol(colon + 1, NULL, 10) : 0;
    assert(task.rank >= 0 && task.rank < task.size);
    assert(port >= 20000 && port < 32000);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct fuzz_input in = {bytes, size};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        (void)unsetenv(names[i]);
    if (fuzz_u8(&in) % 2) { /* a task of srun, of which some is changed */
        (void)setenv("SLURM_STEP_NODELIST", "n[01-03,7],m", 1);
        (void)setenv("SLURM_JOB_ID", "1234", 1);
        (void)setenv("SLURM_STEP_ID", "0", 1);
        (void)setenv("SLURM_PROCID", "1", 1);
        (void)setenv("SLURM_STEP_NUM_TASKS", "4", 1);
    }
    for (int i = 0; i < 8 && in.left > 0; i++) set(&in);
    read_all();
    return 0;
}
