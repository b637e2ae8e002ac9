/* elect_etcd.h - what is asked of etcd, and what it answers: bodies of its
 * JSON gateway (version 3). Pure. */
#ifndef PCCL_LAUNCH_ELECT_ETCD_H
#define PCCL_LAUNCH_ELECT_ETCD_H

#include "launch_base.h"

enum {
    ETCD_BODY_SIZE = 4096,
    ETCD_NAME_MAX = 200,    /* of the key */
    ETCD_VALUE_SIZE = 300,  /* the address of the one that leads */
    ETCD_TOKEN_SIZE = 1024, /* of a user */
    ETCD_WHY_SIZE = 240,
    ETCD_TTL_MIN = 2, /* s; etcd takes no less */
    ETCD_TTL_MAX = 3600,
};

/* What an answer says. */
struct etcd_said {
    uint64_t lease; /* of the key; a new one; renewed */
    uint64_t ttl;   /* s */
    bool won;       /* the key was put */
    bool taken;     /* the key is there */
    char value[ETCD_VALUE_SIZE];
    char token[ETCD_TOKEN_SIZE];
};

/* All false: the body has no room. */
bool etcd_ask_login(char *body, const char *user, const char *password);
bool etcd_ask_grant(char *body, uint64_t ttl);
bool etcd_ask_lease(char *body, uint64_t lease); /* to renew, to revoke */
bool etcd_ask_key(char *body, const char *key);
/* The key with the value, for as long as the lease, if there is none. */
bool etcd_ask_campaign(char *body, const char *key, const char *value,
                       uint64_t lease);

/* Each reads an answer. False: `why` names what is wrong. */
typedef bool etcd_reader(const char *text, size_t size, struct etcd_said *said,
                         char why[static ETCD_WHY_SIZE]);
etcd_reader etcd_read_login; /* token */
etcd_reader etcd_read_grant; /* lease, ttl */
etcd_reader etcd_read_renew; /* lease, ttl: 0, it is over */
etcd_reader etcd_read_revoke;
etcd_reader etcd_read_key;      /* taken, lease, value */
etcd_reader etcd_read_campaign; /* won, else the same as of the key */

/* Of an answer that is an error: its text, or "". */
void etcd_read_error(const char *text, size_t size,
                     char why[static ETCD_WHY_SIZE]);

#endif
