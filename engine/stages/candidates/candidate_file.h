/* SPDX-License-Identifier: Apache-2.0 */
#ifndef QDQI_STAGES_CANDIDATES_CANDIDATE_FILE_H
#define QDQI_STAGES_CANDIDATES_CANDIDATE_FILE_H

#include "stages/attempt/attempt.h"

/* Writes an attempt that has scales to the file, in the place of what was there: one file without
   metadata. *ret_bytes is its size. */
enum qdq_code qdqi_candidate_write(const struct qdqi_attempt *attempt, int fd,
                                   uint64_t *ret_bytes,
                                   struct qdq_error *err) QDQ_MUST_CHECK;

#endif
