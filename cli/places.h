/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_PLACES_H
#define CLI_PLACES_H

#include "options.h"

/* Fails where two files that a quantization writes, or one that it writes and one that it reads,
   have the same place. `out` is that of the model. */
bool check_places(const struct options *options, const char *out,
                  struct api_problem *problem);

#endif
