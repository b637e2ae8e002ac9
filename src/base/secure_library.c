/* secure_library.c - see secure_library.h. */
#include "secure_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static struct secure_library library;
static const char *missing;

static bool find_functions(void *handle)
{
    void *at;
#define X(name)                                                                \
    at = dlsym(handle, #name);                                                 \
    if (!at) return false;                                                     \
    memcpy(&library.name, &at, sizeof at);
    SECURE_FUNCTIONS(X)
#undef X
    return true;
}

/* It is never unloaded, nor cleaned up when the process exits: threads of ours
 * may still encrypt then. */
static void load(void)
{
    void *handle = dlopen("libssl.so.3", RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        missing = "OpenSSL 3 (libssl.so.3) is not installed";
    } else if (!find_functions(handle)) {
        missing = "the installed libssl.so.3 is not that of OpenSSL 3";
    } else if (library.OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL) != 1) {
        missing = "OpenSSL cannot be initialized";
    } else {
        library.cipher = library.EVP_CIPHER_fetch(NULL, "AES-128-GCM", NULL);
        if (!library.cipher) missing = "OpenSSL has no AES-128-GCM here";
    }
}

const struct secure_library *secure_library(const char **why)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, load);
    if (why) *why = missing;
    return missing ? NULL : &library;
}
