/* SPDX-License-Identifier: Apache-2.0 */
/* Standard input, output and error of the daemon and its commands. */
#ifndef QDQD_BASE_STANDARD_FILES_H
#define QDQD_BASE_STANDARD_FILES_H

#include <stdbool.h>

/*
 * Opens those that the caller closed. A file that is opened later would else have the number of
 * one of them, and get what is printed and logged. To read or to write them fails as before.
 */
void standard_files_hold(void);

/* Writes what was printed to standard output. Returns false after it has said on standard error
   that some of it could not be written, and then forgets that. */
bool standard_output_flush(void);

#endif
