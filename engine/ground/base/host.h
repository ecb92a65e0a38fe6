/* SPDX-License-Identifier: Apache-2.0 */
/* The processor that this process runs on, as CPUID describes it. */
#ifndef QDQI_GROUND_BASE_HOST_H
#define QDQI_GROUND_BASE_HOST_H

#include "qdq/spec.h"

struct qdqi_host_row {
    const char *name;
    bool adds_in_16_bits; /* sums of products of 8 bits saturate */
    bool is_accelerator;  /* no processor that this program runs on */
    const char *text;
};

/* Returns the row of a class of processors; NULL if `host` is none. */
const struct qdqi_host_row *qdqi_host_row(enum qdq_host host);

/* Returns the class of this processor. */
enum qdq_host qdqi_host_here(void);

/* Returns the number of channels in a block of ONNX Runtime's layout NCHWc on this processor, or
   a multiple of it where that is not known. */
size_t qdqi_host_block(void);

/* Writes the name of this processor, at most `size` bytes with the NUL. */
void qdqi_host_processor(char *to, size_t size);

#endif
