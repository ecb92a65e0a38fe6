/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a tar archive, plain or compressed by gzip, as its bytes arrive. */
#ifndef REMOTE_OCI_UNTAR_H
#define REMOTE_OCI_UNTAR_H

#include "remote/remote.h"

struct untar;

/* Calls that return false with a problem end the reading. */
struct untar_calls {
    /* A file begins. Its name has no "./" before it and may be anything else. */
    bool (*on_file)(void *arg, const char *name, int64_t size,
                    struct api_problem *problem);
    /* Bytes of that file. NULL: they are not wanted. */
    bool (*on_bytes)(void *arg, const char *bytes, size_t len,
                     struct api_problem *problem);
    void *arg;
    int64_t most; /* bytes that the unpacked archive may have */
};

/* NULL: out of memory. */
struct untar *untar_new(const struct untar_calls *calls, bool is_gzip);
void untar_free(struct untar **untar);
/* Reads the next bytes. REMOTE_UNAVAILABLE: they are no archive. */
bool untar_feed(struct untar *untar, const char *bytes, size_t len,
                struct api_problem *problem);
/* Returns whether all bytes were there. */
bool untar_finish(const struct untar *untar, struct api_problem *problem);

#endif
