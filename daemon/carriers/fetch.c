/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "carriers/pieces.h"
#include "base/log.h"
#include "carriers/remote_fds.h"
#include "carriers/signers.h"
#include "carriers/string_list.h"
#include "handlers/handlers.h"
#include "handlers/model_input.h"
#include "store/derive.h"
#include "tenants/tenants.h"
#include "api/files.h"
#include "api/spec.h"
#include "api/utf8.h"
#include "remote/remote.h"

#include <stdlib.h>
#include <string.h>

#define MOST_ATTEMPTS \
    8 /* over a minute and a half or more, with the waits between them */

/* A file that the remote has. */
struct offered {
    long long role, size, number;
    const char *name; /* borrowed from the answer */
};

/* One input while it is fetched. */
struct input {
    struct carrier_work *work;
    enum api_input which;
    const struct api_place *place;
    struct message answer; /* SOURCE */
    const char *resolved, *digest;
    struct offered files[1 + MESSAGE_MAX_FILES];
    struct spool *spools[1 + MESSAGE_MAX_FILES];
    size_t n;
    /* A model of a remote with signers has their file here, and its signature. */
    char *signers;
    struct offered signature;
    struct spool *signature_file;
    char id[DIGEST_SIZE];
};

static const enum store_kind kinds[API_N_INPUTS] = {STORE_MODEL, STORE_DATASET};

/* --- what there is --------------------------------------------------------- */

/* Returns whether the name is that of calibration data. Such a file beside a model is no
   part of it. */
static bool
is_dataset(const char *name)
{
    static const char *const suffixes[] = {".npz", ".npy",    ".tar",
                                           ".tgz", ".tar.gz", ".parquet"};
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        if (api_path_has_ending(name, suffixes[i]))
            return true;
    return false;
}

static bool
is_wanted(const struct input *input, const struct offered *file)
{
    if (input->which == API_INPUT_MODEL)
        return file->role == QDQR_MODEL ||
               (file->role == QDQR_DATA && !is_dataset(file->name));
    /* beside a model, a .safetensors file may hold its weights */
    return is_dataset(file->name) || api_path_has_ending(file->name, ".safetensors") ||
           (file->role == QDQR_MODEL && !api_path_has_ending(file->name, ".onnx"));
}

/* Chooses the files of an input. The model itself is first. */
static bool
choose_files(struct input *input, struct string_list *list, struct api_problem *p)
{
    struct offered file = {0};
    size_t models = 0;
    while (string_list_next_number(list, &file.role) &&
           string_list_next_number(list, &file.size) &&
           (file.name = string_list_next(list))) {
        if (is_wanted(input, &file)) {
            bool leads = file.role == QDQR_MODEL || input->which != API_INPUT_MODEL;
            if (input->n == sizeof input->files / sizeof *input->files)
                return api_fail(p, API_LIMIT_EXCEEDED, "%s has more than %d files",
                                input->resolved, 1 + MESSAGE_MAX_FILES);
            input->files[input->n] = leads ? input->files[0] : file;
            if (leads)
                input->files[0] = file;
            input->n++;
            models += leads;
        }
        if (file.role == QDQR_SIGNATURE &&
            (!input->signature.name || !strcmp(file.name, QDQR_SIGNATURE_NAME)))
            input->signature = file;
        file.number++;
    }
    if (models != 1)
        return api_fail(p, API_REMOTE_NOT_FOUND,
                        "%s of remote %s has %zu files %s, and one is needed",
                        input->resolved, input->place->remote, models,
                        input->which == API_INPUT_MODEL
                            ? "*.onnx"
                            : "*.npz, *.npy, *.parquet or *.tar");
    return !input->signers || input->signature.name ||
           api_fail(p, API_SIGNATURE_INVALID,
                    "remote %s takes signed models alone, and %.300s has no signature "
                    "beside it: publish one as " QDQR_SIGNATURE_NAME,
                    input->place->remote, input->resolved);
}

/* Tells the operator why an attempt failed, and of which host. A client sees the remote's name
   alone. */
static void
log_failure(const struct input *input, const struct api_problem *problem)
{
    const struct carrier_work *work = input->work;
    struct remotes *remotes = tenants_remotes(work->service->tenants);
    const struct remote *remote = remotes_find(remotes, input->place->remote);
    char host[REMOTE_HOST] = "-", quoted[LOG_QUOTED];
    if (remote)
        remote_host(remote, host);
    log_error("fetch_failed", "job=%s tenant=%s remote=%s host=%s code=%s detail=%s",
              work->slot.id, *work->service->tenant ? work->service->tenant : "-",
              input->place->remote, host, api_problem_slug(problem->code),
              log_quote(quoted, problem->detail));
    remotes_release(&remotes);
}

/* Asks the remote what the place is. */
static bool
resolve(struct input *input, struct api_problem *p)
{
    struct carrier_work *work = input->work;
    struct message request = {.type = MESSAGE_FETCH};
    struct remotes *remotes = tenants_remotes(work->service->tenants);
    const struct remote *remote = remotes_find(remotes, input->place->remote);
    bool ok =
        remote || api_fail(p, API_REMOTE_UNKNOWN, "there is no remote %s any more",
                           input->place->remote);
    ok = ok && remote_fds_open(remote, &request.body.fetch.remote, &request, p);
    if (ok && input->which == API_INPUT_MODEL && !*remote->signers &&
        tenant_is_listed(work->service->settings->tenants_signed_models,
                         work->service->tenant))
        ok = api_fail(p, API_FORBIDDEN,
                      "this tenant's models have to be signed, and remote %s has no "
                      "signers any more",
                      input->place->remote);
    if (ok && input->which == API_INPUT_MODEL && *remote->signers)
        ok = (input->signers = strdup(remote->signers)) || api_problem_no_memory(p);
    snprintf(request.body.fetch.ref, sizeof request.body.fetch.ref, "%s",
             input->place->ref);
    remotes_release(&remotes);
    ok = ok && ask_start(work, &request.body.fetch.remote, p);
    if (ok && jobs_is_unwanted(work->service->jobs, &work->slot))
        ok = api_fail(p, API_CANCELLED, "not wanted");
    ok = ok && ask_carrier(work, &request, MESSAGE_SOURCE, &input->answer, p);
    message_fini(&request);
    if (!ok)
        return false;
    struct string_list list = {input->answer.text, input->answer.text_len, 0};
    input->resolved = string_list_next(&list);
    input->digest = input->resolved ? string_list_next(&list) : NULL;
    if (input->digest &&
        (!api_utf8_is_valid(input->resolved) || !api_utf8_is_valid(input->digest)))
        return api_fail(p, API_REMOTE_UNAVAILABLE,
                        "remote %s answered with a name that is not UTF-8",
                        input->place->remote);
    if (!input->digest)
        return api_fail(p, API_INTERNAL, "a carrier's answer cannot be read");
    return choose_files(input, &list, p);
}

/* --- bytes ----------------------------------------------------------------- */

/* Adds a file to a pull, with a new spool. */
static bool
add_file(const struct offered *file, struct spool **spool, struct blobs *blobs,
         struct message *pull, struct string_list *numbers, uint64_t *size,
         struct api_problem *p)
{
    *size += file->size > 0 ? (uint64_t)file->size : 0;
    if (!string_list_add_number(numbers, file->number))
        return api_problem_no_memory(p);
    if (!spool_open(blobs, spool, p))
        return false;
    pull->fds[pull->n_fds++] = spool_fd(*spool);
    return true;
}

/* Adds the files of the input; only the signature where the rest `is_there`. */
static bool
add_files(struct input *input, bool is_there, struct blobs *blobs, struct message *pull,
          struct string_list *numbers, struct api_problem *p)
{
    uint64_t size = 0;
    bool ok = true;
    for (size_t i = 0; ok && !is_there && i < input->n; i++)
        ok = add_file(&input->files[i], &input->spools[i], blobs, pull, numbers, &size,
                      p);
    if (ok && input->signers)
        ok = add_file(&input->signature, &input->signature_file, blobs, pull, numbers,
                      &size, p);
    return ok && blobs_check_room(blobs, size, p);
}

/* Returns whether there is room for what the remote has sent so far. It may send more than it
   said, or have said nothing. */
static bool
watch_spools(void *arg, struct api_problem *p)
{
    const struct input *input = arg;
    bool ok = true;
    for (size_t i = 0; ok && i < input->n; i++)
        ok = !input->spools[i] || spool_watch(input->spools[i], p);
    return ok && (!input->signature_file || spool_watch(input->signature_file, p));
}

/* Pulls the files; only the signature where the rest `is_there`. The process has ended before they are
   read. */
static bool
pull_files(struct input *input, bool is_there, struct api_problem *p)
{
    struct string_list numbers = {0};
    struct message pull = {.type = MESSAGE_PULL}, answer = {0};
    struct blobs *blobs = library_blobs(input->work->service->library);
    bool ok = add_files(input, is_there, blobs, &pull, &numbers, p);
    pull.text = numbers.text;
    pull.text_len = numbers.len;
    input->work->watch = watch_spools;
    input->work->watch_arg = input;
    ok = ok && ask_carrier(input->work, &pull, MESSAGE_RESULT, &answer, p);
    input->work->watch = NULL;
    message_fini(&answer);
    string_list_fini(&numbers);
    for (size_t i = 0; ok && !is_there && i < input->n; i++)
        ok = spool_finish_file(input->spools[i], p);
    return ok &&
           (!input->signature_file || spool_finish_file(input->signature_file, p));
}

static bool
store_model(struct input *input, struct api_problem *p)
{
    const struct service *service = input->work->service;
    struct body_external externals[MESSAGE_MAX_FILES];
    struct body body = {.files[BODY_MODEL] = input->spools[0],
                        .n_externals = input->n - 1,
                        .externals = externals};
    struct model_input model = {0};
    struct store_file stored = {0};
    bool is_new;
    char name[API_MAX_REF + 1], names[MESSAGE_MAX_FILES][API_MAX_PATH + 1];
    snprintf(name, sizeof name, "%s", input->files[0].name);
    body.model_name = name;
    for (size_t i = 1; i < input->n; i++) {
        snprintf(names[i - 1], sizeof names[i - 1], "%s", input->files[i].name);
        externals[i - 1] =
            (struct body_external){.name = names[i - 1], .file = input->spools[i]};
    }
    bool ok = model_input_check(service, &body, &model, p) &&
              model_input_store(service->library, &model, &stored, &is_new, p);
    if (ok)
        memcpy(input->id, stored.id, sizeof input->id);
    /* Storing the model took ownership of the body's files. */
    input->spools[0] = body.files[BODY_MODEL];
    for (size_t i = 1; i < input->n; i++)
        input->spools[i] = externals[i - 1].file;
    store_file_fini(&stored);
    model_input_fini(&model);
    return ok;
}

static bool
store_dataset(struct input *input, struct api_problem *p)
{
    const struct service *service = input->work->service;
    struct store_file stored = {0};
    char *info = NULL;
    bool is_new;
    bool ok = check_dataset(service, input->spools[0], &info, p) &&
              library_add(service->library, STORE_DATASET, &input->spools[0], info,
                          &stored, &is_new, p);
    if (ok)
        memcpy(input->id, stored.id, sizeof input->id);
    store_file_fini(&stored);
    free(info);
    return ok;
}

/* --- one input ------------------------------------------------------------- */

/* Fetches one input, unless the same was fetched before. *ret_source is the job's source
   with it; the caller frees it. */
static bool
fetch_input(struct input *input, const char *source, char **ret_source,
            struct api_problem *p)
{
    struct store *store = library_store(input->work->service->library);
    bool any = false;
    bool ok = resolve(input, p);
    const struct store_fetched key = {input->place->remote, input->resolved,
                                      input->digest, kinds[input->which]};
    /* The same may have been fetched before. */
    ok = ok &&
         (!*input->digest || store_fetched_get(store, &key, input->id, &any, p)) &&
         ((any && !input->signers) || pull_files(input, any, p));
    ask_end(input->work);
    ok = ok && jobs_is_held(input->work->service->jobs, &input->work->slot, p);
    if (ok && !any) {
        ok = input->which == API_INPUT_MODEL ? store_model(input, p)
                                             : store_dataset(input, p);
        if (ok && *input->digest)
            ok = store_fetched_put(store, &key, input->id, p);
    }
    ok = ok && (!input->signers ||
                signers_check(input->signers, input->signature_file,
                              input->work->service->library, input->id, p));
    if (ok) {
        *ret_source = api_source_fill(source, input->which, input->resolved, input->id);
        ok = *ret_source || api_problem_no_memory(p);
    } else if (p->code != API_CANCELLED)
        log_failure(input, p);
    for (size_t i = 0; i < input->n; i++)
        spool_discard(&input->spools[i]);
    spool_discard(&input->signature_file);
    free(input->signers);
    message_fini(&input->answer);
    return ok;
}

/* --- the job --------------------------------------------------------------- */

/* Replaces a text of the job by one that it then owns. */
static void
replace(char **text, char *by)
{
    free(*text);
    *text = by;
}

/* Fetches all inputs of the job and puts them into it. */
static bool
fetch_all(struct carrier_work *work, struct store_job *job, struct api_problem *p)
{
    struct api_place places[API_N_INPUTS];
    char **const ids[API_N_INPUTS] = {&job->model, &job->calibration};
    bool ok = api_source_decode(job->source, places, p);
    for (int i = 0; ok && i < API_N_INPUTS; i++) {
        char *source = NULL;
        struct input *input = places[i].ref ? calloc(1, sizeof *input) : NULL;
        if (!places[i].ref)
            continue;
        if (!input) {
            ok = api_problem_no_memory(p);
            break;
        }
        input->work = work;
        input->which = (enum api_input)i;
        input->place = &places[i];
        ok = fetch_input(input, job->source, &source, p);
        if (ok) {
            replace(&job->source, source);
            replace(ids[i], strdup(input->id));
            ok = *ids[i] || api_problem_no_memory(p);
        }
        free(input);
    }
    for (int i = 0; i < API_N_INPUTS; i++)
        api_place_fini(&places[i]);
    return ok;
}

/* Decides what follows from the inputs, as at the submission of a job that has them. The
   identity is "" for a job whose result depends on time. */
static bool
derive(const struct service *service, struct store_job *job, char identity[DIGEST_SIZE],
       struct api_problem *p)
{
    const struct api_job_request request = {.model = job->model,
                                            .calibration = job->calibration,
                                            .evaluation = job->evaluation};
    struct api_spec *spec = NULL;
    const char *text = job->effective_spec ? job->effective_spec : "{}";
    char *runtime = tenants_runtime(service);
    char *all =
        runtime ? api_job_identity(&request, text, service->scripts, runtime) : NULL;
    free(runtime);
    bool ok =
        (all && digest_of(all, strlen(all), identity)) || api_problem_no_memory(p);
    free(all);
    ok = ok && api_spec_decode(text, strlen(text), &spec, p) &&
         store_derive(api_spec_get(spec), job, p);
    if (ok && (qdq_spec_is_timed(api_spec_get(spec)) ||
               (job->calibration && qdq_spec_measures(api_spec_get(spec)))))
        identity[0] = '\0';
    api_spec_free(&spec);
    return ok;
}

void
fetch_inputs(struct carrier_work *work, const struct store_job *job)
{
    struct jobs *jobs = work->service->jobs;
    struct store_job fetched = *job;
    struct api_problem problem = {0};
    char identity[DIGEST_SIZE];
    fetched.model = strdup(job->model);
    fetched.calibration = job->calibration ? strdup(job->calibration) : NULL;
    fetched.source = job->source ? strdup(job->source) : NULL;
    bool ok = (fetched.model && fetched.source &&
               (fetched.calibration || !job->calibration)) ||
              api_problem_no_memory(&problem);
    ok = ok && fetch_all(work, &fetched, &problem) &&
         derive(work->service, &fetched, identity, &problem);
    ask_end(work);
    if (ok)
        jobs_fetch_done(jobs, &work->slot, &fetched, *identity ? identity : NULL);
    else if (problem.code == API_CANCELLED)
        jobs_fetch_later(jobs, &work->slot, 0, 0);
    else if (ask_may_retry(problem.code) && job->fetch_attempts + 1 < MOST_ATTEMPTS)
        jobs_fetch_later(jobs, &work->slot, 1,
                         ask_wait_ms(work, job->fetch_attempts + 1));
    else
        jobs_fetch_fail(jobs, &work->slot, &problem);
    free(fetched.model);
    free(fetched.calibration);
    free(fetched.source);
}
