/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "api.h"

#include "api/report.h"
#include "api/ui.h"

#include <stdlib.h>

void *__real_realloc(void *p, size_t size);
void *__wrap_realloc(void *p, size_t size);

void *
__wrap_realloc(void *p, size_t size)
{
    return !unit_allocations_fail || unit_allocations_left-- > 0
               ? __real_realloc(p, size)
               : NULL;
}

/* Parts of the page: one style, one script, and the rows of the formats. */
static const char *const pieces[] = {
    "<!doctype html>\n<html lang=\"en\">",
    "<main id=\"view\"",
    "<tr><td><code>float8e4m3fn</code></td><td class=\"n\">8</td><td "
    "class=\"n\">-448</td><td class=\"n\">448</td><td class=\"n\">19</td><td>weights, "
    "activations</td></tr>",
    "<td class=\"n\">21</td><td>weights</td>",
};

UNIT_TEST(test_page)
{
    char *page = api_ui_page();
    ck_assert_ptr_nonnull(page);
    for (int i = 0; i < N_ROWS(pieces); i++)
        ck_assert_msg(strstr(page, pieces[i]) != NULL, "not there: %s", pieces[i]);
    const char *script = strstr(page, "<script");
    ck_assert_ptr_nonnull(script);
    ck_assert_ptr_null(strstr(script + 1, "<script"));
    ck_assert_str_eq(strstr(script, "</script>"), "</script>\n</body>\n</html>\n");
    ck_assert_ptr_null(strstr(page, "innerHTML"));
    free(page);
}

UNIT_TEST(test_no_memory)
{
    expect_survives_no_memory(api_ui_page);
}

/* The policy also allows what a report in a frame has, and nothing without a hash. */
UNIT_TEST(test_policy)
{
    char policy[512], report[256];
    ck_assert(api_ui_policy(policy, sizeof policy));
    ck_assert(api_html_policy(report, sizeof report));
    const char *hash = report;
    for (int i = 0; i < 2; i++) {
        hash = strstr(hash, "'sha256-");
        ck_assert_ptr_nonnull(hash);
        char quoted[64];
        snprintf(quoted, sizeof quoted, "%.*s", 53, hash);
        ck_assert_ptr_nonnull(strstr(policy, quoted));
        hash++;
    }
    ck_assert_ptr_null(strstr(policy, "unsafe"));
    ck_assert(!api_ui_policy(policy, 256));
}

UNIT_SUITE("api/ui")
