/* SPDX-License-Identifier: Apache-2.0 */
/* URLs of S3 that carry their signature (SigV4) and the time until which they hold, by the clock of
   the server. */
#ifndef REMOTE_S3_S3_PRESIGN_H
#define REMOTE_S3_S3_PRESIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct s3_key {
    const char *id, *secret, *token; /* token: of a session; "": none */
    const char *region;
};

/* The time of a request: from `since`, in seconds since 1970, for `seconds`. */
struct s3_while {
    int64_t since;
    int seconds;
};

/* Appends the query of a request without a body to its URL, which has none and is escaped already.
   Returns false when the URL becomes too long, or out of memory. */
bool s3_presign(const struct s3_key *key, const char *method, struct s3_while when,
                char *url, size_t size);

#endif
