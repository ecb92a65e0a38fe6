/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "api.h"

#include "api/route.h"

/* The text in the library equals the file, byte for byte. */
UNIT_TEST(test_document)
{
    FILE *file = fopen(unit_path("api/openapi.yaml"), "rb");
    ck_assert_ptr_nonnull(file);
    size_t size = strlen(api_openapi());
    char *text = calloc(1, size + 2);
    ck_assert_uint_eq(fread(text, 1, size + 1, file), size);
    ck_assert_str_eq(text, api_openapi());
    free(text);
    fclose(file);
}

UNIT_SUITE("api/openapi")
