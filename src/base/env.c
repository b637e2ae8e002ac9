/* env.c - lookup in the list of environment variables. */
#include "env.h"

#include "base.h"
#include "decimal.h"

#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAME_MAX_SIZE = 256 }; /* longer names are truncated in the warning */

#define ENV_NAME(name, text) #name,
static const char *const known[] = {ENV_LIST(ENV_NAME)};

bool env_is_known(const char *name)
{
    size_t length = strcspn(name, "=");
    for (size_t i = 0; i < ARRAY_COUNT(known); i++) {
        if (strlen(known[i]) == length &&
            strncmp(known[i], name, length) == 0) {
            return true;
        }
    }
    return false;
}

void env_warn_unknown(void (*warn)(const char *name))
{
    for (char **item = environ; item && *item; item++) {
        if (strncmp(*item, ENV_PREFIX, strlen(ENV_PREFIX)) != 0) continue;
        if (env_is_known(*item)) continue;
        char name[NAME_MAX_SIZE];
        size_t length = strcspn(*item, "=");
        if (length >= sizeof name) length = sizeof name - 1;
        memcpy(name, *item, length);
        name[length] = '\0';
        warn(name);
    }
}

void env_warn_idle(void (*warn)(const char *name))
{
    static const char *const idle[] = {"PCCL_MAX_CONCURRENT_COLLECTIVE_OPS",
                                       "PCCL_MULTIPLEX_CHUNK_SIZE",
                                       "PCCL_NUM_BENCHMARK_CONNECTIONS"};
    for (size_t i = 0; i < ARRAY_COUNT(idle); i++)
        if (getenv(idle[i])) warn(idle[i]);
}

int32_t env_rank(void)
{
    const char *text = getenv("PCCL_RANK");
    uint64_t rank;
    return text && number_parse(text, INT32_MAX, &rank) ? (int32_t)rank : -1;
}

int64_t env_seconds_ns(const char *name, void (*warn)(const char *text))
{
    const char *text = getenv(name);
    if (!text || *text == '\0') return 0;
    double seconds;
    if (decimal_parse(text, &seconds) && seconds >= .01 && seconds <= 1e6)
        return (int64_t)(seconds * 1e9);
    warn(text);
    return 0;
}

int env_drain_signal(void)
{
    static const struct {
        const char *name;
        int number;
    } signals[] = {{"HUP", SIGHUP},    {"INT", SIGINT}, {"USR1", SIGUSR1},
                   {"USR2", SIGUSR2},  {"URG", SIGURG}, {"TERM", SIGTERM},
                   {"WINCH", SIGWINCH}};
    const char *text = getenv("PCCL_DRAIN_SIGNAL");
    if (!text) return 0;
    if (strncmp(text, "SIG", 3) == 0) text += 3;
    for (size_t i = 0; i < ARRAY_COUNT(signals); i++)
        if (strcmp(text, signals[i].name) == 0) return signals[i].number;
    return 0;
}

int64_t env_stall_ns(void (*warn)(const char *text))
{
    const char *text = getenv("PCCL_STALL_WARN");
    if (text && strcmp(text, "0") == 0) return 0;
    int64_t set = env_seconds_ns("PCCL_STALL_WARN", warn);
    return set > 0 ? set : 30000000000;
}

bool env_relays(void)
{
    const char *text = getenv("PCCL_RELAY");
    return text && strcmp(text, "1") == 0;
}
