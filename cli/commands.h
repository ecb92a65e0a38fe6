/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of qdq. Each returns false with the problem that main() prints. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "api/files.h"
#include "api/problem.h"
#include "judge.h"
#include "qdq/quantize.h"

/* The arguments of an option that may be repeated. */
enum { MAX_TEXTS = 64 };
struct texts {
    const char *at[MAX_TEXTS];
    size_t n; /* more than MAX_TEXTS: too many were given */
};

/* Where a command leaves the text of a report, which the caller frees; NULL: there was none. */
struct kept_report {
    char *text;
    size_t len;
};

/* The parsed command line. A text is NULL where its option is absent. */
struct options {
    const char *model;  /* or a report, REMOTE:REF, or the id of a job; NULL: none */
    char *const *files; /* the operands behind it */
    size_t n_files;
    const char *spec, *calibration, *evaluation, *observations, *out, *fits, *report,
        *html, *cases;
    const char *config, *alias, *source;
    struct texts tags;
    const char *target, *recipe; /* members of the spec */
    const char *key, *signature; /* files: a public key, and a signed statement */
    const char *source_model;    /* the float model of a statement */
    /* No options: the spec's text, and the files that the result has to be, of a command that
       quantizes in its turn. */
    const char *spec_text;
    const struct api_file *expected;
    size_t n_expected;
    /* No options either: the spec with all members that options give, in the place of them; NULL:
       they count. And where the text of the report goes, too; NULL: nowhere. */
    const char *whole_spec;
    size_t whole_spec_len;
    struct kept_report *kept;
    const char *
        targets; /* those of compare, with commas between; NULL: reports are compared */
    struct texts accept, set;               /* members of the spec, as PATH=VALUE */
    const char *url, *token_file, *ca_file; /* of a service; url is NULL for none */
    const char *state, *label;
    const char *runners; /* the file of runners; NULL: none */
    const char *patience_text;
    int patience; /* seconds */
    const char *threads_text;
    int threads;
    bool json, all, force, help;
    bool brief; /* no summary of the result is printed */
};

struct command {
    const char *name;
    const char *argument; /* its operands, as the pages call them; "": it has none */
    bool (*run)(const struct options *options, struct api_problem *problem);
    const char *text; /* a sentence for the help page */
    enum {
        NO_FILES,
        SOME_FILES,
        ANY_FILES
    } has_files;        /* what follows its argument: one or more, or any number */
    bool needs_service; /* whether it works through a service alone */
};

/*
 * Opens the engine with the cases and the layer support of the operator's folder. A broken
 * script in that folder is an error, because the script could have changed the plan. The engine
 * borrows the executor.
 */
bool open_engine(const struct options *options, const struct qdq_executor *executor,
                 struct qdq_engine **ret, struct api_problem *problem);

/* Returns the value from the command line, else that of the environment variable, which
   the daemon reads too, else the installed one; NULL when that value is empty. */
const char *setting(const char *given, const char *variable, const char *installed);

/* Has the engine run the runtimes that judge, where they are configured, in processes of their own,
   and judge by the user's runners,
   which the caller ends with judge_fini() after the work, also on failure. */
bool open_judge(const struct options *options, struct qdq_engine *engine,
                struct judge *ret, struct api_problem *problem);

/* Fails where two files that a quantization writes, or one that it writes and one that it reads,
   have the same place. `out` is that of the model. */
bool check_places(const struct options *options, const char *out,
                  struct api_problem *problem);
/* Fails where the data file beside `out` has the place of another file that is written. */
bool check_data_place(const struct options *options, const char *out, const char *data,
                      struct api_problem *problem);
struct external;
/* Returns whether the path is that of a file that the model is read from, by whatever name. Such
   a file is not overwritten. */
bool is_model_file(int model, const struct external *external, const char *path);
/* Fails where a file that a quantization writes is one of these. */
bool check_model_files(int model, const struct external *external,
                       const struct options *options, const char *out,
                       struct api_problem *problem);

/* Quantizes for one target the model of a file or of a folder. */
bool quantize_one(const struct options *options, struct api_problem *problem);
bool command_quantize(const struct options *options, struct api_problem *problem);
bool command_compare(const struct options *options, struct api_problem *problem);
bool command_plan(const struct options *options, struct api_problem *problem);
bool command_info(const struct options *options, struct api_problem *problem);
bool command_data(const struct options *options, struct api_problem *problem);
bool command_report(const struct options *options, struct api_problem *problem);
bool command_pull(const struct options *options, struct api_problem *problem);
bool command_push(const struct options *options, struct api_problem *problem);
bool command_ls(const struct options *options, struct api_problem *problem);
bool command_jobs(const struct options *options, struct api_problem *problem);
bool command_cancel(const struct options *options, struct api_problem *problem);
bool command_verify(const struct options *options, struct api_problem *problem);
bool command_reproduce(const struct options *options, struct api_problem *problem);

/* The same commands through the service of options->url. */
bool service_quantize(const struct options *options, struct api_problem *problem);
bool service_plan(const struct options *options, struct api_problem *problem);
bool service_info(const struct options *options, struct api_problem *problem);
bool service_report(const struct options *options, struct api_problem *problem);

#endif
