/* issue.h - makes issuers, and tokens of participants (rules K10, K11). */
#ifndef PCCL_LAUNCH_ISSUE_H
#define PCCL_LAUNCH_ISSUE_H

#include "options.h"

/* --make-issuer FILE: writes FILE and FILE.pub. Returns the exit status. */
int issue_make_issuer(const char *path);

/* --issue NAME: writes a token to the standard output, which becomes private
 * (mode 0600) if it is a file. Returns the exit status. */
int issue_token(struct options *options);

#endif
