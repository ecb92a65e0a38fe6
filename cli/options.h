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

/* Returns the command of that name, or NULL. */
const struct command *find_command(const char *name);

/*
 * Parses the options and the model behind the command's name, which is argv[0]. Stops where
 * the options ask for help.
 */
int parse_options(int argc, char **argv, const struct command *command,
                  struct options *ret);

/* Moves the options of a service that stand before the command's name behind it. Returns the
   index of the command's name; there is none where argv[] ends there. */
int move_options(char **argv);

/* Prints a mistake on standard error and returns USAGE. `command` is NULL where it is not
   known yet. */
int wrong_usage(const struct command *command, const char *fmt, ...) QDQ_PRINTF(2, 3);

/* Prints a line or more of usage for each command. */
void print_usage(FILE *to);
/* Print the page of qdq and that of a command. */
void print_help(void);
void print_command_help(const struct command *command);

#endif
