/* SPDX-License-Identifier: Apache-2.0 */
/* Publishing to MLflow: a run with metrics, lineage and report; a logged model with the
   files; a version of the registered model; an alias. */
#ifndef REMOTE_MLFLOW_MLFLOW_PUBLISH_H
#define REMOTE_MLFLOW_MLFLOW_PUBLISH_H

#include "base/http.h"

/* The tag that a version is searched by before anything is created. */
#define MLFLOW_DELIVERY "qdqd.delivery"

bool mlflow_publish(struct http *http, const struct qdqr_publication *publication,
                    char **ret_location, struct api_problem *problem);

#endif
