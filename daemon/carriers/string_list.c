/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "carriers/string_list.h"
#include "api/grow.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool
string_list_add(struct string_list *strings, const char *string)
{
    return api_append(&strings->text, &strings->len, string, strlen(string) + 1);
}

bool
string_list_add_number(struct string_list *strings, long long number)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", number);
    return string_list_add(strings, text);
}

void
string_list_fini(struct string_list *strings)
{
    free(strings->text);
    *strings = (struct string_list){0};
}

/* A received text ends in a NUL that its length does not count, so the last string is
   terminated even where its own NUL is missing. */
const char *
string_list_next(struct string_list *strings)
{
    if (!strings->text || strings->at >= strings->len)
        return NULL;
    const char *string = strings->text + strings->at;
    strings->at += strlen(string) + 1;
    return string;
}

bool
string_list_next_number(struct string_list *strings, long long *ret)
{
    const char *string = string_list_next(strings);
    char *end;
    errno = 0;
    *ret = string ? strtoll(string, &end, 10) : 0;
    return string && *string && !*end && !errno;
}
