/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts that come from a model, a registry or a service, as a terminal may get them: without
 * control characters and escape sequences, which could move the cursor or change its settings,
 * and without characters that change the direction of what stands behind them. Every text that
 * is not the command's own is printed by these calls.
 */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include <stddef.h>
#include <stdio.h>

/* Prints a text in one line, with '?' for what a terminal must not get, padded with spaces to
   `width` bytes. */
void put_text(FILE *to, const char *text, int width);
/* Prints JSON, with an escape (\u009b) for what a terminal must not get, which means the
   same. */
void put_json(FILE *to, const char *json, size_t len);

#endif
