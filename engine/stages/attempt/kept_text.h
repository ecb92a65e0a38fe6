/* SPDX-License-Identifier: Apache-2.0 */
/* The text of what is kept, as it grows. */
#ifndef QDQI_STAGES_ATTEMPT_KEPT_TEXT_H
#define QDQI_STAGES_ATTEMPT_KEPT_TEXT_H

#include "qdq/error.h"

#include <stdbool.h>
#include <stddef.h>

struct qdqi_kept_text {
    char *bytes; /* on the heap, the owner frees them; ends with NUL */
    size_t n, capacity;
    bool failed; /* there was not enough memory */
};

void qdqi_kept_text_print(struct qdqi_kept_text *to, const char *fmt, ...)
    QDQ_PRINTF(2, 3);

/* Prints a name in which a control character, a space and `%` are %XX. */
void qdqi_kept_text_print_name(struct qdqi_kept_text *to, const char *name);

/* Undoes the escapes of a name in place. Returns false for one that is not in that form. */
bool qdqi_kept_text_read_name(char *name);

#endif
