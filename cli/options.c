/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "judge.h"
#include "qdq/runtime.h"
#include "qdq/targets.h"

/* --- the tables ----------------------------------------------------------- */

enum {
    QUANTIZE,
    PLAN,
    COMPARE,
    INFO,
    DATA,
    REPORT,
    JOBS,
    CANCEL,
    PULL,
    PUSH,
    LS,
    VERIFY,
    REPRODUCE,
    N_COMMANDS
};

static const struct command commands[N_COMMANDS] = {
    [QUANTIZE] = {"quantize", "MODEL", command_quantize,
                  "Inserts calibrated Q/DQ pairs into an ONNX model.", NO_FILES, false},
    [PLAN] = {"plan", "MODEL", command_plan,
              "Says which layers of a model would be quantized, and why.", false,
              false},
    [COMPARE] = {"compare", "MODEL|REPORT...", command_compare,
                 "Prints results for several targets, or of reports, in one table.",
                 ANY_FILES, false},
    [INFO] = {"info", "MODEL", command_info, "Says what is in a model.", false, false},
    [DATA] = {"data", "DATA", command_data,
              "Says what is in calibration data, and what a model gets of it.", false,
              false},
    [REPORT] = {"report", "REPORT", command_report,
                "Turns a report, or that of a job, into a page for a browser.", false,
                false},
    [JOBS] = {"jobs", "", command_jobs, "Lists the jobs of a service, newest first.",
              false, true},
    [CANCEL] = {"cancel", "JOB", command_cancel, "Cancels a job of a service.", false,
                true},
    [PULL] = {"pull", "REMOTE:REF", command_pull,
              "Gets the files of a model from a registry.", false, false},
    [PUSH] = {"push", "REMOTE:REF FILE...", command_push,
              "Registers files as a new version of a model.", SOME_FILES, false},
    [LS] = {"ls", "REMOTE:REF", command_ls, "Lists the files of a model in a registry.",
            false, false},
    [VERIFY] = {"verify", "FILE|FOLDER", command_verify,
                "Checks a model against its signature, without a service.", false,
                false},
    [REPRODUCE] = {"reproduce", "STATEMENT", command_reproduce,
                   "Makes the result of a provenance again, and compares the bytes.",
                   false, false},
};

/* Bits for the commands that have an option. */
enum {
    IN_QUANTIZE = 1 << QUANTIZE,
    IN_PLAN = 1 << PLAN,
    IN_COMPARE = 1 << COMPARE,
    IN_INFO = 1 << INFO,
    IN_DATA = 1 << DATA,
    IN_REPORT = 1 << REPORT,
    IN_JOBS = 1 << JOBS,
    IN_CANCEL = 1 << CANCEL,
    IN_PULL = 1 << PULL,
    IN_PUSH = 1 << PUSH,
    IN_LS = 1 << LS,
    IN_VERIFY = 1 << VERIFY,
    IN_REPRODUCE = 1 << REPRODUCE,
    IN_ALL = (1 << N_COMMANDS) - 1,
    /* The commands that can work through a service. */
    IN_SERVICE =
        IN_QUANTIZE | IN_PLAN | IN_COMPARE | IN_INFO | IN_REPORT | IN_JOBS | IN_CANCEL,
};

/* A word of a text, in the place of which the names of all targets are printed. */
#define TARGETS "%targets"

/* The field is a bool for an option without an argument, else a string, or the texts of an option
   that may be repeated. */
#define FIELD(name) offsetof(struct options, name)
static const struct row {
    const char *name;
    char letter;          /* '\0': none */
    const char *argument; /* as the pages call it; NULL: none */
    unsigned commands;
    size_t field;
    const char *text;
} rows[] = {
    {"spec", '\0', "FILE", IN_QUANTIZE | IN_COMPARE | IN_PLAN | IN_DATA, FIELD(spec),
     "The spec, which says what to quantize, and how (JSON); \"-\" is standard input. "
     "Without one, every supported layer is quantized by its default."},
    {"target", '\0', "TARGET", IN_QUANTIZE | IN_PLAN, FIELD(target),
     "The runtime that the result is for, which is the spec's member target: " TARGETS
     " This option and the next three are an error where the spec has another value. "
     "quantize takes several, with commas between, as the spec's member targets: a "
     "result for each, whose files have .TARGET before their ending, and with --html a "
     "page that compares them."},
    {"recipe", '\0', "RECIPE", IN_QUANTIZE | IN_COMPARE | IN_PLAN, FIELD(recipe),
     "The spec's member recipe: none, auto, best, or goals as a JSON object."},
    {"accept", '\0', "GATE", IN_QUANTIZE | IN_COMPARE | IN_PLAN, FIELD(accept),
     "A gate of the spec's member accept, as min_sqnr_db=30. The option may be "
     "repeated."},
    {"set", '\0', "MEMBER", IN_QUANTIZE | IN_COMPARE | IN_PLAN, FIELD(set),
     "Any member of the spec, as weights.rounding=gptq: names with dots between, or a "
     "JSON "
     "pointer, and behind \"=\" JSON or a word. The option may be repeated."},
    {"key", '\0', "FILE", IN_VERIFY | IN_REPRODUCE, FIELD(key),
     "The public key (PEM) of those who sign, or several, one behind the other. A "
     "signature of another key is an error; verify needs the option."},
    {"signature", '\0', "FILE", IN_VERIFY, FIELD(signature),
     "The signature: a bundle of OpenSSF Model Signing, or a signed provenance; by "
     "default model.sig in the folder of the model."},
    {"model", '\0', "MODEL", IN_REPRODUCE, FIELD(source_model),
     "The float model that the result was made of."},
    {"calibration", '\0', "FILE", IN_REPRODUCE, FIELD(calibration),
     "The calibration data that the result was made with."},
    {"evaluation", '\0', "FILE", IN_REPRODUCE, FIELD(evaluation),
     "The data that the result was judged by, where the statement names some."},
    {"out", 'o', "OUT", IN_REPRODUCE, FIELD(out),
     "The result, which is written only if its bytes are those of the statement."},
    {"calibration", '\0', "DATA", IN_QUANTIZE | IN_COMPARE, FIELD(calibration),
     "The samples that ranges are calibrated with: .npz, .npy, .parquet, .safetensors, "
     ".zip, .tar or .tar.gz, or a folder of images; or a text (.txt), of which the "
     "tokenizer.json beside the model makes ids of tokens."},
    {"evaluation", '\0', "DATA", IN_QUANTIZE | IN_COMPARE, FIELD(evaluation),
     "Data to judge the result by, in the place of the calibration data: the same "
     "forms. "
     "Arrays beside the inputs, as labels, are for the spec's task."},
    {"out", 'o', "OUT", IN_QUANTIZE, FIELD(out),
     "The quantized model; by default MODEL with the ending .int8.onnx. Its external "
     "data, where it has some, goes to OUT.data."},
    {"model", '\0', "MODEL", IN_DATA, FIELD(fits),
     "The model that gets the samples, or its folder; then their ranges are those of "
     "its "
     "inputs. A text needs it."},
    {"out", 'o', "OUT", IN_DATA, FIELD(out),
     "A file (.npy) for all samples as the first input of MODEL gets them, in "
     "float32; of a text, for its ids of tokens."},
    {"json", '\0', NULL, IN_DATA, FIELD(json), "Prints JSON instead of a table."},
    {"observations", '\0', "FILE", IN_QUANTIZE, FIELD(observations),
     "A file for what calibration observed. Another run with the same model and the "
     "same samples reads it there instead of observing it again, whatever its spec. "
     "The file is made when it is absent."},
    {"report", '\0', "FILE", IN_QUANTIZE, FIELD(report),
     "A file for the report, which says what was done and what it cost (JSON)."},
    {"html", '\0', "FILE", IN_QUANTIZE, FIELD(html),
     "A file for the report as a page for a browser, which needs no other file."},
    {"targets", '\0', "TARGETS", IN_COMPARE, FIELD(targets),
     "The targets, with commas between. The models and reports are written as OUT, "
     "which "
     "ends in .TARGET.onnx and .TARGET.json instead of .onnx. Without this option the "
     "operands are reports."},
    {"out", 'o', "OUT", IN_COMPARE, FIELD(out),
     "What the names of results begin with; by default MODEL with the ending "
     ".int8.onnx."},
    {"html", '\0', "FILE", IN_COMPARE, FIELD(html),
     "A file for a page with the table, and with pictures of accuracy against latency "
     "and "
     "size."},
    {"out", 'o', "OUT", IN_REPORT, FIELD(out),
     "The page; by default REPORT with the ending .html. If OUT ends in .md, the "
     "report is written as Markdown; that of a job also as JSON (.json)."},
    {"out", 'o', "DIR", IN_PULL, FIELD(out),
     "The folder for the files, which is made when it is absent; by default the "
     "current one."},
    {"force", '\0', NULL, IN_PULL, FIELD(force),
     "Overwrites files that are there with other bytes. Without it they are an "
     "error, and nothing is changed."},
    {"config", '\0', "FILE", IN_PULL | IN_PUSH | IN_LS, FIELD(config),
     "The file with the sections [remote NAME], as in the configuration of qdqd; by "
     "default ~/.config/qdq/remotes.conf."},
    {"alias", '\0', "ALIAS", IN_PUSH, FIELD(alias),
     "A name that is moved to the new version at the end."},
    {"tag", '\0', "TAG", IN_PUSH, FIELD(tags),
     "A tag of the new version, as KEY=VALUE. The option may be repeated."},
    {"source", '\0', "REF", IN_PUSH, FIELD(source),
     "The version of the same remote that the model was made of, for its lineage."},
    {"threads", '\0', "N", IN_QUANTIZE | IN_COMPARE | IN_REPRODUCE, FIELD(threads_text),
     "The number of threads that run the model and quantize weights; by default all "
     "processors."},
    {"runners", '\0', "FILE", IN_QUANTIZE | IN_COMPARE | IN_REPRODUCE, FIELD(runners),
     "The file with the sections [runner NAME], as in the configuration of qdqd: "
     "programs of yours that judge results; by default QDQD_RUNNERS."},
    {"cases", '\0', "DIR", IN_QUANTIZE | IN_COMPARE | IN_PLAN | IN_INFO | IN_REPRODUCE,
     FIELD(cases),
     "The folder of your own insertion cases and layer support (*.lua), which a spec "
     "may name; by default " QDQ_CASES ". An empty DIR leaves the library's alone."},
    {"state", '\0', "STATE", IN_JOBS, FIELD(state),
     "Lists only jobs in that state: queued, running, succeeded, failed or cancelled."},
    {"label", '\0', "LABEL", IN_JOBS, FIELD(label),
     "Lists only jobs with that label, as KEY:VALUE. The label `name` of a job of qdq "
     "is the model's file name."},
    {"all", '\0', NULL, IN_JOBS, FIELD(all),
     "Lists all jobs, and not only the newest 50."},
    {"all", '\0', NULL, IN_PLAN, FIELD(all),
     "Lists every layer. Without it, layers that are off by default and that nobody "
     "asked for are only counted by class."},
    {"json", '\0', NULL, IN_PLAN | IN_INFO, FIELD(json),
     "Prints JSON instead of a table; the JSON of a plan has every layer."},
    {"json", '\0', NULL, IN_JOBS, FIELD(json),
     "Prints the JSON of the newest jobs instead of a table."},
    {"url", '\0', "URL", IN_SERVICE, FIELD(url),
     "The service that does the work, http://HOST:PORT, https://HOST or unix:/PATH; by "
     "default QDQD_URL. MODEL and the samples may also be ids of files that it has, "
     "and REPORT is the id of a job. An empty URL: none."},
    {"token-file", '\0', "FILE", IN_SERVICE, FIELD(token_file),
     "The file with the access token for the service; by default QDQD_TOKEN_FILE."},
    {"ca-file", '\0', "FILE", IN_SERVICE, FIELD(ca_file),
     "The authorities (PEM) that the service's certificate is checked with; by default "
     "QDQD_CA_FILE, else those of the system."},
    {"patience", '\0', "SECONDS", IN_SERVICE, FIELD(patience_text),
     "The longest time that a request pauses, all in all, when the connection is lost "
     "or the service is busy; by default 300."},
    {"help", 'h', NULL, IN_ALL, FIELD(help), "Prints this page."},
};

enum { N_ROWS = sizeof rows / sizeof *rows };

/* Returns whether the row's field is a struct texts. */
static bool
is_repeated(const struct row *row)
{
    return row->field == FIELD(tags) || row->field == FIELD(accept) ||
           row->field == FIELD(set);
}

static bool
has_option(const struct command *command, const struct row *row)
{
    return row->commands & 1U << (command - commands);
}

const struct command *
find_command(const char *name)
{
    for (int i = 0; i < N_COMMANDS; i++)
        if (strcmp(name, commands[i].name) == 0)
            return &commands[i];
    return NULL;
}

/* --- parsing -------------------------------------------------------------- */

int
wrong_usage(const struct command *command, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fputs("qdq: ", stderr);
    vfprintf(stderr, fmt, args);
    fprintf(stderr, " (qdq%s%s --help says more)\n", command ? " " : "",
            command ? command->name : "");
    va_end(args);
    return USAGE;
}

enum { FIRST_ROW = 256 }; /* above every letter */

/* Returns the value that getopt_long() gives for the row. */
static int
row_value(int row)
{
    return rows[row].letter ? rows[row].letter : FIRST_ROW + row;
}

/* The command's rows in the form that getopt_long() needs. */
struct getopt_tables {
    struct option longs[N_ROWS + 1];
    char letters[2 * N_ROWS + 2];
};

static struct getopt_tables
make_getopt_tables(const struct command *command)
{
    struct getopt_tables ret = {.letters = ":"}; /* a missing argument returns ':' */
    size_t n = 0, len = 1;
    for (int i = 0; i < N_ROWS; i++) {
        if (!has_option(command, &rows[i]))
            continue;
        int argument = rows[i].argument ? required_argument : no_argument;
        ret.longs[n++] = (struct option){rows[i].name, argument, NULL, row_value(i)};
        if (rows[i].letter)
            ret.letters[len++] = rows[i].letter;
        if (rows[i].letter && rows[i].argument)
            ret.letters[len++] = ':';
    }
    return ret;
}

static void
add_text(struct texts *to, const char *text)
{
    if (to->n < MAX_TEXTS)
        to->at[to->n] = text;
    to->n++;
}

static void
store_option(struct options *options, int value, const char *argument)
{
    int i = 0;
    while (row_value(i) != value)
        i++;
    char *field = (char *)options + rows[i].field;
    if (is_repeated(&rows[i]))
        add_text((struct texts *)(void *)field, argument);
    else if (rows[i].argument)
        *(const char **)field = argument;
    else
        *(bool *)field = true;
}

static bool
parse_number(const char *text, long least, long most, int *ret)
{
    char *end;
    errno = 0;
    long n = strtol(text, &end, 10);
    if (end == text || *end || errno || n < least || n > most)
        return false;
    *ret = (int)n;
    return true;
}

/* Returns the number of processors that this process may use. */
static int
count_processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

static int
unknown_option(const struct command *command, char **argv)
{
    if (optopt && optopt < FIRST_ROW)
        return wrong_usage(command, "-%c is no option of %s", optopt, command->name);
    return wrong_usage(command, "%s is no option of %s", argv[optind - 1],
                       command->name);
}

/* Checks the number of operands, which begin at argv[optind], and stores them. */
static int
store_operands(int argc, char **argv, const struct command *command,
               struct options *ret)
{
    int least = command->has_files == SOME_FILES ? 2 : *command->argument ? 1 : 0;
    bool is_file = !strchr(command->argument, ':') && !command->needs_service;
    const char *kind = is_file ? "the file " : "";
    if (argc - optind < least)
        return wrong_usage(command, "%s needs %s%s", command->name, kind,
                           command->argument);
    if (argc - optind > least && !command->has_files)
        return wrong_usage(command, "unexpected argument \"%s\"", argv[optind + least]);
    if (least == 0)
        return DONE;
    ret->model = argv[optind];
    ret->files = argv + optind + 1;
    ret->n_files = (size_t)(argc - optind - 1);
    return DONE;
}

/* Takes what the command line lacks from the environment. An empty text is none. */
static void
set_default(const char **value, const char *variable)
{
    if (!*value)
        *value = getenv(variable);
    if (*value && !**value)
        *value = NULL;
}

/* Finds the service, and the options that have no meaning with one or without. */
static int
check_service(const struct command *command, struct options *options)
{
    if (!(IN_SERVICE & 1U << (command - commands)))
        return DONE;
    set_default(&options->url, "QDQD_URL");
    set_default(&options->token_file, "QDQD_TOKEN_FILE");
    set_default(&options->ca_file, "QDQD_CA_FILE");
    if (command->needs_service && !options->url)
        return wrong_usage(command, "%s needs --url URL, or QDQD_URL", command->name);
    const char *local = options->observations   ? "--observations"
                        : options->threads_text ? "--threads"
                        : options->cases        ? "--cases"
                        : options->runners      ? "--runners"
                                                : NULL;
    if (options->url && local)
        return wrong_usage(
            command, "%s is for work without a service; --url '' does it here", local);
    return DONE;
}

static int
parse_numbers(const struct command *command, struct options *ret)
{
    if (ret->threads_text && !parse_number(ret->threads_text, 1, 1024, &ret->threads))
        return wrong_usage(command, "--threads is a number from 1 to 1024, not \"%s\"",
                           ret->threads_text);
    if (ret->patience_text &&
        !parse_number(ret->patience_text, 0, 86400, &ret->patience))
        return wrong_usage(command,
                           "--patience is a number from 0 to 86400, not \"%s\"",
                           ret->patience_text);
    return DONE;
}

static int
check_repeated(const struct command *command, const struct options *options)
{
    for (int i = 0; i < N_ROWS; i++) {
        const void *field = (const char *)options + rows[i].field;
        if (is_repeated(&rows[i]) && ((const struct texts *)field)->n > MAX_TEXTS)
            return wrong_usage(command, "--%s is given more than %d times",
                               rows[i].name, MAX_TEXTS);
    }
    return DONE;
}

int
parse_options(int argc, char **argv, const struct command *command, struct options *ret)
{
    struct getopt_tables tables = make_getopt_tables(command);
    int value;
    opterr = 0;
    *ret = (struct options){.threads = count_processors()};
    while ((value = getopt_long(argc, argv, tables.letters, tables.longs, NULL)) !=
           -1) {
        if (value == ':')
            return wrong_usage(command, "%s needs a value", argv[optind - 1]);
        if (value == '?')
            return unknown_option(command, argv);
        store_option(ret, value, optarg);
        if (ret->help)
            return DONE;
    }
    int status = store_operands(argc, argv, command, ret);
    if (status != DONE)
        return status;
    status = parse_numbers(command, ret);
    if (status == DONE)
        status = check_repeated(command, ret);
    return status != DONE ? status : check_service(command, ret);
}

int
move_options(char **argv)
{
    int n = 1;
    while (argv[n]) {
        bool is_service = false;
        size_t len = strncmp(argv[n], "--", 2) == 0 ? strcspn(argv[n] + 2, "=") : 0;
        for (int i = 0; i < N_ROWS && len > 0; i++)
            is_service |= rows[i].commands == IN_SERVICE &&
                          strlen(rows[i].name) == len &&
                          strncmp(rows[i].name, argv[n] + 2, len) == 0;
        if (!is_service)
            break;
        bool has_value = argv[n][2 + len] == '=';
        n += has_value || !argv[n + 1] ? 1 : 2;
    }
    char *command = argv[n];
    if (!command)
        return n;
    memmove(argv + 2, argv + 1, (size_t)(n - 1) * sizeof *argv);
    argv[1] = command;
    return 1;
}

/* --- pages ---------------------------------------------------------------- */

enum { WIDTH = 80, TEXT_COLUMN = 24 };

/* A text that is wrapped between its items. Further lines begin at `indent`. */
struct wrapped {
    FILE *to;
    int indent, column;
};

static void
print_item(struct wrapped *text, const char *item)
{
    int len = (int)strlen(item);
    if (text->column > text->indent && text->column + 1 + len > WIDTH) {
        fprintf(text->to, "\n%*s", text->indent, "");
        text->column = text->indent;
    }
    bool is_first = text->column == text->indent;
    text->column += fprintf(text->to, "%s%s", is_first ? "" : " ", item);
}

/* Prints the names of the targets as the end of a sentence. */
static void
print_targets(struct wrapped *text)
{
    char item[64];
    const struct qdq_target *target;
    for (size_t i = 0; (target = qdq_target_row(i)); i++) {
        snprintf(item, sizeof item, "%s%c", target->name,
                 qdq_target_row(i + 1) ? ',' : '.');
        print_item(text, item);
    }
}

static void
print_words(struct wrapped *text, const char *words)
{
    char word[128];
    while (*words) {
        size_t len = strcspn(words, " ");
        snprintf(word, sizeof word, "%.*s", (int)len, words);
        if (strcmp(word, TARGETS) == 0)
            print_targets(text);
        else
            print_item(text, word);
        words += len + (words[len] == ' ');
    }
}

/* Prints an option as the usage has it: "[--spec FILE]". */
static void
print_optional(struct wrapped *text, const struct row *row)
{
    char item[64];
    const char *argument = row->argument ? row->argument : "";
    const char *space = row->argument ? " " : "";
    if (row->letter)
        snprintf(item, sizeof item, "[-%c%s%s]", row->letter, space, argument);
    else
        snprintf(item, sizeof item, "[--%s%s%s]", row->name, space, argument);
    print_item(text, item);
}

/* Prints the usage of a command. A `brief` one lacks the options that many commands share. */
static void
print_command_usage(FILE *to, const char *before, const struct command *command,
                    bool brief)
{
    struct wrapped text = {.to = to};
    text.indent = text.column =
        fprintf(to, "%s qdq %s %s%s", before, command->name, command->argument,
                *command->argument ? " " : "");
    for (int i = 0; i < N_ROWS; i++)
        if (has_option(command, &rows[i]) && rows[i].letter != 'h' &&
            !(brief && rows[i].commands == IN_SERVICE))
            print_optional(&text, &rows[i]);
    fputc('\n', to);
}

void
print_usage(FILE *to)
{
    for (int i = 0; i < N_COMMANDS; i++)
        print_command_usage(to, i == 0 ? "usage:" : "      ", &commands[i], true);
    fputs("       qdq [--url URL] [--token-file FILE] [--ca-file FILE] "
          "[--patience SECONDS]\n"
          "           quantize | plan | compare | info | report | jobs | cancel ...\n"
          "       qdq COMMAND --help\n"
          "       qdq --help | --version\n",
          to);
}

static void
print_option(const struct row *row)
{
    struct wrapped text = {stdout, TEXT_COLUMN, 0};
    text.column = row->letter ? printf("  -%c, ", row->letter) : printf("  ");
    text.column += printf("--%s%s%s", row->name, row->argument ? " " : "",
                          row->argument ? row->argument : "");
    if (text.column >= TEXT_COLUMN) {
        printf("\n");
        text.column = 0;
    }
    text.column += printf("%*s", TEXT_COLUMN - text.column, "");
    print_words(&text, row->text);
    printf("\n");
}

void
print_command_help(const struct command *command)
{
    print_command_usage(stdout, "usage:", command, false);
    printf("\n%s\n\n", command->text);
    for (int i = 0; i < N_ROWS; i++)
        if (has_option(command, &rows[i]))
            print_option(&rows[i]);
}

/* Prints the variables of the runtimes that judge in processes of their own. */
static void
print_runtimes(void)
{
    const struct qdq_runtime_row *row;
    char variable[JUDGE_VARIABLE];
    for (size_t i = 0; (row = qdq_runtime_row(i)); i++) {
        judge_variable(row->name, variable);
        if (row->own_process)
            printf("%s another %s, ", variable, row->library);
    }
}

void
print_help(void)
{
    print_usage(stdout);
    printf("\n");
    for (int i = 0; i < N_COMMANDS; i++)
        printf("  %-*s%s\n", TEXT_COLUMN - 2, commands[i].name, commands[i].text);
    printf("\n"
           "The environment variable QDQD_ENGINE_RUNTIME names another "
           "libonnxruntime.so,\n");
    print_runtimes();
    printf("QDQD_ENGINE_CASES another folder of\n"
           "insertion cases. QDQD_RUNNERS stands for --runners, and QDQD_URL, "
           "QDQD_TOKEN_FILE and\n"
           "QDQD_CA_FILE stand for --url, --token-file and --ca-file, which may also "
           "stand "
           "before\n"
           "the command.\n"
           "Exit status: 0 done, 1 the work failed, 2 wrong usage.\n");
}
