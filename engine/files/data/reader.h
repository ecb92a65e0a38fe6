/* SPDX-License-Identifier: Apache-2.0 */
/* Streams one array of a dataset as little-endian elements in C order, whatever the
   byte order and axis order of its file. */
#ifndef QDQI_FILES_DATA_READER_H
#define QDQI_FILES_DATA_READER_H

#include "ground/base/dtype.h"
#include "qdq/dataset.h"

/* Limits an array in Fortran order, in bytes: it is held twice while it is
   reordered. */
enum { QDQI_FORTRAN_MAX = 256 << 20 };

struct qdqi_reader;

/* Returns the element type of array `i` of the dataset. */
enum qdqi_dtype qdqi_dataset_dtype(const struct qdq_dataset *dataset, size_t i);
/* Returns the index of the model's input for array `i`, where only the file's number
   says so; else -1. */
int qdqi_dataset_input(const struct qdq_dataset *dataset, size_t i);
/* Returns whether each sample of array `i` has a shape of its own. */
bool qdqi_dataset_differs(const struct qdq_dataset *dataset, size_t i);
/* Returns whether the dataset is of ONNX's test data, whose samples are fed unchanged. */
bool qdqi_dataset_is_sets(const struct qdq_dataset *dataset);
/* Returns whether array `i` feeds an input that no array is named for. */
bool qdqi_dataset_is_alone(const struct qdq_dataset *dataset, size_t i);
/* Returns whether array `i` is one of the columns that are joined, and the array of all of them, NULL
   where there are none (forms/joined.h). */
bool qdqi_dataset_is_joined(const struct qdq_dataset *dataset, size_t i);
const struct qdq_array *qdqi_dataset_joined(const struct qdq_dataset *dataset);
/* Returns whether array 0 is of images, which are read through a view. */
bool qdqi_dataset_has_images(const struct qdq_dataset *dataset);
/* Returns the shape of a sample, without axis 0 of the array, and the number of elements. */
const int64_t *qdqi_dataset_part(const struct qdq_dataset *dataset, size_t i,
                                 int64_t sample, size_t *ret_elements);

/* Opens a reader at element 0. Several readers of one dataset may be open at once. */
enum qdq_code qdqi_reader_open(struct qdq_dataset *dataset, size_t array,
                               struct qdqi_reader **ret,
                               struct qdq_error *err) QDQ_MUST_CHECK;
/* Does the same for array 0 of images, as samples of the view, which is borrowed. */
struct qdqi_image_view;
enum qdq_code qdqi_reader_open_images(struct qdq_dataset *dataset,
                                      const struct qdqi_image_view *view,
                                      struct qdqi_reader **ret,
                                      struct qdq_error *err) QDQ_MUST_CHECK;
/*
 * Reads the next `size` bytes, a multiple of the element's size. INVALID_DATASET when
 * the array ends or is damaged there. The checksum of an npz member is verified when
 * its last element is read.
 */
enum qdq_code qdqi_reader_read(struct qdqi_reader *reader, void *to, size_t size,
                               struct qdq_error *err) QDQ_MUST_CHECK;
/* Skips `size` bytes; reads nothing when the array lies uncompressed in the file. */
enum qdq_code qdqi_reader_skip(struct qdqi_reader *reader, uint64_t size,
                               struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_reader_close(struct qdqi_reader **reader);

#endif
