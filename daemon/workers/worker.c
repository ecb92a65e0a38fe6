/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "workers/worker.h"
#include "base/clock.h"
#include "settings/settings.h"
#include "workers/cage.h"
#include "workers/confine.h"
#include "workers/judge_wanted.h"
#include "workers/judging.h"
#include "workers/message.h"
#include "api/report.h"
#include "api/spec.h"
#include "threads/executor.h"
#include "api/version.h"
#include "qdq.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PROGRESS_EVERY_MS 50

/*
 * For tests only: milliseconds to sleep before a QUANTIZE and at each of its stages, so
 * that a test can end the process, or the daemon, in the middle of a job.
 */
#define PAUSE_VARIABLE "QDQD_TEST_WORKER_PAUSE_MS"

struct worker {
    struct qdq_engine *engine;
    const char *runtime, *cuda_module; /* paths; NULL: not configured */
    int device;
    long pause_ms;
    bool lost; /* the GPU is lost: no later work of this process can succeed */
    bool gone; /* the daemon does not read messages any more */
    int peak;  /* for confine_reset_peak() */
    /* About the current job: */
    int64_t reported_at; /* when progress was last reported, in ms */
    int reported_stage;  /* -1 before the first */
    /* When the job got its GPU back, and when it may lend it again, in ms; 0: it has
       not lent it, and may at any time. */
    int64_t regained_at, may_lend_at;
};

/* --- answers -------------------------------------------------------------- */

static void
send_message(struct worker *w, const struct message *message)
{
    if (!message_send(WORKER_SOCKET, -1, message))
        w->gone = true;
}

static void
answer_failed(struct worker *w, const struct api_problem *problem)
{
    struct message message = {.type = MESSAGE_FAILED, .body.failed = *problem};
    send_message(w, &message);
}

/* Answers with `text` and frees it; NULL means that an encoder was out of memory. */
static void
answer_text(struct worker *w, struct message message, char *text)
{
    struct api_problem problem = {0};
    message.text = text;
    if (!text)
        api_problem_no_memory(&problem);
    else if ((message.text_len = strlen(text)) > MESSAGE_MAX_RESULT)
        api_problem_set(&problem, API_LIMIT_EXCEEDED, QDQ_AT_NOTHING, NULL,
                        "the answer is longer than %u bytes", MESSAGE_MAX_RESULT);
    if (problem.set)
        answer_failed(w, &problem);
    else
        send_message(w, &message);
    free(text);
}

static void
answer_result(struct worker *w, char *text)
{
    answer_text(w, (struct message){.type = MESSAGE_RESULT}, text);
}

/* Answers that the work is done and its result misses a gate. */
static void
answer_rejected(struct worker *w, const struct api_problem *problem, char *text)
{
    answer_text(w, (struct message){.type = MESSAGE_REJECTED, .body.failed = *problem},
                text);
}

static void
answer_error(struct worker *w, const struct qdq_error *err)
{
    struct api_problem problem = {0};
    api_problem_set_engine(&problem, err);
    answer_failed(w, &problem);
}

static void
sleep_ms(long ms)
{
    struct timespec left = {ms / 1000, ms % 1000 * 1000000};
    while (ms > 0 && nanosleep(&left, &left) && errno == EINTR)
        continue;
}

/* Reports each new stage, and within a stage not more often than PROGRESS_EVERY_MS. */
static bool
report_progress(void *arg, const struct qdq_progress *p)
{
    struct worker *w = arg;
    int64_t now = clock_steady_ms();
    bool new_stage = (int)p->stage != w->reported_stage;
    if (!new_stage && now - w->reported_at < PROGRESS_EVERY_MS)
        return w->gone;
    struct message message = {
        .type = MESSAGE_PROGRESS,
        .body.progress = {p->stage, p->done, p->total, p->later, p->unknown}};
    send_message(w, &message);
    w->reported_at = now;
    w->reported_stage = (int)p->stage;
    sleep_ms(new_stage ? w->pause_ms : 0);
    return w->gone;
}

/* --- the GPU between steps ------------------------------------------------ */

enum { LEND_AFTER_MS = 1000, LEND_AFTER_OVERHEADS = 10 };

/* Asks the daemon about the GPU, and waits for the answer. */
static bool
ask_daemon_for_gpu(struct worker *w, enum message_type question)
{
    const struct message message = {.type = question};
    struct message answer;
    send_message(w, &message);
    if (w->gone || message_receive(WORKER_SOCKET, -1, -1, &answer) != MESSAGE_GOT) {
        w->gone = true;
        return false;
    }
    w->gone = answer.type != MESSAGE_GPU;
    bool wanted = !w->gone && answer.body.gpu.wanted;
    message_fini(&answer);
    return wanted;
}

/* Starting again on a GPU takes time, so the GPU is not lent again before it was
   used for much longer than that. The time is known at the end of the first step. */
static bool
gpu_is_wanted(void *arg)
{
    struct worker *w = arg;
    int64_t now = clock_steady_ms();
    if (w->regained_at) {
        int64_t after = LEND_AFTER_OVERHEADS * (now - w->regained_at);
        w->may_lend_at = now + (after > LEND_AFTER_MS ? after : LEND_AFTER_MS);
        w->regained_at = 0;
    }
    return now >= w->may_lend_at && ask_daemon_for_gpu(w, MESSAGE_GPU_WANTED);
}

static bool
regain_gpu(void *arg)
{
    struct worker *w = arg;
    (void)ask_daemon_for_gpu(w, MESSAGE_GPU_LENT);
    w->regained_at = clock_steady_ms();
    return !w->gone;
}

/* Asks the daemon for a temporary file: the cage opens no path. */
static int
open_temporary(void *arg)
{
    struct worker *w = arg;
    const struct message message = {.type = MESSAGE_FILE_WANTED};
    struct message answer;
    int fd = -1;
    send_message(w, &message);
    if (w->gone || message_receive(WORKER_SOCKET, -1, -1, &answer) != MESSAGE_GOT) {
        w->gone = true;
        errno = EPIPE;
        return -1;
    }
    w->gone = answer.type != MESSAGE_FILE;
    if (answer.n_fds == 1 && !w->gone)
        fd = answer.fds[--answer.n_fds];
    message_fini(&answer);
    errno = EIO; /* where there is none; the daemon knows why */
    return fd;
}

/* --- requests ------------------------------------------------------------- */

/* Lists the model's other files for the engine; the list borrows from the request. */
static void
list_externals(const struct message *request,
               struct qdq_external ret[MESSAGE_MAX_FILES])
{
    const char *name = request->names;
    size_t own = message_own_fds(request);
    for (size_t i = 0; i < request->n_files; i++) {
        ret[i] = (struct qdq_external){name, request->fds[own + i]};
        name += strlen(name) + 1;
    }
}

static bool
open_externals(const struct worker *w, const struct message *request,
               const struct qdq_external *files, struct qdq_model **ret,
               struct api_problem *problem)
{
    struct qdq_error err = {0};
    enum qdq_code code =
        qdq_model_open_files(request->fds[0], files, request->n_files, ret, &err);
    if (!code)
        code = qdq_limits_check(qdq_engine_limits(w->engine), *ret, &err);
    return !code || api_problem_set_engine(problem, &err);
}

static bool
open_model(const struct worker *w, const struct message *request,
           struct qdq_model **ret, struct api_problem *problem)
{
    struct qdq_external files[MESSAGE_MAX_FILES];
    list_externals(request, files);
    return open_externals(w, request, files, ret, problem);
}

/* Gives a single file without a name the name of the single location that the model
   lacks. The caller frees `locations` when the file is no longer used. */
static bool
name_single_file(const struct message *request, struct qdq_external *files,
                 struct qdq_locations **locations, struct api_problem *problem)
{
    struct qdq_error err = {0};
    size_t nameless = 0;
    for (size_t i = 0; i < request->n_files; i++)
        nameless += !*files[i].path;
    if (!nameless)
        return true;
    if (qdq_model_locations(request->fds[0], locations, &err) != QDQ_OK)
        return api_problem_set_engine(problem, &err);
    if (request->n_files > 1 || (*locations)->n > 1)
        return api_problem_set(problem, API_EXTERNAL_AMBIGUOUS, QDQ_AT_NOTHING, NULL,
                               "a file was sent without a name, and it is not the only "
                               "one that was sent or that the model names");
    if ((*locations)->n == 1)
        files[0].path = (*locations)->names[0];
    return true;
}

/* Finds the location that each file serves. */
static bool
find_locations(const struct message *request, const struct qdq_external *files,
               const struct qdq_model *model, const char *ret[MESSAGE_MAX_FILES],
               struct api_problem *problem)
{
    for (size_t i = 0; i < request->n_files; i++) {
        ret[i] = qdq_model_location(model, i);
        if (!ret[i])
            return api_problem_set(
                problem, API_EXTERNAL_UNUSED, QDQ_AT_NOTHING, NULL,
                "the model keeps no data in a file \"%.200s\", which "
                "was sent with it",
                files[i].path);
    }
    return true;
}

static void
answer_check_model(struct worker *w, const struct message *request)
{
    struct api_problem problem = {0};
    struct qdq_model *model = NULL;
    struct qdq_locations *locations = NULL;
    struct qdq_external files[MESSAGE_MAX_FILES];
    const char *found[MESSAGE_MAX_FILES];
    list_externals(request, files);
    if (name_single_file(request, files, &locations, &problem) &&
        open_externals(w, request, files, &model, &problem) &&
        find_locations(request, files, model, found, &problem))
        answer_result(w, api_paths_encode(found, request->n_files));
    else
        answer_failed(w, &problem);
    qdq_model_free(&model);
    qdq_locations_free(&locations);
}

static void
answer_check_dataset(struct worker *w, const struct message *request)
{
    struct qdq_error err = {0};
    struct qdq_dataset *dataset = NULL;
    if (qdq_dataset_open_within(request->fds[0], qdq_engine_limits(w->engine), &dataset,
                                &err) == QDQ_OK)
        answer_result(w, api_dataset_info_encode(qdq_dataset_info(dataset)));
    else
        answer_error(w, &err);
    qdq_dataset_free(&dataset);
}

/* Has the daemon log what is missing here. */
static void
log_missing(struct worker *w, enum message_note_event event, const char *detail)
{
    char text[MESSAGE_MAX_NOTE];
    snprintf(text, sizeof text, "%s", detail);
    const struct message note = {.type = MESSAGE_NOTE,
                                 .body.note.event = event,
                                 .text = text,
                                 .text_len = strlen(text)};
    send_message(w, &note);
}

static void
answer_runtime(struct worker *w, const struct message *request)
{
    const char *version = NULL;
    struct qdq_error why = {0};
    (void)request;
    bool ok = qdq_engine_runtime_version(w->engine, &version, &why) == QDQ_OK;
    if (!ok && w->runtime)
        log_missing(w, MESSAGE_NOTE_RUNTIME_MISSING, why.text);
    answer_result(w, api_runtime_encode(w->runtime, version, ok ? NULL : why.text));
}

/* Tries the GPU as a job would. */
static void
answer_device(struct worker *w, const struct message *request)
{
    struct qdq_gpu found;
    struct qdq_error why = {0};
    (void)request;
    bool ok = qdq_engine_gpu(w->engine, &found, &why) == QDQ_OK;
    if (!ok)
        log_missing(w, MESSAGE_NOTE_GPU_MISSING, why.text);
    answer_result(
        w, api_gpu_encode(&(struct api_gpu){.index = w->device,
                                            .name = *found.name ? found.name : NULL,
                                            .module = w->cuda_module,
                                            .cuda = found.cuda,
                                            .problem = ok ? NULL : why.text}));
}

static void
answer_cases(struct worker *w, const struct message *request)
{
    (void)request;
    answer_result(w, api_cases_encode(qdq_engine_catalog(w->engine)));
}

static void
answer_layers(struct worker *w, const struct message *request)
{
    (void)request;
    answer_result(w, api_layers_encode(qdq_engine_catalog(w->engine)));
}

static void
answer_plan(struct worker *w, const struct message *request)
{
    struct qdq_error err = {0};
    struct api_problem problem = {0};
    struct api_spec *spec = NULL;
    struct qdq_model *model = NULL, *prepared = NULL;
    struct qdq_plan *made = NULL;
    if (!api_spec_decode(request->text, request->text_len, &spec, &problem))
        answer_failed(w, &problem);
    else if (!open_model(w, request, &model, &problem))
        answer_failed(w, &problem);
    else if (qdq_model_prepare(model, api_spec_get(spec), &prepared, &err) == QDQ_OK &&
             qdq_limits_check(qdq_engine_limits(w->engine), prepared ? prepared : model,
                              &err) == QDQ_OK &&
             qdq_plan_make(qdq_engine_catalog(w->engine), prepared ? prepared : model,
                           api_spec_get(spec), &made, &err) == QDQ_OK)
        answer_result(w, api_plan_encode(qdq_plan_view(made), qdq_model_info(model)));
    else
        answer_error(w, &err);
    qdq_plan_free(&made);
    qdq_model_free(&prepared);
    qdq_model_free(&model);
    api_spec_free(&spec);
}

/* Describes a model, even one that cannot be quantized. */
static void
answer_info(struct worker *w, const struct message *request)
{
    struct api_problem problem = {0};
    struct qdq_spec spec;
    struct qdq_model *model = NULL, *prepared = NULL;
    struct qdq_plan *made = NULL;
    qdq_spec_init(&spec);
    if (!open_model(w, request, &model, &problem)) {
        answer_failed(w, &problem);
        qdq_model_free(&model);
        return;
    }
    bool planned =
        qdq_model_prepare(model, &spec, &prepared, NULL) == QDQ_OK &&
        qdq_plan_make(qdq_engine_catalog(w->engine), prepared ? prepared : model, &spec,
                      &made, NULL) == QDQ_OK;
    answer_result(w, api_model_info_encode(qdq_model_info(model),
                                           planned ? qdq_plan_view(made) : NULL));
    qdq_plan_free(&made);
    qdq_model_free(&prepared);
    qdq_model_free(&model);
}

static bool
write_all(int fd, const char *text, struct api_problem *problem)
{
    for (size_t left = strlen(text); left;) {
        ssize_t n = write(fd, text, left);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return api_problem_set(
                problem, errno == ENOSPC || errno == EFBIG ? API_DISK_FULL : API_IO,
                QDQ_AT_NOTHING, NULL, "writing the result: %s", strerror(errno));
        text += n;
        left -= (size_t)n;
    }
    return true;
}

/* The frozen spec's text and digest. */
struct frozen {
    char *text;
    char digest[DIGEST_SIZE];
};

static const char *
encode_frozen_spec(void *arg, const struct qdq_spec *spec)
{
    struct frozen *frozen = arg;
    frozen->text = api_spec_encode(spec);
    bool ok =
        frozen->text && digest_of(frozen->text, strlen(frozen->text), frozen->digest);
    return ok ? frozen->digest : NULL;
}

/* Returns the file of times; `arg` is the request. It is a function of struct qdq_work. */
static int
times_of(void *arg)
{
    const struct message *request = arg;
    return request->body.quantize.keep_times ? request->fds[MESSAGE_FD_TIMES] : -1;
}

/* Does the same for the journal. */
static int
journal_of(void *arg)
{
    return ((const struct message *)arg)->fds[MESSAGE_FD_JOURNAL];
}

static bool
run_engine(struct worker *w, const struct message *request, const struct api_spec *spec,
           struct frozen *frozen, struct qdq_report **ret, struct api_problem *problem)
{
    const struct message_quantize *ids = &request->body.quantize;
    struct qdq_error err = {0};
    const struct qdq_judging judging = judging_of(request);
    bool data = message_own_fds(request) - (judging.data >= 0) - (judging.metric >= 0) >
                MESSAGE_FD_DATASET;
    struct qdq_external files[MESSAGE_MAX_FILES];
    list_externals(request, files);
    struct qdq_work work = {
        .model = request->fds[MESSAGE_FD_MODEL],
        .external = files,
        .n_external = request->n_files,
        .model_id = ids->model_id,
        .dataset = data ? request->fds[MESSAGE_FD_DATASET] : -1,
        .dataset_id = data ? ids->dataset_id : NULL,
        .judging = &judging,
        .spec = api_spec_get(spec),
        .freeze = encode_frozen_spec,
        .freeze_arg = frozen,
        .output = request->fds[MESSAGE_FD_OUTPUT],
        .output_data = request->fds[MESSAGE_FD_DATA],
        .output_data_name = MESSAGE_DATA_NAME,
        .observations = ids->observe ? request->fds[MESSAGE_FD_OBSERVATIONS] : -1,
        .times = times_of,
        .times_arg = (void *)(uintptr_t)request,
        .journal = *ids->journal_of ? journal_of : NULL,
        .journal_arg = (void *)(uintptr_t)request,
        .journal_of = ids->journal_of,
        .histograms =
            ids->observe, /* which observes histograms whatever the method needs */
        .progress = report_progress,
        .progress_arg = w,
        .wanted = gpu_is_wanted,
        .regain = regain_gpu,
        .gpu_arg = w,
    };
    w->reported_stage = -1;
    w->regained_at = w->may_lend_at = 0;
    confine_reset_peak(w->peak);
    sleep_ms(w->pause_ms);
    return qdq_quantize(w->engine, &work, ret, &err) == QDQ_OK ||
           api_problem_set_engine(problem, &err);
}

static void
answer_quantize(struct worker *w, const struct message *request)
{
    struct api_problem problem = {0};
    struct api_spec *spec = NULL;
    struct qdq_report *report = NULL;
    struct frozen frozen = {.text = NULL};
    char *text = NULL;
    bool ok = api_spec_decode(request->text, request->text_len, &spec, &problem) &&
              run_engine(w, request, spec, &frozen, &report, &problem);
    if (ok && !(text = api_report_encode(report)))
        ok = api_problem_no_memory(&problem);
    ok = ok && write_all(request->fds[MESSAGE_FD_REPORT], text, &problem) &&
         write_all(request->fds[MESSAGE_FD_FROZEN], frozen.text, &problem);
    w->lost = !ok && problem.code == API_DEVICE_LOST;
    if (!ok)
        answer_failed(w, &problem);
    else if (api_report_accepted(report, &problem))
        answer_result(w, api_summary_encode(report));
    else
        answer_rejected(w, &problem, api_summary_encode(report));
    free(text);
    free(frozen.text);
    qdq_report_free(&report);
    api_spec_free(&spec);
}

/* A message that is not a request has no row here and ends the worker. */
static void (*const handlers[MESSAGE_N_TYPES])(struct worker *,
                                               const struct message *) = {
    [MESSAGE_CHECK_MODEL] = answer_check_model,
    [MESSAGE_CHECK_DATASET] = answer_check_dataset,
    [MESSAGE_INFO] = answer_info,
    [MESSAGE_PLAN] = answer_plan,
    [MESSAGE_QUANTIZE] = answer_quantize,
    [MESSAGE_RUNTIME] = answer_runtime,
    [MESSAGE_DEVICE] = answer_device,
    [MESSAGE_CASES] = answer_cases,
    [MESSAGE_LAYERS] = answer_layers,
};

static int
serve(struct worker *w)
{
    for (;;) {
        struct message request;
        enum message_got got = message_receive(WORKER_SOCKET, -1, -1, &request);
        if (got == MESSAGE_EOF)
            return EXIT_SUCCESS;
        if (got != MESSAGE_GOT)
            return EXIT_FAILURE;
        void (*handler)(struct worker *, const struct message *) =
            handlers[request.type];
        if (handler)
            handler(w, &request);
        message_fini(&request);
        if (w->lost)
            return EXIT_SUCCESS;
        if (!handler)
            return EXIT_FAILURE;
    }
}

/* --- start ---------------------------------------------------------------- */

/* Opens the engine, with one thread at first; the configuration that the daemon checked at
   its start may have changed. */
static bool
open_engine(struct worker *w, const struct qdq_engine_options *options)
{
    struct qdq_error err = {0};
    if (qdq_engine_open(options, &w->engine, &err) == QDQ_OK)
        return true;
    log_missing(w, MESSAGE_NOTE_ENGINE_FAILED, err.text);
    return false;
}

/* Enters the cage. Everything that needs a path is done before: loading ONNX
   Runtime, and finding out why that fails. */
static bool
enter_cage(struct worker *w, const char *setting)
{
    char lacking[CAGE_TEXT];
    const char *version;
    struct qdq_error ignored = {0};
    if (strcmp(setting, "off") == 0)
        return true;
    (void)!qdq_engine_runtime_version(w->engine, &version, &ignored);
    /* The module stays loaded. CUDA itself starts in the cage, because it makes
       threads. */
    if (w->cuda_module)
        (void)!dlopen(w->cuda_module, RTLD_NOW | RTLD_LOCAL);
    bool whole = cage_enter(w->cuda_module ? CAGE_GPU : CAGE_CPU, lacking) && !*lacking;
    if (!whole)
        log_missing(w, MESSAGE_NOTE_CAGE_LACKING, lacking);
    return whole || strcmp(setting, "auto") == 0;
}

/* Returns the threads for one model: the setting, or this worker's share of the
   processors. */
static int
count_threads(const struct settings *settings)
{
    long share = sysconf(_SC_NPROCESSORS_ONLN) / settings->workers_count;
    return (int)(settings->workers_threads ? settings->workers_threads
                 : share > 1               ? share
                                           : 1);
}

/* Returns NULL for an empty setting. */
static const char *
path_of(const char *setting)
{
    return *setting ? setting : NULL;
}

static struct qdq_limits
limits_of(const struct settings *settings)
{
    return (struct qdq_limits){
#define LIMIT(name, ...) .name = (uint64_t)settings->limits_##name,
        QDQ_LIMITS(LIMIT)
#undef LIMIT
    };
}

/* Serves until the daemon closes the socket. Returns the exit status. */
static int
run_worker(const struct settings *settings, pid_t parent, int device,
           const char *runners)
{
    const struct qdq_engine_options options = {
        .executor = &threads_executor,
        .threads = 1, /* the cage binds the threads that are made in it */
        .runtime = path_of(settings->engine_runtime),
        .catalog = path_of(settings->engine_cases),
        .cuda_module = device >= 0 ? settings->gpu_module : NULL,
        .device = device,
        .device_chosen = true,
        .limits = limits_of(settings),
    };
    struct worker w = {.runtime = options.runtime,
                       .cuda_module = options.cuda_module,
                       .device = options.device};
    const struct message ready = {.type = MESSAGE_READY};
    if (!confine_process(parent, (rlim_t)settings->workers_memory, "qdqd-worker"))
        return EXIT_FAILURE;
    confine_yield();
    w.peak = confine_open_peak();
    if (!open_engine(&w, &options) || !enter_cage(&w, settings->workers_cage))
        return EXIT_FAILURE;
    qdq_engine_set_threads(w.engine, count_threads(settings));
    qdq_set_open_temporary(open_temporary, &w);
    struct judge_wanted *judges = judge_wanted_new(w.engine, runners, &w.gone);
    if (!judges)
        return EXIT_FAILURE;
    /* The process that judges may end while it is asked. */
    sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    fcntl(WORKER_SOCKET, F_SETFD, FD_CLOEXEC);
    const char *pause = getenv(PAUSE_VARIABLE);
    w.pause_ms = pause ? strtol(pause, NULL, 10) : 0;
    send_message(&w, &ready);
    int status = serve(&w);
    qdq_engine_close(&w.engine);
    free(judges);
    return status;
}

int
worker_main(int argc, char **argv)
{
    struct settings settings;
    char error[SETTINGS_ERROR];
    if (argc != 2 && argc != 3) {
        fprintf(stderr, "qdqd: --worker is started by the daemon itself\n");
        return 2;
    }
    if (!settings_load(NULL, NULL, 0, NULL, &settings, error)) {
        fprintf(stderr, "qdqd: %s\n", error);
        return 2;
    }
    int status = run_worker(&settings, (pid_t)strtol(argv[0], NULL, 10),
                            (int)strtol(argv[1], NULL, 10), argc == 3 ? argv[2] : "");
    settings_fini(&settings);
    return status;
}
