/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layers that are archives, as KitOps and the CNCF's model format have them. Their files are
 * listed and pulled one by one; each time the whole layer comes and its digest is checked.
 */
#ifndef REMOTE_OCI_OCI_ARCHIVE_H
#define REMOTE_OCI_OCI_ARCHIVE_H

#include "base/http.h"

/* Returns whether layers of this type are archives of the model's files: 't' plain, 'z'
   compressed by gzip; 0: no. */
char oci_archive_type(const char *media_type);

/* Adds the files of an archive to the source, and to `places`, of which each line says where a
   file is: its number, the type and the digest of the layer. */
bool oci_add_archive(struct http *http, const char *repo, const char *digest, char type,
                     struct qdqr_source *source, FILE *places,
                     struct api_problem *problem);

/* Writes a file of the source to `fd`. *ret_done is false when it is not in an archive. */
bool oci_pull_archived(struct http *http, const struct qdqr_source *source, size_t file,
                       int fd, bool *ret_done, struct api_problem *problem);

#endif
