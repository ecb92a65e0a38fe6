/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Candidates that a job has judged, by the bytes of their files: other plans may end in the same
 * model, as a rule that changes nothing does, and are not run a second time.
 */
#ifndef QDQI_STAGES_CANDIDATES_JUDGED_FILES_H
#define QDQI_STAGES_CANDIDATES_JUDGED_FILES_H

#include "ground/base/arena.h"
#include "qdq/error.h"

#include <stdint.h>

struct qdqi_judged_file {
    uint64_t key;    /* of its bytes: qdqi_kept_key_add_model() */
    bool is_wide;    /* judged by all samples, and not only by the comparer's own */
    bool is_literal; /* judged by the literal arithmetic */
    double db;       /* of the worst output; -INFINITY: it does not run */
    double top1, agreement;
    int64_t samples;      /* that it was judged by */
    double latency_ratio; /* NAN: it was not measured */
};

/* Empty where all members are 0; the rows are in an arena. */
struct qdqi_judged_files {
    struct qdqi_judged_file *rows;
    size_t n, capacity;
};

/* Returns the candidate with the same key, samples and arithmetic that was kept last, or NULL. */
const struct qdqi_judged_file *
qdqi_judged_files_find(const struct qdqi_judged_files *files,
                       const struct qdqi_judged_file *like);

/* Keeps a copy. Returns false when out of memory. */
bool qdqi_judged_files_keep(struct qdqi_judged_files *files,
                            const struct qdqi_judged_file *file,
                            struct qdqi_arena *arena) QDQ_MUST_CHECK;

#endif
