/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "carriers/words.h"
#include "api/grow.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool
words_add(struct words *words, const char *word)
{
    return api_append(&words->text, &words->len, word, strlen(word) + 1);
}

bool
words_add_number(struct words *words, long long number)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", number);
    return words_add(words, text);
}

void
words_fini(struct words *words)
{
    free(words->text);
    *words = (struct words){0};
}

/* A received text ends in a NUL that its length does not count, so the last string is
   terminated even where its own NUL is missing. */
const char *
words_next(struct words *words)
{
    if (!words->text || words->at >= words->len)
        return NULL;
    const char *word = words->text + words->at;
    words->at += strlen(word) + 1;
    return word;
}

bool
words_next_number(struct words *words, long long *ret)
{
    const char *word = words_next(words);
    char *end;
    errno = 0;
    *ret = word ? strtoll(word, &end, 10) : 0;
    return word && *word && !*end && !errno;
}
