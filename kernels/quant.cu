/* quant.cu - quantization on a GPU: one thread group per block of elements.
 *
 * A group of 128 threads keeps its 512 elements in registers, four each, so
 * that memory is read and written once; adjacent threads hold adjacent
 * elements. The arithmetic is that of the CPU (quant_core.h), compiled without
 * contraction; extremes are exact in any order. */
#include "../src/reduce/quant_core.h"

extern "C" {
#include "../src/reduce/quant_cuda.h"
}

#include <cuda_fp16.h>
#include <limits.h>

namespace
{

constexpr unsigned THREADS = 128;
constexpr unsigned EACH = QUANT_BLOCK / THREADS;
constexpr unsigned WARPS = THREADS / 32;

/* Selects functions of quant_real.h by type. */
template <typename W> struct core;

#define CORE(name, type, key_type)                                             \
    template <> struct core<type> {                                            \
        typedef key_type key_t;                                                \
        typedef quant_scale_##name scale_t;                                    \
        static __device__ key_t key(type x)                                    \
        {                                                                      \
            return (key_t)quant_key_##name(x);                                 \
        }                                                                      \
        static __device__ type from_key(key_t key)                             \
        {                                                                      \
            return quant_from_key_##name(key);                                 \
        }                                                                      \
        static __device__ bool finite(type x)                                  \
        {                                                                      \
            return quant_finite_##name(x);                                     \
        }                                                                      \
        static __device__ void header(int algorithm, type lo, type hi,         \
                                      bool special, type top, type *out)       \
        {                                                                      \
            quant_header_##name(algorithm, lo, hi, special, top, out);         \
        }                                                                      \
        static __device__ scale_t scale(int algorithm, const type *header,     \
                                        type top)                              \
        {                                                                      \
            return quant_scale_of_##name(algorithm, header, top);              \
        }                                                                      \
        static __device__ uint32_t code(type x, const scale_t *s)              \
        {                                                                      \
            return s->special ? quant_code_any_##name(x, s)                    \
                              : quant_code_##name(x, s);                       \
        }                                                                      \
        static __device__ type value(uint32_t code, const scale_t *s)          \
        {                                                                      \
            return s->special ? quant_value_any_##name(code, s)                \
                              : quant_value_##name(code, s);                   \
        }                                                                      \
    };

CORE(f32, float, int)
CORE(f64, double, long long)

/* Elements in memory: their wide type, and the conversions. `narrow` rounds;
 * `store` converts decoded values and keeps finite ones finite. */
template <typename W> struct wide_element {
    typedef W wide;
    W x;
    __device__ wide widen() const
    {
        return x;
    }
    static __device__ wide_element narrow(wide x)
    {
        return {x};
    }
    static __device__ wide saturate(wide x)
    {
        return x;
    }
};

__device__ float saturated(float x, float most)
{
    const bool beyond = fabsf(x) > most && fabsf(x) <= FLT_MAX;
    return beyond ? (x < 0 ? -most : most) : x;
}

struct f16_element {
    typedef float wide;
    uint16_t bits;
    __device__ wide widen() const
    {
        return __half2float(__ushort_as_half(bits));
    }
    /* the only NaN (reduce.h) */
    static __device__ f16_element narrow(wide x)
    {
        const uint16_t bits = __half_as_ushort(__float2half_rn(x));
        return {(uint16_t)(x == x ? bits : 0x7e00)};
    }
    static __device__ wide saturate(wide x)
    {
        return saturated(x, 65504);
    }
};

struct bf16_element {
    typedef float wide;
    uint16_t bits;
    __device__ wide widen() const
    {
        return __uint_as_float((uint32_t)bits << 16);
    }
    static __device__ bf16_element narrow(wide x)
    {
        const uint32_t b = __float_as_uint(x);
        return {
            (uint16_t)(x == x ? (b + 0x7fff + (b >> 16 & 1)) >> 16 : 0x7fc0)};
    }
    static __device__ wide saturate(wide x)
    {
        return saturated(x, __uint_as_float(0x7f7f0000));
    }
};

__device__ float one_nan(float x)
{
    return x == x ? x : __uint_as_float(0x7fc00000u);
}

__device__ double one_nan(double x)
{
    return x == x ? x : __longlong_as_double(0x7ff8000000000000ll);
}

/* Like the kernels of reduce.h. */
template <typename W> __device__ W reduce(int op, W x, W y)
{
    typedef core<W> c;
    if (op == REDOP_SUM || op == REDOP_AVG) return one_nan(x + y);
    if (x != x || y != y) return one_nan(x + y);
    const bool first = op == REDOP_MAX ? c::key(x) > c::key(y)
                                       : c::key(x) < c::key(y); /* -0 < +0 */
    return first ? x : y;
}

/* Minimum and maximum over the group, for all its threads. */
template <typename K> __device__ void extremes(K *lo, K *hi)
{
    __shared__ K least[WARPS], most[WARPS];
    for (int width = 16; width > 0; width /= 2) {
        const K a = __shfl_down_sync(0xffffffffu, *lo, width);
        const K b = __shfl_down_sync(0xffffffffu, *hi, width);
        *lo = a < *lo ? a : *lo;
        *hi = b > *hi ? b : *hi;
    }
    if (threadIdx.x % 32 == 0) {
        least[threadIdx.x / 32] = *lo;
        most[threadIdx.x / 32] = *hi;
    }
    __syncthreads();
    for (unsigned i = 0; i < WARPS; i++) {
        if (i == 0 || least[i] < *lo) *lo = least[i];
        if (i == 0 || most[i] > *hi) *hi = most[i];
    }
}

template <typename W, typename C> __device__ W largest_code()
{
    return (W)(C) ~(C)0;
}

/* Encodes one block, whose elements the threads hold. All threads must call it,
 * after they have read their part of `block`. */
template <typename W, typename C>
__device__ void encode_block(int algorithm, uint8_t *block, const W *x,
                             unsigned count)
{
    typedef core<W> c;
    typename c::key_t lo = c::key((W)INFINITY), hi = ~lo;
    bool special = false;
    for (unsigned i = 0; i < EACH; i++) {
        if (threadIdx.x + i * THREADS >= count) continue;
        const typename c::key_t key = c::key(x[i]);
        if (c::finite(x[i])) {
            lo = key < lo ? key : lo;
            hi = key > hi ? key : hi;
        } else {
            special = true;
        }
    }
    special = __syncthreads_or(special);
    extremes(&lo, &hi);
    if (lo > hi) lo = hi = 0;
    W header[2];
    c::header(algorithm, c::from_key(lo), c::from_key(hi), special,
              largest_code<W, C>(), header);
    const typename c::scale_t s =
        c::scale(algorithm, header, largest_code<W, C>());
    if (threadIdx.x < 2)
        reinterpret_cast<W *>(block)[threadIdx.x] = header[threadIdx.x];
    C *codes = reinterpret_cast<C *>(block + sizeof header);
    for (unsigned i = 0; i < EACH; i++) {
        const unsigned at = threadIdx.x + i * THREADS;
        if (at < count) codes[at] = (C)c::code(x[i], &s);
    }
}

template <typename W, typename C>
__device__ void decode_block(int algorithm, W *x, const uint8_t *block,
                             unsigned count)
{
    typedef core<W> c;
    const W header[2] = {reinterpret_cast<const W *>(block)[0],
                         reinterpret_cast<const W *>(block)[1]};
    const typename c::scale_t s =
        c::scale(algorithm, header, largest_code<W, C>());
    const C *codes = reinterpret_cast<const C *>(block + sizeof header);
    for (unsigned i = 0; i < EACH; i++) {
        const unsigned at = threadIdx.x + i * THREADS;
        if (at < count) x[i] = c::value(codes[at], &s);
    }
}

/* Number of elements of the group's block. */
__device__ unsigned block_count(uint64_t count)
{
    const uint64_t left = count - (uint64_t)blockIdx.x * QUANT_BLOCK;
    return left < QUANT_BLOCK ? (unsigned)left : QUANT_BLOCK;
}

template <typename W, typename C> __device__ uint64_t block_offset()
{
    return blockIdx.x * (2 * sizeof(W) + QUANT_BLOCK * (uint64_t)sizeof(C));
}

template <typename E, typename C>
__global__ void __launch_bounds__(THREADS)
    encode_kernel(int algorithm, uint8_t *codes, const E *from, uint64_t count)
{
    typedef typename E::wide W;
    const unsigned n = block_count(count);
    W x[EACH];
    from += (uint64_t)blockIdx.x * QUANT_BLOCK;
    for (unsigned i = 0; i < EACH; i++) {
        const unsigned at = threadIdx.x + i * THREADS;
        if (at < n) x[i] = from[at].widen();
    }
    encode_block<W, C>(algorithm, codes + block_offset<W, C>(), x, n);
}

template <typename E, typename C>
__global__ void __launch_bounds__(THREADS)
    decode_kernel(int algorithm, E *to, const uint8_t *codes, uint64_t count)
{
    typedef typename E::wide W;
    const unsigned n = block_count(count);
    W x[EACH];
    decode_block<W, C>(algorithm, x, codes + block_offset<W, C>(), n);
    to += (uint64_t)blockIdx.x * QUANT_BLOCK;
    for (unsigned i = 0; i < EACH; i++) {
        const unsigned at = threadIdx.x + i * THREADS;
        if (at < n) to[at] = E::narrow(E::saturate(x[i]));
    }
}

template <typename E, typename C>
__global__ void __launch_bounds__(THREADS)
    combine_kernel(int algorithm, int op, uint8_t *out, const uint8_t *codes,
                   const E *own, uint64_t count, uint32_t divisor)
{
    typedef typename E::wide W;
    const unsigned n = block_count(count);
    W x[EACH];
    decode_block<W, C>(algorithm, x, codes + block_offset<W, C>(), n);
    own += (uint64_t)blockIdx.x * QUANT_BLOCK;
    for (unsigned i = 0; i < EACH; i++) {
        const unsigned at = threadIdx.x + i * THREADS;
        if (at >= n) continue;
        x[i] = reduce(op, x[i], own[at].widen());
        if (divisor > 1) x[i] = one_nan(x[i] / (W)divisor);
        if (divisor > 0) x[i] = E::narrow(x[i]).widen();
    }
    encode_block<W, C>(algorithm, out + block_offset<W, C>(), x, n);
}

/* Arguments of a kernel launch. */
struct job {
    enum { ENCODE, DECODE, COMBINE } what;
    int algorithm, op;
    void *to;
    const void *from, *own;
    uint64_t count;
    uint32_t divisor;
    cudaStream_t stream;
};

template <typename E, typename C> void launch(const job &j)
{
    const unsigned groups =
        (unsigned)((j.count + QUANT_BLOCK - 1) / QUANT_BLOCK);
    const E *own = static_cast<const E *>(j.own);
    uint8_t *out = static_cast<uint8_t *>(j.to);
    const uint8_t *codes = static_cast<const uint8_t *>(j.from);
    if (j.what == job::ENCODE)
        encode_kernel<E, C><<<groups, THREADS, 0, j.stream>>>(
            j.algorithm, out, static_cast<const E *>(j.from), j.count);
    else if (j.what == job::DECODE)
        decode_kernel<E, C><<<groups, THREADS, 0, j.stream>>>(
            j.algorithm, static_cast<E *>(j.to), codes, j.count);
    else
        combine_kernel<E, C><<<groups, THREADS, 0, j.stream>>>(
            j.algorithm, j.op, out, codes, own, j.count, j.divisor);
}

template <typename E> void launch_wide(size_t width, const job &j)
{
    if (width == 1)
        launch<E, uint8_t>(j);
    else
        launch<E, uint16_t>(j);
}

int run(const struct quant *q, const job &j)
{
    const uint64_t groups = (j.count + QUANT_BLOCK - 1) / QUANT_BLOCK;
    const bool narrow = q->code == DTYPE_U8 || q->code == DTYPE_I8;
    const bool middle = q->code == DTYPE_U16 || q->code == DTYPE_I16;
    const size_t width = narrow ? 1 : middle ? 2 : 4;
    if (j.count == 0) return (int)cudaSuccess;
    if (groups > INT_MAX) return (int)cudaErrorInvalidValue;
    if (q->source == DTYPE_F64 && width == 4)
        launch<wide_element<double>, uint32_t>(j);
    else if (q->source == DTYPE_F64)
        launch_wide<wide_element<double>>(width, j);
    else if (q->source == DTYPE_F32 && width <= 2)
        launch_wide<wide_element<float>>(width, j);
    else if (q->source == DTYPE_F16 && width == 1)
        launch<f16_element, uint8_t>(j);
    else if (q->source == DTYPE_BF16 && width == 1)
        launch<bf16_element, uint8_t>(j);
    else
        return (int)cudaErrorInvalidValue;
    return (int)cudaGetLastError();
}

} // namespace

int quant_cuda_encode(const struct quant *q, void *codes, const void *from,
                      uint64_t count, void *stream)
{
    return run(q, {job::ENCODE, (int)q->algorithm, 0, codes, from, nullptr,
                   count, 0, static_cast<cudaStream_t>(stream)});
}

int quant_cuda_decode(const struct quant *q, void *to, const void *codes,
                      uint64_t count, void *stream)
{
    return run(q, {job::DECODE, (int)q->algorithm, 0, to, codes, nullptr, count,
                   0, static_cast<cudaStream_t>(stream)});
}

int quant_cuda_combine(const struct quant *q, enum redop op, void *out,
                       const void *codes, const void *own, uint64_t count,
                       uint32_t divisor, void *stream)
{
    return run(q, {job::COMBINE, (int)q->algorithm, (int)op, out, codes, own,
                   count, divisor, static_cast<cudaStream_t>(stream)});
}
