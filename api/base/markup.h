/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A text of HTML, or of Markdown, that grows. In HTML texts that come from outside go through
 * api_markup_text(), which escapes them. After memory has run out nothing more is added, so
 * that only the end has to be checked.
 */
#ifndef API_BASE_MARKUP_H
#define API_BASE_MARKUP_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "qdq.h"

struct api_markup {
    char *data; /* the caller frees it; NULL at first */
    size_t len;
    bool failed; /* memory has run out */
};

/* Adds markup as it stands. */
void api_markup_add(struct api_markup *markup, const char *piece);
/* Adds markup whose arguments are numbers or texts of the program. */
void api_markup_format(struct api_markup *markup, const char *fmt, ...)
    QDQ_PRINTF(2, 3);
/* Adds a text, escaped for the contents of an element and for a quoted attribute. Control
   characters become the pictures that Unicode has for them. */
void api_markup_text(struct api_markup *markup, const char *text);
/* Adds a text, number or truth for people; a dash for null and for what is absent. */
void api_markup_value(struct api_markup *markup, const json_t *value);
/* Adds a count of bytes with its unit: "1.28 MB". */
void api_markup_bytes(struct api_markup *markup, double bytes);

/*
 * Returns the text that `add` makes of the JSON, in the locale "C"; the caller frees it. Takes the
 * JSON, which may be NULL. Returns NULL then, and when out of memory.
 */
char *api_markup_render(json_t *json,
                        void (*add)(struct api_markup *markup, json_t *json));

#endif
