/* ccoip_inet.h - addresses, under the name that PCCL 1.0 gives this header.
 * pccl.h includes it. */
#ifndef CCOIP_INET_H
#define CCOIP_INET_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ccoip_inet_protocol_t {
    inetIPv4 = 0,
    inetIPv6 = 1
} ccoip_inet_protocol_t;

typedef struct ccoip_ipv4_address_t {
    uint8_t data[4]; /* network order */
} ccoip_ipv4_address_t;

typedef struct ccoip_ipv6_address_t {
    uint8_t data[16]; /* network order */
} ccoip_ipv6_address_t;

typedef struct ccoip_inet_address_t {
    ccoip_inet_protocol_t protocol;
    ccoip_ipv4_address_t ipv4;
    ccoip_ipv6_address_t ipv6;
} ccoip_inet_address_t;

typedef struct ccoip_socket_address_t {
    ccoip_inet_address_t inet;
    uint16_t port; /* host order */
} ccoip_socket_address_t;

#ifdef __cplusplus
}
#endif

#endif
