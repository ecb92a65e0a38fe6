/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A folder with a decoder, as ONNX Runtime GenAI opens it: genai_config.json names the model; a
 * tokenizer's files lie beside it. A command that gets the folder works on the model, and the
 * folder that it writes has all other files, too. All calls return false with a problem.
 */
#ifndef CLI_FOLDER_H
#define CLI_FOLDER_H

#include "commands.h"

struct folder {
    const char *source; /* NULL: the command has a model's file */
    char *out;          /* the folder that is written; NULL: none */
    char *model_path, *out_path;
    char *config; /* the text of genai_config.json */
    size_t config_len;
};

/* Returns whether a path is that of a folder. */
bool is_folder(const char *path);

/*
 * Where options->model is a folder, sets the model's path in *own, a copy of the options; and, where
 * `writes`, makes the folder of the result (options->out, or the folder's name with ".int8") and
 * sets own->out. Without an option for the spec, *own has that of a decoder. Else *own is that copy
 * alone.
 */
bool folder_open(const struct options *options, bool writes, struct folder *ret,
                 struct options *own, struct api_problem *problem);

/* Copies the other files and writes genai_config.json, when the model is there. Does nothing
   without a folder. */
bool folder_finish(const struct folder *folder, struct api_problem *problem);

void folder_close(struct folder *folder);

#endif
