/* option_env.c - options that set, export or withhold environment variables;
 * see option_table.h. */
#include "option_table.h"

#include <string.h>

static void setting_add(char ***settings, size_t *count, char *setting)
{
    *settings = memory_grow(*settings, *count + 1, sizeof **settings);
    (*settings)[(*count)++] = setting;
}

static bool name_check(struct parser *p, const char *name)
{
    if (*name != '\0' && !strchr(name, '=')) return true;
    return option_fail(p->options, "%s: '%s' is no name of a variable", p->name,
                       name);
}

bool option_env(struct parser *p, const char *name)
{
    if (!name_check(p, name)) return false;
    setting_add(&p->app->settings, &p->app->setting_count,
                memory_print("%s=%s", name, p->second));
    return true;
}

bool option_genv(struct parser *p, const char *name)
{
    if (!name_check(p, name)) return false;
    setting_add(&p->options->settings, &p->options->setting_count,
                memory_print("%s=%s", name, p->second));
    return true;
}

/* Open MPI's -x NAME exports a variable; here all variables are exported. */
bool option_export(struct parser *p, const char *value)
{
    if (*value == '\0' || *value == '=') return name_check(p, "");
    if (strchr(value, '=')) {
        setting_add(&p->options->settings, &p->options->setting_count,
                    memory_text(value));
    }
    return true;
}

static bool filter_set(struct env_filter *filter, enum env_mode mode,
                       const char *list)
{
    *filter = (struct env_filter){mode, list};
    return true;
}

bool option_genv_all(struct parser *p, const char *a)
{
    (void)a;
    return filter_set(&p->options->filter, ENV_ALL, NULL);
}

bool option_genv_none(struct parser *p, const char *a)
{
    (void)a;
    return filter_set(&p->options->filter, ENV_NONE, NULL);
}

bool option_genv_list(struct parser *p, const char *list)
{
    return filter_set(&p->options->filter, ENV_LIST, list);
}

bool option_env_all(struct parser *p, const char *a)
{
    (void)a;
    return filter_set(&p->app->filter, ENV_ALL, NULL);
}

bool option_env_none(struct parser *p, const char *a)
{
    (void)a;
    return filter_set(&p->app->filter, ENV_NONE, NULL);
}

bool option_env_list(struct parser *p, const char *list)
{
    return filter_set(&p->app->filter, ENV_LIST, list);
}
