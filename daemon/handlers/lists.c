/* SPDX-License-Identifier: Apache-2.0 */
/* The handlers that list jobs (those of one tenant, or for an administrator those of
   all) and tenants. */
#include "config.h"
#include "handlers/handlers.h"
#include "settings/settings.h"
#include "tenants/tenants.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_PAGE 50
#define MAX_PAGE 500
#define MOST_DIGITS 18

/* A cursor stands for the last job on a page: "MS.SEQ.TENANT" in a list of all
   tenants, "SEQ" in a list of one. */
#define CURSOR_SIZE (64 + TENANT_SIZE)

/* --- the query ------------------------------------------------------------ */

struct asked {
    struct store_filter filter;
    char *label_key;          /* owned */
    char tenant[TENANT_SIZE]; /* in a list of all: the tenant of the last job shown */
    int64_t seq;              /* in a list of all: the number of that job */
};

/* Parses a number from 1 without leading zeros, and moves *text behind it and the
   dot after it. */
static bool
parse_cursor_number(const char **text, int64_t *ret)
{
    size_t len = strspn(*text, "0123456789");
    bool ok = len && len <= MOST_DIGITS && **text != '0' && (*text)[len] == '.';
    *ret = ok ? strtoll(*text, NULL, 10) : 0;
    *text += ok ? len + 1 : 0;
    return ok;
}

static bool
read_cursor(const struct request *request, struct asked *asked, struct api_problem *p)
{
    struct store_filter *filter = &asked->filter;
    const char *text = request_query(request, "cursor");
    filter->by_time = request->of_all;
    if (!request->of_all)
        return request_number(request, "cursor", 1, INT64_MAX, INT64_MAX,
                              &filter->before, p);
    filter->time = INT64_MAX;
    if (!text)
        return true;
    if (!parse_cursor_number(&text, &filter->time) ||
        !parse_cursor_number(&text, &asked->seq) || (*text && !tenant_is_name(text)))
        return api_problem_set(p, API_BAD_REQUEST, QDQ_AT_NOTHING, NULL,
                               "the query's cursor is none of a list of all tenants");
    snprintf(asked->tenant, sizeof asked->tenant, "%s", text);
    return true;
}

static bool
read_asked(const struct request *request, struct asked *asked, struct api_problem *p)
{
    struct store_filter *filter = &asked->filter;
    const char *state = request_query(request, "state");
    const char *label = request_query(request, "label");
    const char *colon = label ? strchr(label, ':') : NULL;
    int64_t limit;
    *asked = (struct asked){.filter.state = API_N_JOB_STATES};
    if (!request_number(request, "limit", 1, MAX_PAGE, DEFAULT_PAGE, &limit, p) ||
        !read_cursor(request, asked, p))
        return false;
    /* the job beyond the page shows that there is a next page */
    filter->limit = (int)limit + 1;
    if (state)
        filter->state = api_job_state_parse(state);
    if (state && filter->state == API_N_JOB_STATES)
        return api_problem_set(p, API_BAD_REQUEST, QDQ_AT_NOTHING, NULL,
                               "the query's state is not a state of jobs");
    if (!label)
        return true;
    if (!colon)
        return api_problem_set(p, API_BAD_REQUEST, QDQ_AT_NOTHING, NULL,
                               "the query's label is not KEY:VALUE");
    asked->label_key = strndup(label, (size_t)(colon - label));
    filter->label_key = asked->label_key;
    filter->label_value = colon + 1;
    return asked->label_key || api_problem_no_memory(p);
}

/* --- a page of jobs ------------------------------------------------------- */

struct row {
    struct store_job job;
    const struct service *service; /* service of the job's tenant */
};

struct page {
    const struct asked *asked;
    struct row *rows;
    size_t n;
    struct api_problem problem;
};

static void
free_rows(struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        store_job_fini(&rows[i].job);
    free(rows);
}

/* Returns whether `a` stands before `b`, which belongs to another tenant. */
static bool
is_before(const struct row *a, const struct row *b)
{
    return a->job.created_at != b->job.created_at
               ? a->job.created_at > b->job.created_at
               : strcmp(a->service->tenant, b->service->tenant) < 0;
}

/* Merges the jobs of another tenant into the page; takes ownership of `jobs`. Drops
   the rows beyond the page's size, so that never more than two pages are in memory. */
static bool
merge_tenant(struct page *page, const struct service *service, struct store_job *jobs,
             size_t n_jobs)
{
    size_t most = (size_t)page->asked->filter.limit, n = 0, from = 0, taken = 0;
    struct row *rows = calloc(most, sizeof *rows);
    while (rows && n < most && (from < page->n || taken < n_jobs)) {
        struct row next = {.service = service};
        if (taken < n_jobs)
            next.job = jobs[taken];
        bool ours =
            from < page->n && (taken == n_jobs || is_before(&page->rows[from], &next));
        rows[n++] = ours ? page->rows[from] : next;
        from += ours;
        taken += !ours;
    }
    while (taken < n_jobs)
        store_job_fini(&jobs[taken++]);
    free(jobs);
    while (from < page->n)
        store_job_fini(&page->rows[from++].job);
    free(page->rows);
    page->rows = rows;
    page->n = n;
    return rows || api_problem_no_memory(&page->problem);
}

static void
add_tenant(void *arg, const struct service *service)
{
    struct page *page = arg;
    const struct asked *asked = page->asked;
    struct store_filter filter = asked->filter;
    struct store_job *jobs = NULL;
    size_t n = 0;
    int order = strcmp(service->tenant, asked->tenant);
    /* This applies to jobs that were made in the same millisecond as the last job
       shown. */
    if (filter.by_time)
        filter.before = order > 0 ? INT64_MAX : order < 0 ? 0 : asked->seq;
    if (!page->problem.set && store_job_list(library_store(service->library), &filter,
                                             &jobs, &n, &page->problem))
        (void)merge_tenant(page, service, jobs, n);
}

static void
write_cursor(const struct row *last, bool of_all, char ret[CURSOR_SIZE])
{
    long long seq = (long long)last->job.seq;
    if (of_all)
        snprintf(ret, CURSOR_SIZE, "%lld.%lld.%s", (long long)last->job.created_at, seq,
                 last->service->tenant);
    else
        snprintf(ret, CURSOR_SIZE, "%lld", seq);
}

static void
reply_page(struct request *request, struct page *page)
{
    struct api_problem *problem = &page->problem;
    bool more = page->n == (size_t)page->asked->filter.limit;
    bool names = request_query(request, "tenant");
    size_t n = more ? page->n - 1 : page->n;
    struct job_view *views = calloc(n + 1, sizeof *views);
    struct api_job *shown = calloc(n + 1, sizeof *shown);
    char cursor[CURSOR_SIZE];
    bool ok = (views && shown) || api_problem_no_memory(problem);
    if (more)
        write_cursor(&page->rows[n - 1], request->of_all, cursor);
    for (size_t i = 0; ok && i < n; i++) {
        const struct service *service = page->rows[i].service;
        ok = jobs_view(service->jobs, &page->rows[i].job, &views[i], problem);
        if (!ok)
            continue;
        shown[i] = show_job(&views[i]);
        shown[i].tenant = names ? service->tenant : NULL;
    }
    if (ok)
        reply_json(request, 200, api_jobs_encode(shown, n, more ? cursor : NULL));
    else
        reply_problem(request, problem);
    for (size_t i = 0; views && i < n; i++)
        job_view_fini(&views[i]);
    free(views);
    free(shown);
}

void
handle_jobs_get(struct request *request)
{
    struct asked asked;
    struct page page = {.asked = &asked};
    if (read_asked(request, &asked, &page.problem) && request->of_all)
        tenants_each(request->service->tenants, add_tenant, &page);
    else if (!page.problem.set)
        add_tenant(&page, request->service);
    if (page.problem.set)
        reply_problem(request, &page.problem);
    else
        reply_page(request, &page);
    free_rows(page.rows, page.n);
    free(asked.label_key);
}

/* --- tenants -------------------------------------------------------------- */

struct census {
    struct api_tenant *list;
    size_t n;
    struct api_problem problem;
};

static void
count_tenant(void *arg, const struct service *service)
{
    struct census *census = arg;
    const struct settings *limits = service->settings;
    struct store_counts counts;
    struct api_tenant *grown = NULL;
    if (!census->problem.set &&
        store_count(library_store(service->library), &counts, &census->problem) &&
        !(grown = realloc(census->list, (census->n + 1) * sizeof *grown)))
        api_problem_no_memory(&census->problem);
    if (!grown)
        return;
    census->list = grown;
    struct api_tenant *tenant = &grown[census->n++];
    *tenant = (struct api_tenant){
        .name = service->tenant,
        .bytes = (int64_t)blobs_used(library_blobs(service->library)),
        .queue = limits->queue_max,
        .max_bytes = limits->storage_max_bytes,
        .job_timeout = limits->workers_job_timeout};
    memcpy(tenant->jobs, counts.jobs, sizeof tenant->jobs);
}

void
handle_tenants_get(struct request *request)
{
    struct census census = {0};
    tenants_each(request->service->tenants, count_tenant, &census);
    if (census.problem.set)
        reply_problem(request, &census.problem);
    else
        reply_json(request, 200, api_tenants_encode(census.list, census.n));
    free(census.list);
}
