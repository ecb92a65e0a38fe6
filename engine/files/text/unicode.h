/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Characters of Unicode and texts of them, by libutf8proc: UTF-8, classes as Rust's `char` and its
 * crate `regex` have them, and the normal forms of Unicode's annex 15.
 */
#ifndef QDQI_FILES_TEXT_UNICODE_H
#define QDQI_FILES_TEXT_UNICODE_H

#include "qdq/tokenizer.h"

/* A text that grows on the heap. Zeroed, it is empty; free(data) frees it. */
struct qdqi_text {
    char *data;
    size_t size, capacity;
};

/* Appends bytes. False when out of memory. */
bool qdqi_text_add(struct qdqi_text *text, const char *from, size_t size);

/* Returns whether libutf8proc can be loaded, which the calls below need for characters beyond
   ASCII. */
bool qdqi_unicode_is_there(void);

/* Returns the offset of the first byte that is not UTF-8; `size` where there is none. */
size_t qdqi_utf8_check(const char *text, size_t size);
/* Returns the character at *at of valid UTF-8 and moves *at behind it. */
uint32_t qdqi_utf8_next(const char *text, size_t size, size_t *at);
/* Writes a character as UTF-8 and returns its bytes. */
size_t qdqi_utf8_encode(uint32_t c, char to[4]);
/* Returns the character that ends before `at`, which is not 0. */
uint32_t qdqi_utf8_before(const char *text, size_t at);

bool qdqi_char_is_space(uint32_t c);   /* White_Space */
bool qdqi_char_is_numeric(uint32_t c); /* Nd, Nl, No */
bool qdqi_char_is_word(uint32_t c);    /* what \w matches, by Unicode's standard 18 */
bool qdqi_char_is_punctuation(uint32_t c);

bool qdqi_char_is_control(uint32_t c); /* what BertNormalizer leaves out */
bool qdqi_char_is_nonspacing(uint32_t c);
bool qdqi_char_is_ideograph(uint32_t c); /* of Chinese, as BertNormalizer has them */

/* Append the text in another form. False when out of memory. */
bool qdqi_text_add_form(struct qdqi_text *to, const char *text, size_t size,
                        enum qdq_text_op form);
bool qdqi_text_add_lower(struct qdqi_text *to, const char *text, size_t size);
bool qdqi_text_add_unmarked(struct qdqi_text *to, const char *text, size_t size);
/* Each byte becomes the character that stands for it in vocabularies of bytes: itself where that is
   printable in Latin-1, else U+0100 and so on. */
bool qdqi_text_add_bytes(struct qdqi_text *to, const char *text, size_t size);

#endif
