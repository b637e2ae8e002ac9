/* look_at.c - see look_at.h. */
#include "look_at.h"

#include "../master/server/master_server.h"
#include "detach.h"
#include "key.h"

#include <stdio.h>
#include <stdlib.h>

int look_status(struct options *options)
{
    char error[MESSAGE_SIZE / 2] = "";
    char text[HOST_SIZE + 16];
    if (!key_begin(options, false)) return EXIT_FAILURE;
    for (size_t i = 0; i < options->master_count; i++) {
        const struct address *at = &options->masters[i];
        if (master_status_print(at->host, at->port, key_of(options),
                                options->json, stdout, error, sizeof error))
            return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
        complain("--status %s: %s", address_print(at, text, sizeof text),
                 error);
    }
    return EXIT_FAILURE;
}

int look_attached(const struct options *options)
{
    char line[MESSAGE_SIZE];
    int status = detach_follow(options->state, line);
    if (*line != '\0') complain("%s", line);
    return status;
}
