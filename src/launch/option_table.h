/* option_table.h - internal header of the option parser: the table of
 * options. */
#ifndef PCCL_LAUNCH_OPTION_TABLE_H
#define PCCL_LAUNCH_OPTION_TABLE_H

#include "options.h"

struct parser {
    struct options *options;
    struct app *app;                  /* the app whose options are parsed */
    const struct option_entry *entry; /* the option that is applied, */
    const char *name;                 /* as the user typed it, */
    const char *second;               /* and its second value, or NULL */
    const char *config;               /* file of -configfile, or NULL */
    bool has_app_options; /* an option that needs a program was given */
};

enum value_kind {
    VALUE_NONE,
    VALUE_RANGE, /* behind '=', or a word like 2 or 2:4 */
    VALUE_ONE,
    VALUE_TWO
};

/* One function per option that does more than to set a member. */
typedef bool option_apply(struct parser *p, const char *value);

struct option_entry {
    const char *name;
    enum value_kind kind;
    bool of_job; /* needs a program */
    option_apply *apply;
    bool of_app;       /* `member` is of struct app, not of struct options */
    size_t member;     /* which the value goes to, or 0 */
    const char *needs; /* what an empty text is not, or NULL: it may be empty */
    const char *fixed; /* the value of an option that takes none, or NULL */
};

/* The member that the option sets which is applied. */
void *option_member(const struct parser *p);

/* Finds name[0, length), without dashes. NULL: unknown. */
const struct option_entry *option_find(const char *name, size_t length);

/* The most similar option name, or NULL. */
const char *option_nearest(const char *name, size_t length);

__attribute__((format(printf, 2, 3))) bool option_fail(struct options *options,
                                                       const char *format, ...);
option_apply option_deadline, option_timeout;

/* Parses a count: 1 or more, at most the largest number of ranks. */
bool option_count(struct parser *p, const char *text, uint32_t *count);

/* option_env.c */
option_apply option_set, option_export;
/* option_coordinator.c */
option_apply option_listen, option_join, option_status, option_http,
    option_state, option_elect;
/* option_open.c */
option_apply option_issue, option_group, option_rights, option_expires;
/* Checks those, and sets the mode if they do. False: error. */
bool option_check_open(struct options *options, bool alone);
/* option_places.c */
option_apply option_hosts, option_host_file, option_rank_file, option_map,
    option_launcher, option_prefix, option_mca, option_bind, option_pid;

/* Reads a whole file; the caller frees it. NULL: see errno. */
char *option_file(const char *path);

#endif
