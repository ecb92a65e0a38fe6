/* SPDX-License-Identifier: Apache-2.0 */
/* Publishing to a registry: blobs, then the manifest under the tag, then under the alias. */
#ifndef REMOTE_OCI_OCI_PUBLISH_H
#define REMOTE_OCI_OCI_PUBLISH_H

#include "base/http.h"

bool oci_publish(struct http *http, const struct qdqr_publication *publication,
                 char **ret_location, struct api_problem *problem);

#endif
