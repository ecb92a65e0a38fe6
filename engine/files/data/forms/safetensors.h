/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A safetensors file as a dataset: 8 bytes with the length of a header, the header, which is a
 * JSON object with a member for each tensor, and the tensors' elements, little-endian and in C
 * order (huggingface/safetensors, README, "Format"). The header is parsed here, with the
 * grammar that such headers have; the engine knows no JSON otherwise.
 */
#ifndef QDQI_FILES_DATA_FORMS_SAFETENSORS_H
#define QDQI_FILES_DATA_FORMS_SAFETENSORS_H

#include "files/data/dataset.h"

enum {
    QDQI_SAFETENSORS_MAX_HEADER = 8 << 20, /* bytes */
    QDQI_SAFETENSORS_MAX_NAME = 255,       /* bytes */
};

/* Returns whether a file of `size` bytes begins like one, of which `got` bytes are there. */
bool qdqi_safetensors_starts(const unsigned char *start, size_t got, uint64_t size);

/* Fills the arrays of the dataset. INVALID_DATASET names the tensor or the byte;
   LIMIT_EXCEEDED; NO_MEMORY; IO. */
enum qdq_code qdqi_safetensors_read(struct qdq_dataset *ds,
                                    struct qdq_error *err) QDQ_MUST_CHECK;

#endif
