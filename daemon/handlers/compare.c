/* SPDX-License-Identifier: Apache-2.0 */
/* The handler of comparisons: what differs between two jobs, and the results of several or of the targets of
   one, side by side. */
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
                        "the query's with is to be the id of another job, or several "
                        "with commas between");
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

/* --- several results ----------------------------------------------------------- */

enum { MOST_COMPARED = 64 };

/* A result that is compared, with its report where it has one. */
struct compared_row {
    struct store_job row;
    struct job_document document;
    bool is_open;
    char *json;
};

/* The jobs whose results are compared, and their labels: those of a target are the whole job's. */
struct compared_jobs {
    char ids[MOST_COMPARED][JOB_ID_SIZE];
    char *labels[MOST_COMPARED]; /* owned, or NULL */
    size_t n;
};

static void
jobs_fini(struct compared_jobs *jobs)
{
    for (size_t i = 0; i < jobs->n; i++)
        free(jobs->labels[i]);
}

/* Adds a job once. */
static bool
add_id(struct compared_jobs *jobs, const char *id, const char *labels,
       struct api_problem *p)
{
    for (size_t i = 0; i < jobs->n; i++)
        if (strcmp(jobs->ids[i], id) == 0)
            return true;
    if (jobs->n == MOST_COMPARED)
        return api_fail(p, API_BAD_REQUEST, "more than %d results are not compared",
                        MOST_COMPARED);
    snprintf(jobs->ids[jobs->n], JOB_ID_SIZE, "%s", id);
    jobs->labels[jobs->n] = labels ? strdup(labels) : NULL;
    return jobs->labels[jobs->n++] || !labels || api_problem_no_memory(p);
}

/* Adds a job that has ended, or each of its targets where it has several. */
static bool
add_job(struct request *request, const char *id, struct compared_jobs *jobs)
{
    struct api_problem *p = &request->problem;
    struct job_view view = {0};
    char(*targets)[JOB_ID_SIZE] = NULL;
    size_t n = 0;
    bool ok = wait_for_job(request, id, &view);
    if (ok && !api_job_state_ended(view.row.state))
        ok = api_fail(p, API_NOT_FINISHED, "the job %s is %s", id,
                      api_job_state_name(view.row.state));
    if (ok && !view.row.targets)
        ok = add_id(jobs, id, view.row.labels, p);
    else if (ok)
        ok = store_target_ids(library_store(request->service->library), id, &targets,
                              &n, p);
    for (size_t i = 0; ok && i < n; i++)
        ok = add_id(jobs, targets[i], view.row.labels, p);
    free(targets);
    job_view_fini(&view);
    return ok;
}

/* Adds the jobs of a list with commas between. */
static bool
add_listed(struct request *request, const char *list, struct compared_jobs *jobs)
{
    char id[JOB_ID_SIZE];
    for (const char *at = list;; at++) {
        const size_t len = strcspn(at, ",");
        if (len == 0 || len >= sizeof id)
            return api_fail(&request->problem, API_BAD_REQUEST,
                            "the query's with is to be ids of jobs, with commas "
                            "between; byte %zu begins none",
                            (size_t)(at - list));
        snprintf(id, sizeof id, "%.*s", (int)len, at);
        if (!add_job(request, id, jobs))
            return false;
        at += len;
        if (!*at)
            return true;
    }
}

/* Opens the reports that the jobs have. *ret_size is the bytes of all. */
static bool
open_rows(struct request *request, struct compared_row *all,
          const struct compared_jobs *jobs, uint64_t *ret_size)
{
    struct store *store = library_store(request->service->library);
    bool ok = true;
    *ret_size = 0;
    for (size_t i = 0; ok && i < jobs->n; i++) {
        struct compared_row *one = &all[i];
        ok = store_job_get(store, jobs->ids[i], &one->row, &request->problem);
        if (!ok || !one->row.report)
            continue;
        ok = one->is_open = open_job_report(request, jobs->ids[i], &one->document);
        *ret_size += one->document.size;
    }
    return ok;
}

/* Reads the open reports and closes them. */
static bool
read_rows(struct request *request, struct compared_row *all, size_t n, bool ok)
{
    for (size_t i = 0; i < n; i++) {
        if (!all[i].is_open)
            continue;
        all[i].json = read_job_report(request, &all[i].document, ok);
        ok = ok && all[i].json;
    }
    return ok;
}

/* Makes the comparison of the results that have a report, and of those that failed. Those of one job are
   named by their targets, others by their labels. */
static char *
make_overview(const struct compared_row *all, const struct compared_jobs *jobs,
              bool by_target, bool is_page)
{
    const size_t n = jobs->n;
    struct api_overviewed *reports = calloc(n + 1, sizeof *reports);
    for (size_t i = 0; reports && i < n; i++) {
        const struct api_problem *error = &all[i].row.error;
        reports[i] = (struct api_overviewed){
            .name = by_target ? all[i].row.target : NULL,
            .json = all[i].json,
            .len = all[i].document.size,
            .job = all[i].row.id,
            .labels = jobs->labels[i],
        };
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
compare_several(struct request *request, size_t chosen,
                const struct compared_jobs *jobs, bool by_target)
{
    struct api_problem *p = &request->problem;
    uint64_t size = 0;
    struct compared_row *all = calloc(jobs->n + 1, sizeof *all);
    bool ok = (all || api_problem_no_memory(p)) && open_rows(request, all, jobs, &size);
    ok = ok && reserve_decoded(request, size);
    ok = all && read_rows(request, all, jobs->n, ok) && ok;
    if (ok)
        reply_comparison(request, chosen, make_overview(all, jobs, by_target, chosen));
    for (size_t i = 0; all && i < jobs->n; i++) {
        store_job_fini(&all[i].row);
        free(all[i].json);
    }
    free(all);
}

/* --- the route ----------------------------------------------------------------- */

/* Finds the results that are compared side by side: those of the targets of the job in the path, which have
   all ended, or of it and of the jobs that the query lists. None: two jobs are compared. */
static bool
find_several(struct request *request, struct compared_jobs *ret)
{
    const char *with = request_query(request, "with");
    struct job_view view = {0};
    if (with)
        return !strchr(with, ',') || (add_job(request, request->match.id, ret) &&
                                      add_listed(request, with, ret));
    bool ok = wait_for_job(request, request->match.id, &view);
    if (ok && view.row.targets)
        ok = add_job(request, request->match.id, ret);
    job_view_fini(&view);
    return ok;
}

void
handle_job_compare(struct request *request)
{
    struct compared_jobs several = {.n = 0};
    size_t chosen =
        choose_type(request, types, 2, "a comparison is application/json or text/html");
    reply_header(request, "Vary", "Accept");
    bool ok = chosen < 2 && find_several(request, &several);
    if (ok && several.n > 0)
        compare_several(request, chosen, &several, !request_query(request, "with"));
    else if (ok)
        compare_two(request, chosen);
    jobs_fini(&several);
}
