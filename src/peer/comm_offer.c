/* comm_offer.c - pcclOfferState: the tensors that newcomers may download. */
#include "comm.h"

#include <stdlib.h>

static void free_list(struct state_list *list)
{
    if (list) state_list_free(list);
    free(list);
}

int comm_offer(pcclComm_t *c, const pcclSharedState_t *state,
               const struct offer_terms *terms)
{
    struct state_list *list = malloc(sizeof *list);
    if (!list) {
        comm_set_error(c, "out of memory for the offer");
        return pcclInternalError;
    }
    int result = (int)comm_read_state(c, state, false, list);
    if (result != pcclSuccess) {
        free(list);
        return result;
    }
    links_set_now(c->session->links, comm_now());
    result = session_offer(c->session, list, terms);
    if (result != pcclSuccess) {
        free_list(list);
        return result;
    }
    free_list(c->offers.offered);
    c->offers.offered = list;
    progress_changed(c);
    return pcclSuccess;
}

void comm_offer_end(pcclComm_t *c)
{
    session_offer_end(c->session);
    free_list(c->offers.offered);
    c->offers.offered = NULL;
    progress_changed(c);
}
