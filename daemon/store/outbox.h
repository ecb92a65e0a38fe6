/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work with remotes that the record asks for: jobs whose inputs are to be fetched, and
 * deliveries (publications of results, and events for webhooks). Deliveries are written
 * by triggers of the database (store/steps.h) in the transaction that ends their job, so
 * that a crash loses none and makes none twice.
 *
 * The thread that claims a fetch or a delivery ends it by one of the calls below; after a
 * crash store_recover() gives it back. Where daemons share the record, a claim has a lease and a
 * number, the fence: a claim that another one has followed changes nothing any more, and
 * the calls say so. Times are milliseconds since 1970 UTC; `now` is ignored there, because
 * the database's clock counts.
 */
#ifndef QDQD_STORE_OUTBOX_H
#define QDQD_STORE_OUTBOX_H

#include "store/store.h"

#define DELIVERY_ID_SIZE 120

/* --- fetching -------------------------------------------------------------- */

/* Claims the next job whose fetch is due. *ret_any is false when there is none. */
bool store_fetch_claim(struct store *store, int64_t now, struct store_job *ret,
                       bool *ret_any, struct api_problem *p);
/* How long a claimed fetch waits for its next attempt. */
struct store_fetch_wait {
    int64_t fence;       /* of the claim; 0: whoever has it */
    int charge;          /* is added to the attempts */
    int64_t now, for_ms; /* when, and for how long from then on */
};
/* Lets a claimed fetch wait. *ret_held is false when the claim was not the last one. */
bool store_fetch_later(struct store *store, const char *id,
                       const struct store_fetch_wait *wait, bool *ret_held,
                       struct api_problem *p);
/*
 * Stores what a claimed job has fetched: model, calibration, source, observations,
 * wants_gpu and fence of `job` are read. The job then waits for a lane, or is answered by
 * another one, or joins it, like a job that is added. *ret_was is false when it was
 * cancelled meanwhile, or claimed again, or a file is gone.
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
    int64_t fence; /* number of the claim, where the record is shared; else 0 */
};

enum store_delivery_state {
    STORE_PENDING,
    STORE_DELIVERED,
    STORE_UNDELIVERED, /* shown as "failed" */
};

/* Claims the delivery that is due first. *ret_any is false when there is none. */
bool store_delivery_claim(struct store *store, int64_t now, struct store_delivery *ret,
                          bool *ret_any, struct api_problem *p);
/* How an attempt ended. Texts are borrowed. */
struct store_attempt {
    enum store_delivery_state state;
    const char *location; /* where the result is now; NULL: nowhere */
    const char *error;    /* a problem document; NULL: there was none */
    int64_t now, wait_ms; /* when, and how long one that stays pending waits then */
};
/* Ends an attempt. *ret_held is false when the claim was not the last one: then nothing was
   changed. */
bool store_delivery_end(struct store *store, const struct store_delivery *delivery,
                        const struct store_attempt *attempt, bool *ret_held,
                        struct api_problem *p);
/* Gives a claimed delivery back as if it had not been claimed, if it is still this claim's. */
bool store_delivery_unclaim(struct store *store, const struct store_delivery *delivery,
                            struct api_problem *p);
/* Lets the lease of a claim begin anew. *ret_held is false when the delivery is another
   claim's, or may be. */
bool store_delivery_renew(struct store *store, const char *id, int64_t fence,
                          bool *ret_held, struct api_problem *p);
/* Lets a delivery that failed be tried again. NOT_FOUND; ENDED when it has not failed. */
bool store_delivery_retry(struct store *store, const char *job, const char *id,
                          struct api_problem *p);
void store_delivery_fini(struct store_delivery *delivery);

/* Finds how long it is until the next fetch or delivery is due, in ms, of those that the caller
   asks for; -1: none waits. */
bool store_outbox_wait(struct store *store, int64_t now, bool fetches, bool deliveries,
                       int64_t *ret, struct api_problem *p);

/* A webhook that is told of jobs. Texts are borrowed. */
struct store_webhook {
    const char *name, *events;           /* events with commas between and around */
    const char *label_key, *label_value; /* NULL: jobs with any labels */
};
/* Replaces the webhooks, of which the ends of jobs from then on are told. */
bool store_set_webhooks(struct store *store, const struct store_webhook *list, size_t n,
                        struct api_problem *p);

#endif
