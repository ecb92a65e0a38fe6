/* SPDX-License-Identifier: Apache-2.0 */
/* Refs of OCI registries, and requests that pulls and publications share. */
#ifndef REMOTE_OCI_OCI_API_H
#define REMOTE_OCI_OCI_API_H

#include <jansson.h>

#include "base/http.h"

#define OCI_MANIFEST "application/vnd.oci.image.manifest.v1+json"
#define OCI_INDEX "application/vnd.oci.image.index.v1+json"
/* The CNCF's model format. */
#define OCI_MODEL "application/vnd.cncf.model.manifest.v1+json"
#define OCI_CONFIG "application/vnd.cncf.model.config.v1+json"
#define OCI_WEIGHT "application/vnd.cncf.model.weight.v1.raw"
#define OCI_DOC "application/vnd.cncf.model.doc.v1.raw"
#define OCI_FILEPATH "org.cncf.model.filepath"
#define OCI_TITLE "org.opencontainers.image.title"

/* "repo:tag" or "repo@sha256:...": `version` is the tag or the digest. */
struct oci_ref {
    char repo[QDQR_REF];    /* without the path of the remote's URL */
    char version[QDQR_REF]; /* "": neither */
};

/* Parses a ref. For publishing it has no digest and may do without a tag. */
bool parse_oci_ref(const char *ref, bool to_publish, struct oci_ref *ret,
                   struct api_problem *problem);
bool oci_is_tag(const char *tag);

/* Makes http->base the registry without the path of its URL, which leads all repositories. */
bool oci_authenticate(struct http *http, struct api_problem *problem);
/* Finds out how the registry wants to be asked, and gets a token for the repository. */
bool oci_login(struct http *http, const char *repo, bool to_push,
               struct api_problem *problem);

/* Copies a parameter of a challenge, NAME="VALUE"; "" where it is absent. */
void oci_parameter(const char *challenge, const char *name, char *ret, size_t size);

/* Writes the URL of a repository: "/v2/PATH/REPO" and `rest`, which is escaped but for '/'. */
bool oci_url(const struct http *http, const char *repo, const char *rest,
             char url[HTTP_URL], struct api_problem *problem);
/* Writes the part of a URL behind the host. Returns false with a problem when the host is not
   the remote's. */
bool oci_own_url(const struct http *http, const char *whole, char url[HTTP_URL],
                 struct api_problem *problem);

#endif
