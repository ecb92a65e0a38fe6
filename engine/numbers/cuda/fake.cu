/* SPDX-License-Identifier: Apache-2.0 */
/* Fake quantization. The arithmetic is in numbers/arithmetic/format.h; this file has the loops. */
#include "numbers/cuda/launch.h"

namespace
{

enum { THREADS = 256, BLOCKS = 4 /* blocks per multiprocessor */ };

/* --- scales ----------------------------------------------------------------- */

/* The scales of the elements. */
struct layout {
    const float *scales;
    const int32_t *zero_points;
    size_t channels, inner;
    /* valid when all indices are below 2^31 */
    struct qdqi_cuda_divider by_channels, by_inner;
};

/* The scale and zero point of a thread's current element. */
struct scale {
    float value;
    int32_t zero_point;

    __device__ __forceinline__ void read(const struct layout &l, size_t channel)
    {
        value = __ldg(&l.scales[channel]);
        zero_point = l.zero_points ? __ldg(&l.zero_points[channel]) : 0;
    }
};

/* --- formats ---------------------------------------------------------------- */

struct integers {
    float lowest, highest;

    __device__ __forceinline__ float operator()(float x, const struct scale &s) const
    {
        float zero = (float)s.zero_point;
        return qdqi_fake_integer(x, s.value, lowest - zero, highest - zero);
    }
};

struct floats {
    float highest;
    int fraction_bits, min_exponent;

    __device__ __forceinline__ float operator()(float x, const struct scale &s) const
    {
        return qdqi_fake_float(x, s.value, highest, fraction_bits, min_exponent);
    }
};

/* --- finding the scale --------------------------------------------------- */

/* All elements have the same scale. */
struct per_tensor {
    struct scale scale;

    __device__ __forceinline__ per_tensor(const struct layout &l)
    {
        scale.read(l, 0);
    }

    __device__ __forceinline__ void seek(const struct layout &, size_t)
    {
    }

    __device__ __forceinline__ void next(const struct layout &)
    {
    }
};

/* Each index of the middle axis has its own scale. It is looked up for the first
   element of a vector and updated from one element to the next. */
template <typename Index> struct per_channel {
    struct scale scale;
    Index channel, left; /* left: elements until the next channel begins */

    __device__ __forceinline__ per_channel(const struct layout &)
    {
    }

    __device__ __forceinline__ void found(const struct layout &l, Index new_channel,
                                          Index position)
    {
        channel = new_channel;
        left = (Index)l.inner - position;
        scale.read(l, channel);
    }

    __device__ __forceinline__ void next(const struct layout &l)
    {
        if (--left > 0)
            return;
        found(l, channel + 1 < (Index)l.channels ? channel + 1 : 0, 0);
    }
};

/* The same for tensors whose indices are all below 2^31: 32-bit arithmetic suffices. */
struct per_channel_narrow : per_channel<uint32_t> {
    using per_channel::per_channel;

    __device__ __forceinline__ void seek(const struct layout &l, size_t i)
    {
        uint32_t run = qdqi_cuda_divide((uint32_t)i, l.by_inner);
        uint32_t round = qdqi_cuda_divide(run, l.by_channels);
        found(l, run - round * l.by_channels.d, (uint32_t)i - run * l.by_inner.d);
    }
};

/* The same for small tensors in which no vector crosses the boundary of a channel, so that
   all elements of a vector have one scale. */
struct per_channel_vectors : per_channel_narrow {
    using per_channel_narrow::per_channel_narrow;

    __device__ __forceinline__ void next(const struct layout &)
    {
    }
};

struct per_channel_wide : per_channel<size_t> {
    using per_channel::per_channel;

    __device__ __forceinline__ void seek(const struct layout &l, size_t i)
    {
        size_t run = i / l.inner;
        found(l, run % l.channels, i - run * l.inner);
    }
};

/* --- the loops ----------------------------------------------------------- */

template <typename T, typename Format> struct work {
    const T *in; /* may be equal to out: each element is read before it is written */
    T *out;
    size_t n;
    struct qdqi_cuda_span span;
    Format format;
    struct layout layout;
};

template <typename T, typename Format, typename Scales>
__device__ __forceinline__ void
one(const struct work<T, Format> &w, Scales &scales, size_t i)
{
    scales.seek(w.layout, i);
    qdqi_store(w.format(qdqi_load(w.in[i]), scales.scale), &w.out[i]);
}

/* Quantizes the vector whose first element has index i. */
template <typename T, typename Format, typename Scales>
__device__ __forceinline__ void
several(const struct work<T, Format> &w, Scales &scales, size_t i,
        const qdqi_vector<T> &in)
{
    enum { WIDTH = 16 / sizeof(T) };
    qdqi_vector<T> out;
    scales.seek(w.layout, i);
#pragma unroll
    for (int j = 0; j < WIDTH; j++) {
        if (j > 0)
            scales.next(w.layout);
        qdqi_store(w.format(qdqi_load(in.at[j]), scales.scale), &out.at[j]);
    }
    *(qdqi_vector<T> *)&w.out[i] = out;
}

template <typename T, typename Format, typename Scales>
__global__ void
__launch_bounds__(THREADS, BLOCKS) fake(const struct work<T, Format> w)
{
    enum { WIDTH = 16 / sizeof(T) };
    const size_t step = qdqi_threads(), head = w.span.head, vectors = w.span.vectors;
    const qdqi_vector<T> *body = (const qdqi_vector<T> *)(w.in + head);
    Scales scales(w.layout);
    for (size_t i = qdqi_thread(); i < head; i += step)
        one(w, scales, i);
    if (qdqi_thread() < w.span.tail)
        one(w, scales, w.n - w.span.tail + qdqi_thread());
    size_t i = qdqi_thread();
    for (; i + (QDQI_IN_FLIGHT - 1) * step < vectors; i += QDQI_IN_FLIGHT * step) {
        qdqi_vector<T> v[QDQI_IN_FLIGHT];
#pragma unroll
        for (int k = 0; k < QDQI_IN_FLIGHT; k++)
            v[k] = body[i + k * step];
#pragma unroll
        for (int k = 0; k < QDQI_IN_FLIGHT; k++)
            several(w, scales, head + (i + k * step) * WIDTH, v[k]);
    }
    for (; i < vectors; i += step)
        several(w, scales, head + i * WIDTH, body[i]);
}

/* --- launching -------------------------------------------------------------- */

template <typename Scales, typename T, typename Format>
int
launch_with(const struct work<T, Format> &w, void *stream)
{
    unsigned blocks =
        qdqi_blocks(w.n, 16 / sizeof(T) * QDQI_IN_FLIGHT, THREADS, BLOCKS);
    if (blocks > 0)
        qdqi_launch(fake<T, Format, Scales>, blocks, THREADS, stream, w);
    return (int)cudaGetLastError();
}

template <typename T, typename Format>
int
launch(const struct work<T, Format> &w, void *stream)
{
    if (w.layout.channels == 1)
        return launch_with<per_tensor>(w, stream);
    if (w.n >= (size_t)1 << 31)
        return launch_with<per_channel_wide>(w, stream);
    if (w.span.head == 0 && w.layout.inner % (16 / sizeof(T)) == 0)
        return launch_with<per_channel_vectors>(w, stream);
    return launch_with<per_channel_narrow>(w, stream);
}

struct layout
layout_of(const struct qdqi_grid *g)
{
    struct layout l = {g->scales, g->zero_points, g->channels, g->inner, {}, {}};
    l.by_channels = qdqi_cuda_divider_of((uint32_t)g->channels);
    l.by_inner = qdqi_cuda_divider_of((uint32_t)g->inner);
    return l;
}

/* Vectors are used if input and output have the same alignment. Otherwise the kernel
   processes single elements. */
template <typename T, typename Format>
int
begin(const struct qdqi_grid *g, const T *in, T *out, const Format &format,
      void *stream)
{
    struct work<T, Format> w = {
        in, out, g->outer * g->channels * g->inner, {}, format, layout_of(g)
    };
    w.span = qdqi_cuda_span_of((uintptr_t)in, w.n, sizeof(T));
    if (((uintptr_t)in ^ (uintptr_t)out) & 15)
        w.span = {w.n, 0, 0};
    return launch(w, stream);
}

template <typename T>
int
begin(const struct qdqi_grid *g, const T *in, T *out, void *stream)
{
    switch (g->format) {
#define QDQ_FORMAT(name, text, bits, lowest, highest, fraction, min, ...)      \
    case QDQI_TO_##name:                                                       \
        return fraction > 0                                                    \
                   ? begin(g, in, out, floats{highest, fraction, min}, stream) \
                   : begin(g, in, out, integers{lowest, highest}, stream);
#include "qdq/formats.h"
#undef QDQ_FORMAT
    default:
        return cudaErrorInvalidValue;
    }
}

} // namespace

int
qdqi_cuda_fake(int type, const struct qdqi_grid *g, const void *in, void *out,
               void *stream)
{
    if (!qdqi_is_type(type))
        return cudaErrorInvalidValue;
    if (g->outer == 0 || g->channels == 0 || g->inner == 0)
        return cudaSuccess;
    return type == QDQI_FLOAT16
               ? begin(g, (const uint16_t *)in, (uint16_t *)out, stream)
               : begin(g, (const float *)in, (float *)out, stream);
}
