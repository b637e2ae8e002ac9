/* elect_http.c - see elect_http.h. */
#include "elect_http.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is used of libcurl. Only pccl-master --elect loads it: its libraries
 * would cost every start of pccl-master some milliseconds. */
#define CURL_FUNCTIONS(X)                                                      \
    X(curl_global_init)                                                        \
    X(curl_easy_init)                                                          \
    X(curl_easy_setopt)                                                        \
    X(curl_easy_getinfo)                                                       \
    X(curl_easy_cleanup)                                                       \
    X(curl_easy_strerror)                                                      \
    X(curl_slist_append)                                                       \
    X(curl_slist_free_all)                                                     \
    X(curl_multi_init)                                                         \
    X(curl_multi_add_handle)                                                   \
    X(curl_multi_remove_handle)                                                \
    X(curl_multi_perform)                                                      \
    X(curl_multi_poll)                                                         \
    X(curl_multi_info_read)                                                    \
    X(curl_multi_strerror)                                                     \
    X(curl_multi_cleanup)

/* The types are those of the header, which has macros of some of the names. */
#undef curl_easy_setopt
#undef curl_easy_getinfo

struct elect_http {
#define X(name) __typeof__(&name) name;
    CURL_FUNCTIONS(X)
#undef X
    const struct elect_http_options *options;
    CURL *easy;
    CURLM *multi;
    struct http_answer *answer; /* of the question under way */
    bool too_large;
    char detail[CURL_ERROR_SIZE];
};

static bool find_functions(struct elect_http *h, void *handle)
{
    void *at;
#define X(name)                                                                \
    at = dlsym(handle, #name);                                                 \
    if (!at) return false;                                                     \
    memcpy(&h->name, &at, sizeof at);
    CURL_FUNCTIONS(X)
#undef X
    return true;
}

/* Never unloaded: a resolver of it may still run. */
static const char *load(struct elect_http *h)
{
    static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
    void *handle = NULL;
    for (size_t i = 0; i < ARRAY_COUNT(names) && !handle; i++)
        handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!handle) return "libcurl (libcurl.so.4) is not installed";
    if (!find_functions(h, handle))
        return "the installed libcurl.so.4 is older than 7.66";
    if (h->curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return "libcurl cannot be initialized";
    return NULL;
}

static size_t take(char *bytes, size_t one, size_t count, void *user)
{
    struct elect_http *h = user;
    struct http_answer *a = h->answer;
    size_t size = one * count;
    h->too_large = size > sizeof a->text - a->size;
    if (h->too_large) return 0;
    memcpy(a->text + a->size, bytes, size);
    a->size += size;
    return size;
}

/* A file of authorities of the environment, as the program curl reads it. */
static const char *environment(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

static bool set_files(struct elect_http *h)
{
    const struct elect_http_options *o = h->options;
    const char *file = o->authorities, *folder = NULL;
    if (!file) file = environment("CURL_CA_BUNDLE");
    if (!file) file = environment("SSL_CERT_FILE");
    if (!o->authorities) folder = environment("SSL_CERT_DIR");
    CURLcode code = CURLE_OK;
    if (file) code = h->curl_easy_setopt(h->easy, CURLOPT_CAINFO, file);
    if (code == CURLE_OK && folder)
        code = h->curl_easy_setopt(h->easy, CURLOPT_CAPATH, folder);
    if (code == CURLE_OK && o->certificate)
        code = h->curl_easy_setopt(h->easy, CURLOPT_SSLCERT, o->certificate);
    if (code == CURLE_OK && o->key)
        code = h->curl_easy_setopt(h->easy, CURLOPT_SSLKEY, o->key);
    return code == CURLE_OK;
}

static bool set_up(struct elect_http *h)
{
    h->easy = h->curl_easy_init();
    h->multi = h->curl_multi_init();
    if (!h->easy || !h->multi) return false;
    bool done =
        h->curl_easy_setopt(h->easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
        /* Time counts, and a proxy has its own. */
        h->curl_easy_setopt(h->easy, CURLOPT_NOPROXY, "*") == CURLE_OK &&
        h->curl_easy_setopt(h->easy, CURLOPT_ERRORBUFFER, h->detail) ==
            CURLE_OK &&
        h->curl_easy_setopt(h->easy, CURLOPT_WRITEFUNCTION, take) == CURLE_OK &&
        h->curl_easy_setopt(h->easy, CURLOPT_WRITEDATA, h) == CURLE_OK;
    return done && set_files(h);
}

struct elect_http *elect_http_open(const struct elect_http_options *options,
                                   char why[static HTTP_WHY_SIZE])
{
    struct elect_http *h = memory_get(1, sizeof *h);
    h->options = options;
    const char *fault = load(h);
    if (!fault && !set_up(h)) fault = "libcurl refuses what it is told";
    if (!fault) return h;
    (void)snprintf(why, HTTP_WHY_SIZE, "%s", fault);
    elect_http_close(h);
    return NULL;
}

/* Until the transfer is over, or broken off. */
static CURLcode transfer(struct elect_http *h, bool *broken)
{
    const struct elect_http_options *o = h->options;
    struct curl_waitfd wake = {.fd = o->wake, .events = CURL_WAIT_POLLIN};
    for (;;) {
        int running, left;
        if (h->curl_multi_perform(h->multi, &running) != CURLM_OK)
            return CURLE_FAILED_INIT;
        const CURLMsg *m = h->curl_multi_info_read(h->multi, &left);
        if (m && m->msg == CURLMSG_DONE) return m->data.result;
        *broken = !o->look(o->user);
        if (*broken) return CURLE_OK;
        if (h->curl_multi_poll(h->multi, &wake, 1, (int)(o->every * 1e3),
                               NULL) != CURLM_OK)
            return CURLE_FAILED_INIT;
    }
}

static bool prepare(struct elect_http *h, const char *url, const char *body,
                    double seconds, struct curl_slist *headers)
{
    return h->curl_easy_setopt(h->easy, CURLOPT_URL, url) == CURLE_OK &&
           h->curl_easy_setopt(h->easy, CURLOPT_POST, 1L) == CURLE_OK &&
           h->curl_easy_setopt(h->easy, CURLOPT_POSTFIELDSIZE,
                               (long)strlen(body)) == CURLE_OK &&
           h->curl_easy_setopt(h->easy, CURLOPT_POSTFIELDS, body) == CURLE_OK &&
           h->curl_easy_setopt(h->easy, CURLOPT_HTTPHEADER, headers) ==
               CURLE_OK &&
           h->curl_easy_setopt(h->easy, CURLOPT_TIMEOUT_MS,
                               (long)(seconds * 1e3) + 1) == CURLE_OK &&
           h->curl_multi_add_handle(h->multi, h->easy) == CURLM_OK;
}

static struct curl_slist *headers_make(struct elect_http *h, const char *token)
{
    struct curl_slist *list =
        h->curl_slist_append(NULL, "Content-Type: application/json");
    if (!list || *token == '\0') return list;
    char *line = memory_print("Authorization: %s", token);
    struct curl_slist *longer = h->curl_slist_append(list, line);
    free(line);
    if (longer) return longer;
    h->curl_slist_free_all(list);
    return NULL;
}

bool elect_http_post(struct elect_http *h, const char *url, const char *token,
                     const char *body, double seconds,
                     struct http_answer *answer, char why[static HTTP_WHY_SIZE])
{
    bool broken = false;
    CURLcode code = CURLE_OUT_OF_MEMORY;
    h->answer = answer;
    h->too_large = false;
    *h->detail = '\0';
    answer->size = 0;
    answer->status = 0;
    struct curl_slist *headers = headers_make(h, token);
    if (headers && prepare(h, url, body, seconds, headers)) {
        code = transfer(h, &broken);
        (void)h->curl_easy_getinfo(h->easy, CURLINFO_RESPONSE_CODE,
                                   &answer->status);
        (void)h->curl_multi_remove_handle(h->multi, h->easy);
    }
    h->curl_slist_free_all(headers);
    if (code == CURLE_OK && !broken) return true;
    if (broken)
        (void)snprintf(why, HTTP_WHY_SIZE, "was broken off");
    else if (h->too_large)
        (void)snprintf(why, HTTP_WHY_SIZE, "the answer has more than %d bytes",
                       HTTP_ANSWER_MAX);
    else
        (void)snprintf(why, HTTP_WHY_SIZE, "%s",
                       *h->detail ? h->detail : h->curl_easy_strerror(code));
    return false;
}

void elect_http_close(struct elect_http *h)
{
    if (h->multi) h->curl_multi_cleanup(h->multi);
    if (h->easy) h->curl_easy_cleanup(h->easy);
    free(h);
}
