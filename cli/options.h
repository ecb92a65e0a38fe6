/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line: its options are rows of one table, which parses them and prints the
 * help pages. Calls that return a status return that of the process.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdio.h>

#include "commands.h"

enum { DONE = 0, FAILED = 1, USAGE = 2 };

/* The command of that name, or NULL. */
const struct command *find_command(const char *name);

/*
 * Parses what stands behind the command's name; argv[0] is that name. Where the options
 * ask for help, the rest is not parsed.
 */
int parse_options(int argc, char **argv, const struct command *command,
                  struct options *ret);

/* Says on standard error what is wrong; `command` is NULL before it is known. */
int wrong_usage(const struct command *command, const char *fmt, ...) QDQ_PRINTF(2, 3);

/* The usage of every command, in a few lines. */
void print_usage(FILE *to);
/* The pages that --help asks for: that of qdq and that of a command. */
void print_help(void);
void print_command_help(const struct command *command);

#endif
