/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal of a job that searches by patterns (struct qdq_work.journal) is in the folder journals/ of the user's cache
 * (folder.h), under the digest of what it belongs to: model, data, spec and runner. It is locked while a command uses it; another
 * one of the same job has none. A job that succeeds removes it; of the others, the 200 that were used last stay.
 */
#ifndef CLI_KEPT_JOURNAL_H
#define CLI_KEPT_JOURNAL_H

#include "pending_id.h"
#include "qdq/quantize.h"

struct judge;

struct kept_journal {
    struct pending_id *model_id; /* borrowed */
    char *of;   /* the job but for the model; NULL: there is no journal */
    char *path; /* NULL: it is not open */
    int fd;
};

/* Sets what the journal belongs to, with the ids of the data and of those to judge by. A spec that needs none, and one without
   a runner, has no journal. */
void kept_journal_init(struct kept_journal *journal, const struct qdq_spec *spec,
                       const struct judge *judge, const char *data,
                       const char *judging_data, struct pending_id *model_id);

/* Opens it. The argument is the struct kept_journal, which owns the descriptor. Returns -1 where there is none. */
int kept_journal_open(void *arg);

/* Closes it, and removes it where the job succeeded. */
void kept_journal_end(struct kept_journal *journal, bool succeeded);

#endif
