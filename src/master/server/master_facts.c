/* master_facts.c - what a launcher asks its coordinator. */
#include "master_server_inside.h"

uint32_t master_server_members(const struct master_server *server)
{
    return master_count(&server->machine, PEER_MEMBER);
}

uint32_t master_server_pending(const struct master_server *server)
{
    return master_count(&server->machine, PEER_REGISTERED);
}

const char *master_server_loss(const struct master_server *server)
{
    return server->desk.loss;
}

bool master_server_has_ended(const struct master_server *server)
{
    return server->machine.founded && !server->machine.succession.waits &&
           master_server_members(server) == 0;
}

char *master_server_status(struct master_server *server)
{
    struct status_writing status;
    master_server_write(server, STATUS_TEXT, &status);
    return status.text;
}
