/* SPDX-License-Identifier: Apache-2.0 */
/* The remotes of the user's configuration, and the operand REMOTE:REF, which names one. */
#ifndef CLI_REMOTES_H
#define CLI_REMOTES_H

#include "commands.h"
#include "remote/remote.h"

enum { REMOTE_TEXTS = 10 };

/* An operand REMOTE:REF whose remote was read. */
struct operand {
    const char *text; /* as it was typed; borrowed, like `ref` */
    const char *ref;  /* the part behind the first colon */
    struct qdqr_remote remote;
    char name[40];
    char *texts[REMOTE_TEXTS]; /* what `remote` points to; owned */
    size_t n_texts;
};

/*
 * Reads the remote of options->model from options->config or from
 * ~/.config/qdq/remotes.conf, with the files that its section names. The caller closes *ret,
 * also when it fails.
 */
bool operand_open(const struct options *options, struct operand *ret,
                  struct api_problem *problem);
void operand_close(struct operand *operand);

/* Puts the operand before the text of a problem. Returns false. */
bool operand_fail(const struct operand *operand, struct api_problem *problem);

/* Prints the remote and the ref of a version, as an operand would name it. */
void print_version(const struct operand *operand, const char *ref);

/* A transfer on the terminal: a line with the file and how much of it has moved. */
struct transfer {
    struct qdqr_call call; /* for the calls of remote.h */
    bool shown;
    const char *label;
    int64_t drawn_at;
};

/* Begins a transfer. `label` is borrowed and can be changed later. */
void transfer_start(struct transfer *transfer, const char *label);
/* Clears the line. */
void transfer_end(struct transfer *transfer);

#endif
