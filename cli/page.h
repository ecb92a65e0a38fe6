/* SPDX-License-Identifier: Apache-2.0 */
/* The page that a browser shows of a report. */
#ifndef CLI_PAGE_H
#define CLI_PAGE_H

#include "files.h"

/* Makes the page of a report's JSON and commits it. */
bool page_write(const char *json, size_t len, struct output *to,
                struct api_problem *problem);

#endif
