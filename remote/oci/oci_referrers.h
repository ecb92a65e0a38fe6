/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Manifests that refer to another one, their subject (distribution 1.1). Where a registry does
 * not list them, the index with the tag sha256-DIGEST of the subject does, which the clients
 * write.
 */
#ifndef REMOTE_OCI_OCI_REFERRERS_H
#define REMOTE_OCI_OCI_REFERRERS_H

#include "oci/oci_api.h"

/* Returns the artifact type of a manifest whose layers are, in that role, about its subject; NULL:
   files of that role are layers of the model itself. */
const char *oci_referrer_type(enum qdqr_role role);

/* Lists the referrers of a manifest as an index, which has no entries where there are none.
   Returns NULL with a problem. The caller frees the index. */
json_t *oci_referrers(struct http *http, const char *repo, const char *subject,
                      struct api_problem *problem);

/* Adds an entry to the index with the tag of the subject, unless it is there. */
bool oci_add_referrer(struct http *http, const char *repo, const char *subject,
                      const json_t *entry, struct api_problem *problem);

#endif
