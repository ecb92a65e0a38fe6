/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a dataset of images, for the files that read one. */
#ifndef QDQI_FILES_DATA_IMAGES_INNER_H
#define QDQI_FILES_DATA_IMAGES_INNER_H

#include "files/data/images/images.h"
#include "files/images/picture.h"

struct qdqi_image {
    const char *name;
    size_t member; /* of the archive; of a Parquet file the row group */
    uint64_t size;
    uint64_t page; /* of a Parquet file: the byte of the page, and the place in it */
    size_t at;
    struct qdqi_picture_head head;
    int64_t label;
    size_t turn; /* the number of the image in its folder */
};

struct qdqi_images {
    struct qdqi_image *rows;
    size_t n;
    struct qdqi_image *labels; /* the files KEY.cls; size and member alone are set */
    size_t n_labels;
    bool in_turn; /* labels are folders */
    const char **classes;
};

/* Reads the first `size` bytes of a file. */
enum qdq_code qdqi_image_start(struct qdq_dataset *ds, const struct qdqi_image *file,
                               void *to, size_t size,
                               struct qdq_error *err) QDQ_MUST_CHECK;

/* Makes the arrays `images` and, where wanted, `labels` of the rows of ds->images. */
enum qdq_code qdqi_images_add_arrays(struct qdq_dataset *ds, bool labels,
                                     struct qdq_error *err) QDQ_MUST_CHECK;

#endif
