/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work with remotes that the record asks for: jobs whose inputs are to be fetched, and
 * deliveries (publications of results, and events for webhooks). Deliveries are written
 * by triggers of the database (store/steps.h) in the transaction that ends their job, so
 * that a crash loses none and makes none twice.
 *
 * Whoever claims a fetch or a delivery ends it by one of the calls below; after a crash
 * store_recover() gives it back. Times are milliseconds since 1970 UTC.
 */
#ifndef QDQD_STORE_OUTBOX_H
#define QDQD_STORE_OUTBOX_H

#include "store/store.h"

#define DELIVERY_ID_SIZE 120

/* --- fetching -------------------------------------------------------------- */

/* Claims the next job whose fetch is due. *ret_any is false when there is none. */
bool store_fetch_claim(struct store *store, int64_t now, struct store_job *ret,
                       bool *ret_any, struct api_problem *p);
/* Lets a claimed fetch wait until `due`, and adds `charge` to its attempts. */
bool store_fetch_later(struct store *store, const char *id, int charge, int64_t due,
                       struct api_problem *p);
/*
 * Stores what a claimed job has fetched: model, calibration, source, observations and
 * wants_gpu of `job` are read. The job then waits for a lane, or is answered by another
 * one, or joins it, like a job that is added. *ret_was is false when it was cancelled
 * meanwhile, or a file is gone.
 */
bool store_fetch_done(struct store *store, const struct store_job *job,
                      const char *identity, enum store_added *ret, bool *ret_was,
                      struct api_problem *p);

/* A file that was fetched before. Equal digests of a remote mean equal bytes. Borrowed. */
struct store_fetched {
    const char *remote, *ref, *digest;
    enum store_kind kind;
};
bool store_fetched_get(struct store *store, const struct store_fetched *key,
                       char ret[DIGEST_SIZE], bool *ret_any, struct api_problem *p);
bool store_fetched_put(struct store *store, const struct store_fetched *key,
                       const char *id, struct api_problem *p);

/* --- deliveries ------------------------------------------------------------ */

struct store_delivery {
    char id[DELIVERY_ID_SIZE];
    char job[JOB_ID_SIZE];
    char *remote;
    char *event;       /* NULL: the job's result is published */
    char *publication; /* JSON; NULL for an event */
    int64_t attempts;  /* with this one */
    int64_t created_at;
};

enum store_delivery_state {
    STORE_PENDING,
    STORE_DELIVERED,
    STORE_UNDELIVERED, /* shown as "failed" */
};

/* Claims the delivery that is due first. *ret_any is false when there is none. */
bool store_delivery_claim(struct store *store, int64_t now, struct store_delivery *ret,
                          bool *ret_any, struct api_problem *p);
/* Ends an attempt. `location` is where the result is now, or NULL; `error` a problem
   document, or NULL; `due` the time of the next attempt of one that stays pending. */
bool store_delivery_end(struct store *store, const char *id,
                        enum store_delivery_state state, const char *location,
                        const char *error, int64_t due, struct api_problem *p);
/* Gives a claimed delivery back as if it had not been claimed. */
bool store_delivery_unclaim(struct store *store, const char *id, struct api_problem *p);
/* Lets a delivery that failed be tried again. NOT_FOUND; ENDED when it has not failed. */
bool store_delivery_retry(struct store *store, const char *job, const char *id,
                          struct api_problem *p);
void store_delivery_fini(struct store_delivery *delivery);

/* Finds when the next fetch or delivery is due; -1: none waits. */
bool store_outbox_due(struct store *store, int64_t *ret, struct api_problem *p);

/* A webhook that is told of jobs. Texts are borrowed. */
struct store_webhook {
    const char *name, *events;           /* events with commas between and around */
    const char *label_key, *label_value; /* NULL: jobs with any labels */
};
/* Replaces the webhooks, of which the ends of jobs from then on are told. */
bool store_set_webhooks(struct store *store, const struct store_webhook *list, size_t n,
                        struct api_problem *p);

#endif
