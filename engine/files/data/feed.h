/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feeds the arrays of a dataset to a model, run by run (docs/reference/number-formats.md, calibration
 * data). Arrays are bound to inputs by name, cut into samples and cast without loss.
 *
 *  - An array of the input's rank: axis 0 is the batch, cut into samples. Where the
 *    model fixes axis 0 to n, every run takes n rows, and a remainder is dropped with a
 *    warning; where axis 0 is symbolic, a run takes `batch` rows (the last run may take
 *    fewer).
 *  - An array of one rank more: axis 0 counts samples; each is fed unchanged, one a run.
 *  - Where the model declares no shape for an input, axis 0 is the batch.
 *  - Samples that are files of their own (ONNX's test data) are fed unchanged, each in
 *    its own shape.
 *
 *  - Inputs of a language model without an array are filled from the ids of its tokens
 *    (tokens.h), one sample a run. Where the ids are the only array, a sample ends before its
 *    first negative id.
 *
 * The dataset is borrowed and must outlive the feed. The model's information is read
 * only while the feed is opened, except for the names in warnings.
 */
#ifndef QDQI_FILES_DATA_FEED_H
#define QDQI_FILES_DATA_FEED_H

#include "ground/base/arena.h"
#include "ground/base/dtype.h"
#include "qdq/dataset.h"
#include "qdq/model.h"
#include "qdq/plan.h"

/* Limits the bytes of one input in one run. */
enum { QDQI_FEED_MAX_INPUT = 1 << 30 };

struct qdqi_feed;

/* One input of one run. The feed owns `data`, which is valid until the next call. */
struct qdqi_input {
    const char *name;
    enum qdqi_dtype dtype;
    size_t rank;
    const int64_t *shape;
    const void *data;
    size_t size; /* bytes */
};

struct qdqi_feed_options {
    int64_t batch; /* >= 1 */
    int64_t first; /* sample to start at, >= 0; rounded up to a whole fixed batch */
    /* 0: all from `first` on; rounded down to whole fixed batches, but not to 0 */
    int64_t max_samples;
};

/*
 * Opens a feed. CALIBRATION_MISMATCH names the input, and the wanted and given dtype
 * and shape: for an input without an array, a rank or size that does not fit, or a cast
 * that may lose (float64 to float32 is made, with a warning). Arrays that match no
 * input are ignored with a warning. An .npy file fits only a model of one input.
 */
enum qdq_code qdqi_feed_open(const struct qdq_model_info *model,
                             struct qdq_dataset *dataset,
                             const struct qdqi_feed_options *options,
                             struct qdqi_feed **ret,
                             struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_feed_close(struct qdqi_feed **feed);

/* Returns the array that feeds an input of the model; NULL: none does. */
const struct qdq_array *qdqi_feed_array(const struct qdq_dataset *dataset,
                                        const struct qdq_model_info *model,
                                        size_t input);

/* Return the number of samples in all runs together, and the number of runs. */
int64_t qdqi_feed_samples(const struct qdqi_feed *feed);
int64_t qdqi_feed_runs(const struct qdqi_feed *feed);
/* Return the samples that a run takes, at most, and the bytes of its inputs then. */
int64_t qdqi_feed_run_samples(const struct qdqi_feed *feed);
size_t qdqi_feed_run_bytes(const struct qdqi_feed *feed);
/* Returns the number of samples in the dataset, cut for this model. */
int64_t qdqi_feed_available(const struct qdqi_feed *feed);
/* Returns the warnings of the opening; borrowed. */
size_t qdqi_feed_warnings(const struct qdqi_feed *feed, const struct qdq_warning **ret);

/* Returns the inputs of the next run, in the order of the model's inputs, and the
   number of samples in them; 0 at the end. */
enum qdq_code qdqi_feed_next(struct qdqi_feed *feed, const struct qdqi_input **ret,
                             int64_t *ret_samples,
                             struct qdq_error *err) QDQ_MUST_CHECK;

/* Returns the first sample of the last run, counted from the beginning of the dataset. */
int64_t qdqi_feed_run_first(const struct qdqi_feed *feed);

/* Skips the samples of that many runs, as far as there are so many. Errors are those of reading. */
enum qdq_code qdqi_feed_skip(struct qdqi_feed *feed, int64_t runs,
                             struct qdq_error *err) QDQ_MUST_CHECK;

/* Puts the samples of the last run in front of the text of an error
   that says that the model did not run (RUN_FAILED). Returns the code. */
enum qdq_code qdqi_feed_name_samples(const struct qdqi_feed *feed, enum qdq_code code,
                                     struct qdq_error *err);
/* Does the same for n samples from `first` on. */
enum qdq_code qdqi_name_samples(int64_t first, int64_t n, enum qdq_code code,
                                struct qdq_error *err);

/* Returns sample i of the last run as a run of its own; NULL where no run can take
   fewer samples than the last one. */
const struct qdqi_input *qdqi_feed_sample(struct qdqi_feed *feed, int64_t i);

#endif
