/* SPDX-License-Identifier: Apache-2.0 */
/* Rows about the outputs of a report: figures that stand below an output in tables, points of a drawing, classes that
   are confused. */
#ifndef API_DOCUMENTS_OUTPUT_ROWS_H
#define API_DOCUMENTS_OUTPUT_ROWS_H

#include <jansson.h>

#include "qdq/report.h"

/* The caller owns what these return; NULL when out of memory. `outputs` may be NULL. */

/* Returns the slices of all outputs: members of a slice, and `output`. */
json_t *api_slice_rows(const json_t *outputs);

/* Returns the figures of single samples, a row for each output that has them: `output`,
   `worst_db`, `p5_db`, `median_db`, `confidence_db` and `level`. */
json_t *api_sample_rows(const json_t *outputs);

/* Returns "name version" of a runtime; null where there is none. */
json_t *api_runtime_text(const json_t *runtime);

/* Encodes the figures of single samples; null where there are none. */
json_t *api_encode_samples(const struct qdq_sample_report *samples);

/* Add the member `points` to the figures of an output, and `rows`, `changed` and `confusions` to those
   of a task, where there are any. They take the object and return it. */
json_t *api_with_points(json_t *object, const struct qdq_output_report *output);
json_t *api_with_confusions(json_t *object, const struct qdq_task_report *task);

#endif
