/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads any bytes as the head of a request, with its path and header fields, and as the
 * JSON of a report to be shown as Markdown, and of a statement about a result. The results have to be consistent.
 *
 *   clang -DFUZZING -fsanitize=fuzzer,address,undefined -I… fuzz_head.c api/… engine/…
 */
#include "config.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "api/header.h"
#include "api/lineage.h"
#include "api/report.h"
#include "api/route.h"

static void
try_route(const char *text)
{
    static const char *const methods[] = {"GET", "HEAD", "POST", "DELETE", "PATCH"};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        struct api_match match;
        struct api_problem problem = {0};
        char allow[64];
        bool found =
            api_route_match(methods[i], text, &match, allow, sizeof allow, &problem);
        assert(found != problem.set);
        assert(!found || (match.route < API_N_ROUTES && strlen(match.id) < 128));
        assert(strlen(allow) < sizeof allow);
        if (problem.set)
            free(api_problem_encode(&problem));
    }
}

static void
try_range(const char *text)
{
    static const uint64_t sizes[] = {0, 1, 100, UINT64_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct api_range range = {0};
        if (api_header_range(text, sizes[i], &range) != API_RANGE_PART)
            continue;
        assert(range.size > 0 && range.first < sizes[i]);
        assert(range.size <= sizes[i] - range.first);
    }
}

/* A digest that is accepted has only one written form. */
static void
try_digest(const char *text)
{
    char id[API_HEADER_ID], digest[API_HEADER_DIGEST], again[API_HEADER_ID];
    struct api_problem problem = {0};
    bool ok = api_header_digest(text, id, &problem);
    assert(ok != problem.set);
    if (!ok || !id[0])
        return;
    assert(api_header_digest_of(id, digest) && strstr(text, digest));
    assert(api_header_digest(digest, again, &problem) && !strcmp(id, again));
}

static void
try_lists(const char *text)
{
    static const char *const types[] = {"application/json", "text/markdown"};
    size_t chosen = api_header_choose(text, types, 2);
    assert(chosen <= 2);
    bool has = api_header_has_tag(text, "\"a\"", API_TAG_WEAK);
    assert(has || !api_header_has_tag(text, "\"a\"", API_TAG_STRONG));
    assert(!has || strchr(text, '*') || strstr(text, "\"a\""));
}

/* The files of a statement that is read have paths and digests. */
static void
try_statement(const char *json, size_t size)
{
    struct api_statement statement;
    struct api_problem problem = {0};
    bool ok = api_statement_decode(json, size, &statement, &problem);
    assert(ok != problem.set);
    for (size_t i = 0; i < statement.n; i++)
        assert(api_path_is_inside(statement.files[i].path) &&
               digest_is_id(statement.files[i].digest));
    assert(!ok || (statement.n > 0 && !statement.spec == !statement.model_id));
    api_statement_fini(&statement);
}

static void
try_report(const char *json, size_t size)
{
    char *text = api_report_markdown(json, size);
    assert(!text || strstr(text, "## Summary"));
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    try_route(text);
    try_range(text);
    try_digest(text);
    try_lists(text);
    try_report(text, size);
    try_statement(text, size);
    free(text);
    return 0;
}

#define CORPUS "tests/fuzz/corpus/head"
#include "replay.h"
