/* option_env.c - options that set or export environment variables; see
 * option_table.h. */
#include "option_table.h"

#include "rank_env.h"

#include <string.h>

static bool name_check(struct parser *p, const char *name)
{
    if (*name != '\0' && !strchr(name, '=')) return true;
    return option_fail(p->options, "%s: '%s' is no name of a variable", p->name,
                       name);
}

bool option_set(struct parser *p, const char *name)
{
    if (!name_check(p, name)) return false;
    env_put(option_member(p), memory_print("%s=%s", name, p->second));
    return true;
}

/* Open MPI's -x NAME exports a variable; here all variables are exported. */
bool option_export(struct parser *p, const char *value)
{
    if (*value == '\0' || *value == '=') return name_check(p, "");
    if (strchr(value, '=')) env_put(option_member(p), memory_text(value));
    return true;
}
