/* stream.h - copies with stores that bypass the caches.
 *
 * Data that are not read again soon need neither be loaded into the caches
 * before the store nor displace other data there. */
#ifndef PCCL_STREAM_H
#define PCCL_STREAM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>

static inline void stream_copy(void *to, const void *from, size_t size)
{
    enum { LINE = 64 };
    uint8_t *out = to;
    const uint8_t *in = from;
    size_t head = -(uintptr_t)out % LINE;
    if (head > size) head = size;
    memcpy(out, in, head);
    size_t end = head + (size - head) / LINE * LINE;
    for (size_t i = head; i < end; i += LINE) {
        __m128i a = _mm_loadu_si128((const __m128i *)(const void *)(in + i));
        __m128i b =
            _mm_loadu_si128((const __m128i *)(const void *)(in + i + 16));
        __m128i c =
            _mm_loadu_si128((const __m128i *)(const void *)(in + i + 32));
        __m128i d =
            _mm_loadu_si128((const __m128i *)(const void *)(in + i + 48));
        _mm_stream_si128((__m128i *)(void *)(out + i), a);
        _mm_stream_si128((__m128i *)(void *)(out + i + 16), b);
        _mm_stream_si128((__m128i *)(void *)(out + i + 32), c);
        _mm_stream_si128((__m128i *)(void *)(out + i + 48), d);
    }
    memcpy(out + end, in + end, size - end);
    _mm_sfence(); /* before any store that publishes the data */
}
#else
static inline void stream_copy(void *to, const void *from, size_t size)
{
    memcpy(to, from, size);
}
#endif

#endif
