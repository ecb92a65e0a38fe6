/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "store/outbox.h"
#include "store/inner.h"

/* --- fetching -------------------------------------------------------------- */

bool
store_fetch_claim(struct store *store, int64_t now, struct store_job *ret,
                  bool *ret_any, struct api_problem *p)
{
    lock_acquire(&store->lock);
    bind_all(&store->statements[FETCH_CLAIM], 1, INT(now), INT(store->lease_ms));
    bool ok = store_read_job(store, FETCH_CLAIM, ret, ret_any, p);
    lock_release(&store->lock);
    return ok;
}

bool
store_fetch_later(struct store *store, const char *id,
                  const struct store_fetch_wait *wait, bool *ret_held,
                  struct api_problem *p)
{
    lock_acquire(&store->lock);
    bind_all(&store->statements[FETCH_LATER], 1, TEXT(id), INT(wait->charge),
             INT(wait->now), INT(wait->for_ms), INT(wait->fence));
    bool ok = change(store, FETCH_LATER, ret_held, p);
    lock_release(&store->lock);
    return ok;
}

static bool
update_fetched(struct store *store, const struct store_job *job, const char *identity,
               bool *ret_was, struct api_problem *p)
{
    bind_all(&store->statements[FETCH_DONE], 1, TEXT(job->id), TEXT(job->model),
             TEXT(job->calibration), TEXT(job->source), TEXT(identity),
             TEXT(*job->observations ? job->observations : NULL), INT(job->wants_gpu),
             INT(job->fence));
    return change(store, FETCH_DONE, ret_was, p);
}

bool
store_fetch_done(struct store *store, const struct store_job *job, const char *identity,
                 enum store_added *ret, bool *ret_was, struct api_problem *p)
{
    *ret = STORE_QUEUED;
    *ret_was = false;
    lock_acquire(&store->lock);
    bool ok = run(store, BEGIN, p);
    if (ok) {
        ok = update_fetched(store, job, identity, ret_was, p) &&
             (!*ret_was || store_set_processor(store, job, p)) &&
             (!*ret_was || store_settle_job(store, job, identity, ret, p));
        ok = finish(store, ok, p);
    }
    lock_release(&store->lock);
    return ok && store_sync(store, p);
}

static void
bind_fetched(struct store *store, enum statement s, const struct store_fetched *key)
{
    bind_all(&store->statements[s], 1, TEXT(key->remote), TEXT(key->ref),
             TEXT(key->digest), INT((int)key->kind));
}

bool
store_fetched_get(struct store *store, const struct store_fetched *key,
                  char ret[DIGEST_SIZE], bool *ret_any, struct api_problem *p)
{
    lock_acquire(&store->lock);
    struct stmt *stmt = &store->statements[FETCHED_GET];
    bind_fetched(store, FETCHED_GET, key);
    int rc = step(stmt);
    *ret_any = rc == DB_ROW;
    if (*ret_any)
        column_chars(stmt, 0, ret, DIGEST_SIZE);
    bool ok = rc == DB_ROW || rc == DB_DONE || fail(store, p);
    done(stmt);
    lock_release(&store->lock);
    return ok;
}

bool
store_fetched_put(struct store *store, const struct store_fetched *key, const char *id,
                  struct api_problem *p)
{
    lock_acquire(&store->lock);
    bind_fetched(store, FETCHED_PUT, key);
    bind_text(&store->statements[FETCHED_PUT], 5, id);
    bool ok = run(store, FETCHED_PUT, p);
    lock_release(&store->lock);
    return ok;
}

/* --- deliveries ------------------------------------------------------------ */

static bool
column_delivery(struct stmt *stmt, struct store_delivery *ret, struct api_problem *p)
{
    struct store_delivery delivery = {0};
    bool ok = true;
    column_chars(stmt, 0, delivery.id, sizeof delivery.id);
    column_chars(stmt, 1, delivery.job, sizeof delivery.job);
    delivery.remote = column_text(stmt, 2, &ok);
    delivery.event = column_text(stmt, 3, &ok);
    delivery.publication = column_text(stmt, 4, &ok);
    delivery.attempts = column_int(stmt, 5);
    delivery.created_at = column_int(stmt, 6);
    delivery.fence = column_int(stmt, 7);
    *ret = delivery;
    return ok || api_problem_no_memory(p);
}

bool
store_delivery_claim(struct store *store, int64_t now, struct store_delivery *ret,
                     bool *ret_any, struct api_problem *p)
{
    struct store_delivery delivery = {0};
    lock_acquire(&store->lock);
    struct stmt *stmt = &store->statements[DELIVERY_CLAIM];
    bind_all(stmt, 1, INT(now), INT(store->lease_ms));
    int rc = step(stmt);
    *ret_any = rc == DB_ROW;
    bool ok = *ret_any ? column_delivery(stmt, &delivery, p)
                       : rc == DB_DONE || fail(store, p);
    /* An UPDATE with RETURNING takes effect when it is stepped to its end. */
    if (ok && *ret_any)
        ok = step(stmt) == DB_DONE || fail(store, p);
    done(stmt);
    lock_release(&store->lock);
    *ret_any = ok && *ret_any;
    if (*ret_any)
        *ret = delivery;
    else
        store_delivery_fini(&delivery);
    return ok;
}

bool
store_delivery_end(struct store *store, const struct store_delivery *delivery,
                   const struct store_attempt *attempt, bool *ret_held,
                   struct api_problem *p)
{
    static const char *const names[] = {[STORE_PENDING] = "pending",
                                        [STORE_DELIVERED] = "delivered",
                                        [STORE_UNDELIVERED] = "failed"};
    lock_acquire(&store->lock);
    bind_all(&store->statements[DELIVERY_END], 1, TEXT(delivery->id),
             TEXT(names[attempt->state]), TEXT(attempt->location), TEXT(attempt->error),
             INT(attempt->now), INT(attempt->wait_ms), INT(delivery->fence));
    bool ok = change(store, DELIVERY_END, ret_held, p);
    lock_release(&store->lock);
    return ok && store_sync(store, p);
}

bool
store_delivery_unclaim(struct store *store, const struct store_delivery *delivery,
                       struct api_problem *p)
{
    lock_acquire(&store->lock);
    bind_all(&store->statements[DELIVERY_UNCLAIM], 1, TEXT(delivery->id),
             INT(delivery->fence));
    bool ok = run(store, DELIVERY_UNCLAIM, p);
    lock_release(&store->lock);
    return ok;
}

bool
store_delivery_renew(struct store *store, const char *id, int64_t fence, bool *ret_held,
                     struct api_problem *p)
{
    return store_renew(store, DELIVERY_RENEW, id, fence, NULL, ret_held, p);
}

bool
store_delivery_retry(struct store *store, const char *job, const char *id,
                     struct api_problem *p)
{
    bool any = false;
    int64_t has_failed = 0;
    lock_acquire(&store->lock);
    bind_all(&store->statements[DELIVERY_STATE], 1, TEXT(id), TEXT(job));
    bool ok = ask(store, DELIVERY_STATE, &any, &has_failed, p);
    if (ok && !any)
        ok = api_problem_set(p, API_NOT_FOUND, QDQ_AT_NOTHING, NULL,
                             "the job has no such delivery");
    else if (ok && !has_failed)
        ok = api_problem_set(p, API_ENDED, QDQ_AT_NOTHING, NULL,
                             "the delivery has not failed: it waits, or was delivered");
    if (ok) {
        bind_all(&store->statements[DELIVERY_RETRY], 1, TEXT(id), TEXT(job));
        ok = run(store, DELIVERY_RETRY, p);
    }
    lock_release(&store->lock);
    return ok && store_sync(store, p);
}

void
store_delivery_fini(struct store_delivery *delivery)
{
    free(delivery->remote);
    free(delivery->event);
    free(delivery->publication);
    *delivery = (struct store_delivery){0};
}

bool
store_outbox_wait(struct store *store, int64_t now, bool fetches, bool deliveries,
                  int64_t *ret, struct api_problem *p)
{
    bool any = false;
    lock_acquire(&store->lock);
    *ret = 0;
    bind_all(&store->statements[OUTBOX_WAIT], 1, INT(now), INT(fetches),
             INT(deliveries));
    bool ok = ask(store, OUTBOX_WAIT, &any, ret, p);
    if (*ret < 0)
        *ret = 0;
    if (!any)
        *ret = -1;
    lock_release(&store->lock);
    return ok;
}

bool
store_set_webhooks(struct store *store, const struct store_webhook *list, size_t n,
                   struct api_problem *p)
{
    lock_acquire(&store->lock);
    bool ok = run(store, BEGIN, p);
    if (ok) {
        struct stmt *stmt = &store->statements[WEBHOOK_ADD];
        ok = run(store, WEBHOOKS_CLEAR, p);
        for (size_t i = 0; ok && i < n; i++) {
            bind_all(stmt, 1, TEXT(list[i].name), TEXT(list[i].events),
                     TEXT(list[i].label_key), TEXT(list[i].label_value));
            ok = run(store, WEBHOOK_ADD, p);
        }
        ok = finish(store, ok, p);
    }
    lock_release(&store->lock);
    return ok;
}
