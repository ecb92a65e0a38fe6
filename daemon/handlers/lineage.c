/* SPDX-License-Identifier: Apache-2.0 */
/* The handlers of what proves where a result came from (jobs/lineage.h). */
#include "config.h"
#include "jobs/lineage.h"
#include "handlers/handlers.h"

static void
reply(struct request *request, enum lineage_document which)
{
    const struct service *service = request->service;
    struct api_problem *p = &request->problem;
    struct job_view view = {.eta_s = -1};
    struct lineage lineage = {.spec = NULL};
    const char *type;
    uint64_t cost;
    bool ok = wait_for_job(request, request->match.id, &view) &&
              check_succeeded(&view, p) &&
              lineage_cost(service->library, &view.row, &cost, p) &&
              body_reserve(&request->body, cost, p) &&
              lineage_read(service->library, &view.row, &lineage, p);
    char *text = ok ? lineage_document(&lineage, which, service->settings,
                                       service->metrics, &type, p)
                    : NULL;
    if (text)
        reply_text(request, 200, type, text);
    lineage_fini(&lineage);
    job_view_fini(&view);
}

void
handle_job_signature(struct request *request)
{
    reply(request, LINEAGE_SIGNATURE);
}

void
handle_job_provenance(struct request *request)
{
    reply(request, LINEAGE_PROVENANCE);
}

void
handle_job_bom(struct request *request)
{
    reply(request, LINEAGE_BOM);
}
