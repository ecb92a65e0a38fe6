/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The spec of a command: the file of --spec with the members that other options give. The result
 * is the same as with a file that has them all. Calls return false with a problem that names the
 * file or the option. They are for one thread only.
 */
#ifndef CLI_SPEC_H
#define CLI_SPEC_H

#include "api/spec.h"
#include "api/targets.h"
#include "commands.h"

/* Returns the text, which the caller frees; *ret is NULL where no option gives one. The text of a
   file is checked for being an object; its members are not. */
bool spec_text(const struct options *options, char **ret, struct api_problem *problem);

/* Reads and decodes the spec; without options it is the default one. The caller frees it with
   api_spec_free(). */
bool spec_read(const struct options *options, struct api_spec **ret,
               struct api_problem *problem);

/*
 * Reads the spec and takes it apart where it has several targets. *text, which the caller frees, is
 * the whole spec; NULL where no option gives one. *ret is freed with api_target_specs_fini(), also
 * where this fails.
 */
bool spec_split(const struct options *options, char **text, size_t *len,
                struct api_target_specs *ret, struct api_problem *problem);

#endif
