/* SPDX-License-Identifier: Apache-2.0 */
/* A statement that a command reads: of a file's signature, or of how a result was made. */
#ifndef CLI_LINEAGE_STATEMENT_H
#define CLI_LINEAGE_STATEMENT_H

#include "api/lineage.h"
#include "commands.h"

/* Reads a statement, and checks its signature where `key`, a file with public keys, is not NULL: one of them
   has to be that of the signature.
   The problem names the file. The caller calls api_statement_fini(). */
bool statement_read(const char *path, const char *key, struct api_statement *ret,
                    struct api_problem *problem);

#endif
