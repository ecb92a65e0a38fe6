/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Parquet file as a dataset: a row is a sample, and these columns are arrays:
 *
 *  - numbers: one for each row, or lists of them, in each other as deep as the sample has axes.
 *    The lists of a row are one tensor; where rows have different lengths, each has its own shape.
 *  - images: the first column of byte arrays that begin like PNG or JPEG files, or of structs
 *    with such a field `bytes`, as the library `datasets` of Hugging Face writes them.
 *  - `label` or `labels`: integers are the array `labels`.
 *
 * Other columns are not used, which is an error only where the model has an input of that name.
 * Lists and images are read once while the dataset is opened, for their shapes; numbers are read
 * as they are needed. No more than a page of each column is in memory.
 */
#ifndef QDQI_FILES_DATA_FORMS_TABLE_H
#define QDQI_FILES_DATA_FORMS_TABLE_H

#include "files/data/dataset.h"
#include "qdq/model.h"

enum {
    QDQI_TABLE_MOST_ROWS = 1 << 20
}; /* of images, or of lists that differ in length */

struct qdqi_table;

/* Fills the arrays of the dataset. INVALID_DATASET where no column can be used, or the footer is
   damaged; LIMIT_EXCEEDED; NO_MEMORY; IO. */
enum qdq_code qdqi_table_read(struct qdq_dataset *ds,
                              struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_table_free(struct qdqi_table **table);

/* Returns why a column of this name is no array; NULL where it is, or where there is none. */
const char *qdqi_table_why_not(const struct qdq_dataset *ds, const char *name);

/* Lays the numbers of array `i` out as the input has them: an array of fewer axes with as many
   elements in a row gets the axes of the input. Other arrays, and those of other forms, stay. */
enum qdq_code qdqi_table_lay_out(const struct qdq_dataset *ds, size_t i,
                                 const struct qdq_value *input,
                                 struct qdqi_arena *arena, const struct qdq_array **ret,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

/* Reads `size` bytes of the image column from place `at` of a page. */
enum qdq_code qdqi_table_bytes(struct qdq_dataset *ds, size_t group, uint64_t page,
                               size_t at, void *to, size_t size,
                               struct qdq_error *err) QDQ_MUST_CHECK;

/* Reads the elements of one array, from the first row to the last. */
struct qdqi_column_reader;
enum qdq_code qdqi_column_reader_open(struct qdq_dataset *ds, size_t array,
                                      struct qdqi_column_reader **ret,
                                      struct qdq_error *err) QDQ_MUST_CHECK;
/* INVALID_DATASET, naming the column and the row, for a null. */
enum qdq_code qdqi_column_reader_read(struct qdqi_column_reader *reader, void *to,
                                      size_t size,
                                      struct qdq_error *err) QDQ_MUST_CHECK;
enum qdq_code qdqi_column_reader_skip(struct qdqi_column_reader *reader, uint64_t size,
                                      struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_column_reader_close(struct qdqi_column_reader **reader);

#endif
