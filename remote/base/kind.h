/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of remotes: a row of functions each. NULL: the kind cannot do it. */
#ifndef REMOTE_BASE_KIND_H
#define REMOTE_BASE_KIND_H

#include "base/http.h"
#include "remote/remote.h"

struct remote_kind_row {
    const char *name;
    /* Sets the credentials of a handle; of s3 also the URL of the bucket. */
    bool (*authenticate)(struct http *http, struct api_problem *problem);
    bool (*check)(const struct qdqr_remote *remote, struct api_problem *problem);
    bool (*check_ref)(const char *ref, bool to_publish, struct api_problem *problem);
    bool (*resolve)(struct http *http, const char *ref, struct qdqr_source *source,
                    struct api_problem *problem);
    /* Writes the request for a file's bytes. *ret_from is the handle that sends it: `http`, or
       http->store. */
    bool (*locate)(struct http *http, const struct qdqr_source *source, size_t file,
                   struct http_request *ret, struct http **ret_from,
                   struct api_problem *problem);
    /* Writes a file's bytes where that takes more than one request for them; else *ret_done
       is false. NULL: never. */
    bool (*pull)(struct http *http, const struct qdqr_source *source, size_t file,
                 int fd, bool *ret_done, struct api_problem *problem);
    bool (*publish)(struct http *http, const struct qdqr_publication *publication,
                    char **ret_location, struct api_problem *problem);
    bool (*versions)(struct http *http, const struct qdqr_question *question,
                     struct qdqr_version **ret, size_t *ret_n,
                     struct api_problem *problem);
    bool (*deliver)(struct http *http, const struct qdqr_event *event,
                    struct api_problem *problem);
};

extern const struct remote_kind_row remote_mlflow, remote_oci, remote_s3,
    remote_webhook;

/* Returns whether a name is a relative path without "..", empty parts, backslashes and
   control characters. */
bool name_is_safe(const char *name);
/* Returns the role of a file by its name: *.onnx, descriptions of known names, or data. */
enum qdqr_role role_by_name(const char *name);
/* Returns whether the source has one file *.onnx; else sets the problem. */
bool source_has_model(const struct http *http, const struct qdqr_source *source,
                      struct api_problem *problem);
/* Adds a file to a source. The name is copied and has to be safe. */
bool source_add(struct qdqr_source *source, const char *name, int64_t size,
                enum qdqr_role role, struct api_problem *problem);

#endif
