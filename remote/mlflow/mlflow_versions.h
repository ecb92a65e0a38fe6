/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REMOTE_MLFLOW_MLFLOW_VERSIONS_H
#define REMOTE_MLFLOW_MLFLOW_VERSIONS_H

#include "base/http.h"

/* Lists versions, as qdqr_versions() does. */
bool mlflow_versions(struct http *http, const struct qdqr_question *question,
                     struct qdqr_version **ret, size_t *ret_n,
                     struct api_problem *problem);

#endif
