/* litmus_process.c - slots of a region that others still read (rule L8b), the
 * wake-ups of event loops, and results that one thread shows to another. */
#include "litmus.h"

#include "../../../src/base/io_loop.h"
#include "../../../src/base/io_wake.h"
#include "../../../src/ring/single_copy.h"

#include <string.h>
#include <unistd.h>

/* ------------------------------------------------------- a slot, rule L8b */

static struct single_copy_head head;
static _Atomic uint64_t data; /* the reader's loads have no order either */
static const struct single_copy_name old = {1, 2, 3}, new = {1, 2, 4};

static void prepare_slot(void)
{
    atomic_store(&head.scope, old.scope);
    atomic_store(&head.tag, old.tag);
    atomic_store(&head.number, old.number);
    atomic_store(&data, 30);
}

static void reuse_slot(void)
{
    single_copy_sign(&head, new);
    atomic_store_explicit(&data, 40, memory_order_relaxed);
}

static void read_slot(void)
{
    if (!single_copy_is_named(&head, old)) return;
    uint64_t got = atomic_load_explicit(&data, memory_order_relaxed);
    if (!single_copy_is_still_named(&head, old)) return;
    litmus_check(got == 30, "new data under an old name");
}

const struct litmus litmus_slot = {.name = "name before data",
                                   .prepare = prepare_slot,
                                   .threads = {reuse_slot, read_slot}};

/* -------------------------------------------------- wake-ups of event loops */

static struct io_loop loop;
static struct wake wake;
enum { ASKED = 3 };
static atomic_bool asked[ASKED];
static int handled;

ssize_t __wrap_write(int fd, const void *from, size_t size);
ssize_t __real_write(int fd, const void *from, size_t size);
ssize_t __wrap_write(int fd, const void *from, size_t size)
{
    if (fd != loop.bell_fd && fd != wake.fd)
        return __real_write(fd, from, size);
    litmus_signal(0);
    return (ssize_t)size;
}

ssize_t __wrap_read(int fd, void *to, size_t size);
ssize_t __real_read(int fd, void *to, size_t size);
ssize_t __wrap_read(int fd, void *to, size_t size)
{
    if (fd != loop.bell_fd && fd != wake.fd) return __real_read(fd, to, size);
    litmus_take(0);
    return (ssize_t)size;
}

void __wrap_ev_io_start(struct ev_loop *l, ev_io *watcher);
void __wrap_ev_io_start(struct ev_loop *l, ev_io *watcher)
{
    (void)l, (void)watcher; /* its callback is called directly */
}

static void look(void *user)
{
    (void)user;
    handled = 0;
    for (int i = 0; i < ASKED; i++)
        handled += atomic_load_explicit(&asked[i], memory_order_relaxed);
}

static void prepare_asked(void)
{
    handled = 0;
    for (int i = 0; i < ASKED; i++) atomic_store(&asked[i], false);
}

static void prepare_loop(void)
{
    prepare_asked();
    wake.fd = -1;
    if (loop.bell_fd <= 0 && !io_loop_open(&loop)) litmus_check(false, "open");
    loop.woken = look;
    atomic_store(&loop.rung, false);
}

static void ask_loop_first(void)
{
    atomic_store_explicit(&asked[0], true, memory_order_relaxed);
    io_loop_wake(&loop);
    atomic_store_explicit(&asked[2], true, memory_order_relaxed);
    io_loop_wake(&loop);
}

static void ask_loop_second(void)
{
    atomic_store_explicit(&asked[1], true, memory_order_relaxed);
    io_loop_wake(&loop);
}

static void run_loop(void)
{
    while (handled < ASKED) {
        litmus_wait(0);
        loop.bell.ready(NULL, &loop.bell);
    }
}

const struct litmus litmus_loop = {
    .name = "wake-up of a communicator",
    .prepare = prepare_loop,
    .threads = {ask_loop_first, ask_loop_second, run_loop},
    .preemptions = 4};

static void prepare_wake(void)
{
    static bool opened;
    prepare_asked();
    loop.bell_fd = -1;
    if (!opened && !wake_open(&wake)) litmus_check(false, "open");
    opened = true;
    wake_start(&wake, NULL, look, NULL);
    atomic_store(&wake.sent, false);
}

static void ask_wake_first(void)
{
    atomic_store_explicit(&asked[0], true, memory_order_relaxed);
    wake_send(&wake);
    atomic_store_explicit(&asked[2], true, memory_order_relaxed);
    wake_send(&wake);
}

static void ask_wake_second(void)
{
    atomic_store_explicit(&asked[1], true, memory_order_relaxed);
    wake_send(&wake);
}

static void run_wake(void)
{
    while (handled < ASKED) {
        litmus_wait(0);
        wake.watcher.cb(NULL, &wake.watcher, EV_READ);
    }
}

const struct litmus litmus_wake = {
    .name = "wake-up of the coordinator",
    .prepare = prepare_wake,
    .threads = {ask_wake_first, ask_wake_second, run_wake},
    .preemptions = 4};

/* ---------------------------------------- what the MPI library relies on */

/* As a receive that is done (p2p.c), the master's port, a view (world.c). */
static struct {
    uint64_t result;
    atomic_bool done;
} shown;

static void prepare_shown(void)
{
    shown.result = 0;
    atomic_store(&shown.done, false);
}

static void show(void)
{
    shown.result = 7;
    atomic_store(&shown.done, true);
}

static void find(void)
{
    for (int i = 0; i < 2; i++)
        if (atomic_load(&shown.done))
            litmus_check(shown.result == 7, "done without a result");
}

const struct litmus litmus_published = {.name = "result before its flag",
                                        .prepare = prepare_shown,
                                        .threads = {show, find, find},
                                        .shared = &shown,
                                        .shared_size = sizeof shown};

/* As a table of partners (partner.c): added under a lock, read without. */
static struct {
    struct list_node {
        uint64_t id;
        _Atomic(struct list_node *) next;
    } nodes[2];
    _Atomic(struct list_node *) first;
} list;

static void prepare_list(void)
{
    memset(&list, 0, sizeof list);
}

static void add_nodes(void)
{
    for (uint64_t i = 0; i < 2; i++) {
        list.nodes[i].id = i + 1;
        atomic_init(&list.nodes[i].next, atomic_load(&list.first));
        atomic_store(&list.first, &list.nodes[i]);
    }
}

static void walk(void)
{
    uint64_t last = 0;
    for (struct list_node *n = atomic_load(&list.first); n;
         n = atomic_load(&n->next)) {
        litmus_check(n->id > 0 && n->id != last, "a node without its id");
        last = n->id;
    }
}

const struct litmus litmus_list = {.name = "node before its list",
                                   .prepare = prepare_list,
                                   .threads = {add_nodes, walk},
                                   .shared = &list.nodes,
                                   .shared_size = sizeof list.nodes};

/* As a message that its two owners let go of (p2p.c, handle.c). */
static struct {
    atomic_int references;
    uint64_t content;
} object;

static void prepare_object(void)
{
    atomic_store(&object.references, 2);
    object.content = 1;
}

static void let_go(void)
{
    object.content = object.content > 0; /* each uses it before */
}

static void use_first(void)
{
    litmus_check(object.content == 1, "freed while it is used");
    if (atomic_fetch_sub(&object.references, 1) == 1) let_go();
}

const struct litmus litmus_last = {.name = "last use before the end",
                                   .prepare = prepare_object,
                                   .threads = {use_first, use_first},
                                   .shared = &object.content,
                                   .shared_size = sizeof object.content};
