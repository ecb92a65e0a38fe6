/* SPDX-License-Identifier: Apache-2.0 */
/* The command reproduce: it does the job of a statement again, and compares the bytes. */
#include "config.h"
#include "commands.h"

#include <string.h>
#include <unistd.h>

#include "api/files.h"
#include "external.h"
#include "files.h"
#include "lineage/statement.h"
#include "threads/executor.h"

/* The name of a result's external data, which stands in the result itself. */
#define MODEL "model.onnx"

/* Checks that the data of an option, which is for the model, is that of the statement. Both may be
   absent. */
static bool
check_input(const char *option, const char *path, const char *model, const char *wanted,
            struct api_problem *problem)
{
    char digest[DIGEST_SIZE];
    int fd;
    if (!path && wanted)
        return api_fail(problem, API_MISSING_PART,
                        "the statement needs %s FILE, the data with the digest %s",
                        option, wanted);
    if (path && !wanted)
        return api_fail(problem, API_BAD_REQUEST, "the job of the statement had no %s",
                        option + 2);
    if (!path)
        return true;
    if (!data_open(path, model, &fd, problem))
        return false;
    bool ok = digest_file(fd, path, digest, problem) &&
              (digest_is_same(digest, wanted) ||
               api_fail(problem, API_DIGEST_MISMATCH,
                        "%s %.200s has the digest %s, and the statement's has %s",
                        option, path, digest, wanted));
    close(fd);
    return ok;
}

static bool
check_model(const char *path, const char *wanted, struct api_problem *problem)
{
    char id[DIGEST_SIZE];
    struct external external = {.n = 0};
    int fd;
    if (!path)
        return api_fail(problem, API_MISSING_PART,
                        "reproduce needs --model FILE, the model with the id %s",
                        wanted);
    if (!file_open(path, &fd, problem))
        return false;
    bool ok =
        external_open(fd, path, &external, problem) &&
        digest_file(fd, path, id, problem) &&
        external_digest(&external, fd, path, id, digest_file, problem) &&
        (digest_is_same(id, wanted) ||
         api_fail(problem, API_DIGEST_MISMATCH,
                  "--model %.200s has the id %s, and the statement's model has %s; "
                  "the names of its files belong to the id of several",
                  path, id, wanted));
    external_close(&external);
    close(fd);
    return ok;
}

/* Checks the versions, of which others may give other bytes. */
static bool
check_versions(const struct options *options, const struct api_statement *statement,
               struct api_problem *problem)
{
    struct qdq_engine *engine = NULL;
    struct qdq_error err = {0};
    const char *version = NULL;
    if (statement->engine && strcmp(statement->engine, qdq_version()) != 0)
        return api_fail(problem, API_UNSUPPORTED,
                        "the statement's result was made by version %.40s, and this is "
                        "%s; run qdq of that version",
                        statement->engine, qdq_version());
    if (!statement->runtime)
        return true;
    if (!open_engine(options, &threads_executor, &engine, problem))
        return false;
    bool ok = qdq_engine_runtime_version(engine, &version, &err) == QDQ_OK
                  ? strcmp(version, statement->runtime) == 0 ||
                        api_fail(problem, API_UNSUPPORTED,
                                 "the statement's result was made with ONNX Runtime "
                                 "%.40s, and this is %.40s; QDQD_ENGINE_RUNTIME names "
                                 "another library",
                                 statement->runtime, version)
                  : api_problem_set_engine(problem, &err);
    qdq_engine_close(&engine);
    return ok;
}

static bool
check_statement(const struct options *options, const struct api_statement *statement,
                struct api_problem *problem)
{
    if (!statement->spec)
        return api_fail(
            problem, API_BAD_REQUEST,
            "%.200s says what is signed, not how it was made; that is in the "
            "job's provenance",
            options->model);
    if (!options->out)
        return api_fail(problem, API_MISSING_PART, "reproduce needs -o OUT");
    return statement->n == 1 || strcmp(api_path_base(options->out), MODEL) == 0 ||
           api_fail(problem, API_BAD_REQUEST,
                    "the result has external data, whose name is in the model, so the "
                    "name of -o is to be " MODEL);
}

bool
command_reproduce(const struct options *options, struct api_problem *problem)
{
    struct api_statement statement;
    if (!statement_read(options->model, options->key, &statement, problem))
        return false;
    struct options work = *options;
    work.model = options->source_model;
    work.spec_text = statement.spec;
    work.expected = statement.files;
    work.n_expected = statement.n;
    bool ok = check_statement(options, &statement, problem) &&
              check_versions(options, &statement, problem) &&
              check_model(options->source_model, statement.model_id, problem) &&
              check_input("--calibration", options->calibration, options->source_model,
                          statement.calibration, problem) &&
              check_input("--evaluation", options->evaluation, options->source_model,
                          statement.evaluation, problem) &&
              command_quantize(&work, problem);
    api_statement_fini(&statement);
    return ok;
}
