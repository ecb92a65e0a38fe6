/* SPDX-License-Identifier: Apache-2.0 */
/* Files of other kinds that are sent in the place of a model, by the bytes that they begin with. */
#ifndef QDQI_FILES_MODEL_OTHER_FILES_H
#define QDQI_FILES_MODEL_OTHER_FILES_H

#include <stddef.h>

/* Returns what the file is, and what to do about it, for the end of a message; NULL where nothing is
   known of it. */
const char *qdqi_other_file(const void *bytes, size_t size);

#endif
