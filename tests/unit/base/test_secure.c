/* test_secure.c - rules K2 to K6: two ends of a secure channel in memory, and
 * everything that somebody between them, or in place of one, can do. */
#include "../../../src/base/secure_channel.h"

#include "../../../src/base/run_key.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { LARGE = 300000, WIRE_MOST = 1 << 20 };

static struct secure_keys one, other;
static uint8_t bytes[LARGE], got[LARGE];

/* Everything that one end has sent. */
struct tape {
    uint8_t bytes[WIRE_MOST];
    size_t size, cuts[512], count; /* the size after each step */
};

struct pair {
    struct secure *ends[2]; /* dialer, acceptor */
    struct tape *tapes[2];  /* or NULL: what each has sent */
};

static int setup(void **state)
{
    (void)state;
    uint8_t key[SECURE_KEY_SIZE];
    for (size_t i = 0; i < LARGE; i++) bytes[i] = (uint8_t)(i * 7 + i / 251);
    memset(key, 1, sizeof key);
    secure_psk_of_key(&one.own, key);
    key[31] = 2;
    secure_psk_of_key(&other.own, key);
    return 0;
}

/* Returns how many bytes were taken: not more than one whole record waits. */
static size_t give(struct secure *to, const uint8_t *from, size_t size)
{
    size_t room, all = size;
    uint8_t sink[16];
    while (size > 0) {
        uint8_t *at = secure_room(to, &room);
        if (!at) break;
        if (room > size) room = size;
        memcpy(at, from, room);
        secure_received(to, room);
        from += room;
        size -= room;
        if (secure_state(to) == SECURE_GREETING) (void)secure_read(to, sink, 0);
    }
    return all - size;
}

/* What one end has to send goes to the other one. */
static bool carry(struct pair *p, int from)
{
    const uint8_t *out;
    size_t size = secure_out(p->ends[from], &out);
    struct tape *t = p->tapes[from];
    if (size == 0) return false;
    size_t taken = give(p->ends[!from], out, size);
    if (secure_state(p->ends[!from]) != SECURE_BROKEN) size = taken;
    if (t) {
        memcpy(t->bytes + t->size, out, size);
        t->size += size;
        t->cuts[t->count++] = t->size;
    }
    (void)secure_sent(p->ends[from], size);
    return size > 0;
}

static void greet(struct pair *p)
{
    for (bool more = true; more;) {
        more = carry(p, 0);
        more = carry(p, 1) || more;
    }
}

static struct pair pair_open(struct secure_keys *dialer,
                             struct secure_keys *acceptor)
{
    struct pair p = {.ends = {secure_open(dialer, SECURE_DIALER),
                              secure_open(acceptor, SECURE_ACCEPTOR)}};
    assert_non_null(p.ends[0]);
    assert_non_null(p.ends[1]);
    return p;
}

static void pair_close(struct pair *p)
{
    secure_close(p->ends[0]);
    secure_close(p->ends[1]);
}

static size_t post(struct secure *s, const uint8_t *from, size_t size)
{
    /* A head and a body, as frames are. */
    size_t head = size < 48 ? size : 48;
    struct secure_part parts[] = {{from, head}, {from + head, size - head}};
    return secure_write(s, parts, 2);
}

static void move(struct pair *p, int from, size_t size, size_t step)
{
    size_t sent = 0, done = 0;
    memset(got, 0, sizeof got);
    while (done < size) {
        if (sent < size) sent += post(p->ends[from], bytes + sent, size - sent);
        (void)carry(p, from);
        size_t room = size - done < step ? size - done : step;
        size_t n = secure_read(p->ends[!from], got + done, room);
        assert_int_equal(secure_state(p->ends[!from]), SECURE_OPEN);
        done += n;
        while (n > 0 && done < size) {
            room = size - done < step ? size - done : step;
            n = secure_read(p->ends[!from], got + done, room);
            done += n;
        }
    }
    assert_memory_equal(got, bytes, size);
}

static void test_data(void **state)
{
    static const size_t steps[] = {1, 56, 8192, 16384, 16385, LARGE};
    (void)state;
    struct pair p = pair_open(&one, &one);
    greet(&p);
    for (int i = 0; i < 2; i++)
        assert_int_equal(secure_state(p.ends[i]), SECURE_OPEN);
    assert_string_equal(secure_identity(p.ends[1]), one.own.identity);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        move(&p, 0, steps[i] == 1 ? 3000 : LARGE, steps[i]);
        move(&p, 1, steps[i] == 1 ? 3000 : LARGE, steps[i]);
        secure_rekey(p.ends[i & 1]); /* K6 */
    }
    pair_close(&p);
}

static void test_bytes_on_the_wire(void **state)
{
    (void)state;
    struct tape *t = calloc(2, sizeof *t);
    struct pair p = pair_open(&one, &one);
    p.tapes[0] = &t[0];
    p.tapes[1] = &t[1];
    greet(&p);
    move(&p, 0, LARGE, LARGE);
    move(&p, 1, LARGE, LARGE);
    for (int i = 0; i < 2; i++) {
        for (size_t at = 0; at + 16 < LARGE; at += 5000)
            assert_null(memmem(t[i].bytes, t[i].size, bytes + at, 16));
        assert_null(memmem(t[i].bytes, t[i].size, one.own.key, 16));
    }
    pair_close(&p);
    free(t);
}

static void test_wrong_key(void **state)
{
    (void)state;
    struct pair p = pair_open(&one, &other);
    greet(&p);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(secure_state(p.ends[i]), SECURE_BROKEN);
        assert_int_equal(secure_fault(p.ends[i]), SECURE_WRONG_KEY);
    }
    pair_close(&p);
    /* The right name with another key. */
    struct secure_keys liar = other;
    memcpy(liar.own.identity, one.own.identity, sizeof liar.own.identity);
    p = pair_open(&liar, &one);
    greet(&p);
    for (int i = 0; i < 2; i++)
        assert_int_equal(secure_fault(p.ends[i]), SECURE_WRONG_KEY);
    pair_close(&p);
    p = pair_open(&one, &liar);
    greet(&p);
    for (int i = 0; i < 2; i++)
        assert_int_equal(secure_state(p.ends[i]), SECURE_BROKEN);
    pair_close(&p);
}

static enum secure_fault refuse_all(void *user, const char *identity,
                                    uint8_t key[SECURE_KEY_SIZE])
{
    (void)key;
    snprintf(user, SECURE_NAME_SIZE, "%s", identity);
    return SECURE_REFUSED;
}

static void test_refused(void **state)
{
    (void)state;
    char asked[SECURE_NAME_SIZE] = "";
    struct secure_keys gate = one;
    gate.find = refuse_all;
    gate.user = asked;
    struct pair p = pair_open(&one, &gate);
    greet(&p);
    assert_string_equal(asked, one.own.identity);
    for (int i = 0; i < 2; i++)
        assert_int_equal(secure_fault(p.ends[i]), SECURE_REFUSED);
    pair_close(&p);
}

/* Rule K5. */
static void test_plain(void **state)
{
    static const uint8_t hello[] = {0x43, 0x50, 1, 0, 20, 0, 0, 0};
    (void)state;
    struct secure *s = secure_open(&one, SECURE_ACCEPTOR);
    (void)give(s, hello, sizeof hello);
    assert_int_equal(secure_fault(s), SECURE_IS_PLAIN);
    const uint8_t *out;
    assert_int_equal(secure_out(s, &out), 0);
    secure_close(s);

    s = secure_open(&one, SECURE_DIALER);
    size_t size = secure_out(s, &out);
    assert_true(secure_is_greeting(out, size));
    assert_false(secure_is_greeting(hello, sizeof hello));
    uint8_t answer[SECURE_REFUSAL_SIZE];
    secure_refuse(answer);
    (void)give(s, answer, sizeof answer);
    assert_int_equal(secure_fault(s), SECURE_WANTS_KEY);
    secure_close(s);

    s = secure_open(&one, SECURE_DIALER);
    (void)give(s, hello, sizeof hello);
    assert_int_equal(secure_fault(s), SECURE_WANTS_KEY);
    secure_close(s);
}

/* Records a whole conversation: tapes[0] of the dialer. */
static void record(struct tape *t)
{
    struct pair p = pair_open(&one, &one);
    p.tapes[0] = &t[0];
    p.tapes[1] = &t[1];
    greet(&p);
    move(&p, 0, 1000, 1000);
    move(&p, 1, 1000, 1000);
    pair_close(&p);
}

/* Every cut of either direction, then the end: an end that has not been proved
 * is broken, and nothing was read. */
static void test_cut(void **state)
{
    (void)state;
    struct tape *t = calloc(2, sizeof *t);
    record(t);
    for (size_t size = 0; size < t[0].cuts[0]; size++) {
        struct secure *s = secure_open(&one, SECURE_ACCEPTOR);
        (void)give(s, t[0].bytes, size);
        assert_int_equal(secure_state(s), SECURE_GREETING);
        secure_ended(s);
        assert_int_equal(secure_fault(s), SECURE_CUT);
        secure_close(s);
    }
    free(t);
    struct pair p = pair_open(&one, &one);
    greet(&p);
    assert_int_equal(post(p.ends[0], bytes, 2000), 2000);
    const uint8_t *out;
    size_t size = secure_out(p.ends[0], &out);
    for (size_t i = 0; i < size; i++) {
        (void)give(p.ends[1], out + i, 1);
        size_t n = secure_read(p.ends[1], got, sizeof got);
        assert_int_equal(n, i + 1 < size ? 0 : 2000);
    }
    pair_close(&p);
}

/* A recorded dialer is played to a new acceptor, and the other way. */
static void test_replay(void **state)
{
    (void)state;
    struct tape *t = calloc(2, sizeof *t);
    record(t);
    struct secure *s = secure_open(&one, SECURE_ACCEPTOR);
    (void)give(s, t[0].bytes, t[0].size);
    assert_int_equal(secure_state(s), SECURE_BROKEN);
    assert_int_equal(secure_fault(s), SECURE_TAMPERED);
    assert_int_equal(secure_read(s, got, sizeof got), 0);
    secure_close(s);
    s = secure_open(&one, SECURE_DIALER);
    (void)give(s, t[1].bytes, t[1].size);
    assert_int_equal(secure_state(s), SECURE_BROKEN);
    secure_close(s);
    free(t);

    /* One record twice, one left out, two exchanged. */
    for (int kind = 0; kind < 3; kind++) {
        struct pair p = pair_open(&one, &one);
        uint8_t records[2][200];
        size_t sizes[2];
        greet(&p);
        for (int i = 0; i < 2; i++) {
            const uint8_t *out;
            assert_int_equal(post(p.ends[0], bytes, 100), 100);
            sizes[i] = secure_out(p.ends[0], &out);
            memcpy(records[i], out, sizes[i]);
            assert_int_equal(secure_sent(p.ends[0], sizes[i]), 100);
        }
        int first = kind == 0 ? 0 : 1;
        (void)give(p.ends[1], records[first], sizes[first]);
        size_t n = secure_read(p.ends[1], got, sizeof got);
        assert_int_equal(n, kind == 0 ? 100 : 0);
        (void)give(p.ends[1], records[0], sizes[0]);
        assert_int_equal(secure_read(p.ends[1], got, sizeof got), 0);
        assert_int_equal(secure_fault(p.ends[1]), SECURE_TAMPERED);
        pair_close(&p);
    }
}

/* One bit of the greeting is changed: no channel opens on both sides. */
static void test_flip_greeting(void **state)
{
    (void)state;
    struct tape *t = calloc(2, sizeof *t);
    record(t);
    size_t most[2] = {t[0].cuts[0], t[1].cuts[0]};
    free(t);
    for (int side = 0; side < 2; side++) {
        for (size_t bit = 0; bit < 8 * most[side]; bit += 3) {
            struct pair p = pair_open(&one, &one);
            uint8_t copy[2000];
            const uint8_t *out;
            if (side == 1) (void)carry(&p, 0);
            size_t size = secure_out(p.ends[side], &out);
            assert_true(size <= sizeof copy && size > bit / 8);
            memcpy(copy, out, size);
            (void)secure_sent(p.ends[side], size);
            copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
            (void)give(p.ends[!side], copy, size);
            greet(&p);
            /* Nobody reads the old version number of the first record. */
            if (bit / 8 != 2)
                assert_false(secure_state(p.ends[0]) == SECURE_OPEN &&
                             secure_state(p.ends[1]) == SECURE_OPEN);
            pair_close(&p);
        }
    }
}

/* One bit of a record is changed. */
static void test_flip_record(void **state)
{
    (void)state;
    for (size_t bit = 0; bit < 8 * 86; bit++) {
        struct pair p = pair_open(&one, &one);
        const uint8_t *out;
        uint8_t copy[200];
        greet(&p);
        assert_int_equal(post(p.ends[0], bytes, 64), 64);
        size_t size = secure_out(p.ends[0], &out);
        assert_int_equal(size, 86);
        memcpy(copy, out, size);
        copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
        (void)give(p.ends[1], copy, size);
        assert_int_equal(secure_read(p.ends[1], got, sizeof got), 0);
        /* A length that is now larger waits for bytes that do not come. */
        bool waits = bit / 8 == 3 || bit / 8 == 4;
        if (!waits) assert_int_equal(secure_fault(p.ends[1]), SECURE_TAMPERED);
        pair_close(&p);
    }
}

static void test_random(void **state)
{
    (void)state;
    uint32_t x = 1;
    for (int round = 0; round < 3000; round++) {
        enum secure_side side = round & 1 ? SECURE_DIALER : SECURE_ACCEPTOR;
        struct secure *s = secure_open(&one, side);
        uint8_t noise[600];
        for (size_t i = 0; i < sizeof noise; i++) {
            x = x * 1664525u + 1013904223u;
            noise[i] = (uint8_t)(x >> 24);
        }
        if (round % 3) { /* as far as a record goes */
            noise[0] = 22;
            noise[1] = noise[2] = 3;
            noise[3] = (uint8_t)(round % 2);
            noise[5] = round & 4 ? 1 : 2;
        }
        (void)give(s, noise, sizeof noise);
        secure_ended(s);
        assert_int_equal(secure_state(s), SECURE_BROKEN);
        assert_non_null(secure_fault_text(secure_fault(s)));
        secure_close(s);
    }
}

/* Rule K4: no more than 4 KiB of a stranger. */
static void test_long_greeting(void **state)
{
    static uint8_t head[] = {22, 3, 1, 0x40, 0, 1};
    (void)state;
    struct secure *s = secure_open(&one, SECURE_ACCEPTOR);
    (void)give(s, head, sizeof head);
    assert_int_equal(secure_fault(s), SECURE_NO_TLS);
    secure_close(s);
    head[3] = 0x0f;
    s = secure_open(&one, SECURE_ACCEPTOR);
    (void)give(s, head, sizeof head);
    for (int i = 0; i < 3000; i++) give(s, bytes + i, 1);
    size_t room;
    assert_non_null(secure_room(s, &room));
    assert_true(room + 3000 <= SECURE_GREETING_MAX);
    secure_close(s);
}

/* Rule K4: 10,000 strangers that stop in the middle of a greeting, or send one
 * that was recorded of another key. */
static void test_crowd(void **state)
{
    enum { CROWD = 10000 };
    (void)state;
    struct secure **crowd = calloc(CROWD, sizeof(struct secure *));
    struct secure *dialer = secure_open(&other, SECURE_DIALER);
    const uint8_t *greeting;
    size_t size = secure_out(dialer, &greeting);
    assert_non_null(crowd);
    size_t before = mallinfo2().uordblks;
    for (size_t i = 0; i < CROWD; i++) {
        crowd[i] = secure_open(&one, SECURE_ACCEPTOR);
        assert_non_null(crowd[i]);
        (void)give(crowd[i], greeting, i % 10 ? size - 1 : size);
        assert_int_equal(secure_state(crowd[i]),
                         i % 10 ? SECURE_GREETING : SECURE_BROKEN);
    }
    size_t each = (mallinfo2().uordblks - before) / CROWD;
    print_message("%zu bytes for each stranger\n", each);
    assert_true(each < 2048);
    for (size_t i = 0; i < CROWD; i++) secure_close(crowd[i]);
    secure_close(dialer);
    free(crowd);
}

static void test_key_files(void **state)
{
    (void)state;
    char path[] = "/tmp/pccl_key_XXXXXX", error[200], lent[RUN_KEY_PATH];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    struct run_key a, b;
    assert_true(run_key_make(&a));
    assert_false(run_key_write(&a, path, error, sizeof error));
    assert_non_null(strstr(error, "File exists"));
    assert_false(run_key_read(&b, path, error, sizeof error));
    assert_non_null(strstr(error, "no token file"));
    unlink(path);
    assert_false(run_key_read(&b, path, error, sizeof error));
    assert_non_null(strstr(error, "No such file"));
    assert_true(run_key_write(&a, path, error, sizeof error));
    assert_true(run_key_read(&b, path, error, sizeof error));
    assert_memory_equal(&a, &b, sizeof a);
    assert_int_equal(chmod(path, 0640), 0);
    assert_false(run_key_read(&b, path, error, sizeof error));
    assert_non_null(strstr(error, "chmod 600"));
    unlink(path);
    assert_false(run_key_read(&b, "/tmp", error, sizeof error));
    fd = run_key_lend(&a, lent);
    assert_true(fd >= 0);
    memset(&b, 0, sizeof b);
    assert_true(run_key_read(&b, lent, error, sizeof error));
    assert_memory_equal(&a, &b, sizeof a);
    assert_int_equal(pwrite(fd, "x", 1, 0), -1); /* sealed */
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_data),
        cmocka_unit_test(test_bytes_on_the_wire),
        cmocka_unit_test(test_wrong_key),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_replay),
        cmocka_unit_test(test_flip_greeting),
        cmocka_unit_test(test_flip_record),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_long_greeting),
        cmocka_unit_test(test_crowd),
        cmocka_unit_test(test_key_files),
    };
    const char *why;
    if (!secure_is_available(&why)) {
        printf("skipped: %s\n", why);
        return 77;
    }
    return cmocka_run_group_tests(tests, setup, NULL);
}
