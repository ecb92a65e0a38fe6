/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of a page of HTML: its frame, tables and drawings. The page needs no script to be
 * read. Each figure of a drawing also stands in a table.
 */
#ifndef API_DOCUMENTS_HTML_H
#define API_DOCUMENTS_HTML_H

#include "base/markup.h"

enum html_kind {
    HTML_TEXT,
    HTML_NAME,   /* a name that somebody chose, in the font of code */
    HTML_NUMBER, /* aligned to the right */
    HTML_BAR, /* a number and a bar as long as its share of the largest of its column */
    HTML_SHARED, /* the same, of the largest of all columns of this kind */
    HTML_BYTES,  /* a number of bytes, as "1.28 MB" */
    HTML_STEPS,  /* a drawing of an array of numbers, from left to right, from 0 up */
};

struct html_column {
    const char *title, *member;
    enum html_kind kind;
};

/* The two arguments that stand for columns. */
#define HTML_COLUMNS(columns) columns, sizeof(columns) / sizeof *(columns)

/* Returns whether cells of that kind are aligned to the right. */
static inline bool
html_is_number(enum html_kind kind)
{
    return kind != HTML_TEXT && kind != HTML_NAME && kind != HTML_STEPS;
}

static inline bool
html_has_bar(enum html_kind kind)
{
    return kind == HTML_BAR || kind == HTML_SHARED;
}

enum { HTML_HASH_SIZE = 45 }; /* a SHA-256 in base64 */

/* Writes the SHA-256 of a text in base64, as a policy has it. Returns false when out of
   memory. */
bool html_hash(const char *text, char ret[HTML_HASH_SIZE]);
/* Writes the hashes of the style and the script that html_begin() and html_end() add. */
bool html_hashes(char style_hash[HTML_HASH_SIZE], char script_hash[HTML_HASH_SIZE]);

/* Begins and ends the page. `title` is a text of a stranger. */
void html_begin(struct api_markup *page, const char *title);
void html_end(struct api_markup *page);

void html_begin_section(struct api_markup *page, const char *id, const char *title);
void html_end_section(struct api_markup *page);
/* Adds a paragraph of the program. */
void html_note(struct api_markup *page, const char *text);

/* Begin and end a table that can be sorted, and filtered where `filter` says so. */
void html_begin_table(struct api_markup *page, const char *label,
                      const struct html_column *columns, size_t n, bool filter);
void html_end_table(struct api_markup *page);
/* Adds a cell. `largest` is what the longest bar stands for. */
void html_cell(struct api_markup *page, enum html_kind kind, const json_t *value,
               double largest);
/* The member of a row that a point of a drawing leads to: a number of its own in the page. */
#define HTML_ANCHOR "anchor"

/* Adds a table whose rows are those of an array. */
void html_table(struct api_markup *page, const char *label, const json_t *rows,
                const struct html_column *columns, size_t n);
/* Adds a section with such a table. Adds nothing for an empty array. */
void html_table_section(struct api_markup *page, const char *id, const char *title,
                        const json_t *rows, const struct html_column *columns,
                        size_t n);

/* Returns the largest number of that member in the rows, at least 0. */
double html_largest(const json_t *rows, const char *member);

/* Adds a drawing of the numbers of a member, row by row from left to right. `name` is the
   member that a point is called by, `x` and `y` title the axes. */
void html_curve(struct api_markup *page, const json_t *rows, const char *member,
                const char *name, const char *x, const char *y);
/* Adds a drawing of points, one for each row that has both numbers, at the member `x` to the right and
   `y` upwards, and smaller ones with a line through them for the rows of a row's member `frontier`.
   `name` is the member that a point is called by. A point of a row with an anchor leads to its row in a
   table. Adds a sentence where there is none. */
void html_points(struct api_markup *page, const json_t *rows, const char *x,
                 const char *y, const char *name, const char *x_title,
                 const char *y_title);
/* Adds a drawing of pairs of numbers, the first one to the right and the second one upwards, and the line on
   which both are equal. */
void html_pairs(struct api_markup *page, const json_t *pairs, const char *x,
                const char *y);
/* Adds a drawing of the range from min to max on the axis from `low` to `high`. */
void html_range(struct api_markup *page, double min, double max, double low,
                double high);

/* Adds the section of the chosen ranges of a report, on the histograms of their tensors where the
   report has them. */
void html_ranges(struct api_markup *page, const json_t *report);

/* Adds the kernels of several nodes, and how many layers are integers by them, where the runtime
   names the nodes of its kernels. */
void html_fused(struct api_markup *page, const json_t *report);

/* Adds the graph of a report as a drawing, from top to bottom in layers. Nodes with pairs are
   filled. Adds nothing for a report without edges, and a sentence for a large graph. */
void html_graph(struct api_markup *page, const json_t *report);

/* Adds the table of layers, with the loss and the time of each where the report has them, and without
   nodes that compute constants alone. */
void html_layers(struct api_markup *page, const json_t *report);

#endif
