/* SPDX-License-Identifier: Apache-2.0 */
/* The commands plan, info, jobs, cancel and report through a service. */
#include "config.h"
#include "service/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "print.h"

/* --- plan and info -------------------------------------------------------- */

static bool
print_answered_plan(struct client *client, const struct qdqr_ask *ask, bool all,
                    struct api_problem *problem)
{
    struct api_document *document;
    size_t pairs;
    if (!client_ask(client, ask, &document, problem))
        return false;
    const struct qdq_plan_view *plan = api_document_plan(document, &pairs);
    if (plan) {
        print_plan(plan, all, &pairs);
        print_warnings(plan->warnings, plan->n_warnings);
    }
    api_document_free(&document);
    return plan || api_problem_no_memory(problem);
}

bool
service_plan(const struct options *options, struct api_problem *problem)
{
    struct client client;
    char model[DIGEST_SIZE], *request = NULL;
    bool ok = client_open(options, &client, problem) &&
              client_store_model(&client, options->model, model, problem) &&
              client_encode(options, &(struct api_job_request){.model = model},
                            &request, problem);
    const struct qdqr_ask ask = {.method = "POST", .path = "/v1/plan", .json = request};
    ok = ok &&
         (options->json ? client_print(&client, &ask, problem)
                        : print_answered_plan(&client, &ask, options->all, problem));
    if (!ok)
        client_place(problem);
    free(request);
    client_close(&client);
    return ok;
}

static bool
print_answered_info(struct client *client, const struct qdqr_ask *ask,
                    struct api_problem *problem)
{
    struct api_document *document;
    const struct qdq_plan_view *plan;
    if (!client_ask(client, ask, &document, problem))
        return false;
    const struct qdq_model_info *model = api_document_model(document, &plan);
    if (model)
        print_info(model, plan);
    api_document_free(&document);
    return model || api_problem_no_memory(problem);
}

bool
service_info(const struct options *options, struct api_problem *problem)
{
    struct client client;
    char model[DIGEST_SIZE], path[128] = "";
    bool ok = client_open(options, &client, problem) &&
              client_store_model(&client, options->model, model, problem);
    if (ok)
        snprintf(path, sizeof path, "/v1/models/%s/info", model);
    const struct qdqr_ask ask = {.path = path};
    ok = ok && (options->json ? client_print(&client, &ask, problem)
                              : print_answered_info(&client, &ask, problem));
    client_close(&client);
    return ok;
}

/* --- jobs ----------------------------------------------------------------- */

/* Encodes a value of a query. */
static bool
add_query(FILE *to, const char *name, const char *value)
{
    fprintf(to, "&%s=", name);
    for (; *value; value++)
        fprintf(to, "%%%02X", (unsigned char)*value);
    return !ferror(to);
}

/* Makes the path of a page of jobs. The caller frees it; NULL when out of memory. */
static char *
page_path(const struct options *options, const char *cursor)
{
    char *path = NULL;
    size_t len = 0;
    FILE *to = open_memstream(&path, &len);
    if (!to)
        return NULL;
    fprintf(to, "/v1/jobs?limit=%d", options->all ? 500 : 50);
    bool ok = (!options->state || add_query(to, "state", options->state)) &&
              (!options->label || add_query(to, "label", options->label)) &&
              (!cursor || add_query(to, "cursor", cursor));
    if (fclose(to) == 0 && ok)
        return path;
    free(path);
    return NULL;
}

/* Prints a page. *cursor becomes that of the next one, which the caller frees. */
static bool
print_page(struct client *client, const char *path, char **cursor,
           struct api_problem *problem)
{
    struct api_document *document;
    const struct api_job_facts *jobs;
    const char *next;
    size_t n;
    if (!client_ask(client, &(struct qdqr_ask){.path = path}, &document, problem))
        return false;
    bool ok = api_document_jobs(document, &jobs, &n, &next);
    free(*cursor);
    *cursor = NULL;
    if (ok)
        print_jobs(jobs, n);
    if (ok && next)
        ok = (*cursor = strdup(next)) != NULL;
    api_document_free(&document);
    return ok || api_problem_no_memory(problem);
}

bool
command_jobs(const struct options *options, struct api_problem *problem)
{
    struct client client;
    char *cursor = NULL;
    bool ok = client_open(options, &client, problem);
    do {
        char *path = page_path(options, cursor);
        ok = ok && (path || api_problem_no_memory(problem));
        ok = ok &&
             (options->json
                  ? client_print(&client, &(struct qdqr_ask){.path = path}, problem)
                  : print_page(&client, path, &cursor, problem));
        free(path);
    } while (ok && options->all && cursor);
    free(cursor);
    client_close(&client);
    return ok;
}

bool
command_cancel(const struct options *options, struct api_problem *problem)
{
    struct client client;
    struct api_document *document = NULL;
    struct api_job_facts job;
    char path[160];
    bool ok = client_open(options, &client, problem) &&
              client_path(options->model, "/cancel", path, sizeof path, problem);
    const struct qdqr_ask ask = {.method = "POST", .path = path};
    ok = ok && client_ask(&client, &ask, &document, problem) &&
         (api_document_job(document, &job) || api_problem_no_memory(problem));
    if (ok)
        printf("%s %s\n", options->model, api_job_state_name(job.state));
    api_document_free(&document);
    client_close(&client);
    return ok;
}

/* --- reports -------------------------------------------------------------- */

bool
service_report(const struct options *options, struct api_problem *problem)
{
    struct client client;
    struct output out = OUTPUT_NONE;
    char path[160], *own = NULL;
    bool ok = client_open(options, &client, problem) &&
              client_path(options->model, "/report", path, sizeof path, problem);
    if (ok && !options->out && asprintf(&own, "%s.html", options->model) < 0) {
        own = NULL;
        ok = api_problem_no_memory(problem);
    }
    const char *file = options->out ? options->out : own;
    ok = ok && output_open(file, &out, problem) &&
         qdqr_service_fetch(client.service, path, report_form(file), out.fd, problem) &&
         output_commit(&out, problem);
    if (ok)
        printf("%s\n", file);
    output_close(&out);
    client_close(&client);
    free(own);
    return ok;
}
