/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "qdq/words.h"

#include <string.h>

enum { MAX_WORD = 64 };

static int
lower(char c)
{
    return c >= 'A' && c <= 'Z' ? c + 'a' - 'A' : c;
}

/* Returns the number of edits (insert, delete, replace) from a to b, which are both
   shorter than MAX_WORD. */
static size_t
distance(const char *a, const char *b)
{
    size_t row[MAX_WORD];
    size_t n = strlen(b);
    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 0; a[i]; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < n; j++) {
            size_t best = diagonal + (lower(a[i]) != lower(b[j]));
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j + 1] + 1 < best)
                best = row[j + 1] + 1;
            diagonal = row[j + 1];
            row[j + 1] = best;
        }
    }
    return row[n];
}

const char *
qdq_nearest_word(const char *word, const char *(*known)(const void *arg, size_t i),
                 const void *arg)
{
    const char *nearest = NULL, *candidate;
    size_t least = strlen(word) < MAX_WORD ? strlen(word) / 2 + 1 : 0;
    for (size_t i = 0; least && (candidate = known(arg, i)); i++) {
        size_t d = strlen(candidate) < MAX_WORD ? distance(word, candidate) : least;
        if (d < least) {
            least = d;
            nearest = candidate;
        }
    }
    return nearest;
}
