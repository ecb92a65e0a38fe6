/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a feed, for the files that make one. */
#ifndef QDQI_FILES_DATA_FEED_INNER_H
#define QDQI_FILES_DATA_FEED_INNER_H

#include <stdalign.h>
#include <stddef.h>

#include "files/data/buffer.h"
#include "files/data/cast.h"
#include "files/data/feed.h"
#include "files/data/forms/table.h"
#include "files/data/images/images.h"
#include "files/data/reader.h"
#include "files/data/scaling.h"
#include "files/data/tokens.h"

/* Elements are read and cast in pieces of this size. */
enum { QDQI_FEED_PIECE = 64 * 1024 };

/* One model input and the array that feeds it. */
struct qdqi_binding {
    struct qdqi_reader *reader;
    struct qdqi_cast cast;
    size_t from_size, to_size; /* bytes of one element */
    size_t array;              /* index of the array in the dataset */
    const struct qdq_array
        *fed; /* the array, or that of images as the input gets them */
    struct qdqi_image_view view; /* of images */
    /* elements along the axes behind axis 0 of the array; the largest number, where
       samples differ */
    size_t row;
    bool drops_axis0; /* axis 0 of the array counts runs, and is no axis of the input */
    enum qdqi_from_tokens filled; /* without an array: what it gets */
    int64_t *shape;               /* shape of the input in a run */
    struct qdqi_affine scaling;
    struct qdqi_buffer data; /* the elements of the current run */
};

struct qdqi_feed {
    struct qdqi_arena *arena;
    struct qdq_dataset *dataset;
    size_t n;
    struct qdqi_binding *bindings;
    struct qdqi_input *inputs; /* in the order of the model's inputs */
    bool *used;                /* for each array of the dataset: an input reads it */
    int64_t rows;              /* samples that one run takes */
    /* the model or the data fixes the batch: no run can have fewer samples */
    bool fixed;
    bool cut; /* each sample has a shape of its own */
    /* Inputs that follow from the ids of tokens are filled; a sample then ends before the first
       negative id, where the ids are the only array. */
    bool fills, ends_at_negative;
    size_t tokens; /* the input of the ids */
    int64_t past;  /* positions of the caches that are given */
    int64_t available, first, samples, done;
    int64_t in_run; /* samples of the last run */
    size_t n_warnings;
    /* room for one warning for each input, one for each array and two more */
    struct qdq_warning *warnings;
    /* elements as read, and as cast */
    alignas(max_align_t) unsigned char piece[QDQI_FEED_PIECE], wide[QDQI_FEED_PIECE];
};

/* Sets CALIBRATION_MISMATCH: what the input wants, what the array has, and `what` is wrong. */
enum qdq_code qdqi_feed_mismatch(const struct qdqi_feed *feed,
                                 const struct qdq_value *input,
                                 const struct qdq_array *array, const char *what,
                                 struct qdq_error *err);
/* Sets it for an input without an array. */
enum qdq_code qdqi_feed_no_array(const struct qdqi_feed *feed,
                                 const struct qdq_value *input, struct qdq_error *err);

/* Adds a warning; without memory for its text it is dropped. */
void qdqi_feed_warn(struct qdqi_feed *feed, const char *code, const char *node,
                    const char *detail);
/* Returns the type of an input; the array's type when the model declares none. */
enum qdqi_dtype qdqi_feed_dtype(const struct qdq_value *input, enum qdqi_dtype given);

/* Finds out whether inputs without an array follow from ids of tokens that are there. Each sample is
   then a run, because its length is its own. */
void qdqi_feed_find_filled(struct qdqi_feed *feed, const struct qdq_model_info *model);
/* Binds an input that follows from the ids. The largest sample is known by their array. */
enum qdq_code qdqi_feed_bind_filled(struct qdqi_feed *feed,
                                    const struct qdq_model_info *model, size_t i,
                                    struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_feed_warn_filled(struct qdqi_feed *feed);
/* Fills the inputs that follow from the ids of the run. */
enum qdq_code qdqi_feed_fill(struct qdqi_feed *feed,
                             struct qdq_error *err) QDQ_MUST_CHECK;

#endif
