/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to S3, which pulls and publications share. libcurl signs them (SigV4). */
#ifndef REMOTE_S3_S3_API_H
#define REMOTE_S3_S3_API_H

#include "base/http.h"
#include "s3/s3_presign.h"

/* The header of a request without a body: the SHA-256 of no bytes. */
#define S3_NO_BODY                                           \
    "x-amz-content-sha256: e3b0c44298fc1c149afbf4c8996fb924" \
    "27ae41e4649b934ca495991b7852b855"

/* Most bytes of a list's token, with its NUL. It may have a whole key in it, in base64. */
#define S3_TOKEN 4096

/* Sets the credentials, an AWS credentials file, and makes http->base the bucket's URL. */
bool s3_authenticate(struct http *http, struct api_problem *problem);

/* Adds a signature to the URL of a request without a body, with which the server accepts the request
   for that time only, and from a handle without credentials. Without credentials it stays as it is. */
bool s3_sign_url(const struct http *http, const char *method, struct s3_while when,
                 char url[HTTP_URL], struct api_problem *problem);

/* Splits the URL of the remote: `base` becomes the bucket's URL, unless it is NULL, and the prefix
   of all keys is returned. */
const char *s3_split_url(const struct qdqr_remote *remote, char *base, size_t size);

/* Writes the URL of a key below the remote's prefix. */
bool s3_url(const struct http *http, const char *key, char url[HTTP_URL],
            struct api_problem *problem);

struct s3_object {
    const char *key;  /* below the remote's prefix */
    const char *etag; /* with its quotes */
    int64_t size;
    int64_t modified; /* seconds since 1970; 0: the list does not say */
};

/* Returns whether KEY and this ending are the key of data beside the model KEY. */
bool s3_is_data_ending(const char *ending);

/* Calls `visit` with each object whose key begins with `prefix`, until it returns false. */
typedef bool (*s3_visit_fn)(void *arg, const struct s3_object *object,
                            struct api_problem *problem);
/* Visits the objects of one page of a list, without the first `skip` bytes of their keys. Keys may
   be of any length. REMOTE_UNAVAILABLE: an entry cannot be read; none is left out. */
bool s3_visit_page(const char *page, size_t skip, s3_visit_fn visit, void *arg,
                   struct api_problem *problem);
bool s3_list(struct http *http, const char *prefix, s3_visit_fn visit, void *arg,
             struct api_problem *problem);
/* Visits one page of it: that of `token` ("": the first), which becomes the next page's, or ""
   behind the last one. The answer's headers can be read afterwards. */
bool s3_list_page(struct http *http, const char *prefix, char token[S3_TOKEN],
                  s3_visit_fn visit, void *arg, struct api_problem *problem);

/* Finds whether a key has an object. */
bool s3_find(struct http *http, const char *key, bool *ret_there,
             struct api_problem *problem);

/* Copies the text of the next element of that name and moves *at behind it. Returns false
   when there is none, or when it is too long. */
bool s3_element(const char **at, const char *name, char *ret, size_t size);

#endif
