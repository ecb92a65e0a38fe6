/* SPDX-License-Identifier: Apache-2.0 */
/* The command report for a job of a service. */
#include "config.h"
#include "client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "page.h"

bool
service_report(const struct options *options, struct api_problem *problem)
{
    struct client client;
    struct output out = OUTPUT_NONE;
    char path[160], *own = NULL;
    bool ok = client_open(options, &client, problem) &&
              client_path(options->model, "/report", path, sizeof path, problem);
    if (ok && !options->out && asprintf(&own, "%s.html", options->model) < 0) {
        own = NULL;
        ok = api_problem_no_memory(problem);
    }
    const char *file = options->out ? options->out : own;
    ok = ok && output_open(file, &out, problem) &&
         qdqr_service_fetch(client.service, path, report_form(file), out.fd, problem) &&
         output_commit(&out, problem);
    if (ok)
        printf("%s\n", file);
    output_close(&out);
    client_close(&client);
    free(own);
    return ok;
}
