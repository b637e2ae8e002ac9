/* secure_greeting.c - the handshake of a secure channel, by OpenSSL: from the
 * key that both ends have to the secrets of the records (rules K2 to K5). */
#include "secure_channel.h"
#include "secure_hex.h"
#include "secure_library.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { CLIENT_HELLO = 1 };

/* ------------------------------------------------------- OpenSSL asks for keys
 */

static SSL_SESSION *session_of(SSL *ssl, const uint8_t key[SECURE_KEY_SIZE])
{
    static const unsigned char suite[] = {0x13, 0x01};
    const struct secure_library *l = secure_library(NULL);
    const SSL_CIPHER *cipher = l->SSL_CIPHER_find(ssl, suite);
    SSL_SESSION *session = l->SSL_SESSION_new();
    if (session && cipher &&
        l->SSL_SESSION_set1_master_key(session, key, SECURE_KEY_SIZE) == 1 &&
        l->SSL_SESSION_set_cipher(session, cipher) == 1 &&
        l->SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1)
        return session;
    l->SSL_SESSION_free(session);
    return NULL;
}

static int use_key(SSL *ssl, const EVP_MD *digest, const unsigned char **id,
                   size_t *size, SSL_SESSION **session)
{
    (void)digest;
    const struct secure *s = secure_library(NULL)->SSL_get_ex_data(ssl, 0);
    const struct secure_psk *own = &s->keys->own;
    *id = (const unsigned char *)own->identity;
    *size = strlen(own->identity);
    *session = session_of(ssl, own->key);
    return *session != NULL;
}

static enum secure_fault look_up(const struct secure *s,
                                 uint8_t key[SECURE_KEY_SIZE])
{
    const struct secure_keys *k = s->keys;
    if (k->find) return k->find(k->user, s->identity, key);
    if (strcmp(k->own.identity, s->identity) != 0) return SECURE_WRONG_KEY;
    memcpy(key, k->own.key, SECURE_KEY_SIZE);
    return SECURE_FINE;
}

static int find_key(SSL *ssl, const unsigned char *id, size_t size,
                    SSL_SESSION **session)
{
    const struct secure_library *l = secure_library(NULL);
    struct secure *s = l->SSL_get_ex_data(ssl, 0);
    uint8_t key[SECURE_KEY_SIZE];
    *session = NULL;
    s->fault = SECURE_WRONG_KEY;
    if (size >= SECURE_NAME_SIZE || memchr(id, '\0', size)) return 0;
    memcpy(s->identity, id, size);
    s->identity[size] = '\0';
    s->fault = look_up(s, key);
    if (s->fault == SECURE_FINE) *session = session_of(ssl, key);
    l->OPENSSL_cleanse(key, sizeof key);
    return *session != NULL;
}

/* OpenSSL tells secrets in this form: a label, the client's random, and the
 * secret, in hexadecimal. */
static void take_secret(const SSL *ssl, const char *line)
{
    static const char *const labels[] = {"CLIENT_TRAFFIC_SECRET_0 ",
                                         "SERVER_TRAFFIC_SECRET_0 "};
    struct secure *s = secure_library(NULL)->SSL_get_ex_data(ssl, 0);
    for (size_t i = 0; i < ARRAY_COUNT(labels); i++) {
        size_t skip = strlen(labels[i]);
        if (strncmp(line, labels[i], skip) != 0) continue;
        const char *hex = strchr(line + skip, ' ');
        if (!hex || !hex_read(hex + 1, s->traffic[i].secret, RECORD_SECRET))
            return;
        s->traffic[i].known = true;
    }
}

/* --------------------------------------------------------------- contexts */

static SSL_CTX *contexts[2]; /* indexed by the side; made once */

static SSL_CTX *context_new(const SSL_METHOD *method)
{
    const struct secure_library *l = secure_library(NULL);
    SSL_CTX *c = l->SSL_CTX_new(method);
    if (!c) return NULL;
    (void)l->SSL_CTX_ctrl(c, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_3_VERSION,
                          NULL);
    (void)l->SSL_CTX_ctrl(c, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF,
                          NULL);
    (void)l->SSL_CTX_clear_options(c, SSL_OP_ENABLE_MIDDLEBOX_COMPAT |
                                          SSL_OP_ALLOW_NO_DHE_KEX);
    (void)l->SSL_CTX_set_num_tickets(c, 0);
    l->SSL_CTX_set_keylog_callback(c, take_secret);
    if (l->SSL_CTX_set_ciphersuites(c, "TLS_AES_128_GCM_SHA256") == 1) return c;
    return NULL;
}

static void contexts_make(void)
{
    const struct secure_library *l = secure_library(NULL);
    contexts[SECURE_DIALER] = context_new(l->TLS_client_method());
    contexts[SECURE_ACCEPTOR] = context_new(l->TLS_server_method());
    if (!contexts[SECURE_DIALER] || !contexts[SECURE_ACCEPTOR]) return;
    /* There is no certificate that it could accept. */
    l->SSL_CTX_set_verify(contexts[SECURE_DIALER], SSL_VERIFY_PEER, NULL);
    l->SSL_CTX_set_psk_use_session_callback(contexts[SECURE_DIALER], use_key);
    l->SSL_CTX_set_psk_find_session_callback(contexts[SECURE_ACCEPTOR],
                                             find_key);
}

static bool ssl_make(struct secure *s)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const struct secure_library *l = secure_library(NULL);
    (void)pthread_once(&once, contexts_make);
    if (!contexts[s->side]) return false;
    s->ssl = l->SSL_new(contexts[s->side]);
    s->from = l->BIO_new(l->BIO_s_mem());
    s->to = l->BIO_new(l->BIO_s_mem());
    if (!s->ssl || !s->from || !s->to) {
        if (s->from) l->BIO_free(s->from);
        if (s->to) l->BIO_free(s->to);
        if (s->ssl) l->SSL_free(s->ssl);
        s->ssl = NULL;
        return false;
    }
    l->SSL_set_bio(s->ssl, s->from, s->to);
    (void)l->SSL_set_ex_data(s->ssl, 0, s);
    if (s->side == SECURE_DIALER)
        l->SSL_set_connect_state(s->ssl);
    else
        l->SSL_set_accept_state(s->ssl);
    return true;
}

void secure_greeting_end(struct secure *s)
{
    if (s->ssl) secure_library(NULL)->SSL_free(s->ssl);
    s->ssl = NULL;
    if (secure_library(NULL))
        secure_library(NULL)->OPENSSL_cleanse(s->traffic, sizeof s->traffic);
}

/* ------------------------------------------------------------------ steps */

static void take_output(struct secure *s)
{
    const struct secure_library *l = secure_library(NULL);
    long size = l->BIO_ctrl(s->to, BIO_CTRL_PENDING, 0, NULL);
    uint8_t *to = size > 0 ? secure_more(s, (size_t)size) : NULL;
    if (!to) return;
    int n = l->BIO_read(s->to, to, (int)size);
    if (n > 0) s->out_end += (size_t)n;
}

static void finish(struct secure *s)
{
    const struct secure_library *l = secure_library(NULL);
    enum secure_side other =
        s->side == SECURE_DIALER ? SECURE_ACCEPTOR : SECURE_DIALER;
    bool proved = l->SSL_session_reused(s->ssl) == 1 &&
                  s->traffic[s->side].known && s->traffic[other].known;
    if (!proved) {
        secure_break(s, SECURE_NO_TLS);
    } else if (secure_cipher_open(&s->tx, s->traffic[s->side].secret, true) &&
               secure_cipher_open(&s->rx, s->traffic[other].secret, false)) {
        s->state = SECURE_OPEN;
    } else {
        secure_break(s, SECURE_NO_MEMORY);
    }
    secure_greeting_end(s);
}

static enum secure_fault fault_of(const struct secure *s)
{
    const struct secure_library *l = secure_library(NULL);
    unsigned long error = l->ERR_peek_error();
    if (s->fault != SECURE_FINE) return s->fault; /* the look-up's */
    if (ERR_GET_REASON(error) == SSL_R_BINDER_DOES_NOT_VERIFY)
        return SECURE_WRONG_KEY;
    return s->greetings > 1 ? SECURE_TAMPERED : SECURE_NO_TLS;
}

static void step(struct secure *s)
{
    const struct secure_library *l = secure_library(NULL);
    l->ERR_clear_error();
    int rc = l->SSL_do_handshake(s->ssl);
    if (rc == 1) {
        take_output(s);
        finish(s);
    } else if (l->SSL_get_error(s->ssl, rc) == SSL_ERROR_WANT_READ) {
        take_output(s);
    } else {
        enum secure_fault fault = fault_of(s);
        s->fault = SECURE_FINE;
        secure_break(s, fault);
        secure_greeting_end(s);
    }
    l->ERR_clear_error();
}

void secure_greeting_begin(struct secure *s)
{
    if (ssl_make(s))
        step(s);
    else
        secure_break(s, SECURE_NO_MEMORY);
}

/* An alert in clear is the first thing that an acceptor says, or forged. */
static enum secure_fault fault_of_alert(uint8_t alert)
{
    switch (alert) {
    case 71: /* insufficient_security */
        return SECURE_WANTS_KEY;
    case 115: /* unknown_psk_identity */
        return SECURE_WRONG_KEY;
    case 49: /* access_denied */
        return SECURE_REFUSED;
    default:
        return SECURE_NO_TLS;
    }
}

/* What the first byte and then the head of a record say. */
static enum secure_fault look_at(const struct secure *s, const uint8_t *in,
                                 size_t have)
{
    bool acceptor = s->side == SECURE_ACCEPTOR;
    if (s->greetings == 0 && in[0] != RECORD_HANDSHAKE &&
        (acceptor || in[0] != RECORD_ALERT))
        return acceptor ? SECURE_IS_PLAIN : SECURE_WANTS_KEY;
    if (have < RECORD_HEAD) return SECURE_FINE;
    size_t size = (size_t)in[3] << 8 | in[4];
    bool known = in[0] == RECORD_HANDSHAKE || in[0] == RECORD_DATA ||
                 in[0] == RECORD_ALERT;
    if (!known || in[1] != 3 || size == 0 ||
        size > SECURE_GREETING_MAX - RECORD_HEAD)
        return s->greetings > 0 ? SECURE_TAMPERED : SECURE_NO_TLS;
    if (in[0] == RECORD_ALERT && have >= RECORD_HEAD + 2)
        return acceptor ? SECURE_CUT : fault_of_alert(in[RECORD_HEAD + 1]);
    if (acceptor && s->greetings == 0 && have > RECORD_HEAD &&
        in[RECORD_HEAD] != CLIENT_HELLO)
        return SECURE_NO_TLS;
    return SECURE_FINE;
}

void secure_greeting_go_on(struct secure *s)
{
    const struct secure_library *l = secure_library(NULL);
    while (s->state == SECURE_GREETING && s->in_begin < s->in_end) {
        const uint8_t *in = s->in + s->in_begin;
        size_t have = s->in_end - s->in_begin;
        enum secure_fault fault = look_at(s, in, have);
        if (fault != SECURE_FINE) {
            secure_break(s, fault);
            return;
        }
        if (!secure_has_input(s)) return;
        size_t size = RECORD_HEAD + ((size_t)in[3] << 8 | in[4]);
        s->greetings++;
        if (!s->ssl && !ssl_make(s)) {
            secure_break(s, SECURE_NO_MEMORY);
            return;
        }
        if (l->BIO_write(s->from, in, (int)size) != (int)size) {
            secure_break(s, SECURE_NO_MEMORY);
            return;
        }
        s->in_begin += size;
        step(s);
    }
}
