/* SPDX-License-Identifier: Apache-2.0 */
/* The command quantize, for one target. */
#include "config.h"
#include "commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/files.h"
#include "api/genai.h"
#include "api/report.h"
#include "external.h"
#include "judges/context.h"
#include "files.h"
#include "folder.h"
#include "metric.h"
#include "pending_id.h"
#include "print.h"
#include "spec.h"
#include "progress.h"
#include "kept/digests.h"
#include "kept/journal.h"
#include "kept/observations.h"
#include "kept/times.h"

/* The files and objects that are open during the command. */
struct quantization {
    struct api_spec *spec;
    int model, dataset;
    struct qdq_judging judging;
    struct external external;
    char dataset_id[DIGEST_SIZE], evaluation_id[DIGEST_SIZE], spec_digest[DIGEST_SIZE];
    struct pending_id *model_id;
    struct qdq_executor executor;
    /* data: the external data of `out`; kept_observed: in the cache, unless there is `observed` */
    struct output out, data, context, kv_scales, report_out, html, observed,
        kept_observed;
    const char *data_name; /* its location in the written model */
    struct qdq_engine *engine;
    struct judge judge;
    struct kept_times times;
    struct kept_journal journal;
    struct qdq_report *report;
};

/* Opens the data to judge by and the spec's metric. */
static bool
open_judging(struct quantization *q, const struct options *options,
             struct api_problem *problem)
{
    const char *path = options->evaluation;
    if (path && (!data_open(path, options->model, &q->judging.data, problem) ||
                 !kept_digest(q->judging.data, path, q->evaluation_id, problem)))
        return false;
    q->judging.data_id = path ? q->evaluation_id : NULL;
    q->judging.bound = metric_bound;
    return metric_open(q->spec, &q->judging.metric, problem);
}

static bool
open_inputs(struct quantization *q, const struct options *options,
            struct api_problem *problem)
{
    if (!spec_read(options, &q->spec, problem) ||
        !file_open(options->model, &q->model, problem) ||
        !external_open(q->model, options->model, &q->external, problem))
        return false;
    q->model_id = pending_id_start(&q->external, q->model, options->model);
    if (!q->model_id)
        return api_problem_no_memory(problem);
    q->executor = pending_id_executor(q->model_id);
    if (options->calibration &&
        (!data_open(options->calibration, options->model, &q->dataset, problem) ||
         !kept_digest(q->dataset, options->calibration, q->dataset_id, problem)))
        return false;
    return open_judging(q, options, problem);
}

/* Computes the digest of the frozen spec. It is a qdq_freeze_fn whose `arg` is the struct
   quantization. */
static const char *
digest_frozen(void *arg, const struct qdq_spec *frozen)
{
    struct quantization *q = arg;
    char *text = api_spec_encode(frozen);
    bool ok = text && digest_bytes(text, strlen(text), q->spec_digest, NULL);
    free(text);
    return ok ? q->spec_digest : NULL;
}

/*
 * Opens a copy of the observations, which replaces the file when it is complete. So the file
 * is whole at any time. A file that holds something else is not overwritten.
 */
static bool
open_observations(struct quantization *q, const char *path, struct api_problem *problem)
{
    static const char magic[] = QDQ_OBSERVATIONS_MAGIC;
    enum { NAME = sizeof magic - 3 }; /* without its version */
    char begin[NAME];
    int fd;
    if (!output_open(path, &q->observed, problem))
        return false;
    if (access(path, F_OK) != 0)
        return true;
    if (!file_open(path, &fd, problem))
        return false;
    ssize_t n = pread(fd, begin, NAME, 0);
    bool ok = n == 0 || (n == NAME && memcmp(begin, magic, NAME) == 0);
    if (!ok)
        api_fail(problem, API_IO, "%s holds no observations, so it is not overwritten",
                 path);
    ok = ok && output_copy(&q->observed, fd, problem);
    close(fd);
    return ok;
}

/* Opens OUT.data, which is committed only if something was written to it. */
static bool
open_data(struct quantization *q, const char *out, struct api_problem *problem)
{
    char *path;
    if (asprintf(&path, "%s.data", out) < 0)
        return api_problem_no_memory(problem);
    bool ok =
        is_model_file(q->model, &q->external, path)
            ? api_fail(problem, API_IO,
                       "%s is the model's own external data, so it is not overwritten",
                       path)
            : output_open(path, &q->data, problem);
    free(path);
    if (ok)
        q->data_name = api_path_base(q->data.path);
    return ok;
}

/* Opens the file for the compiled model, if the spec asks for one. */
static bool
open_context(struct quantization *q, const char *out, struct api_problem *problem)
{
    if (!api_spec_get(q->spec)->context)
        return true;
    char *path = path_ending_in(out, ".onnx", ".context.onnx");
    bool ok =
        path ? output_open(path, &q->context, problem) : api_problem_no_memory(problem);
    free(path);
    return ok;
}

/* Opens the file for the scales of caches, if the spec asks for them. */
static bool
open_kv_scales(struct quantization *q, const char *out, struct api_problem *problem)
{
    if (api_spec_get(q->spec)->kv_cache == QDQ_KV_NONE)
        return true;
    char *path = path_ending_in(out, ".onnx", ".kv_scales.json");
    bool ok = path ? output_open(path, &q->kv_scales, problem)
                   : api_problem_no_memory(problem);
    free(path);
    return ok;
}

static bool
write_kv_scales(struct quantization *q, struct api_problem *problem)
{
    if (!q->report->kv_cache)
        return true;
    char *text = api_genai_scales(q->report->kv_cache);
    const bool ok = (text || api_problem_no_memory(problem)) &&
                    output_write(&q->kv_scales, text, problem) &&
                    output_write(&q->kv_scales, "\n", problem) &&
                    output_commit(&q->kv_scales, problem);
    free(text);
    return ok;
}

/* Opens all outputs before the work, so that a wrong path does not waste it. */
static bool
open_outputs(struct quantization *q, const struct options *options, const char *out,
             struct api_problem *problem)
{
    return check_model_files(q->model, &q->external, options, out, problem) &&
           check_places(options, out, problem) && output_open(out, &q->out, problem) &&
           open_data(q, out, problem) && open_context(q, out, problem) &&
           open_kv_scales(q, out, problem) &&
           output_open(options->report, &q->report_out, problem) &&
           output_open(options->html, &q->html, problem) &&
           (!options->observations ||
            open_observations(q, options->observations, problem));
}

/*
 * Keeps the observations even if the work failed, so that another try need not observe
 * again. Where nothing was observed, the file stays as it is.
 */
static bool
keep_observations(struct quantization *q, struct api_problem *problem)
{
    char begin[sizeof QDQ_OBSERVATIONS_MAGIC -
               1]; /* written last, so its presence means that all is */
    bool whole = q->observed.fd >= 0 &&
                 pread(q->observed.fd, begin, sizeof begin, 0) == sizeof begin &&
                 memcmp(begin, QDQ_OBSERVATIONS_MAGIC, sizeof begin) == 0;
    return !whole || (q->report && q->report->inferences == 0) ||
           output_commit(&q->observed, problem);
}

/* Waits for the model's id, which is written last. The disk begins with the rest. */
static const char *
wait_for_id(void *arg)
{
    struct quantization *q = arg;
    output_begin_sync(&q->out);
    output_begin_sync(&q->data);
    output_drop_replaced(&q->out);
    output_drop_replaced(&q->data);
    return pending_id_wait(q->model_id);
}

/* Checks, before the work, that there is a program for the compiled model. */
static bool
check_context(const struct quantization *q, struct api_problem *problem)
{
    const struct qdq_spec *spec = api_spec_get(q->spec);
    return !spec->context || !spec->target->has_context ||
           judge_runner(&q->judge, spec->target->runtime) ||
           api_fail_at(problem, API_UNSUPPORTED, "/output/context",
                       "a compiled model needs a runner for the target %s (--runners)",
                       spec->target->name);
}

/* Has the runner compile the result. */
static bool
make_context(struct quantization *q, struct api_problem *problem)
{
    const struct qdq_spec *spec = api_spec_get(q->spec);
    const struct runner_config *runner = judge_runner(&q->judge, spec->target->runtime);
    char why[JUDGES_WHY];
    if (!spec->context)
        return true;
    if (q->report->external_bytes > 0)
        return api_fail_at(problem, API_UNSUPPORTED, "/output/context",
                           "a runner compiles results of one file alone");
    return judges_make_context(runner, q->out.fd, q->context.fd, why) ||
           api_fail_at(problem, API_RUNNER_FAILED, "/output/context",
                       "the runner '%s' made no compiled model: %.200s", runner->name,
                       why);
}

/* Opens the observations that earlier commands have kept. */
static void
open_kept_observations(struct quantization *q)
{
    const struct qdq_spec *spec = api_spec_get(q->spec);
    char *text = api_spec_encode(spec);
    observations_open(spec, text, pending_id_wait(q->model_id), q->dataset_id,
                      &q->kept_observed);
    free(text);
}

static bool
run(struct quantization *q, struct api_problem *problem)
{
    struct progress progress;
    struct qdq_error err = {0};
    /* Observations are kept under the id of the model. */
    const bool in_cache =
        q->observed.fd < 0 && observations_are_kept(api_spec_get(q->spec), q->dataset);
    bool is_pending = q->observed.fd < 0 && !in_cache;
    if (!is_pending && pending_id_failed(q->model_id, problem))
        return false;
    if (in_cache)
        open_kept_observations(q);
    kept_journal_init(&q->journal, api_spec_get(q->spec), &q->judge, q->dataset_id,
                      q->evaluation_id, q->model_id);
    struct qdq_work work = {
        .model = q->model,
        .model_id = is_pending ? PENDING_ID_PLACEHOLDER : pending_id_wait(q->model_id),
        .late_id = is_pending ? wait_for_id : NULL,
        .late_id_arg = q,
        .external = q->external.files,
        .n_external = q->external.n,
        .dataset = q->dataset,
        .dataset_id = q->dataset >= 0 ? q->dataset_id : NULL,
        .judging = &q->judging,
        .spec = api_spec_get(q->spec),
        .freeze = digest_frozen,
        .freeze_arg = q,
        .output = q->out.fd,
        .output_data = q->data.fd,
        .output_data_name = q->data_name,
        .observations = in_cache ? q->kept_observed.fd : q->observed.fd,
        .times = times_open,
        .times_arg = &q->times,
        .journal = kept_journal_open,
        .journal_arg = &q->journal,
        .journal_of = q->journal.of,
        .histograms = q->html.fd >= 0,
        .progress = progress_update,
        .progress_arg = &progress,
    };
    q->times.spec = work.spec;
    q->times.model_id = q->model_id;
    progress_start(&progress);
    enum qdq_code code = qdq_quantize(q->engine, &work, &q->report, &err);
    progress_end(&progress);
    struct api_problem compiling = {0};
    bool compiled = code || make_context(q, &compiling);
    judge_fini(&q->judge);
    times_keep(&q->times, !code);
    kept_journal_end(&q->journal, !code && compiled);
    observations_keep(&q->kept_observed);
    bool kept = keep_observations(q, problem);
    if (err.code == QDQ_IO && pending_id_failed(q->model_id, problem))
        return false;
    if (!compiled)
        *problem = compiling;
    return (code == QDQ_OK || api_problem_set_engine(problem, &err)) && kept &&
           compiled;
}

/*
 * Syncs the model before the report, which the disk begins to write meanwhile: the file
 * system's commit for the model then has the report's place in it, so that the report need
 * hardly wait.
 */
static bool
sync_model(struct quantization *q, struct api_problem *problem)
{
    output_begin_sync(&q->report_out);
    return (q->report->external_bytes == 0 || output_sync(&q->data, problem)) &&
           output_sync(&q->out, problem);
}

/* Writes the report in the forms that are asked for; with `accepted` the model is synced,
   too. */
static bool
write_report(struct quantization *q, bool accepted, struct kept_report *kept,
             struct api_problem *problem)
{
    if (q->report_out.fd < 0 && q->html.fd < 0 && !kept)
        return true;
    char *text = api_report_encode(q->report);
    if (!text)
        return api_problem_no_memory(problem);
    bool ok = output_write(&q->report_out, text, problem) &&
              output_write(&q->report_out, "\n", problem) &&
              (!accepted || sync_model(q, problem)) &&
              output_commit(&q->report_out, problem) &&
              (q->html.fd < 0 || page_write(text, strlen(text), &q->html, problem));
    if (ok && kept)
        *kept = (struct kept_report){text, strlen(text)};
    else
        free(text);
    return ok;
}

/* Compares a file of the result with the one of that place in the statement. */
static bool
check_expected(const struct output *output, const struct api_file *file,
               struct api_problem *problem)
{
    char digest[DIGEST_SIZE];
    return digest_file(output->fd, output->path, digest, problem) &&
           (digest_is_same(digest, file->digest) ||
            api_fail(problem, API_DIGEST_MISMATCH,
                     "%.100s was not reproduced, and is not written: it has the digest "
                     "%s, and the statement %s. Another class of processor, or another "
                     "build, may be the cause",
                     file->path, digest, file->digest));
}

/* Compares the result with the files that it is expected to be. */
static bool
check_result(const struct quantization *q, const struct options *options,
             struct api_problem *problem)
{
    const struct api_file *files = options->expected;
    size_t n = options->n_expected;
    if (!n)
        return true;
    if ((n > 1) != (q->report->external_bytes > 0) || n > 2)
        return api_fail(problem, API_DIGEST_MISMATCH,
                        "the statement's result is %zu files, and this is %d", n,
                        q->report->external_bytes > 0 ? 2 : 1);
    return check_expected(&q->out, &files[0], problem) &&
           (n == 1 || check_expected(&q->data, &files[1], problem));
}

/* Writes what there is to write when the engine is done. A model that misses a gate is not
   committed. The data gets its name first, so that a model never names a file that is
   missing. */
static bool
write_results(struct quantization *q, struct kept_report *kept,
              struct api_problem *problem)
{
    struct api_problem missed = {0};
    bool accepted = api_report_accepted(q->report, &missed);
    if (!write_report(q, accepted, kept, problem))
        return false;
    if (!accepted) {
        *problem = missed;
        return false;
    }
    return (q->report->external_bytes == 0 || output_commit(&q->data, problem)) &&
           output_commit(&q->context, problem) && write_kv_scales(q, problem) &&
           output_commit(&q->out, problem);
}

static void
close_all(struct quantization *q)
{
    qdq_report_free(&q->report);
    qdq_engine_close(&q->engine);
    pending_id_free(&q->model_id);
    external_close(&q->external);
    output_close(&q->out);
    output_close(&q->data);
    output_close(&q->context);
    output_close(&q->kv_scales);
    output_close(&q->report_out);
    output_close(&q->html);
    output_close(&q->observed);
    if (q->model >= 0)
        close(q->model);
    if (q->dataset >= 0)
        close(q->dataset);
    if (q->judging.data >= 0)
        close(q->judging.data);
    if (q->judging.metric >= 0)
        close(q->judging.metric);
    api_spec_free(&q->spec);
}

/* Quantizes the model in a file. */
static bool
quantize_file(const struct options *options, struct api_problem *problem)
{
    if (options->url)
        return service_quantize(options, problem);
    struct quantization q = {.model = -1,
                             .dataset = -1,
                             .judging = {.data = -1, .metric = -1},
                             .out = OUTPUT_NONE,
                             .data = OUTPUT_NONE,
                             .context = OUTPUT_NONE,
                             .kv_scales = OUTPUT_NONE,
                             .report_out = OUTPUT_NONE,
                             .html = OUTPUT_NONE,
                             .observed = OUTPUT_NONE,
                             .kept_observed = OUTPUT_NONE,
                             .times.file = OUTPUT_NONE};
    char *own_out =
        options->out ? NULL : path_ending_in(options->model, ".onnx", ".int8.onnx");
    const char *out = options->out ? options->out : own_out;
    bool ok = out || api_problem_no_memory(problem);
    ok = ok && open_inputs(&q, options, problem) &&
         open_outputs(&q, options, out, problem) &&
         open_engine(options, &q.executor, &q.engine, problem) &&
         open_judge(options, q.engine, &q.judge, problem) &&
         check_context(&q, problem) && run(&q, problem) &&
         check_result(&q, options, problem) &&
         write_results(&q, options->kept, problem);
    if (q.report)
        print_warnings(q.report->warnings, q.report->n_warnings);
    if (ok && !options->brief) {
        char target[API_TARGET_SIZE];
        print_summary(q.report, out);
        print_program(api_deploy_text(q.report, out, target), target);
    }
    close_all(&q);
    free(own_out);
    return ok;
}

/* Quantizes for one target the model of a file or of a folder. */
bool
quantize_one(const struct options *options, struct api_problem *problem)
{
    struct folder folder;
    struct options own;
    bool ok = folder_open(options, true, &folder, &own, problem) &&
              quantize_file(&own, problem) && folder_finish(&folder, problem);
    folder_close(&folder);
    return ok;
}
