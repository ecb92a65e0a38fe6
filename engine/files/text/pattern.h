/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Patterns of a tokenizer.json: plain texts, and regular expressions in the syntax of Oniguruma for
 * Ruby, which are rewritten for PCRE2 and found with bounds: of the memory and of the work for one
 * place in the text, and of the processor time for a whole text.
 */
#ifndef QDQI_FILES_TEXT_PATTERN_H
#define QDQI_FILES_TEXT_PATTERN_H

#include "files/text/unicode.h"

struct qdqi_pattern;

/* UNSUPPORTED where the pattern has what is not rewritten, with the member of the file. Regular
   expressions are those that are not `is_regex` false. The pattern is copied. */
enum qdq_code qdqi_pattern_new(struct qdq_string pattern, bool is_regex,
                               const char *member, struct qdqi_pattern **ret,
                               struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_pattern_free(struct qdqi_pattern **pattern);

/* Bounds the time of all matches from now on by the size of the text. */
void qdqi_pattern_allow(struct qdqi_pattern *pattern, size_t size);

/* Matches of a text, from its start on. */
struct qdqi_matches {
    struct qdqi_pattern *pattern;
    const char *text;
    size_t size, at,
        last; /* last: where the last match ended; SIZE_MAX: there was none */
};

struct qdqi_match {
    size_t start, end;
    bool found;
};

/* Finds the next match. One of no characters right behind another is none. */
enum qdq_code qdqi_matches_next(struct qdqi_matches *matches, struct qdqi_match *ret,
                                struct qdq_error *err) QDQ_MUST_CHECK;

/* Rewrites a regular expression. */
enum qdq_code qdqi_pattern_rewrite(struct qdq_string pattern, const char *member,
                                   struct qdqi_text *ret,
                                   struct qdq_error *err) QDQ_MUST_CHECK;

#endif
