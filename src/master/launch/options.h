/* options.h - the command line of pccl-master; pure but for messages in
 * struct options and the name of this host. */
#ifndef PCCL_LAUNCH_OPTIONS_H
#define PCCL_LAUNCH_OPTIONS_H

#include "address.h"

/* One executable of the job; ranks are numbered through all of them. */
struct app {
    uint32_t ranks;
    char **argv; /* into main's argv; argv[0] is the program */
    int argc;
    char **settings; /* NAME=VALUE of -env, ours */
    size_t setting_count;
    const char *directory; /* -wdir or NULL */
    const char *path;      /* -path or NULL: searched before PATH */
};

enum options_mode { MODE_COORDINATOR, MODE_LAUNCH, MODE_HELP, MODE_VERSION };

struct options {
    enum options_mode mode;
    struct app *apps;
    size_t app_count;
    uint32_t rank_count; /* of all apps */
    char **settings;     /* NAME=VALUE of -genv and -x, ours */
    size_t setting_count;
    bool has_listen;
    struct address listen;
    bool join;
    struct address master; /* of --join */
    const char *deadline;  /* text in seconds, or NULL */
    pccl_ns deadline_ns;   /* 0: default */
    uint32_t quorum;       /* 0: not given */
    double timeout;        /* s, 0: none */
    bool elastic;          /* deaths are tolerated */
    bool shrink;           /* survivors repair by themselves (--elastic) */
    uint32_t ranks_min;
    uint32_t ranks_max; /* 0: no limit */
    bool respawn;
    bool label;
    bool verbose;
    char error[MESSAGE_SIZE];
};

/* False with a line for the user in options->error. options_free in any case.
 * Uses argv until then. */
bool options_parse(struct options *options, int argc, char **argv);

/* Takes PCCL_DEADLINE, or NULL, when there was no --deadline. Also false with
 * an error. */
bool options_default_deadline(struct options *options, const char *text);

void options_free(struct options *options);

/* The text of --help. */
extern const char options_help[];

#endif
