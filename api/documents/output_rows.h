/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of tables about the outputs of a report: figures that stand below an output there. */
#ifndef API_DOCUMENTS_OUTPUT_ROWS_H
#define API_DOCUMENTS_OUTPUT_ROWS_H

#include <jansson.h>

/* The caller owns what these return; NULL when out of memory. `outputs` may be NULL. */

/* Returns the slices of all outputs: members of a slice, and `output`. */
json_t *api_slice_rows(const json_t *outputs);

/* Returns the figures of single samples, a row for each output that has them: `output`,
   `worst_db`, `p5_db`, `median_db`, `confidence_db` and `level`. */
json_t *api_sample_rows(const json_t *outputs);

/* Returns "name version" of a runtime; null where there is none. */
json_t *api_runtime_text(const json_t *runtime);

#endif
