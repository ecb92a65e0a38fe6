/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tenants, who share a daemon without knowing of each other. Each tenant has a
 * state folder of its own with its database, its files and its queue. So no request of
 * a tenant can reach what another has stored, asked or been answered, even where the
 * bytes are equal. They share the lanes: the tenant whose last job was claimed longest
 * ago is served first.
 *
 * The tenant without a name uses the state folder itself; the others use "tenants/NAME"
 * below it. Tenants that have a folder when the daemon starts are served from then on;
 * others are opened when a request first names them, or another daemon has made them. No tenant is closed before the
 * end.
 *
 * Any thread may call. The order of locks: base/locks.h.
 */
#ifndef QDQD_TENANTS_TENANTS_H
#define QDQD_TENANTS_TENANTS_H

#include "jobs/job.h"
#include "settings/settings.h"
#include "tenants/service.h"

#define TENANT_SIZE 64
#define ALL_TENANTS "*" /* stands in the place of a name */

struct bucket;
struct remotes;
struct tenants;

/* The limits that a tenant may have of its own, instead of the settings of the same
   names in the section `tenants`: LIMIT(member). */
#define TENANT_LIMITS(LIMIT) LIMIT(queue) LIMIT(max_bytes) LIMIT(job_timeout)

struct tenant_limits {
    int64_t queue, max_bytes, job_timeout; /* 0: the tenant has no limit of its own */
};

struct tenant_own {
    char name[TENANT_SIZE];
    struct tenant_limits limits;
};

/* Returns whether this is a tenant's name: lower case letters, digits, '-', '_' and
   '.', beginning with a letter or digit. "" is not. */
bool tenant_is_name(const char *name);

/* Borrows `settings`, and the bucket that has the blobs of all tenants (NULL: none). */
bool tenants_open(const struct settings *settings, const struct bucket *bucket,
                  struct tenants **ret, struct api_problem *p);
/* Returns that bucket. */
const struct bucket *tenants_bucket(const struct tenants *tenants);
/* Returns whether stored files can be read and written now, wherever they are. */
bool tenants_have_blobs(const struct tenants *tenants);
/* Sets the pool that the services name. Called before a request is served. Borrowed. */
void tenants_set_pool(struct tenants *tenants, struct pool *pool);
void tenants_close(struct tenants **tenants);
/* Returns storage.max_bytes, which limits the tenant without a name, and tenants
   with a name that have no limit of their own. */
int64_t tenants_budget(const struct tenants *tenants);
/* Sets the remotes that jobs may name from now on; takes a share of them. */
void tenants_set_remotes(struct tenants *tenants, struct remotes *remotes);
/* Returns the identity of what runs a tenant's models at present: of libraries and runners. The caller
   frees it; NULL when out of memory. */
char *tenants_runtime(const struct service *service);
/* Returns the present remotes, which the caller releases (remotes_release()). */
struct remotes *tenants_remotes(struct tenants *tenants);
/* Returns the bell of all jobs, lanes and carriers. */
struct bell *tenants_bell(struct tenants *tenants);
/* Returns the metrics, which sum over all tenants and live as long as they do. */
struct metrics *tenants_metrics(struct tenants *tenants);

/* Finds the service of a tenant; "" names the tenant without a name. Opens the
   tenant if `make` is true. The service lives as long as the tenants. NOT_FOUND. */
bool tenants_get(struct tenants *tenants, const char *name, bool make,
                 const struct service **ret, struct api_problem *p);
/* Opens the tenants that other daemons have made in a record that is shared, because jobs may
   wait in their queues. */
bool tenants_open_stored(struct tenants *tenants, struct api_problem *p);
/* Replaces the tenants' own limits. Takes ownership of the list, which free() frees. */
void tenants_limit(struct tenants *tenants, struct tenant_own *list, size_t n);
/* Calls `fn` with each service. */
void tenants_each(struct tenants *tenants,
                  void (*fn)(void *arg, const struct service *service), void *arg);

/*
 * Applies the settings of `fresh` that can change while the daemon runs, like
 * settings_apply(): to `settings`, with which the tenants were opened, and to the
 * settings of each tenant.
 */
void tenants_reload(struct tenants *tenants, struct settings *settings,
                    const struct settings *fresh, settings_change_fn on_change);

/* Waits for a job and claims it into an idle slot. *ret_service is the service of
   its tenant, *ret_ms the time of the claim. Returns false when no more jobs will be claimed. */
bool tenants_claim(struct tenants *tenants, struct job_slot *slot,
                   const struct service **ret_service, struct store_job *ret,
                   int64_t *ret_ms);
/* Says that the lane which claimed a job at that time can run another one. */
void tenants_lane_is_free(struct tenants *tenants, const struct service *service,
                          int64_t claimed_ms);

/* These call jobs_drain(), jobs_are_idle() and jobs_stop() for all tenants. */
void tenants_drain(struct tenants *tenants);
bool tenants_are_idle(struct tenants *tenants);
void tenants_stop(struct tenants *tenants);

#endif
