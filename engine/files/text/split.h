/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts a text into pieces: at what a pattern matches, or at characters of a class. */
#ifndef QDQI_FILES_TEXT_SPLIT_H
#define QDQI_FILES_TEXT_SPLIT_H

#include "files/text/pattern.h"

/* Gets the pieces in their order; none is empty. */
struct qdqi_piece_sink {
    enum qdq_code (*piece)(void *arg, size_t start, size_t end, struct qdq_error *err);
    void *arg;
};

/* `invert`: what lies between matches takes the place of the matches. */
enum qdq_code qdqi_split_pattern(struct qdqi_pattern *pattern, struct qdq_string text,
                                 enum qdq_text_behavior behavior, bool invert,
                                 const struct qdqi_piece_sink *to,
                                 struct qdq_error *err) QDQ_MUST_CHECK;
/* Each character of the class is a match of its own. */
enum qdq_code qdqi_split_class(bool (*is_one)(uint32_t c), struct qdq_string text,
                               enum qdq_text_behavior behavior,
                               const struct qdqi_piece_sink *to,
                               struct qdq_error *err) QDQ_MUST_CHECK;
/* Runs of characters of words, and runs of others that are no white space. */
enum qdq_code qdqi_split_words(struct qdq_string text, const struct qdqi_piece_sink *to,
                               struct qdq_error *err) QDQ_MUST_CHECK;

#endif
