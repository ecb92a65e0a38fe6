/* SPDX-License-Identifier: Apache-2.0 */
/* The columns of tables that a report has as a page and as Markdown. */
#ifndef API_DOCUMENTS_TABLES_H
#define API_DOCUMENTS_TABLES_H

#include "documents/html.h"

static const struct html_column html_gates[] = {
    {"output", "output", HTML_NAME},  {"bound", "name", HTML_TEXT},
    {"asked", "wanted", HTML_NUMBER}, {"found", "measured", HTML_NUMBER},
    {"met", "met", HTML_TEXT},
};
static const struct html_column html_outputs[] = {
    {"output", "name", HTML_NAME},
    {"SQNR (dB)", "sqnr_db", HTML_NUMBER},
    {"cosine", "cosine", HTML_NUMBER},
    {"largest error", "max_abs_error", HTML_NUMBER},
    {"same top 1", "top1_agreement", HTML_NUMBER},
};
static const struct html_column html_slices[] = {
    {"output", "output", HTML_NAME}, {"slice", "name", HTML_NAME},
    {"axis", "axis", HTML_NUMBER},   {"from", "begin", HTML_NUMBER},
    {"to", "end", HTML_NUMBER},      {"SQNR (dB)", "sqnr_db", HTML_NUMBER},
    {"share", "share", HTML_NUMBER}, {"left out", "left_out", HTML_TEXT},
};
static const struct html_column html_samples[] = {
    {"output", "output", HTML_NAME},
    {"worst (dB)", "worst_db", HTML_NUMBER},
    {"5th percentile (dB)", "p5_db", HTML_NUMBER},
    {"median (dB)", "median_db", HTML_NUMBER},
    {"others have (dB)", "confidence_db", HTML_NUMBER},
    {"with confidence", "level", HTML_NUMBER},
};
static const struct html_column html_task[] = {
    {"task", "kind", HTML_TEXT},
    {"float", "float", HTML_NUMBER},
    {"quantized", "quantized", HTML_NUMBER},
    {"drop", "drop", HTML_NUMBER},
    {"samples", "samples", HTML_NUMBER},
};
static const struct html_column html_unjudged[] = {
    {"", "kind", HTML_NAME},
    {"name", "name", HTML_NAME},
    {"reason", "reason", HTML_NAME},
};
static const struct html_column html_costs[] = {
    {"layer", "name", HTML_NAME},
    {"SQNR (dB) with it alone", "sqnr_db_alone", HTML_BAR},
    {"gain (dB) without it", "gain_db", HTML_BAR},
};
static const struct html_column html_frontier[] = {
    {"time, of the model's", "latency_ratio", HTML_NUMBER},
    {"SQNR (dB)", "sqnr_db", HTML_BAR},
    {"size, of the model's", "size_ratio", HTML_NUMBER},
};
static const struct html_column html_operators[] = {
    {"operator", "op", HTML_NAME},
    {"float (ms)", "float_ms", HTML_SHARED},
    {"quantized (ms)", "quantized_ms", HTML_SHARED},
};
static const struct html_column html_stages[] = {
    {"stage", "name", HTML_TEXT},
    {"seconds", "seconds", HTML_BAR},
    {"threads", "threads", HTML_NUMBER},
    {"data", "bytes", HTML_BYTES},
    {"peak memory", "peak_bytes", HTML_BYTES},
};

#endif
