/* SPDX-License-Identifier: Apache-2.0 */
/*
 * qdq: the engine at the command line, or a service that does the work. Exit status: 0 done,
 * 1 the work failed, 2 wrong usage; the last line on standard error says what is wrong.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "judges/context.h"
#include "judges/process.h"
#include "options.h"
#include "print.h"
#include "qdq/quantize.h"

/* Also reports a write that failed earlier, when the buffer was full: errno is then no
   longer that of the write. */
static bool
flush_output(struct api_problem *problem)
{
    if (fflush(stdout) != 0)
        return api_fail(problem, API_IO, "standard output: %s", strerror(errno));
    return !ferror(stdout) ||
           api_fail(problem, API_IO, "standard output could not be written in full");
}

/* Flushes what was printed. Returns the status of the process. */
static int
finish(bool ok, struct api_problem *problem)
{
    ok = ok && flush_output(problem);
    if (!ok)
        print_problem(problem);
    return ok ? DONE : FAILED;
}

static int
run_command(int argc, char **argv, const struct command *command)
{
    struct options options;
    struct api_problem problem = {0};
    int status = parse_options(argc, argv, command, &options);
    if (status != DONE)
        return status;
    if (options.help) {
        print_command_help(command);
        return finish(true, &problem);
    }
    return finish(command->run(&options, &problem), &problem);
}

/*
 * Opens the standard files that the caller closed. A file that is opened later would else have
 * the number of one of them, and get the text that is printed. To read or to write them fails
 * as before.
 */
static void
hold_standard_files(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

int
main(int argc, char **argv)
{
    hold_standard_files();
    if (argc > 1 && strcmp(argv[1], "--judge") == 0)
        return judges_process_main(argc - 2, argv + 2);
    if (argc > 1 && strcmp(argv[1], JUDGES_CONTEXT_WORD) == 0)
        return judges_context_main(argc - 2, argv + 2);
    /* A file that grows beyond the caller's limit is an error that names it. */
    sigaction(SIGXFSZ, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    static char lines[4096];
    setvbuf(stderr, lines, _IOLBF, sizeof lines); /* each line is one write */
    int at = argc > 1 ? move_options(argv) : 1;
    const char *word = at < argc ? argv[at] : "";
    const struct command *command = find_command(word);
    struct api_problem problem = {0};
    if (command)
        return run_command(argc - 1, argv + 1, command);
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        print_help();
        return finish(true, &problem);
    }
    if (strcmp(word, "--version") == 0) {
        printf("qdq %s\n", qdq_version());
        return finish(true, &problem);
    }
    print_usage(stderr);
    if (at >= argc)
        return wrong_usage(NULL, "a command is missing");
    return wrong_usage(NULL, "\"%s\" is no command", word);
}
