/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folder with the files of a model. ONNX Runtime copies weights that it is given as bytes, and
 * maps those that it finds in files itself.
 */
#ifndef QDQI_RUN_SESSION_DATA_FOLDER_H
#define QDQI_RUN_SESSION_DATA_FOLDER_H

#include "files/model/mapped.h"
#include "ground/base/arena.h"

/*
 * Returns the path of the folder and the files' names in it, by file; NULL when there is none: the
 * files have no names in one folder, or this process may not open them by these, or memory is
 * short. The names lead to the same files that are open.
 */
const char *qdqi_data_folder(const struct qdqi_mapped *files, size_t n,
                             struct qdqi_arena *arena,
                             const char *const **ret_locations);

#endif
