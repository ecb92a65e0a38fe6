/* SPDX-License-Identifier: Apache-2.0 */
/* The handler of the page for a browser. */
#include "config.h"
#include "handlers/handlers.h"
#include "settings/settings.h"
#include "api/ui.h"

#include <string.h>

enum { POLICY_SIZE = 512 };

void
handle_ui(struct request *request)
{
    struct api_problem problem = {0};
    char policy[POLICY_SIZE];
    if (!strcmp(request->service->settings->http_ui, "off")) {
        api_fail(&problem, API_NOT_FOUND, "the page is switched off (http.ui)");
    } else if (!api_ui_policy(policy, sizeof policy)) {
        api_problem_no_memory(&problem);
    } else {
        reply_text(request, 200, "text/html; charset=utf-8", api_ui_page());
        reply_header(request, "Cache-Control", "no-cache");
        reply_header(request, "Content-Security-Policy", "%s", policy);
        reply_header(request, "X-Content-Type-Options", "nosniff");
        reply_header(request, "Referrer-Policy", "no-referrer");
        return;
    }
    reply_problem(request, &problem);
}
