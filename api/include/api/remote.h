/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places in remotes, as a request for a job names them: where its model and its
 * calibration data are, and where its results are published.
 */
#ifndef API_REMOTE_H
#define API_REMOTE_H

#include <stddef.h>
#include <stdint.h>

#include "api/problem.h"

#define API_REMOTE_NAME 33 /* [a-z0-9][a-z0-9_-]{0,31} */
#define API_MAX_REF 1023   /* bytes of a ref */
#define API_MAX_PUBLISH 16 /* places that a job's results go to */
#define API_MAX_TAGS 32

/* A place in a remote; `remote` is "" when there is none. */
struct api_place {
    char remote[API_REMOTE_NAME];
    char *ref; /* in the remote's own notation; owned */
};

void api_place_fini(struct api_place *place);

/* Returns whether a text has the form NAME:REF, and is no id of a stored file. */
bool api_place_is_text(const char *text);
/* Parses NAME:REF. BAD_REQUEST at `pointer`, the member that holds the text. */
bool api_place_parse(const char *text, const char *pointer, struct api_place *ret,
                     struct api_problem *problem);
/* Decodes {"remote": NAME, "ref": REF}. */
bool api_place_decode(const char *json, const char *pointer, struct api_place *ret,
                      struct api_problem *problem);

/* --- where the inputs of a job came from ----------------------------------- */

enum api_input { API_INPUT_MODEL, API_INPUT_CALIBRATION, API_N_INPUTS };

/* Encodes a job's member `source`: {"model": {"remote", "ref", "resolved", "digest"} or
   null, "calibration": …}, with nulls for what is known after the fetch. NULL when out of
   memory. */
char *api_source_encode(const struct api_place *model,
                        const struct api_place *calibration);
/* Reads the places of such a text; ref is NULL where an input comes from no remote. */
bool api_source_decode(const char *json, struct api_place ret[API_N_INPUTS],
                       struct api_problem *problem);
/* Returns the text with what a fetch has found for one input. The caller frees it. */
char *api_source_fill(const char *json, enum api_input input, const char *resolved,
                      const char *digest);
/* Reads the ref to which an input was resolved; *ret is NULL when it came from no remote,
   or not from `remote` (NULL: from any). The caller frees it. */
bool api_source_resolved(const char *json, enum api_input input, const char *remote,
                         char **ret, struct api_problem *problem);

/* --- publications ---------------------------------------------------------- */

/* The files of a job that are published, as bits. */
enum api_published {
    API_PUBLISH_MODEL = 1,
    API_PUBLISH_REPORT = 2,
    API_PUBLISH_SPEC = 4,
    API_PUBLISH_SIGNATURE = 8,
    API_PUBLISH_PROVENANCE = 16,
    API_PUBLISH_BOM = 32,
};

struct api_publication {
    struct api_place place;
    char *alias;    /* NULL: none */
    char *tags;     /* JSON text of an object of strings; NULL: none */
    unsigned what;  /* enum api_published */
    bool says_what; /* false: `what` is all that there can be */
};

/* Decodes a job's member `publish`, an array. The caller ends the list with
   api_publications_free(). */
bool api_publications_decode(const char *json, struct api_publication **ret,
                             size_t *ret_n, struct api_problem *problem);
void api_publications_free(struct api_publication **list, size_t n);

/* Receives a figure of a report, or a tag. Returns false when it has set a problem, which ends
   the visits. */
typedef bool (*api_figure_fn)(void *arg, const char *name, double value,
                              struct api_problem *problem);
typedef bool (*api_tag_fn)(void *arg, const char *name, const char *value,
                           struct api_problem *problem);

/* Visits sqnr_db, cosine and top1_agreement of the outputs (with ".OUTPUT" behind, where
   there are several), size_ratio and latency_ratio, as far as the report has them. */
bool api_figures_each(const char *report, size_t len, api_figure_fn visit, void *arg,
                      struct api_problem *problem);
/* Visits the tags of a publication; NULL: none. */
bool api_tags_each(const char *json, api_tag_fn visit, void *arg,
                   struct api_problem *problem);

/* --- events ---------------------------------------------------------------- */

/* Encodes {"type", "timestamp", "data": the job}, the body of an event that goes out. */
char *api_event_encode(const char *type, int64_t timestamp, const char *job);

#define API_OUR_TAGS "qdqd." /* what the names of our tags begin with */

/* A message that came in: a registry has a new version of a model. */
struct api_news {
    char *name, *version;
    bool is_ours; /* its tags say that this service made it */
};
/* Reads a message of MLflow, {"entity": "model_version", "action": "created", "data": …},
   or {"type": "model_version.created", "data": {"name", "version", "tags"}}. *ret_any is
   false for news of something else. */
bool api_news_decode(const char *text, size_t len, struct api_news *ret, bool *ret_any,
                     struct api_problem *problem);
void api_news_fini(struct api_news *news);

/* --- rules ----------------------------------------------------------------- */

#define API_RULE_LABEL "hook" /* the label of a job that names its hook */

/* The rule for new versions of a model: the job that each becomes. In `model` and `publish`,
   which are refs, {name} and {version} stand for those of the version. All texts are
   borrowed. */
struct api_rule {
    const char *hook, *remote;
    const char *model, *publish;
    const char *calibration; /* an id, or REMOTE:REF; "": none */
};

/* Returns whether a list of patterns with commas between, in which * stands for any text,
   has one for the name. */
bool api_rule_matches(const char *models, const char *name);
/* Encodes the request for the job without its spec, a body of POST /v1/jobs. The caller
   frees it; NULL when out of memory. */
char *api_rule_encode(const struct api_rule *rule, const char *name,
                      const char *version);

#endif
