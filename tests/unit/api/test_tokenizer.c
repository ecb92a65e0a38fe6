/* SPDX-License-Identifier: Apache-2.0 */
/* Small tokenizers, and what they make of texts. The ids are those of the library `tokenizers`, which
   tests/e2e/models/test_tokenizers.py compares with trained ones. */
#include "config.h"
#include "api/tokenizer.h"
#include "api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VOCAB                                                                          \
    "\"vocab\": {\"a\": 0, \"b\": 1, \"c\": 2, \"ab\": 3, \"abc\": 4, \" \": 5, "      \
    "\"bc\": 6, "                                                                      \
    "\"\xc3\xa9\": 7, \"?\": 8, \"<0xC3>\": 9, \"<0xA9>\": 10, \"\xe2\x96\x81\": 11, " \
    "\"1\": 12, \".\": 13, \"e\": 14, \"\xcc\x81\": 15, \"aa\": 16, \"aaaa\": 17}"
#define MERGES "\"merges\": [\"a b\", [\"ab\", \"c\"], \"b c\", \"a a\", \"aa aa\"]"
#define MODEL(more) "\"model\": {\"type\": \"BPE\", " VOCAB ", " MERGES more "}"
#define PLAIN "{" MODEL("") "}"
#define WITH(members) "{" members ", " MODEL("") "}"
#define PRE(step) WITH("\"pre_tokenizer\": " step)
#define NORMAL(step) WITH("\"normalizer\": " step)
#define SPLIT(pattern, behavior, invert)                                            \
    PRE("{\"type\": \"Split\", \"pattern\": " pattern ", \"behavior\": \"" behavior \
        "\", \"invert\": " invert "}")
#define B "{\"String\": \"b\"}"

/* WordPiece without a token for "a". */
#define PIECES(more)                                                                  \
    "{\"normalizer\": {\"type\": \"BertNormalizer\", \"clean_text\": true, "          \
    "\"handle_chinese_chars\": true, \"strip_accents\": null, \"lowercase\": true}, " \
    "\"pre_tokenizer\": {\"type\": \"BertPreTokenizer\"}, \"model\": {\"type\": "     \
    "\"WordPiece\", \"vocab\": {\"[UNK]\": 0, \"un\": 1, \"##able\": 2, \"##a\": 3, " \
    "\"unab\": 4, \"##le\": 5, \"b\": 6, \"##b\": 7, \"e\": 8, \"\xe6\xbc\xa2\": "    \
    "9}" more "}}"

static const struct {
    const char *name, *file, *text, *ids;
} rows[] = {
    {"the longest piece first", PIECES(""), "unable", "4 5"},
    {"a word that is not used up", PIECES(""), "b unx b", "6 0 6"},
    {"a word that is too long", PIECES(", \"max_input_chars_per_word\": 3"), "una bbbb",
     "1 3 0"},
    {"a prefix of its own", PIECES(", \"continuing_subword_prefix\": \"\""), "une",
     "1 8"},
    {"small letters without accents", PIECES(""), "UN\xc3\x81 \xc3\x89", "1 3 8"},
    {"what is no letter", PIECES(""),
     "b\x01"
     "b\xe2\x80\x83\xe6\xbc\xa2"
     "b",
     "6 7 9 6"},
    {"merges by rank", PLAIN, "abc bc", "4 5 6"},
    {"the leftmost first", PLAIN, "aaaaaaa", "17 16 0"},
    {"nothing", PLAIN, "", ""},
    {"unknown without a token", PLAIN, "axb", "3"},
    {"unknown", "{" MODEL(", \"unk_token\": \"?\"") "}", "axxb", "0 8 8 1"},
    {"unknown, fused", "{" MODEL(", \"unk_token\": \"?\", \"fuse_unk\": true") "}",
     "axxb", "0 8 1"},
    {"bytes",
     "{\"model\": {\"vocab\": {\"a\": 0, \"<0xC3>\": 9, \"<0xA9>\": 10}, \"merges\": "
     "[], "
     "\"byte_fallback\": true}}",
     "a\xc3\xa9", "0 9 10"},
    {"ignored merges", "{" MODEL(", \"ignore_merges\": true") "}", "aaaa", "17"},
    {"isolated", SPLIT(B, "Isolated", "false"), "abbc", "0 1 1 2"},
    {"removed", SPLIT(B, "Removed", "false"), "abbc", "0 2"},
    {"contiguous", SPLIT(B, "Contiguous", "false"), "abbc", "0 1 1 2"},
    {"with previous", SPLIT(B, "MergedWithPrevious", "false"), "abbc", "3 1 2"},
    {"with next", SPLIT(B, "MergedWithNext", "false"), "abbc", "0 1 6"},
    {"inverted", SPLIT(B, "Removed", "true"), "abbc", "1 1"},
    {"regex", SPLIT("{\"Regex\": \"\\\\p{L}(?=b)|\\\\s+\"}", "Isolated", "false"),
     "ab  c", "0 1 5 5 2"},
    {"repeats of intervals are no possessives",
     SPLIT("{\"Regex\": \"a{1,2}+\"}", "Isolated", "false"), "baaaaab", "1 17 0 1"},
    {"digits", PRE("{\"type\": \"Digits\", \"individual_digits\": true}"), "a11",
     "0 12 12"},
    {"punctuation", PRE("{\"type\": \"Punctuation\", \"behavior\": \"Removed\"}"),
     "a.b", "0 1"},
    {"white space", PRE("{\"type\": \"WhitespaceSplit\"}"),
     "ab\xe2\x80\x83"
     "c",
     "3 2"},
    {"words", PRE("{\"type\": \"Whitespace\"}"), "a.b c", "0 13 1 2"},
    {"metaspace",
     PRE("{\"type\": \"Metaspace\", \"replacement\": \"\xe2\x96\x81\", "
         "\"prepend_scheme\": \"first\", \"split\": true}"),
     "a b", "11 0 11 1"},
    {"composed", NORMAL("{\"type\": \"NFC\"}"), "e\xcc\x81", "7"},
    {"decomposed", NORMAL("{\"type\": \"NFD\"}"), "\xc3\xa9", "14 15"},
    {"lower", NORMAL("{\"type\": \"Lowercase\"}"), "ABC", "4"},
    {"strip",
     NORMAL("{\"type\": \"Strip\", \"strip_left\": true, \"strip_right\": true}"),
     " \tab ", "3"},
    {"replace",
     NORMAL("{\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"Prepend\", "
            "\"prepend\": \"a\"}, {\"type\": \"Replace\", \"pattern\": {\"Regex\": "
            "\"x+\"}, \"content\": \"b\"}]}"),
     "xxc", "4"},
    {"added tokens",
     WITH(
         "\"added_tokens\": [{\"id\": 18, \"content\": \"<s>\", \"special\": true}, "
         "{\"id\": "
         "19, \"content\": \"<s>>\", \"lstrip\": true, \"rstrip\": true}, {\"id\": 20, "
         "\"content\": \"b\", \"single_word\": true}]"),
     "a<s>bc <s>>  a b ab", "0 18 6 19 0 5 1 5 3"},
    {"around",
     WITH("\"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": "
          "[{\"SpecialToken\": {\"id\": \"x\", \"type_id\": 0}}, {\"Sequence\": "
          "{\"id\": "
          "\"A\", \"type_id\": 0}}, {\"SpecialToken\": {\"id\": \"y\", \"type_id\": "
          "0}}], "
          "\"special_tokens\": {\"x\": {\"ids\": [30, 31]}, \"y\": {\"ids\": [32]}}}"),
     "a", "30 31 0 32"},
};

/* Returns the ids of a text, with spaces between them, or "CODE: WHERE". The caller frees it. */
static char *
encode(const char *file, const char *text, size_t size)
{
    struct qdq_tokenizer *tokenizer = NULL;
    struct api_problem problem = {0};
    struct qdq_error err = {0};
    const uint32_t *ids;
    size_t n = 0, len;
    char *to = NULL;
    FILE *out = open_memstream(&to, &len);
    ck_assert_ptr_nonnull(out);
    if (!api_tokenizer_read(file, strlen(file), &tokenizer, &problem))
        fprintf(out, "%s: %s", api_problem_slug(problem.code), problem.where);
    else if (qdq_tokenizer_encode(tokenizer, text, size, &ids, &n, &err) != QDQ_OK)
        fprintf(out, "%s: %s", qdq_code_slug(err.code), err.where);
    for (size_t i = 0; i < n; i++)
        fprintf(out, "%s%u", i ? " " : "", ids[i]);
    fclose(out);
    qdq_tokenizer_free(&tokenizer);
    return to;
}

UNIT_ROWS(ids_are_those_of_the_library, rows)
{
    char *found = encode(rows[_i].file, rows[_i].text, strlen(rows[_i].text));
    ck_assert_msg(strcmp(found, rows[_i].ids) == 0, "%s: '%s' and not '%s'",
                  rows[_i].name, found, rows[_i].ids);
    free(found);
}

#define REGEX(pattern) SPLIT("{\"Regex\": \"" pattern "\"}", "Isolated", "false")
#define PRE_AT "unsupported: /pre_tokenizer"

static const struct {
    const char *file, *problem;
} wrong[] = {
    {"[]", "invalid_dataset: "},
    {"{\"model\": {\"type\": \"Unigram\"}}", "unsupported: /model/type"},
    {"{\"model\": {\"type\": \"WordPiece\"}}", "invalid_dataset: /model/vocab"},
    {PIECES(", \"max_input_chars_per_word\": 2000"),
     "limit_exceeded: /model/max_input_chars_per_word"},
    {PIECES(", \"max_input_chars_per_word\": 0"),
     "invalid_dataset: /model/max_input_chars_per_word"},
    {PIECES(", \"unk_token\": \"?\""), "invalid_dataset: /model/unk_token"},
    {"{\"model\": {\"vocab\": {\"a\": -1}, \"merges\": []}}",
     "invalid_dataset: /model/vocab"},
    {"{\"model\": {\"vocab\": {\"a\": 1}, \"merges\": [\"a b\"]}}",
     "invalid_dataset: /model/merges/0"},
    {"{\"model\": {\"vocab\": {\"a\": 1}, \"merges\": [\"ab\"]}}",
     "invalid_dataset: /model/merges/0"},
    {"{" MODEL(", \"dropout\": 0.1") "}", "unsupported: /model/dropout"},
    {NORMAL("{\"type\": \"Nmt\"}"), "unsupported: /normalizer/type"},
    {PRE("{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": "
         "\"UnicodeScripts\"}]}"),
     "unsupported: /pre_tokenizer/pretokenizers/0/type"},
    {WITH("\"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": []}"),
     "invalid_dataset: /post_processor/single"},
    {WITH("\"added_tokens\": [{\"content\": 1}]"),
     "invalid_dataset: /added_tokens/0/content"},
    {REGEX(""), PRE_AT},
    {REGEX("(a"), PRE_AT},
    {REGEX("a)"), PRE_AT},
    {REGEX("[a[b]]"), PRE_AT},
    {REGEX("[a&&b]"), PRE_AT},
    {REGEX("(?R)"), PRE_AT},
    {REGEX("(a)\\\\1"), PRE_AT},
    {REGEX("(*UTF)a"), PRE_AT},
    {REGEX("a(?i)b"), PRE_AT},
    {REGEX("\\\\p{Wordy}"), PRE_AT},
    {REGEX("(?C1)a"), PRE_AT},
    {REGEX("((a{1000}){1000}){1000}"), PRE_AT},
};

UNIT_ROWS(a_file_that_is_not_read_is_an_error, wrong)
{
    char *found = encode(wrong[_i].file, "a", 1);
    ck_assert_str_eq(found, wrong[_i].problem);
    free(found);
}

UNIT_TEST(a_text_that_is_not_utf8_is_an_error)
{
    static const char *const texts[] = {
        "a\xff",     "a\xc0\x80",         "a\xed\xa0\x80",
        "a\xe2\x96", "a\xf4\x90\x80\x80", "a\xf0\x80\x80\x80"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char *found = encode(PLAIN, texts[i], strlen(texts[i]));
        ck_assert_str_eq(found, "invalid_dataset: 1");
        free(found);
    }
}

/* A pattern that tries all ways to cut a run ends by its bounds. */
UNIT_TEST(a_pattern_that_takes_too_long_is_an_error)
{
    char text[201];
    memset(text, 'a', 200);
    text[200] = 'b';
    char *found = encode(REGEX("(?:a|aa)+[cd]"), text, sizeof text);
    ck_assert_str_eq(found, "limit_exceeded: /pre_tokenizer");
    free(found);
}

/* Long pieces take n log n: with a search for the best pair in each step these would take hours. */
UNIT_TEST(long_pieces_are_merged)
{
    enum { SIZE = 1 << 20 };
    char *text = malloc(SIZE);
    ck_assert_ptr_nonnull(text);
    memset(text, 'a', SIZE);
    char *found = encode(PLAIN, text, SIZE);
    ck_assert_uint_eq(strlen(found), 3 * (SIZE / 4) - 1);
    ck_assert(strncmp(found, "17 17 17", 8) == 0);
    free(found);
    free(text);
}

/* Marks in the reverse of their order, many of them. */
UNIT_TEST(long_runs_of_marks_are_sorted)
{
    enum { N = 200000 };
    char *text = malloc(4 * N + 1);
    ck_assert_ptr_nonnull(text);
    text[0] = 'e';
    for (size_t i = 0; i < N; i++) {
        memcpy(text + 1 + 2 * i, "\xcc\x81", 2); /* above: 230 */
        memcpy(text + 1 + 2 * N + 2 * i, "\xcc\xa3",
               2); /* below: 220, not in the vocabulary */
    }
    char *found = encode(NORMAL("{\"type\": \"NFD\"}"), text, 4 * N + 1);
    ck_assert(strncmp(found, "14 15 15", 8) == 0);
    ck_assert_uint_eq(strlen(found), 2 + 3 * N);
    free(found);
    free(text);
}

UNIT_SUITE("api/tokenizer", .timeout = 120)
