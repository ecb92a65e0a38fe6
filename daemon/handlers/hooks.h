/* SPDX-License-Identifier: Apache-2.0 */
/* New versions of models, of which a message or a poll tells, become jobs by the rule of a
   hook. */
#ifndef QDQD_HANDLERS_HOOKS_H
#define QDQD_HANDLERS_HOOKS_H

#include "jobs/job.h"
#include "settings/remotes.h"
#include "tenants/service.h"

/* A version that a hook is told of. Texts are borrowed. */
struct hook_news {
    const char *name, *version;
    const char *message; /* the id of the message; NULL: a poll found the version */
};

/*
 * Submits the job for a version, as the hook's tenant. A message with the same id finds the
 * same job. `id` is "" where there is nothing to do: a poll was first, or for a poll the
 * version is known and its job was made. BAD_REQUEST: the names make no ref of the remote's. *ret_service is the service of the tenant.
 */
bool hook_submit(struct tenants *tenants, const struct hook *hook,
                 const struct hook_news *news, char id[JOB_ID_SIZE],
                 const struct service **ret_service, struct api_problem *p);
/*
 * Records a version that a poll found and that can never become a job, so that it is told of
 * once: *ret_new.
 */
bool hook_leave_out(const struct service *service, const struct hook *hook,
                    const struct hook_news *news, bool *ret_new, struct api_problem *p);

#endif
