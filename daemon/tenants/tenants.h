/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tenants: those who share a daemon and are to know nothing of each other. Each has a
 * state folder of its own, with its database, its files and its queue, so no request of
 * one can come near what another has stored, asked or been answered, also where the bytes
 * are the same. What they share are the lanes: a tenant whose last job was taken longest
 * ago is served first.
 *
 * The one without a name has the state folder itself; the others lie below it in
 * "tenants/NAME". All that were there at the start are served from then on, others are
 * made when they are first asked for, and none is closed before the end.
 *
 * Any thread may call. The order of locks: base/locks.h.
 */
#ifndef QDQD_TENANTS_TENANTS_H
#define QDQD_TENANTS_TENANTS_H

#include "jobs/job.h"
#include "settings/settings.h"
#include "tenants/service.h"

#define TENANT_SIZE 64
#define ALL_TENANTS "*" /* in the place of a name */

struct tenants;

/*
 * The limits that a tenant may have of its own, in the place of the settings of the same
 * names in the section `tenants`: LIMIT(member).
 */
#define TENANT_LIMITS(LIMIT) LIMIT(queue) LIMIT(max_bytes) LIMIT(job_timeout)

struct tenant_limits {
    int64_t queue, max_bytes, job_timeout; /* 0: none of its own */
};

struct tenant_own {
    char name[TENANT_SIZE];
    struct tenant_limits limits;
};

/* Is this a tenant's name? "" is none. Lower case, digits, '-', '_', '.', and it begins
   with a letter or digit. */
bool tenant_is_name(const char *name);

/* `settings` is borrowed. */
bool tenants_open(const struct settings *settings, struct tenants **ret,
                  struct api_problem *p);
/* From now on their services have it; to be said before one is served. Borrowed. */
void tenants_set_pool(struct tenants *tenants, struct pool *pool);
void tenants_close(struct tenants **tenants);
/* storage.max_bytes: of who has no name, and of those with one where they have none of
   their own. */
int64_t tenants_budget(const struct tenants *tenants);
/* What is counted of all of them; lives as long as they do. */
struct metrics *tenants_metrics(struct tenants *tenants);

/* The service of a tenant; "": of the one without a name. Lives as long as the tenants.
   NOT_FOUND when there is none and it is not to be made. */
bool tenants_get(struct tenants *tenants, const char *name, bool make,
                 const struct service **ret, struct api_problem *p);
/* From now on these hold, and no others; takes the list, which free() frees. */
void tenants_limit(struct tenants *tenants, struct tenant_own *list, size_t n);
/* Calls `fn` with each service. */
void tenants_each(struct tenants *tenants,
                  void (*fn)(void *arg, const struct service *service), void *arg);

/* Takes over what may change from `fresh` into `settings`, which are those it was opened
   with, and into what each tenant has of them; as settings_apply(). */
void tenants_reload(struct tenants *tenants, struct settings *settings,
                    const struct settings *fresh, settings_tell_fn tell);

/* Waits for a job, takes it into an idle slot and says whose it is; false: there will be
   no more. */
bool tenants_claim(struct tenants *tenants, struct job_slot *slot,
                   const struct service **ret_service, struct store_job *ret);

/* As jobs_drain(), jobs_are_idle() and jobs_stop(), for all of them. */
void tenants_drain(struct tenants *tenants);
bool tenants_are_idle(struct tenants *tenants);
void tenants_stop(struct tenants *tenants);

#endif
