/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results of the engine as JSON, in the shapes of api/openapi.yaml. Every call returns
 * text that the caller frees, or NULL when out of memory. Numbers read back to the same
 * value and do not depend on the locale; a number that is not finite becomes null.
 */
#ifndef API_REPORT_H
#define API_REPORT_H

#include "api/problem.h"
#include "qdq.h"

/* The member of a report with what calibration observed. A report without any lacks it. */
#define API_REPORT_HISTOGRAMS "histograms"

char *api_report_encode(const struct qdq_report *report);
/* Returns whether a text of api_report_encode() begins with histograms. */
bool api_report_has_histograms(const char *json, size_t len);
/* Returns what stands behind the first brace, and behind the histograms, of a text that is not
   empty. */
const char *api_report_body(const char *json, size_t len);
/* The beginning of a report whose histograms are asked for and are not there. */
#define API_REPORT_NULL_HISTOGRAMS "{\"" API_REPORT_HISTOGRAMS "\":null,"
/* Return the same report without histograms, and with null in their place. NULL when out of
   memory. */
char *api_report_without_histograms(const char *json, size_t len);
char *api_report_null_histograms(const char *json, size_t len);
/*
 * Returns the text of api_report_encode() as Markdown for people. Names are escaped, so
 * they appear unchanged whatever characters they have. Returns NULL also for a text
 * that is not JSON.
 */
char *api_report_markdown(const char *json, size_t len);
/*
 * Returns the text of api_report_encode() as one page of HTML that needs no other file. Names
 * are escaped. Returns NULL also for a text that is not JSON.
 */
char *api_report_html(const char *json, size_t len);
/* Returns whether a text is a report: a JSON object with the members `schema` and `summary`. */
bool api_is_report(const char *json, size_t len);
/* Writes the content security policy of these pages, which allows their own style and script
   by hash. Returns false when out of memory, or when `size` is too small. */
bool api_html_policy(char *to, size_t size);
/*
 * Returns whether the model reaches the bounds of the spec's `accept`. If not, sets the
 * problem ACCURACY, which names the first output, figure and bound that were missed,
 * and the number of further ones.
 */
bool api_report_accepted(const struct qdq_report *report, struct api_problem *problem);
/* Encodes the report's `summary` with its `gates`, unless these are more than 64, for the record of a
   job. */
char *api_summary_encode(const struct qdq_report *report);
/* Returns the verdict in the text of api_summary_encode(): "good", "fair" or "poor". NULL
   when there is none, also for NULL and for the summary of an earlier version. */
const char *api_summary_verdict(const char *summary);
/* Encodes {"summary","layers","warnings"}, the result of a dry run. */
char *api_plan_encode(const struct qdq_plan_view *plan,
                      const struct qdq_model_info *model);
char *api_model_info_encode(const struct qdq_model_info *model,
                            const struct qdq_plan_view *plan);
/* Encodes the members `samples` and `inputs` of a dataset:
   {"samples":n,"inputs":[…]}. */
char *api_dataset_info_encode(const struct qdq_dataset_info *dataset);

/* Holds what was understood of a dataset: the arrays, what they or the inputs of a model hold, the
   samples of each label, and the spec, whose preprocess is told. */
struct api_data {
    const struct qdq_dataset_info *info;
    bool has_model; /* the facts are those of a model's inputs */
    const struct qdq_array_facts *facts;
    size_t n_facts;
    const int64_t *counts;
    size_t n_counts;
    const struct qdq_spec *spec;
};
char *api_data_encode(const struct api_data *data);
/* Encode the bodies of GET /v1/layers and GET /v1/cases. A NULL catalog stands for
   the library's alone. */
char *api_layers_encode(const struct qdq_catalog *catalog);
char *api_cases_encode(const struct qdq_catalog *catalog);
/* Encodes the body of GET /v1/targets: the rows of qdq/targets.h, with the defaults
   of a spec for that target. */
char *api_targets_encode(void);

/*
 * Return the first of the programs at the end of a report, with the path of the result in it, which
 * the caller frees, and the name of the target that it is for. NULL where there is none, where the
 * path cannot stand in it, or when out of memory.
 */
enum { API_TARGET_SIZE = 32 };
char *api_deploy_text(const struct qdq_report *report, const char *path,
                      char target[API_TARGET_SIZE]);
struct api_document;
char *api_document_deploy(const struct api_document *report, const char *path,
                          char target[API_TARGET_SIZE]);

#endif
