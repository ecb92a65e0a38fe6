/* SPDX-License-Identifier: Apache-2.0 */
/* The page for a browser at /ui. It is one file: its style and its script are in it. */
#ifndef API_UI_H
#define API_UI_H

#include <stdbool.h>
#include <stddef.h>

/* Returns the page, which the caller frees. NULL when out of memory. */
char *api_ui_page(void);
/*
 * Writes the content security policy of the page. It allows the page's own style and script,
 * and those of reports, which the page shows in a frame that inherits the policy. Returns
 * false when out of memory, or when `size` is too small.
 */
bool api_ui_policy(char *to, size_t size);

#endif
