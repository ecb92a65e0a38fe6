/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a Parquet file as a dataset, for the files that read one. */
#ifndef QDQI_FILES_DATA_FORMS_TABLE_INNER_H
#define QDQI_FILES_DATA_FORMS_TABLE_INNER_H

#include "files/data/forms/table.h"
#include "files/data/parquet/cursor.h"

/* A column that is no array, and why. */
struct qdqi_unused_column {
    const char *name, *why;
};

struct qdqi_table {
    struct qdqi_parquet *file; /* in the dataset's arena */
    struct qdqi_unused_column *unused;
    size_t n_unused, unused_capacity;
    /* The column of images, and the page of it that was read last. */
    size_t images;
    uint64_t page_at; /* 0: none was read */
    struct qdqi_page_bytes packed, page;
};

/* Finds the shapes of column i, whose lists are read; `item` gets the size, and the shape of each
   sample where they differ. *ret_shape, in the arena, begins with the number of rows. */
enum qdq_code qdqi_table_shapes(struct qdq_dataset *ds, size_t i,
                                struct qdqi_item *item, int64_t **ret_shape,
                                struct qdq_error *err) QDQ_MUST_CHECK;

/* Reads the heads of all images of column i, and makes them array 0 of the dataset.
   *ret_are_images is false where the first byte array is none; the column is then left. */
enum qdq_code qdqi_table_images(struct qdq_dataset *ds, size_t i, bool *ret_are_images,
                                struct qdq_error *err) QDQ_MUST_CHECK;

#endif
