/* SPDX-License-Identifier: Apache-2.0 */
/* Publishing to S3: objects that nobody else wrote, the model last. */
#ifndef REMOTE_S3_S3_PUBLISH_H
#define REMOTE_S3_S3_PUBLISH_H

#include "base/http.h"

bool s3_publish(struct http *http, const struct qdqr_publication *publication,
                char **ret_location, struct api_problem *problem);

/* Stores a file under a key that has no object. *ret_was_there: it has one. *ret_conflict:
   another upload of the key ended at the same time, and nothing is known. */
bool s3_put(struct http *http, const char *key, const struct qdqr_upload *file,
            bool *ret_was_there, bool *ret_conflict, struct api_problem *problem);
/* Sends one file to a folder, a key that ends in '/', unless an object of the same delivery is
   there. */
bool s3_put_file(struct http *http, const char *folder, const struct qdqr_upload *file,
                 const char *delivery, struct api_problem *problem);
/* Sends a request with a URL and a short body, and replaces what is there. `what` names the
   object in messages. */
bool s3_put_text(struct http *http, struct http_request *request, const char *what,
                 struct api_problem *problem);

#endif
