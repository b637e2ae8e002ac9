/* test_disk.c - see test_disk.h; linked with -Wl,--wrap of these functions. */
#include "test_disk.h"

#include "../../../src/base/quiet_write.h"
#include "../../../src/base/slow_call.h"

#include <pthread.h>

struct test_disk test_disk = {.fails = -1, .hangs = -1};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool hung, let_go;

int __real_quiet_write_all(int fd, const void *bytes, size_t size);
int __wrap_quiet_write_all(int fd, const void *bytes, size_t size);
bool __real_slow_call_ask(struct slow_call *s, int patience);
bool __wrap_slow_call_ask(struct slow_call *s, int patience);
bool __real_slow_call_end(struct slow_call *s, int patience);
bool __wrap_slow_call_end(struct slow_call *s, int patience);

static void hang(void)
{
    pthread_mutex_lock(&lock);
    hung = true;
    pthread_cond_broadcast(&changed);
    while (!let_go) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

int __wrap_quiet_write_all(int fd, const void *bytes, size_t size)
{
    struct test_disk *d = &test_disk;
    int now = d->writes++;
    if (now == d->hangs) hang();
    bool fails =
        d->fails >= 0 && (d->for_good ? now >= d->fails : now == d->fails);
    if (!fails) return __real_quiet_write_all(fd, bytes, size);
    (void)__real_quiet_write_all(fd, bytes, d->part < size ? d->part : size);
    return d->error;
}

bool __wrap_slow_call_ask(struct slow_call *s, int patience)
{
    bool forever = patience > 0 && test_disk.hangs < 0;
    return __real_slow_call_ask(s, forever ? SLOW_CALL_FOREVER : patience);
}

bool __wrap_slow_call_end(struct slow_call *s, int patience)
{
    (void)patience;
    return __real_slow_call_end(s, SLOW_CALL_FOREVER);
}

void test_disk_await_hang(void)
{
    pthread_mutex_lock(&lock);
    while (!hung) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

void test_disk_let_go(void)
{
    pthread_mutex_lock(&lock);
    let_go = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}
