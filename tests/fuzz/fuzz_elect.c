/* fuzz_elect.c - answers of anybody in the place of etcd, texts for where an
 * election is held, and files that say as whom one takes part. */
#include "fuzz.h"

#include "../../src/launch/elect_etcd.h"
#include "../../src/launch/elect_place.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Printed on a terminal, and written into a header. */
static void assert_plain(const char *text, size_t size)
{
    size_t length = strnlen(text, size);
    assert(length < size);
    for (size_t i = 0; i < length; i++)
        assert(text[i] >= ' ' && text[i] <= '~');
}

static void read_answer(uint32_t kind, const char *text, size_t size)
{
    static etcd_reader *const readers[] = {
        etcd_read_login,  etcd_read_grant, etcd_read_renew,
        etcd_read_revoke, etcd_read_key,   etcd_read_campaign,
    };
    struct etcd_said said = {.lease = 0};
    char why[ETCD_WHY_SIZE] = "";
    etcd_reader *read = readers[kind % ARRAY_COUNT(readers)];
    bool good = read(text, size, &said, why);
    assert(good || *why);
    assert_plain(why, sizeof why);
    assert_plain(said.value, sizeof said.value);
    assert_plain(said.token, sizeof said.token);
    assert(said.lease <= INT64_MAX);
    if (good && read == etcd_read_grant)
        assert(said.lease > 0 && said.ttl > 0 &&
               said.ttl <= (uint64_t)ETCD_TTL_MAX * 2);
    if (good && read == etcd_read_login) assert(*said.token);
    etcd_read_error(text, size, why);
    assert_plain(why, sizeof why);
}

static void read_place(const char *text)
{
    struct elect_place place;
    char why[ETCD_WHY_SIZE] = "", body[ETCD_BODY_SIZE];
    if (!elect_place_parse(text, &place, why)) {
        assert(*why);
        return;
    }
    assert(place.count > 0 && place.count <= ENDPOINTS_MAX && *place.name);
    for (size_t i = 0; i < place.count; i++)
        assert_plain(place.endpoints[i], ENDPOINT_SIZE);
    assert_plain(place.name, sizeof place.name);
    bool fits = etcd_ask_campaign(body, place.name, "127.0.0.1:1", INT64_MAX);
    fits = fits && etcd_ask_key(body, place.name) &&
           etcd_ask_grant(body, UINT64_MAX) && etcd_ask_lease(body, INT64_MAX);
    assert(fits);
    (void)etcd_ask_login(body, place.name, text); /* both are quoted */
}

/* The fields are parts of the file's text. */
static void read_account(const char *text, size_t size)
{
    static int fd = -1;
    struct elect_account a;
    char path[64], why[ETCD_WHY_SIZE] = "";
    if (fd < 0 && (fd = memfd_create("account", MFD_CLOEXEC)) >= 0)
        (void)fchmod(fd, S_IRUSR | S_IWUSR);
    if (fd < 0 || ftruncate(fd, 0) != 0) return;
    if (pwrite(fd, text, size, 0) != (ssize_t)size) return;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    bool good = elect_account_read(path, &a, why);
    assert(good || *why);
    if (good) {
        const char *const fields[] = {a.user, a.password,    a.token,
                                      a.ca,   a.certificate, a.key};
        for (size_t i = 0; i < ARRAY_COUNT(fields); i++)
            assert(!fields[i] || (fields[i] > a.text && *fields[i]));
        assert(!a.user == !a.password && !(a.user && a.token));
    }
    elect_account_free(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct fuzz_input in = {bytes, size};
    uint32_t kind = fuzz_below(&in, 8);
    /* Of its own size, for a sanitizer, and once more with an end. */
    char *text = malloc(in.left + 1);
    assert(text);
    memcpy(text, in.at, in.left);
    text[in.left] = '\0';
    if (kind == 7) {
        read_account(text, in.left);
    } else if (kind == 6) {
        read_place(text);
    } else {
        char *exact = malloc(in.left > 0 ? in.left : 1);
        assert(exact);
        memcpy(exact, in.at, in.left);
        read_answer(kind, exact, in.left);
        free(exact);
    }
    free(text);
    return 0;
}
