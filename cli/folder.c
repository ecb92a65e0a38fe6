/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/genai.h"
#include "external.h"
#include "files.h"

#define MODEL "model.onnx"

bool
is_folder(const char *path)
{
    struct stat st;
    return path && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Returns "FOLDER/NAME", which the caller frees; NULL when out of memory. */
static char *
join(const char *folder, const char *name)
{
    char *path;
    return asprintf(&path, "%s/%s", folder, name) < 0 ? NULL : path;
}

/* --- before the work ------------------------------------------------------ */

static bool
read_config(struct folder *f, struct api_problem *problem)
{
    char *path = join(f->source, API_GENAI_CONFIG);
    bool ok = path || api_problem_no_memory(problem);
    if (ok && access(path, F_OK) != 0)
        ok = api_fail(problem, API_IO,
                      "%s is a folder without " API_GENAI_CONFIG
                      "; name the model's file in it",
                      f->source);
    ok = ok && file_read(path, &f->config, &f->config_len, problem);
    free(path);
    return ok;
}

static bool
find_model(struct folder *f, struct api_problem *problem)
{
    char *name = api_genai_model(f->config, f->config_len, problem);
    if (!name)
        return false;
    f->model_path = join(f->source, name);
    free(name);
    return f->model_path || api_problem_no_memory(problem);
}

static bool
is_same_folder(const char *a, const char *b)
{
    struct stat of_a, of_b;
    return stat(a, &of_a) == 0 && stat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
           of_a.st_ino == of_b.st_ino;
}

/* The spec of a decoder for which no option says anything of one: 4 bits in blocks, rounded by
   second moments, and a head of 8 bits, whose integers the embeddings share. */
static const char decoder_spec[] =
    "{\"target\": \"onnxruntime\", \"activations\": \"none\", \"recipe\": \"none\", "
    "\"weights\": {\"dtype\": \"uint4\", \"granularity\": {\"block\": 32}, "
    "\"rounding\": \"gptq\"}, \"layers\": [{\"name\": \"@logits\", \"weights\": "
    "{\"dtype\": \"uint8\", \"granularity\": {\"block\": 32}}}], \"on_unmatched\": "
    "\"warn\", \"output\": {\"decoder\": \"matmulnbits\"}}";

static bool
has_spec(const struct options *options)
{
    return options->spec || options->spec_text || options->target || options->recipe ||
           options->set.n > 0;
}

static bool
ends_in(const char *name, const char *ending)
{
    const size_t n = strlen(name), m = strlen(ending);
    return n >= m && strcmp(name + n - m, ending) == 0;
}

/* Makes the folder of the result, unless it is there. */
static bool
make_out(const struct options *options, struct folder *f, struct api_problem *problem)
{
    size_t n = strlen(f->source);
    while (n > 1 && f->source[n - 1] == '/')
        n--;
    if (options->out)
        f->out = strdup(options->out);
    else if (asprintf(&f->out, "%.*s.int8", (int)n, f->source) < 0)
        f->out = NULL;
    f->out_path = f->out ? join(f->out, MODEL) : NULL;
    if (!f->out_path)
        return api_problem_no_memory(problem);
    if (mkdir(f->out, 0777) != 0 && (errno != EEXIST || !is_folder(f->out)))
        return errno == EEXIST ? api_fail(problem, API_IO,
                                          "%s is no folder, and the model is one, of "
                                          "which a folder is made",
                                          f->out)
                               : file_fail(f->out, problem);
    return !is_same_folder(f->out, f->source) ||
           api_fail(problem, API_IO, "%s is read, so nothing is written to it", f->out);
}

bool
folder_open(const struct options *options, bool writes, struct folder *ret,
            struct options *own, struct api_problem *problem)
{
    *ret = (struct folder){0};
    *own = *options;
    if (!is_folder(options->model))
        return true;
    ret->source = options->model;
    if (!read_config(ret, problem) || !find_model(ret, problem) ||
        (writes && !make_out(options, ret, problem)))
        return false;
    own->model = ret->model_path;
    if (!has_spec(options))
        own->spec_text = decoder_spec;
    own->out = writes ? ret->out_path : options->out;
    return true;
}

/* --- after it --------------------------------------------------------------- */

/* Returns whether a file of the folder belongs to the result as it is: not what is made anew, nor
   other models, their data or hidden files. */
static bool
goes_along(const char *name)
{
    return *name != '.' && strcmp(name, API_GENAI_CONFIG) != 0 &&
           !ends_in(name, ".onnx") && !ends_in(name, ".onnx.data") &&
           !ends_in(name, ".onnx_data");
}

static bool
copy_file(const char *from, const char *to, struct api_problem *problem)
{
    struct output output = OUTPUT_NONE;
    int fd = -1;
    bool ok = file_open(from, &fd, problem) && output_open(to, &output, problem) &&
              output_copy(&output, fd, problem) && output_commit(&output, problem);
    output_close(&output);
    if (fd >= 0)
        close(fd);
    return ok;
}

/* Copies a file of the folder, unless it is of another kind or the data of the model. */
static bool
take_along(const struct folder *f, const struct external *data, const char *name,
           struct api_problem *problem)
{
    struct stat st;
    char *from = join(f->source, name), *to = join(f->out, name);
    bool ok = (from && to) || api_problem_no_memory(problem);
    bool wanted = ok && goes_along(name) && stat(from, &st) == 0 && S_ISREG(st.st_mode);
    for (size_t i = 0; i < data->n && wanted; i++)
        wanted = !file_is(data->files[i].fd, from);
    ok = ok && (!wanted || copy_file(from, to, problem));
    free(from);
    free(to);
    return ok;
}

static bool
copy_files(const struct folder *f, struct api_problem *problem)
{
    struct external data = {.n = 0};
    int model = -1;
    bool ok = file_open(f->model_path, &model, problem) &&
              external_open(model, f->model_path, &data, problem);
    DIR *dir = ok ? opendir(f->source) : NULL;
    if (ok && !dir)
        ok = file_fail(f->source, problem);
    for (struct dirent *entry; ok && (entry = readdir(dir));)
        ok = take_along(f, &data, entry->d_name, problem);
    if (dir)
        closedir(dir);
    external_close(&data);
    if (model >= 0)
        close(model);
    return ok;
}

bool
folder_finish(const struct folder *f, struct api_problem *problem)
{
    struct output output = OUTPUT_NONE;
    if (!f->out)
        return true;
    char *text = api_genai_rename(f->config, f->config_len, MODEL, problem);
    char *path = join(f->out, API_GENAI_CONFIG);
    bool ok = text && (path || api_problem_no_memory(problem)) &&
              copy_files(f, problem) && output_open(path, &output, problem) &&
              output_write(&output, text, problem) &&
              output_write(&output, "\n", problem) && output_commit(&output, problem);
    output_close(&output);
    free(text);
    free(path);
    return ok;
}

void
folder_close(struct folder *f)
{
    free(f->out);
    free(f->model_path);
    free(f->out_path);
    free(f->config);
    *f = (struct folder){0};
}
