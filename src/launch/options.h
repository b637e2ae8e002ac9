/* options.h - the command line of pccl-master. Reads the files it names (-f,
 * -configfile) and looks up the name of this host; otherwise pure. */
#ifndef PCCL_LAUNCH_OPTIONS_H
#define PCCL_LAUNCH_OPTIONS_H

#include "../base/run_key.h"
#include "launch_base.h"
#include "bind.h"
#include "hosts.h"

/* A growing, NULL-terminated list of variables; owns them (rank_env.h). */
struct env_list {
    char **items;
    size_t count;
};

/* In place of a list of names: all variables. */
#define ENV_ALL "*"

/* One executable of the job; ranks are numbered through all of them. */
struct app {
    uint32_t ranks; /* 0 while parsing: not given */
    char **argv;    /* argv[0] is the program; not NULL-terminated */
    int argc;
    struct env_list settings; /* of -env */
    /* The launcher's own variables that the ranks inherit: names between
     * commas; NULL: as the job says. */
    const char *pass;
    const char *directory; /* -wdir or NULL */
    const char *path;      /* -path or NULL: searched before PATH */
};

enum options_mode {
    MODE_COORDINATOR,
    MODE_LAUNCH,
    MODE_AGENT,
    MODE_DRAIN,
    MODE_HELP,
    MODE_VERSION,
    MODE_STATUS,
    MODE_ATTACH,
    MODE_MAKE_TOKEN,
    MODE_MAKE_ISSUER,
    MODE_ISSUE
};

enum launcher { LAUNCHER_AUTO, LAUNCHER_SSH, LAUNCHER_FORK, LAUNCHER_SLURM };

/* Reader of our standard input: a rank number, or one of these. */
enum { STDIN_ALL = -1, STDIN_NONE = -2 };

enum { MASTERS_MAX = 8 }; /* of which one coordinates */

enum { HTTP_PORT = MASTER_PORT + 1 }; /* of --status-http without one */

struct options {
    enum options_mode mode;
    struct app *apps;
    size_t app_count;
    uint32_t rank_count;      /* of all apps, without spares */
    uint32_t spares;          /* additional ranks of the last app, in reserve */
    struct env_list settings; /* of -genv and -x */
    const char *pass;         /* as in struct app; NULL: all */
    bool has_listen;
    struct address listen;
    bool join;
    struct address masters[MASTERS_MAX]; /* of --join, --status, --masters */
    size_t master_count;
    bool stands_by;   /* coordinates, with others: --masters */
    bool asks_status; /* --status */
    bool json;
    bool relays;      /* the coordinator relays between members (rule N10) */
    bool serves_http; /* --status-http */
    struct address http;
    bool detach, attach;    /* --detach, --attach */
    const char *state;      /* --state, or NULL */
    const char *journal;    /* --journal, or NULL */
    const char *token_file; /* --token-file, or NULL */
    const char *make_token; /* --make-token, or NULL */
    /* Of an open run, each NULL if not given: */
    const char *make_issuer, *issuer, *revoked, *hook;
    const char *issue; /* the name, with what the token says: */
    bool has_group, has_lifetime;
    uint32_t group;    /* if has_group */
    uint8_t rights;    /* of enum grant_right */
    uint64_t lifetime; /* s, 0: it never expires */
    bool insecure;     /* --insecure */
    bool keyed;        /* the job has a key (key.h): */
    struct run_key key;
    const char *deadline;   /* text in seconds, or NULL */
    pccl_ns deadline_ns;    /* 0: default */
    const char *peer_ports; /* --peer-ports, or NULL */
    const char *announce;   /* --announce, or NULL */
    uint32_t quorum;        /* 0: not given */
    uint32_t grace;         /* --master-grace, seconds; 0: not given */
    uint32_t minimum;       /* --min-ranks, 0: not given */
    double timeout;         /* s, 0: none */
    bool elastic;           /* continues after losses of ranks */
    bool shrink; /* survivors repair the communicator themselves (--elastic) */
    bool force;  /* under any program (--elastic=force) */
    uint32_t ranks_min;
    uint32_t ranks_max; /* 0: no limit */
    bool respawn;
    uint32_t restarts;    /* --restart, 0: none */
    bool has_pause;       /* with SECONDS: */
    double restart_pause; /* s before a start */
    const char *label;    /* pattern, or NULL */
    bool merge;           /* errors of ranks go to the same place as output */
    bool verbose;
    const char *log_file; /* --log-file, or NULL */
    bool log_json;
    bool until_done; /* a coordinator that ends with its run */
    struct host_list hosts;
    bool ranked;       /* hosts has one entry per rank, in order */
    uint32_t per_host; /* -ppn, 0: by slots */
    enum launcher launcher;
    const char *launcher_exec; /* command instead of ssh, or NULL */
    const char
        *agent; /* pccl-master on other hosts, or NULL: same path as here */
    const char *prefix;    /* installation prefix there, or NULL */
    const char *interface; /* that the coordinator listens on, or NULL */
    const char *universe;  /* -usize, or NULL */
    struct bind bind;
    bool bind_given;      /* by -bind-to; otherwise --map-by binds */
    bool report_bindings; /* prints the processors of each rank */
    bool print_statuses;  /* prints how each rank ended */
    const char *drain;    /* rank or host that is to leave a running job */
    uint32_t pid;         /* of that job's launcher, 0: the only one */
    bool timestamps;      /* before each line of output */
    int64_t stdin_to;
    const char *out_pattern, *err_pattern; /* files instead of our output */
    const char *out_folder;                /* the same, in Open MPI's layout */
    char *config;                          /* text of -configfile, ours */
    char **config_words;                   /* ours; the words are in config */
    char error[MESSAGE_SIZE];
};

/* False: options->error has a line for the user. Call options_free in any case.
 * Refers to argv until then. */
bool options_parse(struct options *options, int argc, char **argv);

/* Applies variables for options that were not given; any may be NULL.
 * Determines the number of ranks. False: error. */
struct options_environment {
    const char *deadline; /* PCCL_DEADLINE */
    const char *timeout;  /* MPIEXEC_TIMEOUT */
    const char *nodes;    /* of Slurm's allocation */
    const char *tasks;    /* per node */
    bool srun;            /* srun is installed */
    bool batch;           /* variables of other batch systems count */
};
bool options_complete(struct options *options,
                      const struct options_environment *environment);

/* Whether host is the name of this host or a loopback address. */
bool host_is_local(const char *host);

void options_free(struct options *options);

/* The text of --help, in parts; NULL ends it. */
extern const char *const options_help[];

#endif
