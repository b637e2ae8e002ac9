/* scale_event.c - what happens to a run. See scale.h. */
#include "scale.h"

#include "../../../include/pccl.h"

#include <stdlib.h>
#include <string.h>

struct scale_world scale;

const char *const scale_event_names[SCALE_EVENTS] = {
    "join", "barrier", "small",    "large", "update",
    "sync", "loss",    "newcomer", "fetch", "second"};

void scale_begin(uint32_t n, size_t large)
{
    memset(&scale, 0, sizeof scale);
    scale.now = PCCL_S;
    scale.room = n + 1;
    scale.members = scale_zeros(scale.room * sizeof scale.members[0]);
    scale.input = scale_zeros(large + 8);
    for (size_t i = 0; i < large / 8 + 1; i++) scale.input[i] = i + 1;
    scale_master_begin(n);
    scale.master_tick_at = scale.now + PCCL_TIME_TO_PING(SCALE_DEADLINE);
}

void scale_end(void)
{
    for (uint32_t i = 0; i < scale.count; i++)
        if (scale.members[i].session) scale_member_kill(i);
    scale_run();
    SCALE_CHECK(master_count(scale.master, PEER_MEMBER) == 0);
    scale_master_end();
    scale_net_end();
    free(scale.members);
    free(scale.input);
}

static bool lives(uint32_t i)
{
    return scale.members[i].session != NULL;
}

/* All that live are members of one view of that size. */
static void check_view(uint32_t size)
{
    for (uint32_t i = 0; i < scale.count; i++) {
        const struct session *s = scale.members[i].session;
        if (!s) continue;
        SCALE_CHECK(s->state == SESSION_MEMBER);
        SCALE_CHECK(s->view->size == size && s->view->ring);
    }
}

static void check_done(int result)
{
    for (uint32_t i = 0; i < scale.count; i++) {
        if (!lives(i)) continue;
        SCALE_CHECK(scale.members[i].done);
        SCALE_CHECK(scale.members[i].ended == result);
    }
}

static void launch(size_t bytes)
{
    for (uint32_t i = 0; i < scale.count; i++)
        if (lives(i)) scale_member_launch(i, bytes);
    scale_run();
}

static void vote(void)
{
    for (uint32_t i = 0; i < scale.count; i++)
        if (lives(i) && scale.members[i].session->state == SESSION_MEMBER)
            scale_member_vote(i);
    scale_run();
}

static void synchronize(size_t bytes)
{
    for (uint32_t i = 0; i < scale.count; i++)
        if (lives(i)) scale_member_sync(i, bytes);
    scale_run();
    check_done(pcclSuccess);
    scale.synced++;
}

void scale_happens(enum scale_event event, uint32_t n, size_t large)
{
    switch (event) {
    case SCALE_JOIN:
        for (uint32_t i = 0; i < n; i++) scale_member_begin(i);
        scale_run();
        check_view(n);
        return;
    case SCALE_BARRIER:
    case SCALE_SMALL:
    case SCALE_LARGE:
        launch(event == SCALE_BARRIER ? 0 : event == SCALE_SMALL ? 8 : large);
        check_done(pcclSuccess);
        return;
    case SCALE_UPDATE:
        vote();
        check_done(pcclSuccess);
        return;
    case SCALE_SYNC:
        synchronize(large);
        SCALE_CHECK(scale.fetched == 0);
        return;
    case SCALE_LOSS:
        scale_member_kill(n / 2);
        scale_run();
        check_view(n - 1);
        launch(8); /* by which the programs hear of it */
        check_done(pcclRankConnectionLost);
        launch(8);
        check_done(pcclSuccess);
        return;
    case SCALE_NEWCOMER:
        scale_member_begin(n);
        scale_run();
        vote();
        check_view(n);
        return;
    case SCALE_FETCH:
        synchronize(large);
        SCALE_CHECK(scale.fetched >= large);
        return;
    case SCALE_IDLE:
        scale_run_for(PCCL_S);
        check_view(n);
        return;
    case SCALE_EVENTS:
        break;
    }
    SCALE_CHECK(false);
}
