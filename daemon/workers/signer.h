/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signatures of results (the section [signing] of the settings). A process of its own makes each
 * one, and then ends: `qdqd --signer`. The daemon opens the file of the key and hands its
 * descriptor on; it never reads it, so that the key is in no memory but that process's. The
 * process has the cage of a worker, cannot be looked at by other processes, and signs one
 * statement with the signature's type fixed (api/signing_key.h). Workers and carriers have no
 * socket to it.
 */
#ifndef QDQD_WORKERS_SIGNER_H
#define QDQD_WORKERS_SIGNER_H

#include "settings/settings.h"
#include "api/problem.h"

struct metrics;

enum signed_form {
    SIGNED_ENVELOPE, /* DSSE */
    SIGNED_BUNDLE    /* sigstore's bundle */
};

/* Returns whether results are signed. */
bool signer_is_configured(const struct settings *settings);
/* Checks the section: the files are there, and others cannot read the key. */
bool signer_check(const struct settings *settings, char error[SETTINGS_ERROR]);
/*
 * Has a process sign a statement, and returns it in that form, which the caller frees. The files
 * of the settings are opened anew, so that another key takes effect at once. UNAVAILABLE when a
 * file cannot be opened or is not right, or the process fails; BUSY when others
 * sign and do not come to an end.
 * Any thread may call.
 */
bool signer_sign(const struct settings *settings, struct metrics *metrics,
                 const char *statement, enum signed_form form, char **ret,
                 struct api_problem *p);

/* The word behind the arguments of a process that signs with a key in a token. It has no cage, because
   the token's module may need files, devices and sockets; it reads nothing but the URI and the
   statement. */
#define SIGNER_WITH_TOKEN "token"

/* Runs the process; `argv` begins behind --signer. Returns the exit status. */
int signer_main(int argc, char **argv);

#endif
