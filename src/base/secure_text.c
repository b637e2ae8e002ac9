/* secure_text.c - what a fault of a secure channel says to the user, and what
 * an end without a key answers. See secure.h. */
#include "secure_channel.h"

#include <string.h>

const char *secure_fault_text(enum secure_fault fault)
{
    static const char *const texts[SECURE_FAULTS] = {
        [SECURE_FINE] = "nothing is wrong",
        [SECURE_NO_LIBRARY] = "this run has a key, and TLS needs OpenSSL 3 "
                              "(libssl.so.3), which is not installed here",
        [SECURE_NO_MEMORY] = "out of memory for its encryption",
        [SECURE_IS_PLAIN] =
            "it speaks in clear, and this run has a key: give it the token "
            "file of the run (PCCL_TOKEN_FILE, --token-file)",
        [SECURE_WANTS_KEY] =
            "it has no key, and this process has one: give it the same token "
            "file (PCCL_TOKEN_FILE, --token-file)",
        [SECURE_WRONG_KEY] =
            "the keys differ: both ends need the same token file, or this one "
            "a token issued with that key (PCCL_TOKEN_FILE, --token-file)",
        [SECURE_NO_TLS] = "what it sent is no greeting of this protocol",
        [SECURE_CUT] = "it closed the connection before it proved its key",
        [SECURE_TAMPERED] = "its bytes do not authenticate: they were changed "
                            "on the way",
        [SECURE_REFUSED] = "its key is not welcome any more",
    };
    return texts[fault];
}

void secure_put_alert(uint8_t record[SECURE_REFUSAL_SIZE], uint8_t alert)
{
    const uint8_t bytes[SECURE_REFUSAL_SIZE] = {RECORD_ALERT, 3, 3, 0, 2, 2,
                                                alert};
    memcpy(record, bytes, sizeof bytes);
}

bool secure_is_greeting(const uint8_t *bytes, size_t size)
{
    return size >= 2 && bytes[0] == RECORD_HANDSHAKE && bytes[1] == 3;
}

void secure_refuse(uint8_t answer[SECURE_REFUSAL_SIZE])
{
    secure_put_alert(answer, 71); /* insufficient_security */
}
