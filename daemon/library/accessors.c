/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "library/inner.h"

void
library_set_tenant(struct library *library, const char *tenant)
{
    library->tenant = tenant;
}

void
library_set_sharers(struct library *library, library_sharers_fn fn, void *arg)
{
    library->sharers = fn;
    library->sharers_arg = arg;
}

const char *
library_tenant(const struct library *library)
{
    return library->tenant && *library->tenant ? library->tenant : "-";
}

struct store *
library_store(struct library *library)
{
    return library->store;
}

struct blobs *
library_blobs(struct library *library)
{
    return library->blobs;
}
