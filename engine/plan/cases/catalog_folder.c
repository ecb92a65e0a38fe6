/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An operator's folder of cases. It is read in two steps: first all files are read, then all scripts
 * are run, because one script may use another with library().
 */
#include "config.h"
#include "plan/cases/catalog_inner.h"

#include "plan/cases/entries.h"
#include "plan/cases/libs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MAX_FILES = 256,
    MAX_NAME = 64,      /* length of a case's name, as in a spec */
    MAX_SUPPORT = 1024, /* rows of layer support in one file */
};

#define FROM_OPERATOR "operator"

static int
compare_files(const void *a, const void *b)
{
    return strcmp(((const struct qdqi_case_file *)a)->info.name,
                  ((const struct qdqi_case_file *)b)->info.name);
}

/* --- reading the folder --------------------------------------------------- */

static enum qdq_code
io_error(struct qdq_error *err, const char *path)
{
    return qdq_error_set(err, QDQ_IO, QDQ_AT_NOTHING, NULL, "%.300s: %s", path,
                         strerror(errno));
}

static bool
is_script(const char *entry)
{
    size_t len = strlen(entry);
    return *entry != '.' && len > strlen(QDQI_CASE_SUFFIX) &&
           strcmp(entry + len - strlen(QDQI_CASE_SUFFIX), QDQI_CASE_SUFFIX) == 0;
}

/* Returns whether the name of a file can be the name of a case: it appears in specs,
   reasons and errors. */
static bool
is_name(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
    return strlen(name) <= MAX_NAME && name[strspn(name, letters)] == '\0';
}

/* Reads a whole open file into `text`, which has room for QDQI_MAX_SOURCE + 1 bytes:
   one more than a script may have, so that a longer file is noticed. */
static enum qdq_code
read_all(int fd, struct qdqi_case_file *file, char *text, size_t *ret_n,
         struct qdq_error *err)
{
    size_t n = 0;
    ssize_t got;
    do {
        got = read(fd, text + n, QDQI_MAX_SOURCE + 1 - n);
        n += got > 0 ? (size_t)got : 0;
    } while (got > 0 || (got < 0 && errno == EINTR));
    if (got < 0)
        return io_error(err, file->path);
    if (n > QDQI_MAX_SOURCE)
        file->fault = "the script is longer than 256 KiB";
    else if (memchr(text, 0, n))
        file->fault = "the script holds a zero byte";
    *ret_n = n;
    return QDQ_OK;
}

/* Reads a regular file into file->info.lua. For any other kind of file it leaves
   that NULL. */
static enum qdq_code
read_file(struct qdqi_arena *arena, struct qdqi_case_file *file, char *text,
          struct qdq_error *err)
{
    struct stat st;
    size_t n = 0;
    int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return io_error(err, file->path);
    enum qdq_code code = fstat(fd, &st) < 0 ? io_error(err, file->path) : QDQ_OK;
    bool is_file = !code && S_ISREG(st.st_mode);
    if (is_file)
        code = read_all(fd, file, text, &n, err);
    close(fd);
    if (code || !is_file)
        return code;
    /* The text of an unreadable script raises its error when a job names the case. */
    file->info.lua = file->fault
                         ? qdqi_arena_printf(arena, "error('%s', 0)", file->fault)
                         : qdqi_arena_strndup(arena, text, n);
    return file->info.lua ? QDQ_OK : qdqi_no_memory(err);
}

/* Adds one entry of the folder if it is a script. */
static enum qdq_code
add_entry(struct qdq_catalog *c, const char *folder, const char *entry, char *text,
          struct qdq_error *err)
{
    if (!is_script(entry))
        return QDQ_OK;
    if (c->n_files == MAX_FILES)
        return qdq_error_set(err, QDQ_LIMIT_EXCEEDED, QDQ_AT_NOTHING, NULL,
                             "%.300s: more than %d scripts", folder, MAX_FILES);
    struct qdqi_case_file *file = &c->files[c->n_files];
    const char *name =
        qdqi_arena_strndup(c->arena, entry, strlen(entry) - strlen(QDQI_CASE_SUFFIX));
    file->path = qdqi_arena_printf(c->arena, "%s/%s", folder, entry);
    if (!name || !file->path)
        return qdqi_no_memory(err);
    file->info =
        (struct qdq_case_info){.name = name, .info = "", .source = FROM_OPERATOR};
    enum qdq_code code = read_file(c->arena, file, text, err);
    if (!is_name(name))
        file->fault = "a script's name has at most 64 of letters, digits, _ - and .";
    if (!code && file->info.lua)
        c->n_files++;
    return code;
}

static enum qdq_code
read_entries(struct qdq_catalog *c, const char *folder, DIR *dir, char *text,
             struct qdq_error *err)
{
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(dir);
        if (!entry)
            return errno ? io_error(err, folder) : QDQ_OK;
        enum qdq_code code = add_entry(c, folder, entry->d_name, text, err);
        if (code)
            return code;
    }
}

static enum qdq_code
read_folder(struct qdq_catalog *c, const char *folder, struct qdq_error *err)
{
    DIR *dir = opendir(folder);
    if (!dir)
        return errno == ENOENT   ? QDQ_OK
               : errno == ENOMEM ? qdqi_no_memory(err)
                                 : io_error(err, folder);
    char *text = malloc(QDQI_MAX_SOURCE + 1);
    c->files = qdqi_arena_array(c->arena, MAX_FILES, sizeof *c->files);
    enum qdq_code code = text && c->files ? read_entries(c, folder, dir, text, err)
                                          : qdqi_no_memory(err);
    closedir(dir);
    free(text);
    if (c->files)
        qsort(c->files, c->n_files, sizeof *c->files, compare_files);
    return code;
}

/* --- running the scripts ------------------------------------------------- */

/* Arguments and results of try_script(). */
struct trial {
    struct qdqi_case_file *file;
    struct qdqi_script_host host;
    struct qdqi_case_file found; /* complete only if the script raises no error */
};

/* Runs a script and reads its table. Called inside the sandbox. */
static int
try_script(lua_State *L)
{
    struct trial *trial = lua_touserdata(L, 1);
    struct qdqi_case_file *found = &trial->found;
    qdqi_script_open(L);
    qdqi_script_push(L, found->info.name, found->info.lua);
    qdqi_script_push_case(L);
    found->is_case = !lua_isnil(L, -1);
    lua_pop(L, 1);
    found->info.info = qdqi_script_info(L);
    lua_pushliteral(L, "layer_support");
    int type = lua_rawget(L, -2);
    if (type == LUA_TTABLE)
        found->support = qdqi_read_support(L, MAX_SUPPORT, &found->n_support);
    else if (type != LUA_TNIL)
        luaL_error(L, "'layer_support' is a %s, not a list", lua_typename(L, type));
    else if (!found->is_case)
        luaL_error(L, "the script's table has neither 'case' nor 'layer_support'");
    return 0;
}

/* Returns the name of a file in errors: its path, or only its last part if the path
   would leave too little room for the message. */
static const char *
label_of(const struct qdqi_case_file *file)
{
    return strlen(file->path) <= 160 ? file->path : strrchr(file->path, '/') + 1;
}

/* Runs the script of a file. CASE_FAILED for a broken script. */
static enum qdq_code
try_file(struct qdq_catalog *c, struct qdqi_case_file *file, struct qdq_error *err)
{
    struct trial trial = {.host = {.catalog = c, .arena = c->arena}, .found = *file};
    struct qdqi_sandbox *sandbox = NULL;
    if (file->fault)
        return qdq_error_set(err, QDQ_CASE_FAILED, QDQ_AT_NOTHING, NULL, "%s: %s",
                             label_of(file), file->fault);
    enum qdq_code code = qdqi_sandbox_new(label_of(file), NULL, 0, NULL, qdqi_libs_open,
                                          &trial.host, &sandbox, err);
    if (!code)
        code = qdqi_sandbox_run(sandbox, try_script, &trial, err);
    qdqi_sandbox_free(&sandbox);
    if (!code)
        *file = trial.found;
    return code;
}

static enum qdq_code
try_files(struct qdq_catalog *c, struct qdq_error *err)
{
    for (size_t i = 0; i < c->n_files; i++) {
        struct qdq_error fault = {0};
        enum qdq_code code = try_file(c, &c->files[i], &fault);
        if (code && code != QDQ_CASE_FAILED)
            return qdq_error_set(err, code, fault.kind, fault.where, "%s", fault.text);
        if (code && !c->broken.code)
            c->broken = fault;
    }
    return QDQ_OK;
}

/* --- opening and freeing ------------------------------------------------- */

static enum qdq_code
fill(struct qdq_catalog *c, const char *folder, struct qdq_error *err)
{
    enum qdq_code code;
    if ((code = read_folder(c, folder, err)))
        return code;
    /* While the scripts are tried, each of them counts as a case, so that the others
       can use it with library(). */
    for (size_t i = 0; i < c->n_files; i++)
        c->files[i].is_case = is_name(c->files[i].info.name);
    if ((code = qdqi_catalog_list_cases(c, err)) || (code = try_files(c, err)) ||
        (code = qdqi_catalog_list_cases(c, err)))
        return code;
    return qdqi_catalog_list_support(c, err);
}

enum qdq_code
qdq_catalog_open(const char *folder, struct qdq_catalog **ret, struct qdq_error *err)
{
    struct qdqi_arena *arena = qdqi_arena_new();
    struct qdq_catalog *c = arena ? qdqi_arena_alloc(arena, sizeof *c) : NULL;
    if (!c) {
        qdqi_arena_free(&arena);
        return qdqi_no_memory(err);
    }
    c->arena = arena;
    enum qdq_code code = folder ? fill(c, folder, err) : QDQ_OK;
    if (code) {
        qdq_catalog_free(&c);
        return code;
    }
    *ret = c;
    return QDQ_OK;
}
