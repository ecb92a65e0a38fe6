/* SPDX-License-Identifier: Apache-2.0 */
/* genai_config.json, by which ONNX Runtime GenAI opens a folder with a decoder. */
#ifndef API_GENAI_H
#define API_GENAI_H

#include <stddef.h>
#include <stdint.h>

#include "api/problem.h"
#include "qdq/report.h"

#define API_GENAI_CONFIG "genai_config.json"

/* Returns the file name of the decoder, which the caller frees. NULL with a problem that names the
   member. */
char *api_genai_model(const char *text, size_t len, struct api_problem *problem);

/* Returns how many tokens the model takes; 0 where the text does not say it. */
int64_t api_genai_context(const char *text, size_t len);

/* Returns the text with another file name of the decoder, which the caller frees. NULL with a
   problem. */
char *api_genai_rename(const char *text, size_t len, const char *name,
                       struct api_problem *problem);

/* Returns the text of a file of scales, as the builder of ONNX Runtime GenAI takes it by its option
   kv_cache_scale_file, which the caller frees; NULL when out of memory. */
char *api_genai_scales(const struct qdq_kv_cache *kv);

#endif
