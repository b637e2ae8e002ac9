/* option_table.h - internal header of the option parser: the table of
 * options. */
#ifndef PCCL_LAUNCH_OPTION_TABLE_H
#define PCCL_LAUNCH_OPTION_TABLE_H

#include "options.h"

struct parser {
    struct options *options;
    struct app *app;      /* the app whose options are parsed */
    const char *name;     /* the option as the user typed it */
    const char *config;   /* file of -configfile, or NULL */
    bool has_ranks;       /* -n was given for some app */
    bool has_app_options; /* an option that needs a program was given */
};

enum value_kind {
    VALUE_NONE,
    VALUE_OPTIONAL, /* behind '=' only */
    VALUE_RANGE,    /* behind '=', or a word like 2 or 2:4 */
    VALUE_ONE,
    VALUE_TWO
};

struct option_entry {
    const char *name;
    enum value_kind kind;
    bool (*apply)(struct parser *p, const char *value, const char *second);
};

/* Finds name[0, length), without dashes. NULL: unknown. */
const struct option_entry *option_find(const char *name, size_t length);

/* The most similar option name, or NULL. */
const char *option_nearest(const char *name, size_t length);

__attribute__((format(printf, 2, 3))) bool option_fail(struct options *options,
                                                       const char *format, ...);
bool option_deadline(struct parser *p, const char *value, const char *unused);
bool option_timeout(struct parser *p, const char *value, const char *unused);

/* Parses a count: 1 or more, at most the largest number of ranks. */
bool option_count(struct parser *p, const char *text, uint32_t *count);

/* One function per option. */
typedef bool option_apply(struct parser *p, const char *value,
                          const char *second);
/* option_env.c */
option_apply option_env, option_env_all, option_env_none, option_env_list,
    option_genv, option_genv_all, option_genv_none, option_genv_list,
    option_export;
/* option_coordinator.c */
option_apply option_listen, option_join, option_status, option_http,
    option_json, option_relay, option_journal, option_grace, option_detach,
    option_attach, option_state, option_token_file, option_make_token,
    option_insecure, option_elect;
/* option_open.c */
option_apply option_make_issuer, option_issuer, option_issue, option_group,
    option_rights, option_expires, option_revoked, option_hook;
/* Checks those, and sets the mode if they do. False: error. */
bool option_check_open(struct options *options, bool alone);
/* option_places.c */
option_apply option_hosts, option_host_file, option_rank_file, option_per_host,
    option_one_per_host, option_map, option_launcher, option_launcher_exec,
    option_agent, option_prefix, option_mca, option_interface, option_bind,
    option_bind_core, option_bind_socket, option_report_bindings,
    option_print_statuses, option_timestamps, option_debug, option_drain,
    option_pid, option_log_file, option_log_json;

/* Reads a whole file; the caller frees it. NULL: see errno. */
char *option_file(const char *path);

#endif
