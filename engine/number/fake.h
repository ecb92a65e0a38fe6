/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fake quantization: a tensor as it comes out of QuantizeLinear and DequantizeLinear, in
 * floating point, bit for bit (format.h states the arithmetic).
 */
#ifndef QDQI_NUMBER_FAKE_H
#define QDQI_NUMBER_FAKE_H

#include "number/format.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * The parameters of quantization at one place of a model. Elements are ordered as
 * [outer][channels][inner], whatever the rank, with one scale for each channel; with
 * one channel there is one scale. With blocks, that many channels share scales, which
 * are ordered as [outer][blocks][inner].
 */
struct qdqi_fake {
    bool on; /* off: the tensor as it is */
    enum qdqi_format format;
    const float *scales;
    const int32_t *zero_points; /* as many; NULL: all 0 */
    size_t channels, inner;     /* >= 1 */
    size_t block;               /* 0: there are none */
};

/* Those of a session, by slot. They may change from one run to the next. */
struct qdqi_fakes {
    struct qdqi_fake *rows;
    size_t n;
};

/*
 * Elements first … first + n - 1 of a tensor of float32 at any alignment; `to` is the
 * whole tensor's place, as `from` is, and may be the same.
 */
void qdqi_fake_quantize(const struct qdqi_fake *fake, const void *from, void *to,
                        size_t first, size_t n);

#endif
