/* api_prefetch.c - the calls of pccl.h for joining while the others train. */
#include "api.h"

static bool is_state(const pcclSharedState_t *state)
{
    return state && (state->count == 0 || state->infos);
}

/* False: an option is wrong. */
static bool read_terms(pcclComm_t *c, const pcclOfferOptions_t *options,
                       struct offer_terms *terms)
{
    terms->share = 1000;
    if (!options) return true;
    if (options->size < sizeof *options) {
        comm_set_error(c,
                       "the options of the offer have a size of %zu bytes, "
                       "not %zu",
                       options->size, sizeof *options);
        return false;
    }
    if (!(options->round_part >= 0 && options->round_part <= 1)) {
        comm_set_error(c, "the part of a round is %g, not from 0 to 1",
                       options->round_part);
        return false;
    }
    terms->rate = options->bytes_per_second;
    if (options->round_part > 0)
        terms->share = (uint32_t)(options->round_part * 1000 + 0.5);
    if (terms->share == 0) terms->share = 1;
    return true;
}

pcclResult_t pcclOfferState(pcclComm_t *comm, const pcclSharedState_t *state,
                            const pcclOfferOptions_t *options)
{
    struct offer_terms terms = {0};
    pcclResult_t rc = api_enter(comm, &comm);
    if (rc != pcclSuccess) return rc;
    if (!state) {
        comm_offer_end(comm);
        return api_leave(comm, pcclSuccess);
    }
    if (!is_state(state) || !read_terms(comm, options, &terms))
        return api_leave(comm, pcclInvalidArgument);
    terms.revision = state->revision;
    return api_leave(comm, (pcclResult_t)comm_offer(comm, state, &terms));
}

pcclResult_t pcclPrefetch(pcclComm_t *comm, const pcclSharedState_t *state,
                          const pcclPrefetchOptions_t *options,
                          pcclPrefetchInfo_t *info_out)
{
    pcclResult_t rc = api_begin(comm, &comm);
    if (rc != pcclSuccess) return rc;
    if (!is_state(state) || (options && options->size < sizeof *options))
        return api_leave(comm, pcclInvalidArgument);
    bool connected = comm->session && comm->session->state != SESSION_GONE;
    if (connected || comm->offers.fetching) {
        comm_set_error(comm, connected ? "the peer is connected already"
                                       : "another thread downloads already");
        return api_leave(comm, pcclInvalidUsage);
    }
    comm_close(comm);
    uint64_t max_stale = options ? options->max_stale : 0;
    rc = (pcclResult_t)comm_prefetch(comm, state, max_stale, info_out);
    return api_leave(comm, rc);
}
