/* fuzz_elect_http.c - what libcurl, which is not real, hands to the elector of
 * an answer: pieces of any size, any status, errors; also one that is older, or
 * refuses what it is told. */
#include <dlfcn.h>

static void *fuzz_dlopen(const char *name, int how);
static void *fuzz_dlsym(void *handle, const char *name);
#define dlopen fuzz_dlopen
#define dlsym fuzz_dlsym
#include "../../src/launch/elect_http.c"
#include "fuzz.h"

#include <assert.h>
#include <stdarg.h>

static struct {
    struct fuzz_input in;
    curl_write_callback write;
    void *user;
    char *detail;
    long post_size;
    bool added, done;
    CURLMsg message;
    uint32_t lists; /* that are not freed */
    size_t handed;
} u;

static char easy, multi, library;

/* Now and then it refuses. */
static bool refuses(void)
{
    return fuzz_u8(&u.in) == 255;
}

static CURLcode fuzz_global_init(long flags)
{
    assert(flags == CURL_GLOBAL_DEFAULT);
    return refuses() ? CURLE_FAILED_INIT : CURLE_OK;
}

static CURL *fuzz_easy_init(void)
{
    return refuses() ? NULL : (CURL *)&easy;
}

static CURLcode fuzz_easy_setopt(CURL *handle, CURLoption option, ...)
{
    va_list args;
    assert(handle == (CURL *)&easy);
    va_start(args, option);
    if (option == CURLOPT_WRITEFUNCTION)
        u.write = va_arg(args, curl_write_callback);
    else if (option == CURLOPT_WRITEDATA)
        u.user = va_arg(args, void *);
    else if (option == CURLOPT_ERRORBUFFER)
        u.detail = va_arg(args, char *);
    else if (option == CURLOPT_POSTFIELDSIZE)
        u.post_size = va_arg(args, long);
    else if (option == CURLOPT_POSTFIELDS)
        assert((long)strlen(va_arg(args, char *)) == u.post_size);
    else if (option == CURLOPT_TIMEOUT_MS)
        assert(va_arg(args, long) > 0);
    va_end(args);
    return refuses() ? CURLE_UNKNOWN_OPTION : CURLE_OK;
}

static CURLcode fuzz_easy_getinfo(CURL *handle, CURLINFO info, ...)
{
    va_list args;
    assert(handle == (CURL *)&easy && info == CURLINFO_RESPONSE_CODE);
    va_start(args, info);
    *va_arg(args, long *) = fuzz_u16(&u.in);
    va_end(args);
    return CURLE_OK;
}

static void fuzz_easy_cleanup(CURL *handle)
{
    assert(handle == (CURL *)&easy);
}

static const char *fuzz_easy_strerror(CURLcode code)
{
    assert(code != CURLE_OK);
    return "it failed";
}

static struct curl_slist *fuzz_slist_append(struct curl_slist *list,
                                            const char *text)
{
    assert(*text);
    if (refuses()) return NULL;
    struct curl_slist *one = calloc(1, sizeof *one);
    assert(one);
    one->next = list;
    u.lists++;
    return one;
}

static void fuzz_slist_free_all(struct curl_slist *list)
{
    while (list) {
        struct curl_slist *next = list->next;
        free(list);
        u.lists--;
        list = next;
    }
}

static CURLM *fuzz_multi_init(void)
{
    return refuses() ? NULL : (CURLM *)&multi;
}

static CURLMcode fuzz_multi_add_handle(CURLM *m, CURL *handle)
{
    assert(m == (CURLM *)&multi && handle == (CURL *)&easy && !u.added);
    u.added = !refuses();
    return u.added ? CURLM_OK : CURLM_BAD_HANDLE;
}

static CURLMcode fuzz_multi_remove_handle(CURLM *m, CURL *handle)
{
    assert(m == (CURLM *)&multi && handle == (CURL *)&easy && u.added);
    u.added = false;
    return CURLM_OK;
}

static void finish(CURLcode code)
{
    u.done = true;
    u.message = (CURLMsg){.msg = CURLMSG_DONE, .data.result = code};
    if (code != CURLE_OK && fuzz_u8(&u.in) & 1)
        (void)snprintf(u.detail, CURL_ERROR_SIZE, "nobody answers");
}

/* A piece of the answer, or its end. */
static CURLMcode fuzz_multi_perform(CURLM *m, int *running)
{
    static char bytes[CURL_MAX_WRITE_SIZE];
    assert(m == (CURLM *)&multi && u.added);
    *running = 1;
    uint8_t what = fuzz_u8(&u.in);
    size_t size = (size_t)what * (fuzz_u8(&u.in) & 3 ? 1 : 64);
    if (what == 255) return CURLM_INTERNAL_ERROR;
    if (u.in.left == 0 || what < 32) {
        finish(what % 8 == 1 ? CURLE_COULDNT_CONNECT : CURLE_OK);
        return CURLM_OK;
    }
    if (u.write(bytes, 1, size, u.user) != size) finish(CURLE_WRITE_ERROR);
    u.handed += size;
    return CURLM_OK;
}

static CURLMcode fuzz_multi_poll(CURLM *m, struct curl_waitfd fds[],
                                 unsigned count, int ms, int *ready)
{
    assert(m == (CURLM *)&multi && count == 1 && fds[0].fd == 5);
    assert(ms > 0 && !ready);
    return refuses() ? CURLM_OUT_OF_MEMORY : CURLM_OK;
}

static CURLMsg *fuzz_multi_info_read(CURLM *m, int *left)
{
    assert(m == (CURLM *)&multi);
    *left = 0;
    return u.done ? &u.message : NULL;
}

static const char *fuzz_multi_strerror(CURLMcode code)
{
    assert(code != CURLM_OK);
    return "it failed";
}

static CURLMcode fuzz_multi_cleanup(CURLM *m)
{
    assert(m == (CURLM *)&multi);
    return CURLM_OK;
}

/* ------------------------------------------------------------- the library */

static void *fuzz_dlopen(const char *name, int how)
{
    assert(strncmp(name, "libcurl", 7) == 0 && how & RTLD_NOW);
    return refuses() ? NULL : &library;
}

static void *fuzz_dlsym(void *handle, const char *name)
{
    typedef void function(void);
    static const struct {
        const char *name;
        function *at;
    } all[] = {
#define ONE(name) {"curl_" #name, (function *)fuzz_##name}
        ONE(global_init),      ONE(easy_init),       ONE(easy_setopt),
        ONE(easy_getinfo),     ONE(easy_cleanup),    ONE(easy_strerror),
        ONE(slist_append),     ONE(slist_free_all),  ONE(multi_init),
        ONE(multi_add_handle), ONE(multi_perform),   ONE(multi_remove_handle),
        ONE(multi_poll),       ONE(multi_info_read), ONE(multi_strerror),
        ONE(multi_cleanup),
    };
    void *at = NULL;
    assert(handle == &library);
    for (size_t i = 0; i < ARRAY_COUNT(all); i++)
        if (strcmp(name, all[i].name) == 0) memcpy(&at, &all[i].at, sizeof at);
    assert(at);
    return refuses() ? NULL : at;
}

static bool look(void *user)
{
    assert(user == &u);
    return fuzz_u8(&u.in) < 252;
}

static void ask(struct elect_http *h)
{
    static struct http_answer answer;
    char why[HTTP_WHY_SIZE] = "";
    uint8_t bits = fuzz_u8(&u.in);
    u.done = false;
    u.handed = 0;
    bool good =
        elect_http_post(h, "http://h:1/v3/kv/range", bits & 1 ? "ab.12" : "",
                        "{}", bits / 8., &answer, why);
    assert(good == (*why == '\0') && !u.added && u.lists == 0);
    assert(answer.size <= sizeof answer.text);
    assert(!good || answer.size == u.handed);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const char *const names[] = {"CURL_CA_BUNDLE", "SSL_CERT_FILE",
                                        "SSL_CERT_DIR"};
    char why[HTTP_WHY_SIZE] = "";
    u.in = (struct fuzz_input){bytes, size};
    uint8_t bits = fuzz_u8(&u.in);
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        (void)unsetenv(names[i]);
        if (bits >> i & 1) (void)setenv(names[i], bits & 64 ? "" : "/a", 1);
    }
    const struct elect_http_options options = {
        .wake = 5,
        .look = look,
        .user = &u,
        .every = .1,
        .authorities = bits & 8 ? "/ca" : NULL,
        .certificate = bits & 16 ? "/c" : NULL,
        .key = bits & 32 ? "/k" : NULL};
    struct elect_http *h = elect_http_open(&options, why);
    assert(h || *why);
    while (h && u.in.left > 0) ask(h);
    if (h) elect_http_close(h);
    return 0;
}
