/* SPDX-License-Identifier: Apache-2.0 */
/* Fake quantization of a tensor: QuantizeLinear followed by DequantizeLinear, in
   floating point and with the same bits (format.h states the arithmetic). */
#ifndef QDQI_NUMBERS_ARITHMETIC_FAKE_H
#define QDQI_NUMBERS_ARITHMETIC_FAKE_H

#include "numbers/arithmetic/format.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * The parameters of quantization at one place of a model. Elements are ordered as
 * [outer][channels][inner], whatever the rank, with one scale for each channel; with
 * one channel there is one scale. With blocks, that many channels share scales, which
 * are ordered as [outer][blocks][inner].
 */
struct qdqi_fake {
    bool on; /* false: the tensor stays unchanged */
    enum qdqi_format format;
    const float *scales;
    const int32_t *zero_points; /* one for each scale; NULL: all are 0 */
    size_t channels, inner;     /* both are >= 1 */
    size_t block;               /* channels in a block; 0: there are no blocks */
    /* the elements of a constant whose numbers were chosen otherwise; NULL: they follow
       from the members above */
    const float *chosen;
};

/* The FakeQuants of a session, by slot. They may change from one run to the next. */
struct qdqi_fakes {
    struct qdqi_fake *rows;
    size_t n;
};

/* Quantizes elements first … first + n - 1 of a float32 tensor, which need not be
   aligned. `from` and `to` point to the whole tensors and may be equal. */
void qdqi_fake_quantize(const struct qdqi_fake *fake, const void *from, void *to,
                        size_t first, size_t n);

#endif
