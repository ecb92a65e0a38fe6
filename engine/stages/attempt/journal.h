/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A journal: a file to which entries are only appended, each of them durable before the call returns, so that a job
 * that is killed at any moment finds them when it begins again.
 *
 * The file is text:
 *   QDQJOURNAL1 IDENTITY       what the entries belong to, a hash of 16 hexadecimal digits
 *   then for each entry its lines, and
 *   end HASH                   the hash of these lines, likewise
 * A file of another identity counts as empty. An entry that was being written when the job was killed is not whole: it is
 * cut off, with everything behind it, before the next one is appended.
 */
#ifndef QDQI_STAGES_ATTEMPT_JOURNAL_H
#define QDQI_STAGES_ATTEMPT_JOURNAL_H

#include "ground/base/arena.h"
#include "qdq/error.h"

#include <stdint.h>
#include <sys/types.h>

struct qdqi_journal {
    int fd; /* the caller's; -1: there is none, or it cannot be written */
    off_t end;
};

/* Opens the journal in a file, and sets *ret_entries to the lines of its entries, without those that end them; a text in the
   arena that the caller may change. NO_MEMORY. */
enum qdq_code qdqi_journal_open(int fd, uint64_t identity, struct qdqi_arena *arena,
                                struct qdqi_journal *ret, char **ret_entries,
                                struct qdq_error *err) QDQ_MUST_CHECK;

/* Appends an entry of n bytes, whole lines. Returns false where the file cannot be written: nothing more is then. */
bool qdqi_journal_append(struct qdqi_journal *journal, const char *lines, size_t n);

#endif
