/* transport.c - messages between members. The library beneath offers no
 * messages yet: only this process itself can be reached. */
#include "transport.h"

int transport_send(uint64_t member, struct message *message, bool synchronous)
{
    (void)synchronous;
    if (member == world.self) {
        p2p_deliver(message);
        return MPI_SUCCESS;
    }
    message_release(message);
    return error_note(MPI_ERR_UNSUPPORTED_OPERATION,
                      "point-to-point messages to another rank are not "
                      "offered");
}
