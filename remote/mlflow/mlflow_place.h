/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where MLflow keeps the artifacts of a run or a model: behind its server, which hands them out,
 * or in a bucket of S3 (mlflow server --no-serve-artifacts). A place is a path below the
 * server's artifacts, or "s3://BUCKET/KEY".
 */
#ifndef REMOTE_MLFLOW_MLFLOW_PLACE_H
#define REMOTE_MLFLOW_MLFLOW_PLACE_H

#include "base/http.h"

/* Checks what the remote says of its bucket, without a connection. */
bool mlflow_check_bucket(const struct qdqr_remote *remote, struct api_problem *problem);

/* Copies the place of an artifact URI. REMOTE_DENIED when it is neither behind the server nor
   below the remote's artifacts_url. */
bool mlflow_find_place(const struct http *http, const char *uri, char ret[QDQR_REF],
                       struct api_problem *problem);

/* Writes the request for a file's bytes. *ret_from is the handle that sends it: `http`, or
   http->store. The server may hand out a signed URL of the bucket, which is used where the
   remote has an artifacts_url and no credentials of its own for it. */
bool mlflow_locate(struct http *http, const char *place, const char *name,
                   struct http_request *ret, struct http **ret_from,
                   struct api_problem *problem);

/* Adds all files of a place in a bucket to the source. */
bool mlflow_list_bucket(struct http *http, struct qdqr_source *source,
                        struct api_problem *problem);
bool mlflow_is_in_bucket(const char *place);

/* Sends a file. An object in a bucket is marked as one of the delivery. */
bool mlflow_put_file(struct http *http, const char *place,
                     const struct qdqr_upload *file, const char *delivery,
                     struct api_problem *problem);
bool mlflow_put_text(struct http *http, const char *place, const char *name,
                     const char *text, struct api_problem *problem);

#endif
