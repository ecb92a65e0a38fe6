/* SPDX-License-Identifier: Apache-2.0 */
/* A parsed document and the arrays that are made of it. */
#ifndef API_DOCUMENTS_CLIENT_H
#define API_DOCUMENTS_CLIENT_H

#include "api/client.h"
#include "base/json.h"

struct api_document {
    json_t *json;
    void **blocks; /* owned */
    size_t n_blocks;
};

/* Returns zeroed memory that belongs to the document, at least one element; NULL when out of
   memory. */
void *api_document_alloc(struct api_document *document, size_t n, size_t size);

/* Return a member of an object, or NULL, 0, false and NaN where it has another type. */
const char *api_get_text(const json_t *object, const char *name);
int64_t api_get_integer(const json_t *object, const char *name);
double api_get_real(const json_t *object, const char *name);

#endif
