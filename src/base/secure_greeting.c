/* secure_greeting.c - what a secure channel is for OpenSSL: where its bytes
 * come from and go to, and the handshake by the key that both ends have (rules
 * K2 to K5). */
#include "secure_channel.h"
#include "hex.h"
#include "secure_library.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    CLIENT_HELLO = 1,
    /* Answers to new keys that the other end asks for in a row, beside what is
     * written; it reads none of them. */
    OUT_MOST = 1 << 18,
};

bool secure_is_available(const char **why)
{
    return secure_library(why) != NULL;
}

void secure_psk_of_key(struct secure_psk *psk,
                       const uint8_t key[SECURE_KEY_SIZE])
{
    static const unsigned char label[] = "the identity of a run's key";
    const struct secure_library *l = secure_library(NULL);
    unsigned char digest[32] = {0};
    memset(psk, 0, sizeof *psk);
    memcpy(psk->key, key, SECURE_KEY_SIZE);
    if (!l || !l->HMAC(l->EVP_sha256(), key, SECURE_KEY_SIZE, label,
                       sizeof label - 1, digest, NULL))
        return; /* no channel opens without the library */
    memcpy(psk->identity, "run-", 4);
    hex_print(digest, 16, psk->identity + 4);
}

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

/* ------------------------------------------------------------------ bytes
 *
 * OpenSSL reads what the channel has received from where it lies, one whole
 * record at a time, and writes to where the channel sends from. */

static int give_bytes(BIO *bio, char *to, int size)
{
    const struct secure_library *l = secure_library(NULL);
    struct secure *s = l->BIO_get_data(bio);
    size_t n = s->in_given - s->in_begin;
    l->BIO_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
    if (n == 0) {
        l->BIO_set_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY);
        return -1;
    }
    if (n > (size_t)size) n = (size_t)size;
    memcpy(to, s->in + s->in_begin, n);
    s->in_begin += n;
    return (int)n;
}

static int take_bytes(BIO *bio, const char *from, int size)
{
    struct secure *s = secure_library(NULL)->BIO_get_data(bio);
    uint8_t *to = s->state == SECURE_BROKEN || s->out_end > OUT_MOST
                      ? NULL
                      : secure_more(s, (size_t)size);
    if (!to) return -1;
    memcpy(to, from, (size_t)size);
    s->out_end += (size_t)size;
    return size;
}

static long control(BIO *bio, int what, long number, void *more)
{
    (void)bio;
    (void)number;
    (void)more;
    return what == BIO_CTRL_FLUSH;
}

/* --------------------------------------------------------------- contexts */

static SSL_CTX *contexts[2]; /* indexed by the side; made once */
static BIO_METHOD *method;

static SSL_CTX *context_new(const SSL_METHOD *side)
{
    const struct secure_library *l = secure_library(NULL);
    SSL_CTX *c = l->SSL_CTX_new(side);
    if (!c) return NULL;
    (void)l->SSL_CTX_ctrl(c, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_3_VERSION,
                          NULL);
    (void)l->SSL_CTX_ctrl(c, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF,
                          NULL);
    (void)l->SSL_CTX_clear_options(c, SSL_OP_ENABLE_MIDDLEBOX_COMPAT |
                                          SSL_OP_ALLOW_NO_DHE_KEX);
    (void)l->SSL_CTX_set_num_tickets(c, 0);
    /* An idle connection keeps no record's memory. */
    (void)l->SSL_CTX_ctrl(c, SSL_CTRL_MODE, SSL_MODE_RELEASE_BUFFERS, NULL);
    if (l->SSL_CTX_set_ciphersuites(c, "TLS_AES_128_GCM_SHA256") == 1) return c;
    return NULL;
}

static void contexts_make(void)
{
    const struct secure_library *l = secure_library(NULL);
    method = l->BIO_meth_new(BIO_TYPE_SOURCE_SINK, "channel");
    if (!method || l->BIO_meth_set_read(method, give_bytes) != 1 ||
        l->BIO_meth_set_write(method, take_bytes) != 1 ||
        l->BIO_meth_set_ctrl(method, control) != 1)
        return;
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
    BIO *bio = s->ssl ? l->BIO_new(method) : NULL;
    if (!bio) {
        secure_greeting_end(s);
        return false;
    }
    l->BIO_set_data(bio, s);
    l->BIO_set_init(bio, 1);
    l->SSL_set_bio(s->ssl, bio, bio);
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
}

/* ------------------------------------------------------------------ steps */

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
    if (rc == 1 && l->SSL_session_reused(s->ssl) == 1) {
        s->state = SECURE_OPEN;
    } else if (rc == 1 || l->SSL_get_error(s->ssl, rc) != SSL_ERROR_WANT_READ) {
        enum secure_fault fault = rc == 1 ? SECURE_NO_TLS : fault_of(s);
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
    while (s->state == SECURE_GREETING && s->in_begin < s->in_end) {
        const uint8_t *in = s->in + s->in_begin;
        size_t have = s->in_end - s->in_begin;
        enum secure_fault fault = look_at(s, in, have);
        if (fault != SECURE_FINE) {
            secure_break(s, fault);
            return;
        }
        if (!secure_has_input(s)) return;
        s->greetings++;
        if (!s->ssl && !ssl_make(s)) {
            secure_break(s, SECURE_NO_MEMORY);
            return;
        }
        secure_give_record(s);
        step(s);
    }
}

/* ---------------------------------------------------------------- records */

bool secure_is_pending(const struct secure *s)
{
    return secure_library(NULL)->SSL_pending(s->ssl) > 0;
}

/* One SSL_read() takes bytes of one record at most, and OpenSSL is given no
 * part of one. */
size_t secure_read_record(struct secure *s, uint8_t *to, size_t size)
{
    const struct secure_library *l = secure_library(NULL);
    size_t n = 0;
    secure_give_record(s);
    l->ERR_clear_error();
    int rc = l->SSL_read_ex(s->ssl, to, size, &n);
    if (rc == 1) return n;
    /* Without an error the record was a new key of the other end. */
    if (s->state == SECURE_OPEN &&
        l->SSL_get_error(s->ssl, rc) != SSL_ERROR_WANT_READ)
        secure_break(s, SECURE_TAMPERED);
    l->ERR_clear_error();
    return 0;
}

void secure_rekey(struct secure *s)
{
    const struct secure_library *l = secure_library(NULL);
    s->records = 0;
    if (l->SSL_key_update(s->ssl, SSL_KEY_UPDATE_NOT_REQUESTED) != 1)
        secure_break(s, SECURE_NO_MEMORY);
}

bool secure_write_records(struct secure *s, const uint8_t *from, size_t size)
{
    const struct secure_library *l = secure_library(NULL);
    size_t n = 0;
    if (size == 0) return true;
    if (s->records >= RECORD_LIMIT) secure_rekey(s);
    s->records += (unsigned)((size + RECORD_MOST - 1) / RECORD_MOST);
    l->ERR_clear_error();
    if (s->state == SECURE_OPEN && l->SSL_write_ex(s->ssl, from, size, &n) == 1)
        return n == size;
    l->ERR_clear_error();
    secure_break(s, SECURE_NO_MEMORY);
    return false;
}
