/* SPDX-License-Identifier: Apache-2.0 */
/* Stands for this folder, hints.c and offline.c in a build without libpq. */
#include "config.h"
#include "store/db.h"
#include "store/hints.h"
#include "store/postgres/offline.h"

static bool
refuse(struct api_problem *p)
{
    return api_problem_set(p, API_UNAVAILABLE, QDQ_AT_NOTHING, NULL,
                           "store.url: this qdqd was built without PostgreSQL: install "
                           "libpq-dev and build it again");
}

bool
db_open_postgres(const struct store_place *place, struct db **ret,
                 struct api_problem *p)
{
    (void)place;
    (void)ret;
    return refuse(p);
}

bool
survey_tenants(const char *url,
               bool (*fn)(void *arg, const char *tenant, struct api_problem *p),
               void *arg, struct api_problem *p)
{
    (void)url;
    (void)fn;
    (void)arg;
    return refuse(p);
}

bool
survey_blobs(const char *url, const char *tenant,
             bool (*fn)(void *arg, const char *id, struct api_problem *p), void *arg,
             struct api_problem *p)
{
    (void)url;
    (void)tenant;
    (void)fn;
    (void)arg;
    return refuse(p);
}

bool
transfer_open(const char *url, struct transfer **ret, struct api_problem *p)
{
    (void)url;
    *ret = NULL;
    return refuse(p);
}

bool
transfer_record(struct transfer *transfer, const char *path, const char *tenant,
                uint64_t *ret_rows, struct api_problem *p)
{
    (void)transfer;
    (void)path;
    (void)tenant;
    (void)ret_rows;
    return refuse(p);
}

bool
transfer_tokens(struct transfer *transfer, const struct store_token *tokens, size_t n,
                struct api_problem *p)
{
    (void)transfer;
    (void)tokens;
    (void)n;
    return refuse(p);
}

bool
transfer_commit(struct transfer *transfer, struct api_problem *p)
{
    (void)transfer;
    return refuse(p);
}

void
transfer_close(struct transfer **transfer)
{
    *transfer = NULL;
}

void
store_hint(struct store *store)
{
    (void)store;
}

struct hint_listener *
hint_listener_new(const char *url)
{
    (void)url;
    return NULL;
}

void
hint_listener_free(struct hint_listener **listener)
{
    *listener = NULL;
}

bool
hint_listener_wait(struct hint_listener *listener, int64_t ms)
{
    (void)listener;
    (void)ms;
    return false;
}
