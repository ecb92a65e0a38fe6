/* SPDX-License-Identifier: Apache-2.0 */
/* The normalizers of a tokenizer: steps that change a text. */
#ifndef QDQI_FILES_TEXT_NORMALIZE_H
#define QDQI_FILES_TEXT_NORMALIZE_H

#include "files/text/pattern.h"
#include "ground/base/arena.h"

enum {
    QDQI_MOST_STEPS = 64,
    /* bytes that a text may grow to */
    QDQI_MOST_CHANGED = 4 * QDQ_TOKENIZER_MOST_TEXT,
};

struct qdqi_normalizer {
    const struct qdq_text_step *steps; /* in the arena */
    struct qdqi_pattern **patterns;    /* NULL where a step has none */
    size_t n;
    struct qdqi_text buffers[2];
};

/* Copies steps into the arena, with their texts. LIMIT_EXCEEDED where they are too many. */
enum qdq_code qdqi_steps_copy(const struct qdq_text_step *steps, size_t n,
                              struct qdqi_arena *arena,
                              const struct qdq_text_step **ret,
                              struct qdq_error *err) QDQ_MUST_CHECK;
/* LIMIT_EXCEEDED for a text that a step made too large. */
enum qdq_code qdqi_step_check(const struct qdq_text_step *step, size_t size,
                              struct qdq_error *err) QDQ_MUST_CHECK;

/* Fills a zeroed normalizer, which qdqi_normalizer_fini() frees whether this succeeds or not. */
enum qdq_code qdqi_normalizer_init(const struct qdq_text_step *steps, size_t n,
                                   struct qdqi_arena *arena,
                                   struct qdqi_normalizer *ret,
                                   struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_normalizer_fini(struct qdqi_normalizer *normalizer);

/* Bounds the time of all patterns from now on by the size of the text. */
void qdqi_normalizer_allow(struct qdqi_normalizer *normalizer, size_t size);

/* Normalizes a text. *ret is valid until the next call. *keeps_start stays unless characters at the
   start were dropped. */
enum qdq_code qdqi_normalizer_run(struct qdqi_normalizer *normalizer,
                                  struct qdq_string text, struct qdq_string *ret,
                                  bool *keeps_start,
                                  struct qdq_error *err) QDQ_MUST_CHECK;

#endif
