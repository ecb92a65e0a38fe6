/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to MLflow's REST interface, which pulls and publications share. */
#ifndef REMOTE_MLFLOW_MLFLOW_API_H
#define REMOTE_MLFLOW_MLFLOW_API_H

#include <jansson.h>

#include "base/http.h"

#define MLFLOW_API "/api/2.0/mlflow/"
#define MLFLOW_ARTIFACTS "/api/2.0/mlflow-artifacts/artifacts"

/* Begins the URL of a GET, to which mlflow_query() adds. */
bool mlflow_query(struct http_request *request, const char *key, const char *value,
                  struct api_problem *problem);
/*
 * Sends a request and parses the JSON object of the answer, which the caller releases.
 * `what` names in a message what is asked for. NULL with a problem when it fails.
 */
json_t *mlflow_send(struct http *http, const struct http_request *request,
                    const char *what, struct api_problem *problem);
/* Sends `body`, of which it takes ownership, to a path below MLFLOW_API. */
json_t *mlflow_call(struct http *http, const char *method, const char *path,
                    json_t *body, const char *what, struct api_problem *problem);

/* Returns the text at object.member, or of the object in it; "" when there is none. */
const char *mlflow_text(const json_t *json, const char *object, const char *member);

/* Finds the version of a ref: *ret is MLflow's "model_version" document. */
struct mlflow_ref;
json_t *mlflow_find(struct http *http, const struct mlflow_ref *ref,
                    struct api_problem *problem);
/* Copies the path below MLFLOW_ARTIFACTS of an artifact URI that the server proxies. */
bool mlflow_proxied(const struct http *http, const char *uri, char ret[QDQR_REF],
                    struct api_problem *problem);

#endif
