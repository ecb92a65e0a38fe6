/* SPDX-License-Identifier: Apache-2.0 */
/* The handlers of the results of a job with several targets: each is a job of its own, whose handlers
   answer (store/several/targets.h). */
#include "config.h"
#include "handlers/handlers.h"
#include "store/several/targets.h"

#include <stdio.h>

/* Answers as for the job of the target in the path. */
static void
answer(struct request *request, handler_fn handler)
{
    struct store *store = library_store(request->service->library);
    struct api_match *match = &request->match;
    struct store_job row;
    if (!store_target_get(store, match->id, match->second, &row, &request->problem))
        return;
    snprintf(match->id, sizeof match->id, "%s", row.id);
    store_job_fini(&row);
    handler(request);
}

void
handle_target_model(struct request *request)
{
    answer(request, handle_job_model);
}

void
handle_target_report(struct request *request)
{
    answer(request, handle_job_report);
}

void
handle_target_spec(struct request *request)
{
    answer(request, handle_job_spec);
}

void
handle_target_signature(struct request *request)
{
    answer(request, handle_job_signature);
}

void
handle_target_provenance(struct request *request)
{
    answer(request, handle_job_provenance);
}

void
handle_target_bom(struct request *request)
{
    answer(request, handle_job_bom);
}
