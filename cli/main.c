/* SPDX-License-Identifier: Apache-2.0 */
/*
 * qdq: the engine at the command line, without the daemon. Exit status: 0 done, 1 the
 * work failed, 2 wrong usage; the last line on standard error says what is wrong.
 */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "print.h"
#include "qdq/quantize.h"

enum { DONE = 0, FAILED = 1, USAGE = 2 };

static const char usage[] =
    "usage: qdq quantize MODEL [--spec FILE] [--calibration FILE] [-o OUT]\n"
    "                          [--observations FILE] [--report FILE] [--threads N]\n"
    "                          [--cases DIR]\n"
    "       qdq plan MODEL [--spec FILE] [--cases DIR] [--all | --json]\n"
    "       qdq info MODEL [--cases DIR] [--json]\n"
    "       qdq --help | --version\n";

static const char help[] =
    "\n"
    "quantize  insert calibrated Q/DQ pairs into an ONNX model\n"
    "plan      say which layers would be quantized, and why\n"
    "info      say what is in a model\n"
    "\n"
    "  --spec FILE         what to quantize, and how (JSON; \"-\": standard input);\n"
    "                      without one, every supported layer by its default\n"
    "  --calibration FILE  samples that ranges are taken from (.npz, .npy, .zip,\n"
    "                      .tar, .tar.gz)\n"
    "  --observations FILE what calibration observed is kept there, and what another\n"
    "                      run of the same model and samples left there is not\n"
    "                      observed again, whatever its spec; made when absent\n"
    "  -o, --out OUT       the quantized model; by default MODEL with the ending\n"
    "                      .int8.onnx; external data, where it has some, in OUT.data\n"
    "  --report FILE       what was done and what it cost (JSON)\n"
    "  --threads N         threads that run the model; by default all processors\n"
    "  --cases DIR         folder of your own insertion cases and layer support\n"
    "                      (*.lua), which a spec may name; empty: the library's "
    "alone;\n"
    "                      by default " QDQ_CASES "\n"
    "  --all               list every layer, also those that nobody asked for and "
    "that\n"
    "                      are off by default; without it these are counted by class\n"
    "  --json              print JSON with every layer, not a table\n"
    "\n"
    "The environment variable QDQD_ENGINE_RUNTIME names another libonnxruntime.so,\n"
    "QDQD_ENGINE_CASES another folder of insertion cases.\n"
    "Exit status: 0 done, 1 the work failed, 2 wrong usage.\n";

static const struct {
    const char *name;
    bool (*run)(const struct options *options, struct api_problem *problem);
} commands[] = {
    {"quantize", command_quantize},
    {"plan", command_plan},
    {"info", command_info},
};

/* Which commands take an option: bits by the order of `commands`. */
enum { QUANTIZE = 1 << 0, PLAN = 1 << 1, INFO = 1 << 2 };

/* The field is a bool for an option without an argument, else a string. */
static const struct {
    const char *name;
    int argument;
    unsigned commands;
    size_t field;
} known[] = {
    {"spec", required_argument, QUANTIZE | PLAN, offsetof(struct options, spec)},
    {"calibration", required_argument, QUANTIZE, offsetof(struct options, calibration)},
    {"out", required_argument, QUANTIZE, offsetof(struct options, out)},
    {"report", required_argument, QUANTIZE, offsetof(struct options, report)},
    {"observations", required_argument, QUANTIZE,
     offsetof(struct options, observations)},
    {"threads", required_argument, QUANTIZE, offsetof(struct options, threads_text)},
    {"cases", required_argument, QUANTIZE | PLAN | INFO,
     offsetof(struct options, cases)},
    {"all", no_argument, PLAN, offsetof(struct options, all)},
    {"json", no_argument, PLAN | INFO, offsetof(struct options, json)},
};

enum { N_KNOWN = sizeof known / sizeof *known };
enum { N_COMMANDS = sizeof commands / sizeof *commands };
enum { OUT = 2 }; /* the row that -o stands for */

static int wrong_usage(const char *fmt, ...) QDQ_PRINTF(1, 2);

static int
wrong_usage(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fputs("qdq: ", stderr);
    vfprintf(stderr, fmt, args);
    fputs(" (qdq --help says more)\n", stderr);
    va_end(args);
    return USAGE;
}

static bool
parse_threads(const char *text, int *ret)
{
    char *end;
    errno = 0;
    long n = strtol(text, &end, 10);
    if (end == text || *end || errno || n < 1 || n > 1024)
        return false;
    *ret = (int)n;
    return true;
}

/* Processors that this process may use. */
static int
processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

static int
take_option(struct options *options, int row, int command)
{
    if (!(known[row].commands & 1U << command))
        return wrong_usage("%s takes no --%s", commands[command].name, known[row].name);
    char *field = (char *)options + known[row].field;
    if (known[row].argument == no_argument)
        *(bool *)field = true;
    else
        *(const char **)field = optarg;
    return DONE;
}

static int
parse_options(int argc, char **argv, int command, struct options *ret)
{
    struct option rows[N_KNOWN + 1] = {0};
    for (int i = 0; i < N_KNOWN; i++)
        rows[i] = (struct option){known[i].name, known[i].argument, NULL, 0};
    opterr = 0;
    int row, letter;
    while ((letter = getopt_long(argc, argv, ":o:", rows, &row)) != -1) {
        if (letter == ':')
            return wrong_usage("%s needs a value", argv[optind - 1]);
        if (letter == '?')
            return wrong_usage("%s is no option of %s", argv[optind - 1],
                               commands[command].name);
        int rc = take_option(ret, letter == 'o' ? OUT : row, command);
        if (rc != DONE)
            return rc;
    }
    if (optind == argc)
        return wrong_usage("%s needs a model", commands[command].name);
    if (optind + 1 < argc)
        return wrong_usage("\"%s\" is one model too many", argv[optind + 1]);
    ret->model = argv[optind];
    if (ret->threads_text && !parse_threads(ret->threads_text, &ret->threads))
        return wrong_usage("--threads is a number from 1 to 1024, not \"%s\"",
                           ret->threads_text);
    return DONE;
}

/* Also what failed when the buffer was full before: errno is another's by now. */
static bool
flush_output(struct api_problem *problem)
{
    if (fflush(stdout) != 0)
        return api_problem_set(problem, API_IO, QDQ_AT_NOTHING, NULL,
                               "standard output: %s", strerror(errno));
    return !ferror(stdout) ||
           api_problem_set(problem, API_IO, QDQ_AT_NOTHING, NULL,
                           "standard output could not be written in full");
}

static int
run_command(int argc, char **argv, int command)
{
    struct options options = {.threads = processors()};
    struct api_problem problem = {0};
    int rc = parse_options(argc, argv, command, &options);
    if (rc != DONE)
        return rc;
    bool ok = commands[command].run(&options, &problem);
    ok = ok && flush_output(&problem);
    if (!ok)
        print_problem(&problem);
    return ok ? DONE : FAILED;
}

int
main(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "";
    for (int i = 0; i < N_COMMANDS; i++)
        if (strcmp(word, commands[i].name) == 0)
            return run_command(argc - 1, argv + 1, i);
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        printf("%s%s", usage, help);
        return DONE;
    }
    if (strcmp(word, "--version") == 0) {
        printf("qdq %s\n", qdq_version());
        return DONE;
    }
    fputs(usage, stderr);
    if (argc < 2)
        return wrong_usage("a command is missing");
    return wrong_usage("\"%s\" is no command", word);
}
