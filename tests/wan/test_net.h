/* test_net.h - an emulated network in the tests of one. */
#ifndef WAN_TEST_NET_H
#define WAN_TEST_NET_H

#include "network.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct net {
    struct world world;
    struct network *network;
};

static inline void start(struct net *n, const char *text)
{
    char error[WORLD_ERROR_SIZE];
    if (!world_parse(&n->world, "file", text, error)) fail_msg("%s", error);
    n->network = network_make(&n->world);
    assert_non_null(n->network);
}

static inline void finish(struct net *n)
{
    network_destroy(n->network);
    world_free(&n->world);
}

static inline void say(struct net *n, const char *text)
{
    struct statement s;
    char error[WORLD_ERROR_SIZE];
    if (!world_statement(&n->world, text, &s, error)) fail_msg("%s", error);
    network_apply(n->network, &s);
}

#endif
