/* SPDX-License-Identifier: Apache-2.0 */
/* The handler of comparisons: of two jobs, or of the targets of one. */
#include "config.h"
#include "handlers/handlers.h"
#include "store/several/targets.h"
#include "api/compare.h"
#include "api/overview.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const types[] = {"application/json", "text/html"};

/* Replies with a comparison as the type that was chosen. */
static void
reply_comparison(struct request *request, size_t chosen, char *text)
{
    reply_made(request, chosen ? "text/html; charset=utf-8" : types[0], text, chosen);
}

/* --- two jobs ------------------------------------------------------------------ */

/* Reads the reports of the job in the path and of the job in the query. The caller frees
   their texts, also where this returns false. */
static bool
read_compared(struct request *request, struct api_compared ret[2], char id[JOB_ID_SIZE])
{
    const char *with = request_query(request, "with");
    struct job_document documents[2];
    if (!with || strlen(with) >= JOB_ID_SIZE)
        return api_fail(&request->problem, API_BAD_REQUEST,
                        "the query's with is to be the id of another job");
    snprintf(id, JOB_ID_SIZE, "%s", with);
    ret[0].id = request->match.id;
    ret[1].id = id;
    if (!open_job_report(request, ret[0].id, &documents[0]))
        return false;
    if (!open_job_report(request, ret[1].id, &documents[1])) {
        close(documents[0].fd);
        return false;
    }
    bool ok = reserve_decoded(request, documents[0].size + documents[1].size);
    for (int i = 0; i < 2; i++) {
        ret[i].json = read_job_report(request, &documents[i], ok);
        ret[i].len = documents[i].size;
        ok = ret[i].json;
    }
    return ok;
}

static void
compare_two(struct request *request, size_t chosen)
{
    struct api_compared jobs[2] = {0};
    char id[JOB_ID_SIZE];
    if (read_compared(request, jobs, id))
        reply_comparison(request, chosen,
                         chosen ? api_compare_html(&jobs[0], &jobs[1])
                                : api_compare_encode(&jobs[0], &jobs[1]));
    free(jobs[0].json);
    free(jobs[1].json);
}

/* --- the targets of a job ------------------------------------------------------ */

/* A target and its report. */
struct compared_target {
    struct store_job row;
    struct job_document document;
    bool is_open;
    char *json;
};

/* Opens the reports that the targets of a job have. *ret_size is the bytes of all. */
static bool
open_targets(struct request *request, struct compared_target *all, size_t n,
             const char (*ids)[JOB_ID_SIZE], uint64_t *ret_size)
{
    struct store *store = library_store(request->service->library);
    bool ok = true;
    *ret_size = 0;
    for (size_t i = 0; ok && i < n; i++) {
        struct compared_target *one = &all[i];
        ok = store_job_get(store, ids[i], &one->row, &request->problem);
        if (!ok || !one->row.report)
            continue;
        ok = one->is_open = open_job_report(request, ids[i], &one->document);
        *ret_size += one->document.size;
    }
    return ok;
}

/* Reads the open reports and closes them. */
static bool
read_targets(struct request *request, struct compared_target *all, size_t n, bool ok)
{
    for (size_t i = 0; i < n; i++) {
        if (!all[i].is_open)
            continue;
        all[i].json = read_job_report(request, &all[i].document, ok);
        ok = ok && all[i].json;
    }
    return ok;
}

/* Makes the comparison of the targets that have a report, and of those that failed. */
static char *
make_overview(const struct compared_target *all, size_t n, bool is_page)
{
    struct api_overviewed *reports = calloc(n + 1, sizeof *reports);
    for (size_t i = 0; reports && i < n; i++) {
        const struct api_problem *error = &all[i].row.error;
        reports[i] = (struct api_overviewed){all[i].row.target, all[i].json,
                                             all[i].document.size, NULL, NULL};
        if (error->set) {
            reports[i].problem = api_problem_slug(error->code);
            reports[i].detail = error->detail;
        } else if (all[i].row.state == API_JOB_CANCELLED) {
            reports[i].problem = api_problem_slug(API_CANCELLED);
            reports[i].detail = "the job was cancelled";
        }
    }
    char *text = !reports  ? NULL
                 : is_page ? api_overview_html(reports, n)
                           : api_overview_encode(reports, n);
    free(reports);
    return text;
}

static void
compare_targets(struct request *request, size_t chosen)
{
    struct api_problem *p = &request->problem;
    struct store *store = library_store(request->service->library);
    char(*ids)[JOB_ID_SIZE];
    size_t n;
    uint64_t size = 0;
    if (!store_target_ids(store, request->match.id, &ids, &n, p))
        return;
    struct compared_target *all = calloc(n + 1, sizeof *all);
    bool ok =
        (all || api_problem_no_memory(p)) && open_targets(request, all, n, ids, &size);
    ok = ok && reserve_decoded(request, size);
    ok = all && read_targets(request, all, n, ok) && ok;
    if (ok)
        reply_comparison(request, chosen, make_overview(all, n, chosen));
    for (size_t i = 0; all && i < n; i++) {
        store_job_fini(&all[i].row);
        free(all[i].json);
    }
    free(all);
    free(ids);
}

/* --- the route ----------------------------------------------------------------- */

/* Finds whether the comparison is that of the job's own targets, which have all ended. */
static bool
is_of_targets(struct request *request, bool *ret)
{
    struct api_problem *p = &request->problem;
    struct job_view view = {0};
    if (request_query(request, "with")) {
        *ret = false;
        return true;
    }
    bool ok = wait_for_job(request, request->match.id, &view);
    *ret = ok && view.row.targets;
    if (*ret && !api_job_state_ended(view.row.state))
        ok = api_fail(p, API_NOT_FINISHED, "the job is %s",
                      api_job_state_name(view.row.state));
    job_view_fini(&view);
    return ok;
}

void
handle_job_compare(struct request *request)
{
    bool of_targets;
    size_t chosen =
        choose_type(request, types, 2, "a comparison is application/json or text/html");
    reply_header(request, "Vary", "Accept");
    if (chosen == 2 || !is_of_targets(request, &of_targets))
        return;
    if (of_targets)
        compare_targets(request, chosen);
    else
        compare_two(request, chosen);
}
