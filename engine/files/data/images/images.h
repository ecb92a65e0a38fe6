/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images as a dataset: the JPEG and PNG files of a zip or tar archive, sorted by name, whatever
 * else lies in it. They are the array `images`, of which one input of the model gets each image
 * as its shape and the spec's `preprocess` say.
 *
 * The array `labels` is there where all images lie in folders, two or more of one depth: the
 * number of the folder among the sorted ones; samples are then taken from the folders in turn.
 * Or where a file KEY.cls with a number lies beside KEY.jpg, as in a shard of WebDataset.
 */
#ifndef QDQI_FILES_DATA_IMAGES_IMAGES_H
#define QDQI_FILES_DATA_IMAGES_IMAGES_H

#include "files/data/dataset.h"
#include "qdq/model.h"

struct qdqi_images;

/* How images become the samples of one input. */
struct qdqi_image_view {
    const struct qdq_preprocess *row; /* borrowed from the spec; NULL: as by default */
    bool channels_last, bgr;
    size_t channels, height, width; /* of a sample */
    size_t size;                    /* bytes of a sample */
};

/* Returns whether a file of this name is an image, or the label of one. */
bool qdqi_images_wants(const char *name);
bool qdqi_images_is_label(const char *name);

/* Finds the images of the dataset's archive and reads their heads and labels, and sets
   ds->images and its arrays. Leaves it as it is where there are none. */
enum qdq_code qdqi_images_read(struct qdq_dataset *ds,
                               struct qdq_error *err) QDQ_MUST_CHECK;

/* Returns the index of the input that gets the images; -1: there is none. */
int qdqi_images_input(const struct qdq_dataset *ds, const struct qdq_model_info *model);

/* Finds the view for an input, and the array of its samples; the shape lies in the arena.
   CALIBRATION_MISMATCH, naming what to write into the spec; INVALID_DATASET for an image that
   is too small to be cut. */
enum qdq_code qdqi_images_fit(const struct qdq_dataset *ds,
                              const struct qdq_value *input, struct qdqi_arena *arena,
                              struct qdqi_image_view *ret, struct qdq_array *ret_array,
                              struct qdq_error *err) QDQ_MUST_CHECK;

/* Decodes sample i into view->size bytes. */
enum qdq_code qdqi_images_sample(struct qdq_dataset *ds,
                                 const struct qdqi_image_view *view, size_t i,
                                 unsigned char *to,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

/* Returns the label of sample i. */
int64_t qdqi_images_label(const struct qdq_dataset *ds, size_t i);

#endif
