/* secure_library.h - what a secure channel uses of OpenSSL, which is loaded
 * when it is needed first: a process without a key does not load it, and a host
 * without it runs everything that needs no key. */
#ifndef PCCL_SECURE_LIBRARY_H
#define PCCL_SECURE_LIBRARY_H

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/ssl.h>

#define SECURE_FUNCTIONS(X)                                                    \
    X(BIO_clear_flags)                                                         \
    X(BIO_get_data)                                                            \
    X(BIO_meth_new)                                                            \
    X(BIO_meth_set_ctrl)                                                       \
    X(BIO_meth_set_read)                                                       \
    X(BIO_meth_set_write)                                                      \
    X(BIO_new)                                                                 \
    X(BIO_set_data)                                                            \
    X(BIO_set_flags)                                                           \
    X(BIO_set_init)                                                            \
    X(ERR_clear_error)                                                         \
    X(ERR_peek_error)                                                          \
    X(EVP_CIPHER_CTX_ctrl)                                                     \
    X(EVP_CIPHER_CTX_free)                                                     \
    X(EVP_CIPHER_CTX_new)                                                      \
    X(EVP_CIPHER_fetch)                                                        \
    X(EVP_DecryptFinal_ex)                                                     \
    X(EVP_DecryptInit_ex)                                                      \
    X(EVP_DecryptUpdate)                                                       \
    X(EVP_DigestSign)                                                          \
    X(EVP_DigestSignInit)                                                      \
    X(EVP_DigestVerify)                                                        \
    X(EVP_DigestVerifyInit)                                                    \
    X(EVP_EncryptFinal_ex)                                                     \
    X(EVP_EncryptInit_ex)                                                      \
    X(EVP_EncryptUpdate)                                                       \
    X(EVP_MD_CTX_free)                                                         \
    X(EVP_MD_CTX_new)                                                          \
    X(EVP_PKEY_free)                                                           \
    X(EVP_PKEY_get_raw_public_key)                                             \
    X(EVP_PKEY_new_raw_private_key)                                            \
    X(EVP_PKEY_new_raw_public_key)                                             \
    X(EVP_sha256)                                                              \
    X(HMAC)                                                                    \
    X(OPENSSL_cleanse)                                                         \
    X(OPENSSL_init_ssl)                                                        \
    X(SSL_CIPHER_find)                                                         \
    X(SSL_CTX_clear_options)                                                   \
    X(SSL_CTX_ctrl)                                                            \
    X(SSL_CTX_new)                                                             \
    X(SSL_CTX_set_ciphersuites)                                                \
    X(SSL_CTX_set_num_tickets)                                                 \
    X(SSL_CTX_set_psk_find_session_callback)                                   \
    X(SSL_CTX_set_psk_use_session_callback)                                    \
    X(SSL_CTX_set_verify)                                                      \
    X(SSL_SESSION_free)                                                        \
    X(SSL_SESSION_new)                                                         \
    X(SSL_SESSION_set1_master_key)                                             \
    X(SSL_SESSION_set_cipher)                                                  \
    X(SSL_SESSION_set_protocol_version)                                        \
    X(SSL_do_handshake)                                                        \
    X(SSL_free)                                                                \
    X(SSL_get_error)                                                           \
    X(SSL_get_ex_data)                                                         \
    X(SSL_key_update)                                                          \
    X(SSL_new)                                                                 \
    X(SSL_pending)                                                             \
    X(SSL_read_ex)                                                             \
    X(SSL_session_reused)                                                      \
    X(SSL_set_accept_state)                                                    \
    X(SSL_set_bio)                                                             \
    X(SSL_set_connect_state)                                                   \
    X(SSL_set_ex_data)                                                         \
    X(SSL_write_ex)                                                            \
    X(TLS_client_method)                                                       \
    X(TLS_server_method)

struct secure_library {
#define X(name) __typeof__(name) *name;
    SECURE_FUNCTIONS(X)
#undef X
    EVP_CIPHER *cipher; /* AES-128-GCM */
};

/* Loads it once. NULL: *why says what is missing; it may be NULL. */
const struct secure_library *secure_library(const char **why);

#endif
