/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Columns of one number for each row, read together as one array: row by row, in the order of the
 * columns. A table has it behind its arrays (struct qdq_dataset), for a model whose one input has as
 * many features as the table has such columns.
 */
#ifndef QDQI_FILES_DATA_FORMS_JOINED_H
#define QDQI_FILES_DATA_FORMS_JOINED_H

#include "files/data/dataset.h"

enum { QDQI_MOST_JOINED = 1024 }; /* each is read through a page of its own */

/* Notes which arrays can be joined, and their array behind the others; none where they are fewer than
   two, or too many. The arrays have room for it. */
enum qdq_code qdqi_join(struct qdq_dataset *ds, struct qdq_error *err) QDQ_MUST_CHECK;

struct qdqi_joined;
enum qdq_code qdqi_joined_open(struct qdq_dataset *ds, struct qdqi_joined **ret,
                               struct qdq_error *err) QDQ_MUST_CHECK;
/* Reads the next bytes, whole elements; with `to` NULL they are skipped. */
enum qdq_code qdqi_joined_read(struct qdqi_joined *joined, unsigned char *to,
                               uint64_t size, struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_joined_close(struct qdqi_joined **joined);

#endif
