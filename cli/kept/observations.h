/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The observations of calibrations (struct qdq_work.observations) are kept in observations/ of the user's cache folder,
 * a file for each model, data and spec: those of another spec may differ in the last bits, and a
 * command's result does not depend on what ran before. The 200 files that were used last stay, of at
 * most 8 MiB each.
 */
#ifndef CLI_KEPT_OBSERVATIONS_H
#define CLI_KEPT_OBSERVATIONS_H

#include "files.h"
#include "qdq/quantize.h"

/* Returns whether observations of the job are kept: it has data, and no moments, which are large. */
bool observations_are_kept(const struct qdq_spec *spec, int dataset);

/* Opens a copy of the job's file. `text` is the whole spec. *ret stays OUTPUT_NONE where there is no folder
   for it. */
void observations_open(const struct qdq_spec *spec, const char *text,
                       const char *model_id, const char *dataset_id,
                       struct output *ret);

/* Puts the copy in the place of the file, where it is whole. */
void observations_keep(struct output *file);

#endif
