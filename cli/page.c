/* SPDX-License-Identifier: Apache-2.0 */
/* The command report, and the page of the option --html. */
#include "config.h"
#include "commands.h"
#include "files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/files.h"
#include "api/report.h"

enum { MAX_REPORT = 512 * 1024 * 1024 };

/* Writes a text that was made of a report, frees it, and commits the file. NULL: there was no
   memory for it. */
static bool
write_made(char *text, struct output *to, struct api_problem *problem)
{
    if (!text)
        return api_problem_no_memory(problem);
    bool ok = output_write(to, text, problem) && output_commit(to, problem);
    free(text);
    return ok;
}

bool
page_write(const char *json, size_t len, struct output *to, struct api_problem *problem)
{
    return write_made(api_report_html(json, len), to, problem);
}

static bool
read_text(const char *path, char **ret, size_t *ret_len, struct api_problem *problem)
{
    struct stat st;
    int fd;
    if (!file_open(path, &fd, problem))
        return false;
    bool ok = fstat(fd, &st) == 0 && st.st_size <= MAX_REPORT;
    char *text = ok ? malloc((size_t)st.st_size + 1) : NULL;
    ssize_t n = 0;
    size_t len = 0;
    while (text && len < (size_t)st.st_size &&
           (n = read(fd, text + len, (size_t)st.st_size - len)) > 0)
        len += (size_t)n;
    close(fd);
    if (text && len == (size_t)st.st_size) {
        *ret = text;
        *ret_len = len;
        return true;
    }
    free(text);
    if (ok && !text)
        return api_problem_no_memory(problem);
    return api_fail(problem, API_IO,
                    "%s: cannot be read as a report of at most %d bytes", path,
                    MAX_REPORT);
}

bool
report_read(const char *path, char **ret, size_t *ret_len, struct api_problem *problem)
{
    *ret = NULL;
    if (!read_text(path, ret, ret_len, problem))
        return false;
    if (api_is_report(*ret, *ret_len))
        return true;
    free(*ret);
    *ret = NULL;
    return api_fail(problem, API_INVALID_JSON,
                    "%s: not a report; qdq quantize --report FILE writes one", path);
}

/* Fails where the page would replace the report, by whatever name. */
static bool
check_report_place(const char *report, const char *path, struct api_problem *problem)
{
    int fd;
    if (!file_open(report, &fd, problem))
        return false;
    bool is_own = file_is(fd, path);
    close(fd);
    return !is_own ||
           api_fail(problem, API_IO,
                    "%s is the report itself, so it is not overwritten", path);
}

bool
command_report(const struct options *options, struct api_problem *problem)
{
    if (options->url && access(options->model, F_OK) != 0)
        return service_report(options, problem);
    struct output out = OUTPUT_NONE;
    char *text = NULL,
         *own = options->out ? NULL : path_ending_in(options->model, ".json", ".html");
    const char *path = options->out ? options->out : own;
    size_t len = 0;
    bool ok = path || api_problem_no_memory(problem);
    ok = ok && report_read(options->model, &text, &len, problem);
    bool as_text = ok && strcmp(report_form(path), "text/markdown") == 0;
    ok = ok && check_report_place(options->model, path, problem) &&
         output_open(path, &out, problem) &&
         write_made(as_text ? api_report_markdown(text, len)
                            : api_report_html(text, len),
                    &out, problem);
    if (ok)
        printf("%s\n", path);
    output_close(&out);
    free(text);
    free(own);
    return ok;
}
