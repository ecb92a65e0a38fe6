/* SPDX-License-Identifier: Apache-2.0 */
#ifndef QDQI_GROUND_BASE_ERRORS_H
#define QDQI_GROUND_BASE_ERRORS_H

#include "qdq/error.h"

/* Sets *err to an error that was kept. Returns its code: QDQ_OK where it is none. */
enum qdq_code qdqi_error_copy(const struct qdq_error *why, struct qdq_error *err);

#endif
