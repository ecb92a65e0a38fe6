/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "plan/cases/sandbox.h"

#include "ground/base/arena.h"

#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    /* instructions between two calls of the hook; they take at most some ms */
    HOOK_EVERY = 100,
    MAX_SHOWN = 40,   /* bytes of a script's name that appear in Lua's own messages */
    MAX_REFUSED = 16, /* emergency collections until memory counts as used up */
    PIECE = 4096, /* bytes of source that are parsed between two checks of the time */
    CLOCK_EVERY = 1 << 20, /* bytes that are allocated between two checks of the time */
    COLLECT_FROM = 8 << 20, /* bytes in use from which on garbage is collected */
};

/* processor time of one script, in nanoseconds */
#define MAX_TIME ((int64_t)QDQI_MAX_SECONDS * 1000000000)

/* Each budget is a base and an amount for each node of the model. */
static const uint64_t base_instructions = 10 * 1000 * 1000, node_instructions = 1000;
static const size_t base_memory = 64 << 20, node_memory = 256;
static const size_t base_volume = 512 << 20, node_volume = 4096;

/* The reason why a script has ended. */
enum end { RUNNING, END_INSTRUCTIONS, END_MEMORY, END_STRING, END_TIME, END_NO_MEMORY };

/* A line of one of the scripts. Line 0 means unknown. */
struct place {
    int script, line;
};

/* A script: its name, and its name in Lua's messages. */
struct script {
    char shown[MAX_SHOWN + 1];
    const char *name;
};

struct qdqi_sandbox {
    lua_State *L;
    const char *label, *pointer;
    void *host;
    struct script scripts[QDQI_MAX_SCRIPTS];
    int n_scripts;
    uint64_t instructions, max_instructions;
    size_t memory, max_memory; /* bytes in use */
    /* whether garbage is collected; most scripts end before that pays off */
    bool collects;
    size_t volume, max_volume; /* bytes allocated in total */
    struct timespec seen;      /* time of the last check */
    int64_t started;           /* processor time at the start, in nanoseconds */
    int64_t *left;             /* as given to qdqi_sandbox_new() */
    int64_t may_take;          /* processor time until the script ends, likewise */
    int n_refused;
    enum end refusal;     /* why the allocator last refused memory */
    struct place refused; /* place of that refusal */
    bool exhausted;       /* whether malloc() failed; the run then ends in NO_MEMORY */
    enum end end;         /* once set, the script does not run any further */
    struct place ended;   /* place where the script ended */
    struct place innermost; /* place of the error that is being raised */
    struct place blamed; /* place for errors that are raised outside of all scripts */
};

static struct qdqi_sandbox *
sandbox_of(lua_State *L)
{
    return *(struct qdqi_sandbox **)lua_getextraspace(L);
}

void *
qdqi_sandbox_host(lua_State *L)
{
    return sandbox_of(L)->host;
}

/* --- where the script is -------------------------------------------------- */

/* Returns the index of the script with this name in Lua's messages, or -1. */
static int
find_script(const struct qdqi_sandbox *s, const char *shown, size_t len)
{
    for (int i = 0; i < s->n_scripts; i++)
        if (strlen(s->scripts[i].shown) == len &&
            memcmp(s->scripts[i].shown, shown, len) == 0)
            return i;
    return -1;
}

/* Returns the line that is running. It only reads the call stack, so the allocator
   can call it. */
static struct place
place_now(const struct qdqi_sandbox *s)
{
    lua_Debug ar;
    for (int level = 0; s->L && lua_getstack(s->L, level, &ar); level++) {
        lua_getinfo(s->L, "Sl", &ar);
        if (ar.currentline <= 0)
            continue;
        const char *shown = *ar.source == '=' ? ar.source + 1 : ar.source;
        return (struct place){find_script(s, shown, strlen(shown)), ar.currentline};
    }
    return (struct place){-1, 0};
}

void
qdqi_sandbox_blame(lua_State *L)
{
    struct qdqi_sandbox *s = sandbox_of(L);
    lua_Debug ar;
    lua_pushvalue(L, -1);
    lua_getinfo(L, ">S", &ar);
    const char *shown = *ar.source == '=' ? ar.source + 1 : ar.source;
    s->blamed = (struct place){find_script(s, shown, strlen(shown)), ar.linedefined};
}

/* --- budgets -------------------------------------------------------------- */

static int64_t
cpu_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Returns whether the time is up. Reading the processor time is slow, so this reads
   it only once per tick of a fast clock. */
static bool
time_is_up(struct qdqi_sandbox *s)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    if (now.tv_sec == s->seen.tv_sec && now.tv_nsec == s->seen.tv_nsec)
        return false;
    s->seen = now;
    return cpu_now() - s->started > s->may_take;
}

/* Ends the script by raising an error. The error has no text because there may be no
   memory for one. */
static int
end_script(struct qdqi_sandbox *s, enum end end)
{
    if (!s->end) {
        s->end = end;
        s->ended = place_now(s);
    }
    lua_pushnil(s->L);
    return lua_error(s->L);
}

static void
spend(struct qdqi_sandbox *s, uint64_t work)
{
    if (s->end)
        end_script(s, s->end);
    if (work > s->max_instructions - s->instructions)
        end_script(s, END_INSTRUCTIONS);
    s->instructions += work;
    if (time_is_up(s))
        end_script(s, END_TIME);
}

static void
on_count(lua_State *L, lua_Debug *ar)
{
    struct qdqi_sandbox *s = sandbox_of(L);
    (void)ar;
    if (s->memory > COLLECT_FROM && !s->collects) {
        lua_gc(L, LUA_GCRESTART);
        s->collects = true;
    }
    spend(s, HOOK_EVERY);
}

void
qdqi_sandbox_charge(lua_State *L, size_t work)
{
    spend(sandbox_of(L), work);
}

bool
qdqi_sandbox_is_over(lua_State *L, int status)
{
    struct qdqi_sandbox *s = sandbox_of(L);
    if (status == LUA_ERRMEM && !s->end) {
        s->end = s->exhausted ? END_NO_MEMORY : s->refusal;
        s->ended = s->refused;
    }
    return s->end != RUNNING;
}

int
qdqi_sandbox_no_memory(lua_State *L)
{
    return end_script(sandbox_of(L), END_NO_MEMORY);
}

/* --- memory --------------------------------------------------------------- */

static bool
refuse(struct qdqi_sandbox *s, enum end why)
{
    s->refusal = why;
    s->refused = place_now(s);
    s->n_refused++;
    return false;
}

/* Returns whether a block may grow from `old` to `size` bytes within the limits. */
static bool
may_grow(struct qdqi_sandbox *s, size_t old, size_t size, bool is_string)
{
    const size_t header = 64; /* larger than Lua's header of a string */
    if (s->exhausted)
        return false;
    if (s->end || s->n_refused > MAX_REFUSED)
        return refuse(s, s->refusal ? s->refusal : END_MEMORY);
    if (is_string && size > QDQI_MAX_STRING + header)
        return refuse(s, END_STRING);
    if (size - old > s->max_memory - s->memory || size > s->max_volume - s->volume)
        return refuse(s, END_MEMORY);
    if ((s->volume + size) / CLOCK_EVERY != s->volume / CLOCK_EVERY && time_is_up(s))
        return refuse(s, END_TIME);
    s->volume += size;
    return true;
}

/* A lua_Alloc function. If `p` is NULL, `old` is the type of the new object. */
static void *
allocate(void *ud, void *p, size_t old, size_t size)
{
    struct qdqi_sandbox *s = ud;
    bool is_string = !p && old == LUA_TSTRING;
    if (!p)
        old = 0;
    if (size == 0) {
        free(p);
        s->memory -= old;
        return NULL;
    }
    if (size > old && !may_grow(s, old, size, is_string))
        return NULL;
    void *q = realloc(p, size);
    if (!q) {
        s->exhausted = true;
        return size <= old ? p : NULL; /* Lua requires that shrinking never fails */
    }
    s->memory += size - old;
    return q;
}

/* --- scripts -------------------------------------------------------------- */

struct source {
    struct qdqi_sandbox *sandbox;
    const char *rest;
    size_t left;
};

/* A lua_Reader function. It returns the source in pieces, because the instruction
   hook does not run during parsing. */
static const char *
read_piece(lua_State *L, void *data, size_t *ret_size)
{
    struct source *source = data;
    const char *piece = source->rest;
    (void)L;
    if (time_is_up(source->sandbox))
        end_script(source->sandbox, END_TIME);
    *ret_size = source->left < PIECE ? source->left : PIECE;
    source->rest += *ret_size;
    source->left -= *ret_size;
    return piece;
}

/* Makes the name that Lua puts before its messages, as in "NAME:LINE:". find_place()
   parses it again. */
static void
show_name(const char *name, char shown[MAX_SHOWN + 1])
{
    size_t n = 0;
    for (; *name && n < MAX_SHOWN; name++)
        shown[n++] = *name > ' ' && *name < 0x7f ? *name : '_';
    shown[n] = '\0';
}

void
qdqi_sandbox_load(lua_State *L, const char *name, const char *text)
{
    struct qdqi_sandbox *s = sandbox_of(L);
    static const char bom[] = "\xef\xbb\xbf";
    char chunk[MAX_SHOWN + 2] = "=";
    if (s->n_scripts == QDQI_MAX_SCRIPTS)
        luaL_error(L, "more than %d scripts take part", QDQI_MAX_SCRIPTS);
    struct script *script = &s->scripts[s->n_scripts++];
    script->name = name;
    show_name(name, script->shown);
    memcpy(chunk + 1, script->shown, sizeof script->shown);
    if (strncmp(text, bom, strlen(bom)) == 0)
        text += strlen(bom);
    struct source source = {s, text, strlen(text)};
    if (source.left > QDQI_MAX_SOURCE)
        luaL_error(L, "the script has %d bytes, at most %d are taken", (int)source.left,
                   QDQI_MAX_SOURCE);
    if (lua_load(L, read_piece, &source, chunk, "t") != LUA_OK)
        lua_error(L);
}

/* --- errors -------------------------------------------------------------- */

/* The message handler: remembers the line. It allocates nothing and does not change
   the message. */
static int
on_error(lua_State *L)
{
    struct qdqi_sandbox *s = sandbox_of(L);
    s->innermost = place_now(s);
    return 1;
}

/* Removes "NAME:LINE: " from a message, if it begins with that, and sets *ret to the
   place. */
static const char *
find_place(const struct qdqi_sandbox *s, const char *message, struct place *ret)
{
    for (const char *colon = strchr(message, ':'); colon;
         colon = strchr(colon + 1, ':')) {
        int script = find_script(s, message, (size_t)(colon - message));
        size_t digits = strspn(colon + 1, "0123456789");
        if (script < 0 || !digits || digits > 9 || colon[1 + digits] != ':')
            continue;
        *ret = (struct place){script, (int)strtol(colon + 1, NULL, 10)};
        message = colon + digits + 2;
        return message + strspn(message, " ");
    }
    return message;
}

/* Describes why a script was stopped, with the budget. */
static void
describe_end(const struct qdqi_sandbox *s, char *text, size_t size)
{
    if (s->end == END_INSTRUCTIONS)
        snprintf(text, size, "it used up its budget of %llu instructions",
                 (unsigned long long)s->max_instructions);
    else if (s->end == END_TIME && s->may_take < MAX_TIME)
        snprintf(text, size, "all cases together used up their time");
    else if (s->end == END_TIME)
        snprintf(text, size, "it used up its time, %d s of the processor",
                 QDQI_MAX_SECONDS);
    else if (s->end == END_STRING)
        snprintf(text, size, "it used up its memory: a string takes at most %d bytes",
                 QDQI_MAX_STRING);
    else
        snprintf(text, size, "it used up its memory: %zu MiB at a time, %zu MiB in all",
                 s->max_memory >> 20, s->max_volume >> 20);
}

static enum qdq_code
report(struct qdqi_sandbox *s, struct qdq_error *err)
{
    char end[128], where[MAX_SHOWN + 64] = "";
    const char *text = end;
    struct place at = s->end ? s->ended : s->innermost;
    if (s->end)
        describe_end(s, end, sizeof end);
    else if (lua_type(s->L, -1) == LUA_TSTRING)
        text = find_place(s, lua_tostring(s->L, -1), &at);
    else
        snprintf(end, sizeof end, "the error is a %s value, not a text",
                 luaL_typename(s->L, -1));
    if (at.line <= 0)
        at = s->blamed;
    /* The label already names the first script. */
    if (at.line > 0 && at.script > 0)
        snprintf(where, sizeof where, ", line %d of '%s'", at.line,
                 s->scripts[at.script].shown);
    else if (at.line > 0)
        snprintf(where, sizeof where, ", line %d", at.line);
    return qdq_error_set(err, QDQ_CASE_FAILED, QDQ_AT_POINTER, s->pointer,
                         "%s%s: %.300s", s->label, where, text);
}

/* --- opening and freeing ------------------------------------------------- */

enum qdq_code
qdqi_sandbox_run(struct qdqi_sandbox *s, lua_CFunction function, void *arg,
                 struct qdq_error *err)
{
    lua_State *L = s->L;
    lua_settop(L, 0);
    lua_pushcfunction(L, on_error);
    lua_pushcfunction(L, function);
    lua_pushlightuserdata(L, arg);
    s->innermost = (struct place){-1, 0};
    int status = lua_pcall(L, 1, 0, 1);
    bool is_over = qdqi_sandbox_is_over(L, status);
    if (s->exhausted || s->end == END_NO_MEMORY)
        return qdqi_no_memory(err);
    return status != LUA_OK || is_over ? report(s, err) : QDQ_OK;
}

enum qdq_code
qdqi_sandbox_new(const char *label, const char *pointer, size_t n_nodes, int64_t *left,
                 lua_CFunction libs, void *host, struct qdqi_sandbox **ret,
                 struct qdq_error *err)
{
    struct qdqi_sandbox *s = calloc(1, sizeof *s);
    if (!s)
        return qdqi_no_memory(err);
    s->label = label;
    s->pointer = pointer;
    s->host = host;
    s->max_instructions = base_instructions + n_nodes * node_instructions;
    s->max_memory = base_memory + n_nodes * node_memory;
    s->max_volume = base_volume + n_nodes * node_volume;
    s->started = cpu_now();
    s->left = left;
    s->may_take = left && *left < MAX_TIME ? *left : MAX_TIME;
    s->L = lua_newstate(allocate, s);
    if (!s->L) {
        qdqi_sandbox_free(&s);
        return qdqi_no_memory(err);
    }
    *(struct qdqi_sandbox **)lua_getextraspace(s->L) = s;
    enum qdq_code code = qdqi_sandbox_run(s, libs, NULL, err);
    if (code) {
        qdqi_sandbox_free(&s);
        return code;
    }
    lua_gc(s->L, LUA_GCSTOP);
    lua_sethook(s->L, on_count, LUA_MASKCOUNT, HOOK_EVERY);
    *ret = s;
    return QDQ_OK;
}

void
qdqi_sandbox_free(struct qdqi_sandbox **sandbox)
{
    if (!sandbox || !*sandbox)
        return;
    lua_State *L = (*sandbox)->L;
    (*sandbox)->L = NULL; /* place_now() must not read its call stack any more */
    if (L)
        lua_close(L);
    if ((*sandbox)->left)
        *(*sandbox)->left -= cpu_now() - (*sandbox)->started;
    free(*sandbox);
    *sandbox = NULL;
}
