/* SPDX-License-Identifier: Apache-2.0 */
/* The handlers that list jobs (those of one tenant, or for an administrator those of
   all), tenants, nodes and remotes. */
#include "config.h"
#include "handlers/handlers.h"
#include "library/library.h"
#include "settings/remotes.h"
#include "tenants/node.h"
#include "tenants/tenants.h"
#include "tenants/tokens.h"
#include "api/grow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_PAGE 50
#define MAX_PAGE 500
#define STEP 8 /* jobs that are in memory at once */

/* A cursor stands for the last job on a page: "MS.SEQ.TENANT" in a list of all
   tenants, "SEQ" in a list of one. */
#define CURSOR_SIZE (64 + TENANT_SIZE)

/* --- the query ------------------------------------------------------------ */

struct asked {
    struct store_filter filter;
    char tenant[TENANT_SIZE]; /* in a list of all: the tenant of the last job shown */
    int64_t seq;              /* in a list of all: the number of that job */
};

/* Parses a number from 1 without leading zeros, and moves *text behind it and the
   dot after it. */
static bool
parse_cursor_number(const char **text, int64_t *ret)
{
    size_t len = strspn(*text, "0123456789");
    bool ok =
        **text != '0' && (*text)[len] == '.' && request_parse_number(*text, len, ret);
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
        return api_fail(p, API_BAD_REQUEST,
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
    int64_t limit;
    *asked = (struct asked){.filter.state = API_N_JOB_STATES};
    if (!request_number(request, "limit", 1, MAX_PAGE, DEFAULT_PAGE, &limit, p) ||
        !read_cursor(request, asked, p))
        return false;
    filter->limit = (int)limit;
    if (state)
        filter->state = api_job_state_parse(state);
    if (state && filter->state == API_N_JOB_STATES)
        return api_fail(p, API_BAD_REQUEST, "the query's state is not a state of jobs");
    filter->label = label;
    return !label || strchr(label, ':') ||
           api_fail(p, API_BAD_REQUEST, "the query's label is not KEY:VALUE");
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

/* --- the list as a stream -------------------------------------------------- */

/* A list that is sent while it is read, some jobs at a time. */
struct list {
    const struct service *service;
    bool of_all, names_tenants;
    struct asked asked;
    int64_t left;  /* jobs that the page still takes */
    bool is_begun; /* a job was written */
    bool is_over;
    char *text; /* bytes to send, from `at` to `len` */
    size_t at, len;
};

static bool
append(struct list *list, const char *text, struct api_problem *p)
{
    return api_append(&list->text, &list->len, text, strlen(text)) ||
           api_problem_no_memory(p);
}

static bool
append_job(struct list *list, struct row *row, struct api_problem *p)
{
    struct job_view view = {0};
    if (!jobs_view(row->service->jobs, &row->job, &view, p))
        return false;
    struct api_job job = show_job(&view);
    job.omits = true;
    job.tenant = list->names_tenants ? row->service->tenant : NULL;
    char *text = api_job_encode(&job);
    bool ok = text || api_problem_no_memory(p);
    ok = ok && append(list, list->is_begun ? "," : "", p) && append(list, text, p);
    list->is_begun = true;
    free(text);
    job_view_fini(&view);
    return ok;
}

/* Begins the next part of the list behind a job. */
static void
move_behind(struct list *list, const struct row *last)
{
    struct asked *asked = &list->asked;
    asked->filter.before = last->job.seq;
    asked->seq = last->job.seq;
    asked->filter.time = last->job.created_at;
    snprintf(asked->tenant, sizeof asked->tenant, "%s", last->service->tenant);
}

static bool
append_end(struct list *list, bool more, struct api_problem *p)
{
    const struct asked *asked = &list->asked;
    char end[CURSOR_SIZE + 32];
    long long seq = (long long)asked->seq;
    list->is_over = true;
    if (!more)
        snprintf(end, sizeof end, "],\"next_cursor\":null}");
    else if (list->of_all)
        snprintf(end, sizeof end, "],\"next_cursor\":\"%lld.%lld.%s\"}",
                 (long long)asked->filter.time, seq, asked->tenant);
    else
        snprintf(end, sizeof end, "],\"next_cursor\":\"%lld\"}", seq);
    return append(list, end, p);
}

/* Reads some more jobs and writes them as text. */
static bool
read_more(struct list *list, struct api_problem *p)
{
    struct page page = {.asked = &list->asked};
    int64_t most = list->left < STEP ? list->left : STEP;
    /* The job beyond the part shows that there is a next one. */
    list->asked.filter.limit = (int)most + 1;
    list->at = list->len = 0;
    if (list->of_all)
        tenants_each(list->service->tenants, add_tenant, &page);
    else
        add_tenant(&page, list->service);
    bool ok = !page.problem.set, more = page.n > (size_t)most;
    size_t n = more ? (size_t)most : page.n;
    if (!ok)
        *p = page.problem;
    if (ok && n)
        move_behind(list, &page.rows[n - 1]);
    if (ok && !list->is_begun)
        ok = append(list, "{\"jobs\":[", p);
    for (size_t i = 0; ok && i < n; i++)
        ok = append_job(list, &page.rows[i], p);
    list->left -= (int64_t)n;
    if (ok && (!more || !list->left))
        ok = append_end(list, more, p);
    for (size_t i = 0; i < page.n; i++)
        store_job_fini(&page.rows[i].job);
    free(page.rows);
    return ok;
}

static ssize_t
read_list(void *arg, int socket, char *to, size_t size)
{
    struct list *list = arg;
    struct api_problem problem = {0};
    (void)socket;
    if (list->at == list->len && (list->is_over || !read_more(list, &problem)))
        return list->is_over && !problem.set ? 0 : -1;
    size_t n = list->len - list->at < size ? list->len - list->at : size;
    memcpy(to, list->text + list->at, n);
    list->at += n;
    return (ssize_t)n;
}

static void
free_list(void *arg)
{
    struct list *list = arg;
    free(list->text);
    free(list);
}

/* A list that is short is sent as a whole. */
void
handle_jobs_get(struct request *request)
{
    struct api_problem *p = &request->problem;
    struct list *list = calloc(1, sizeof *list);
    bool ok = list ? read_asked(request, &list->asked, p) : api_problem_no_memory(p);
    if (ok) {
        list->service = request->service;
        list->of_all = request->of_all;
        list->names_tenants = request_query(request, "tenant");
        list->left = list->asked.filter.limit;
        ok = read_more(list, p);
    }
    if (ok && list->is_over) {
        reply_json(request, 200, list->text);
        list->text = NULL;
    } else if (ok) {
        reply_stream(request, "application/json",
                     &(struct stream){read_list, free_list, list});
        return;
    }
    if (list)
        free_list(list);
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
        !(grown = api_grow(census->list, census->n, 1, sizeof *grown)))
        api_problem_no_memory(&census->problem);
    if (!grown)
        return;
    census->list = grown;
    struct api_tenant *tenant = &grown[census->n++];
    *tenant =
        (struct api_tenant){.name = service->tenant,
                            .bytes = (int64_t)sweep_counted(service->library, &counts),
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
    request->problem = census.problem;
    if (!census.problem.set)
        reply_json(request, 200, api_tenants_encode(census.list, census.n));
    free(census.list);
}

/* --- nodes ---------------------------------------------------------------- */

void
handle_nodes_get(struct request *request)
{
    struct api_node *nodes = NULL;
    size_t n = 0;
    if (node_list(request->service->tenants, &nodes, &n, &request->problem))
        reply_json(request, 200, api_nodes_encode(nodes, n));
    free(nodes);
}

/* --- remotes -------------------------------------------------------------- */

void
handle_remotes_get(struct request *request)
{
    const char *tenant = request->service->tenant;
    struct remotes *remotes = tenants_remotes(request->service->tenants);
    char scopes[TOKEN_SCOPES];
    size_t n = 0, most = 0;
    token_scopes_print(request->scopes, scopes);
    for (const struct remote *r = remotes_first(remotes); r; r = remotes_next(r))
        most++;
    struct api_remote *list = calloc(most + 1, sizeof *list);
    for (const struct remote *r = remotes_first(remotes); list && r;
         r = remotes_next(r))
        if (remote_allows(r, tenant, scopes))
            list[n++] = (struct api_remote){r->section.name, r->kind};
    reply_json(request, 200, list ? api_remotes_encode(list, n) : NULL);
    free(list);
    remotes_release(&remotes);
}
