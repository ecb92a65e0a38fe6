/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a dataset's arrays to the inputs of one run of a model (API.md, calibration
 * data): arrays are bound to inputs by name, cut into samples and cast without loss.
 *
 *  - An array of the input's rank: axis 0 is the batch, cut into samples. Where the
 *    model fixes axis 0 to n, every run takes n rows and a remainder is dropped with a
 *    warning; where axis 0 is symbolic, a run takes `batch` rows (the last may be
 *    short).
 *  - An array of one rank more: axis 0 counts samples, each is fed as it is, one a run.
 *  - Where the model does not say an input's shape, axis 0 is the batch.
 *  - Samples that are files of their own (ONNX's test data) are fed as they are, each
 *    in the shape that it has.
 *
 * The dataset is borrowed and outlives the feed; the model's information is only read
 * while the feed is opened, except for what a warning names.
 */
#ifndef QDQI_DATA_FEED_H
#define QDQI_DATA_FEED_H

#include "base/arena.h"
#include "base/dtype.h"
#include "qdq/dataset.h"
#include "qdq/model.h"
#include "qdq/plan.h"

/* Bytes that one run may need for one input. */
enum { QDQI_FEED_MAX_INPUT = 1 << 30 };

struct qdqi_feed;

/* One input of one run. `data` is the feed's own and valid until its next call. */
struct qdqi_input {
    const char *name;
    enum qdqi_dtype dtype;
    size_t rank;
    const int64_t *shape;
    const void *data;
    size_t size; /* bytes */
};

struct qdqi_feed_options {
    int64_t batch;       /* >= 1 */
    int64_t first;       /* sample to start at, >= 0; a fixed batch rounds it up */
    int64_t max_samples; /* 0: all from `first` on; a fixed batch rounds it down, but
                          * never to 0 */
};

/*
 * CALIBRATION_MISMATCH names the input, and wanted and given dtype and shape: an input
 * without an array, a rank or size that does not fit, a cast that may lose (float64 to
 * float32 is made, with a warning). Arrays that no input asks for are ignored with a
 * warning. An .npy file needs a model of one input.
 */
enum qdq_code qdqi_feed_open(const struct qdq_model_info *model,
                             struct qdq_dataset *dataset,
                             const struct qdqi_feed_options *options,
                             struct qdqi_feed **ret,
                             struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_feed_close(struct qdqi_feed **feed);

/* Samples that all runs together will take, and the number of runs. */
int64_t qdqi_feed_samples(const struct qdqi_feed *feed);
int64_t qdqi_feed_runs(const struct qdqi_feed *feed);
/* Samples that the dataset holds for this model. */
int64_t qdqi_feed_available(const struct qdqi_feed *feed);
/* Warnings of the opening; borrowed. */
size_t qdqi_feed_warnings(const struct qdqi_feed *feed, const struct qdq_warning **ret);

/*
 * The inputs of the next run, in the order of the model's inputs, and how many samples
 * they hold: 0 at the end.
 */
enum qdq_code qdqi_feed_next(struct qdqi_feed *feed, const struct qdqi_input **ret,
                             int64_t *ret_samples,
                             struct qdq_error *err) QDQ_MUST_CHECK;

/*
 * Sample i of the last run alone, as a run of its own; NULL where no run can take fewer
 * samples than the last one did.
 */
const struct qdqi_input *qdqi_feed_one(struct qdqi_feed *feed, int64_t i);

#endif
