/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The encodings of Parquet whose values are not found by their place (parquet-format,
 * Encodings.md): runs of equal and of packed integers (RLE), which hold levels, booleans and
 * indexes into dictionaries; and differences (DELTA_BINARY_PACKED). Both give values in order,
 * and as many at a time as the caller likes.
 */
#ifndef QDQI_FILES_DATA_PARQUET_ENCODINGS_H
#define QDQI_FILES_DATA_PARQUET_ENCODINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct qdqi_rle {
    const unsigned char *at, *end; /* borrowed */
    unsigned width;                /* bits of a value, 0 to 32 */
    uint64_t left;                 /* values in the current run */
    bool is_packed;
    uint32_t value; /* of a run of equal ones */
    uint64_t bit;   /* of a packed run: the next value's place behind `run` */
    const unsigned char *run;
};

void qdqi_rle_start(struct qdqi_rle *r, const unsigned char *from, size_t size,
                    unsigned width);
/* Writes the next n values. False where there are fewer. */
bool qdqi_rle_take(struct qdqi_rle *r, uint32_t *to, size_t n);

struct qdqi_deltas {
    const unsigned char *at,
        *end;       /* borrowed; `at` is behind what was entered so far */
    uint64_t left;  /* values that were not taken */
    uint64_t value; /* the next one, where `is_first` */
    bool is_first;
    size_t n_minis, mini_size; /* miniblocks of a block, and the values of each */
    size_t mini, in_mini;      /* the next value: its miniblock, and its place there */
    uint64_t least;            /* added to each difference of the block */
    const unsigned char *widths, *bits; /* of the block; of the miniblock */
    unsigned width;
};

/* Reads the head. False where it is damaged. */
bool qdqi_deltas_start(struct qdqi_deltas *d, const unsigned char *from, size_t size);
/* Writes the next n values, as many bits as they need. False where there are fewer. */
bool qdqi_deltas_take(struct qdqi_deltas *d, int64_t *to, size_t n);

#endif
