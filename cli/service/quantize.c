/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command quantize through a service: a job is queued for files that the service has or
 * gets, and its result is written where the command would write its own.
 */
#include "config.h"
#include "service/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/client.h"
#include "api/report.h"
#include "api/spec.h"
#include "external.h"
#include "files.h"
#include "print.h"
#include "spec.h"
#include "terminal.h"

/* The resources of the command. */
struct remote_quantization {
    struct client client;
    struct output out, data, report_out, html; /* data: the external data of `out` */
    struct api_document *queued, *ended, *report;
    struct api_job_facts job; /* at its end */
};

/* Fails where an output is a file that the model is read from. */
static bool
check_model(const struct options *options, const char *out, struct api_problem *problem)
{
    struct external external = {.n = 0};
    int model;
    if (digest_is_id(options->model))
        return true;
    if (!file_open(options->model, &model, problem))
        return false;
    bool ok = external_open(model, options->model, &external, problem) &&
              check_model_files(model, &external, options, out, problem);
    external_close(&external);
    close(model);
    return ok;
}

/* Opens all outputs before the work, so that a wrong path does not waste it. */
static bool
open_outputs(struct remote_quantization *q, const struct options *options,
             const char *out, struct api_problem *problem)
{
    return check_model(options, out, problem) && check_places(options, out, problem) &&
           output_open(out, &q->out, problem) &&
           output_open(options->report, &q->report_out, problem) &&
           output_open(options->html, &q->html, problem);
}

/* Stores the metric that the spec names by a path, and returns the spec with its id; a spec that
   cannot be read, or has no such metric, is left to the service. */
static bool
store_metric(struct remote_quantization *q, char **spec, struct api_problem *problem)
{
    struct api_spec *decoded = NULL;
    struct api_problem mistake = {0};
    char id[DIGEST_SIZE];
    if (!*spec || !api_spec_decode(*spec, strlen(*spec), &decoded, &mistake))
        return true;
    const struct qdq_task *task = &api_spec_get(decoded)->task;
    bool ok = true;
    if (task->asked && task->model && !digest_is_id(task->model)) {
        ok = client_store_model(&q->client, task->model, id, problem) &&
             api_spec_set_metric(decoded, id, problem);
        if (ok) {
            free(*spec);
            *spec = api_spec_text(decoded);
            ok = *spec || api_problem_no_memory(problem);
        }
    }
    api_spec_free(&decoded);
    return ok;
}

/* Stores the inputs and queues the job. */
static bool
submit(struct remote_quantization *q, const struct options *options,
       struct api_problem *problem)
{
    char model[DIGEST_SIZE], dataset[DIGEST_SIZE], evaluation[DIGEST_SIZE];
    char *request = NULL;
    const char *name = api_path_base(options->model);
    struct api_job_request job = {.model = model};
    if (!client_store_model(&q->client, options->model, model, problem))
        return false;
    if (options->calibration) {
        if (!client_store_dataset(&q->client, options->calibration, options->model,
                                  dataset, problem))
            return false;
        job.calibration = dataset;
    }
    if (options->evaluation) {
        if (!client_store_dataset(&q->client, options->evaluation, options->model,
                                  evaluation, problem))
            return false;
        job.evaluation = evaluation;
    }
    job.labels = digest_is_id(name) ? NULL : api_name_label_encode(name);
    bool ok = spec_text(options, &job.spec, problem) &&
              store_metric(q, &job.spec, problem) &&
              client_encode(options, &job, &request, problem) &&
              client_submit(&q->client, request, &q->queued, problem);
    free(job.labels);
    free(job.spec);
    free(request);
    return ok;
}

/* Waits for the end of the job. */
static bool
wait_for_end(struct remote_quantization *q, struct api_problem *problem)
{
    if (!api_document_job(q->queued, &q->job) || !q->job.id)
        return api_problem_no_memory(problem);
    char *id = strdup(q->job.id);
    if (!id)
        return api_problem_no_memory(problem);
    fputs("qdq: job ", stderr);
    put_text(stderr, id, 0);
    fputc('\n', stderr);
    bool ok = client_wait(&q->client, id, &q->ended, problem) &&
              (api_document_job(q->ended, &q->job) || api_problem_no_memory(problem));
    if (ok && !q->job.id)
        ok =
            api_fail(problem, API_INVALID_JSON, "job %s: its last event is no job", id);
    free(id);
    return ok;
}

/* Fetches the report in the forms that are asked for, and for the summary. */
static bool
fetch_reports(struct remote_quantization *q, struct kept_report *kept,
              struct api_problem *problem)
{
    char path[160], *text;
    size_t len;
    if (!client_path(q->job.id, "/report", path, sizeof path, problem))
        return false;
    const struct qdqr_ask ask = {.path = path, .accept = "application/json"};
    if (!qdqr_service_ask(q->client.service, &ask, &text, &len, problem))
        return false;
    bool ok = api_document_parse(text, len, &q->report, problem) &&
              output_write(&q->report_out, text, problem) &&
              output_write(&q->report_out, "\n", problem);
    if (ok && kept)
        *kept = (struct kept_report){text, len};
    else
        free(text);
    return ok &&
           (q->html.fd < 0 || qdqr_service_fetch(q->client.service, path, "text/html",
                                                 q->html.fd, problem));
}

/* Fetches the model, with the progress on the terminal. */
static bool
fetch_model(struct remote_quantization *q, const struct options *options,
            struct api_problem *problem)
{
    q->client.moving = "download";
    bool ok = download_model(&q->client, options, &q->job, &q->out, &q->data, problem);
    progress_clear(&q->client.progress);
    q->client.moving = NULL;
    return ok;
}

/* Gives all files that are complete their names. The data file goes first, because it replaces
   nothing, and the model last, because it names the data. */
static bool
commit_files(struct remote_quantization *q, bool has_model, struct api_problem *problem)
{
    if (has_model && !output_commit_new(&q->data, problem))
        return false;
    bool ok = output_commit(&q->report_out, problem) &&
              output_commit(&q->html, problem) &&
              (!has_model || output_commit(&q->out, problem));
    if (!ok)
        output_take_back(&q->data);
    return ok;
}

/* Writes the result of a job that has ended, all files of it or none; the problem is that of
   the job. */
static bool
write_result(struct remote_quantization *q, const struct options *options,
             const char *out, struct api_problem *problem)
{
    bool succeeded = q->job.state == API_JOB_SUCCEEDED;
    bool has_report = succeeded || q->job.error.code == API_ACCURACY;
    if (!succeeded && !q->job.error.set)
        api_fail(&q->job.error, API_CANCELLED, "the job was cancelled");
    if (has_report && !fetch_reports(q, options->kept, problem))
        return false;
    const struct qdq_report *report =
        has_report ? api_document_report(q->report) : NULL;
    if (has_report && !report)
        return api_problem_no_memory(problem);
    if (report)
        print_warnings(report->warnings, report->n_warnings);
    if (succeeded && !fetch_model(q, options, problem))
        return false;
    if (has_report && !commit_files(q, succeeded, problem))
        return false;
    if (succeeded && !options->brief) {
        char target[API_TARGET_SIZE];
        print_summary(report, out);
        print_program(api_document_deploy(q->report, out, target), target);
    }
    if (!succeeded)
        *problem = q->job.error;
    return succeeded;
}

/* Says where the job is to be found, when the command does not wait for its end. */
static void
print_left(const struct remote_quantization *q)
{
    struct api_job_facts job;
    if (!q->queued || q->ended || !api_document_job(q->queued, &job) || !job.id)
        return;
    fputs("qdq: job ", stderr);
    put_text(stderr, job.id, 0);
    fputs(" goes on; the same command takes its result when it has ended\n", stderr);
}

bool
service_quantize(const struct options *options, struct api_problem *problem)
{
    struct remote_quantization q = {.out = OUTPUT_NONE,
                                    .data = OUTPUT_NONE,
                                    .report_out = OUTPUT_NONE,
                                    .html = OUTPUT_NONE};
    char *own =
        options->out ? NULL : path_ending_in(options->model, ".onnx", ".int8.onnx");
    const char *out = options->out ? options->out : own;
    bool ok = out || api_problem_no_memory(problem);
    ok = client_open(options, &q.client, problem) && ok &&
         open_outputs(&q, options, out, problem) && submit(&q, options, problem) &&
         wait_for_end(&q, problem) && write_result(&q, options, out, problem);
    if (!ok) {
        progress_end(&q.client.progress);
        client_place(problem);
        print_left(&q);
    }
    output_close(&q.out);
    output_close(&q.data);
    output_close(&q.report_out);
    output_close(&q.html);
    api_document_free(&q.queued);
    api_document_free(&q.ended);
    api_document_free(&q.report);
    client_close(&q.client);
    free(own);
    return ok;
}
