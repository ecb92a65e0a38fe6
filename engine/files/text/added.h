/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens that were added to a vocabulary: a text is cut at them before anything else is done with
 * it. The longest of those that begin at
 * a place counts, and one further left comes before the others.
 */
#ifndef QDQI_FILES_TEXT_ADDED_H
#define QDQI_FILES_TEXT_ADDED_H

#include "files/text/vocab.h"

struct qdqi_added;

/* Normalizes a text for qdqi_added_new(). False when out of memory. */
typedef enum qdq_code (*qdqi_normalize_fn)(void *arg, struct qdq_string text,
                                           struct qdq_string *ret,
                                           struct qdq_error *err);

/* Makes the list of the added tokens of one kind: those that are found in a text before it is
   normalized, or those that are normalized, too. Ids are given in the order of the form. */
enum qdq_code qdqi_added_new(const struct qdq_tokenizer_form *form,
                             const struct qdqi_vocab *vocab, bool normalized,
                             qdqi_normalize_fn normalize, void *arg,
                             struct qdqi_arena *arena, struct qdqi_added **ret,
                             struct qdq_error *err) QDQ_MUST_CHECK;

/* A part of a text: an added token's, or one between two of them. */
struct qdqi_part {
    size_t start, end;
    bool is_token;
    uint32_t id;
};

/* Where the cutting of a text stands. Zeroed but for the text, it is at the start. */
struct qdqi_cutting {
    const struct qdqi_added *added;
    struct qdq_string text;
    size_t at;        /* tokens are looked for from here on */
    size_t taken;     /* all parts up to here are returned */
    size_t space_end; /* the end of the white space that was met last */
    bool has_token;   /* `token` is to be returned next */
    struct qdqi_part token;
};

/* Returns the next part, which is not empty unless it is a token's; false at the end. */
bool qdqi_added_next(struct qdqi_cutting *cutting, struct qdqi_part *ret);

#endif
