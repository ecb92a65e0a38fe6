/* SPDX-License-Identifier: Apache-2.0 */
/* Publishing to S3: objects that nobody else wrote, the model last. */
#ifndef REMOTE_S3_PUBLISH_H
#define REMOTE_S3_PUBLISH_H

#include "http.h"

bool s3_publish(struct http *http, const struct qdqr_publication *publication,
                char **ret_location, struct api_problem *problem);

#endif
