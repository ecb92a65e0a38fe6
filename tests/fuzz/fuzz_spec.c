/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads any bytes as a spec and as the body of a job. An accepted text must stay the
 * same through encoding and decoding; a refused one must give a reason that makes a
 * problem document.
 *
 *   clang -DFUZZING -fsanitize=fuzzer,address,undefined -I… fuzz_spec.c api/… engine/…
 */
#include "config.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "api/job.h"
#include "api/spec.h"

static void
expect_document(struct api_problem *problem)
{
    assert(problem->set);
    char *text = api_problem_encode(problem);
    assert(text);
    free(text);
}

static void
expect_round_trip(const struct api_spec *spec)
{
    char *text = api_spec_encode(api_spec_get(spec));
    assert(text);
    struct api_spec *again = NULL;
    struct api_problem problem = {0};
    bool ok = api_spec_decode(text, strlen(text), &again, &problem);
    assert(ok);
    char *text_again = api_spec_encode(api_spec_get(again));
    assert(text_again && strcmp(text, text_again) == 0);
    api_spec_free(&again);
    free(text);
    free(text_again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct api_spec *spec = NULL;
    struct api_problem problem = {0};
    if (api_spec_decode((const char *)data, size, &spec, &problem))
        expect_round_trip(spec);
    else
        expect_document(&problem);
    api_spec_free(&spec);

    struct api_job_request request = {0};
    problem = (struct api_problem){0};
    if (!api_job_request_decode((const char *)data, size, &request, &problem))
        expect_document(&problem);
    api_job_request_fini(&request);
    return 0;
}

#define CORPUS "tests/fuzz/corpus/spec"
#include "replay.h"
