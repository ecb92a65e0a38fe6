/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads any bytes as a tokenizer.json and a text: the file up to the first NUL, and the text behind
 * it. A file that is not read gives a reason that makes a problem
 * document.
 *
 *   clang -DFUZZING -fsanitize=fuzzer,address,undefined -I… fuzz_tokenizer.c api/… engine/… -lpcre2-8 -lutf8proc
 */
#include "config.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "api/tokenizer.h"

enum { MOST_TEXT = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = size > 0 ? memchr(data, '\0', size) : NULL;
    const size_t file = end ? (size_t)(end - data) : size;
    const size_t rest = end ? size - file - 1 : 0;
    struct qdq_tokenizer *tokenizer = NULL;
    struct api_problem problem = {0};
    struct qdq_error err = {0};
    const uint32_t *ids;
    size_t n;
    if (!api_tokenizer_read((const char *)data, file, &tokenizer, &problem)) {
        assert(problem.set && !tokenizer);
        char *text = api_problem_encode(&problem);
        assert(text);
        free(text);
        return 0;
    }
    const enum qdq_code code =
        qdq_tokenizer_encode(tokenizer, end ? (const char *)end + 1 : "",
                             rest < MOST_TEXT ? rest : MOST_TEXT, &ids, &n, &err);
    assert(code == QDQ_OK || code == QDQ_INVALID_DATASET || code == QDQ_LIMIT_EXCEEDED);
    qdq_tokenizer_free(&tokenizer);
    return 0;
}

#define CORPUS "tests/fuzz/corpus/tokenizer"
#include "replay.h"
