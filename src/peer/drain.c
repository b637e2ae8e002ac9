/* drain.c - the signal by which somebody asks this process to leave its run. */
#include "drain.h"

#include "../base/env.h"
#include "../base/log.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "../../include/pccl.h"

static atomic_bool requested;
static int taken;               /* the signal, or 0 */
static struct sigaction before; /* what the program did with the signal */

static void on_signal(int number, siginfo_t *info, void *context)
{
    atomic_store(&requested, true);
    if (before.sa_flags & SA_SIGINFO)
        before.sa_sigaction(number, info, context);
    else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
        before.sa_handler(number);
}

void drain_start(void)
{
    const char *text = getenv("PCCL_DRAIN_SIGNAL");
    int number = env_drain_signal();
    struct sigaction action = {.sa_sigaction = on_signal,
                               .sa_flags = SA_SIGINFO | SA_RESTART};
    if (text && *text && number == 0)
        LOG(LOG_WARN,
            "PCCL_DRAIN_SIGNAL=%s is none of HUP, INT, USR1, USR2, "
            "TERM, URG, WINCH",
            text);
    if (number == 0 || sigaction(number, NULL, &before) != 0) return;
    if (sigaction(number, &action, NULL) == 0) taken = number;
}

/* A library that is unloaded leaves no handler behind. */
__attribute__((destructor)) static void drain_stop(void)
{
    struct sigaction now;
    if (taken && sigaction(taken, NULL, &now) == 0 &&
        (now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_signal)
        (void)sigaction(taken, &before, NULL);
}

pcclResult_t pcclDrainRequested(bool *requested_out)
{
    if (!requested_out) return pcclInvalidArgument;
    *requested_out = atomic_load(&requested);
    return pcclSuccess;
}
