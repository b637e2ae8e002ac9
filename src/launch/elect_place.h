/* elect_place.h - where an election is held, and as whom one takes part. */
#ifndef PCCL_LAUNCH_ELECT_PLACE_H
#define PCCL_LAUNCH_ELECT_PLACE_H

#include "elect_etcd.h"

enum { ENDPOINTS_MAX = 9, ENDPOINT_SIZE = 300 };

struct elect_place {
    char endpoints[ENDPOINTS_MAX][ENDPOINT_SIZE]; /* "http://10.0.0.7:2379" */
    size_t count;
    char name[ETCD_NAME_MAX + 1]; /* the key */
};

/* Reads URL[,URL...]/NAME. False: `why` names what is wrong. Pure. */
bool elect_place_parse(const char *text, struct elect_place *place,
                       char why[static ETCD_WHY_SIZE]);

/* What the file of --elect-auth says; each NULL if it does not. */
struct elect_account {
    char *user, *password, *token, *ca, *certificate, *key;
    char *text; /* ours; the others are parts of it */
};

/* path: NULL for no file. False: `why` names what is wrong. */
bool elect_account_read(const char *path, struct elect_account *account,
                        char why[static ETCD_WHY_SIZE]);
void elect_account_free(struct elect_account *account);

#endif
