/* SPDX-License-Identifier: Apache-2.0 */
/* The demand of a remote that its models are signed by given keys (`signers` of its section). */
#ifndef QDQD_CARRIERS_SIGNERS_H
#define QDQD_CARRIERS_SIGNERS_H

#include "library/library.h"

/*
 * Checks that a signature, a bundle of OpenSSF Model Signing in a file, is by one of the keys in the file
 * `signers`, and that each file of a stored model is among those that it is of: by its digest, and all
 * but the model's own file by their names, too. SIGNATURE_INVALID says what is missing; UNAVAILABLE:
 * the file of the keys cannot be read.
 */
bool signers_check(const char *signers, struct spool *signature,
                   struct library *library, const char *model, struct api_problem *p);

#endif
