/* SPDX-License-Identifier: Apache-2.0 */
/* The page that a browser shows of a report. */
#ifndef CLI_PAGE_H
#define CLI_PAGE_H

#include "files.h"

/* Returns the media type of a report that is written to a path, by its ending: .json, .md, or a
   page. */
const char *report_form(const char *path);
/* Makes the page of a report's JSON and commits it. */
bool page_write(const char *json, size_t len, struct output *to,
                struct api_problem *problem);

#endif
