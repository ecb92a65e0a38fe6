/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "plan/cases/entries.h"

#include "ground/base/order.h"
#include "qdq/words.h"

#include <lauxlib.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_BYTES = 64 << 20, /* memory in the arena that one list may take */
    MAX_INDEX = 1 << 20,  /* elements of a quantization_index */
    MAX_AXIS = 64,        /* no tensor has a higher rank */
    MIN_BLOCK = 2,
    NO_MEMBER = INT_MIN,
};

/* The state of reading a list, and the place for messages. */
struct reader {
    struct qdqi_arena *arena;
    size_t left;       /* bytes of MAX_BYTES that are left */
    const char *what;  /* kind of row: "entry" or "layer_support row" */
    lua_Integer row;   /* number of the row, counted from 1 as in Lua */
    const char *given; /* the row's selector, or NULL when it has not been seen yet */
};

/* A member of a row. `read` reads the value on top of the stack into *field. */
struct member {
    const char *name;
    void (*read)(lua_State *L, struct reader *r, const struct member *m, void *field);
    size_t offset;
};

/* --- values -------------------------------------------------------------- */

static void
fault(lua_State *L, const struct reader *r, const char *member, const char *what)
{
    luaL_error(L, "%s %I: '%s' %s", r->what, (LUAI_UACINT)r->row, member, what);
}

static void *
take(lua_State *L, struct reader *r, size_t n, size_t size)
{
    qdqi_sandbox_charge(L, 1 + n * size / 16);
    if (n * size > r->left)
        luaL_error(L, "the list takes more than %d MiB (memory)", MAX_BYTES >> 20);
    r->left -= n * size;
    void *p = qdqi_arena_array(r->arena, n, size);
    if (!p)
        qdqi_sandbox_no_memory(L);
    return p;
}

/* Returns the number of elements of the table on top. Raises an error if it has
   other keys than those of a list. */
static size_t
list_len(lua_State *L, const struct reader *r, const char *member)
{
    lua_Unsigned n = lua_rawlen(L, -1), seen = 0;
    for (lua_pushnil(L); lua_next(L, -2); seen++) {
        lua_pop(L, 1);
        qdqi_sandbox_charge(L, 2);
        if (lua_isinteger(L, -1) && (lua_Unsigned)lua_tointeger(L, -1) - 1 < n)
            continue;
        bool is_text = lua_type(L, -1) == LUA_TSTRING;
        const char *key = is_text ? lua_tostring(L, -1) : luaL_typename(L, -1);
        if (member)
            fault(L, r, member, lua_pushfstring(L, "is no list: it has '%s'", key));
        luaL_error(L, "what was returned is no list of rows: it has '%s'", key);
    }
    if (seen != n && member)
        fault(L, r, member, "has gaps");
    if (seen != n)
        luaL_error(L, "the list of rows has gaps");
    return n;
}

/* Returns a copy of the string on top. */
static const char *
copy_text(lua_State *L, struct reader *r, const char *member)
{
    size_t len;
    if (lua_type(L, -1) != LUA_TSTRING)
        fault(L, r, member,
              lua_pushfstring(L, "is a %s, not a text", luaL_typename(L, -1)));
    const char *text = lua_tolstring(L, -1, &len);
    if (!len || memchr(text, 0, len))
        fault(L, r, member, len ? "holds a zero byte" : "is empty");
    return memcpy(take(L, r, len + 1, 1), text, len);
}

/* --- members -------------------------------------------------------------- */

static void
read_bool(lua_State *L, struct reader *r, const struct member *m, void *field)
{
    if (!lua_isboolean(L, -1))
        fault(L, r, m->name,
              lua_pushfstring(L, "is a %s, not true or false", luaL_typename(L, -1)));
    *(bool *)field = lua_toboolean(L, -1);
}

static int
read_int(lua_State *L, struct reader *r, const char *member, int min, int max)
{
    int is_integer;
    lua_Integer i = lua_tointegerx(L, -1, &is_integer);
    if (lua_type(L, -1) != LUA_TNUMBER || !is_integer || i < min || i > max)
        fault(L, r, member,
              lua_pushfstring(L, "is to be an integer, %d to %d", min, max));
    return (int)i;
}

static void
read_index(lua_State *L, struct reader *r, const struct member *m, void *field)
{
    struct qdq_layer_entry *entry = field;
    if (!lua_istable(L, -1))
        fault(L, r, m->name,
              lua_pushfstring(L, "is a %s, not a list", luaL_typename(L, -1)));
    size_t n = list_len(L, r, m->name);
    if (!n)
        fault(L, r, m->name, "is empty; leave it out for all inputs");
    if (n > MAX_INDEX)
        fault(L, r, m->name,
              lua_pushfstring(L, "has more than %d elements", MAX_INDEX));
    int *index = take(L, r, n, sizeof *index);
    for (size_t i = 0; i < n; i++) {
        lua_rawgeti(L, -1, (lua_Integer)i + 1);
        index[i] = read_int(L, r, m->name, 0, INT_MAX);
        lua_pop(L, 1);
    }
    if (n > QDQ_SHORT_INDEX)
        qsort(index, n, sizeof *index, qdqi_compare_ints);
    entry->index = index;
    entry->n_index = n;
}

static void
read_names(lua_State *L, struct reader *r, struct qdq_layer_entry *entry,
           const char *member)
{
    size_t n = list_len(L, r, member);
    if (!n)
        fault(L, r, member, "is an empty list");
    const char **names = take(L, r, n, sizeof *names);
    for (size_t i = 0; i < n; i++) {
        lua_rawgeti(L, -1, (lua_Integer)i + 1);
        names[i] = copy_text(L, r, member);
        lua_pop(L, 1);
    }
    entry->names = names;
    entry->n_names = n;
    entry->is_list = true;
}

static void
read_selector(lua_State *L, struct reader *r, const struct member *m, void *field)
{
    struct qdq_layer_entry *entry = field;
    if (r->given)
        luaL_error(L, "%s %I: both '%s' and '%s'", r->what, (LUAI_UACINT)r->row,
                   r->given, m->name);
    r->given = m->name;
    entry->by = *m->name == 'n'   ? QDQ_BY_NAME
                : *m->name == 'm' ? QDQ_BY_MATCH
                                  : QDQ_BY_CLASS;
    if (entry->by == QDQ_BY_NAME && lua_istable(L, -1)) {
        read_names(L, r, entry, m->name);
        return;
    }
    const char **names = take(L, r, 1, sizeof *names);
    names[0] = copy_text(L, r, m->name);
    entry->names = names;
    entry->n_names = 1;
}

static void
read_class(lua_State *L, struct reader *r, const struct member *m, void *field)
{
    struct qdq_support *row = field;
    row->cls = copy_text(L, r, m->name);
}

static void
read_kind(lua_State *L, struct reader *r, const struct member *m, void *field)
{
    static const char *const kinds[] = {[QDQ_WEIGHTED] = "weighted",
                                        [QDQ_NON_WEIGHTED] = "non_weighted",
                                        [QDQ_MULTI_INPUT] = "multi_input"};
    enum { N = sizeof kinds / sizeof *kinds };
    const char *text = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
    size_t i = 0;
    while (i < N && strcmp(text, kinds[i]) != 0)
        i++;
    if (i == N)
        fault(L, r, m->name, "is not one of weighted, non_weighted, multi_input");
    ((struct qdq_support *)field)->kind = (enum qdq_kind)i;
}

static void
read_weight_input(lua_State *L, struct reader *r, const struct member *m, void *field)
{
    *(int *)field = read_int(L, r, m->name, 0, INT_MAX);
}

/* Reads an axis: an integer, which counts from the end when it is negative, or false
   for one scale per tensor. */
static void
read_axis(lua_State *L, struct reader *r, const struct member *m, void *field)
{
    bool none = lua_isboolean(L, -1) && !lua_toboolean(L, -1);
    *(int *)field =
        none ? QDQ_NO_AXIS : read_int(L, r, m->name, -MAX_AXIS, MAX_AXIS - 1);
}

/* --- formats of an entry --------------------------------------------------- */

static void read_row(lua_State *L, struct reader *r, const struct member *members,
                     void *row);

/* Reads one of the names, whose number is the value. */
static void
read_choice(lua_State *L, struct reader *r, const struct member *m, void *field,
            const char *const *names)
{
    const char *text = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
    const char *fault_text = "is not one of";
    int i = 0;
    while (names[i] && strcmp(names[i], text) != 0)
        i++;
    if (!names[i]) {
        for (int k = 0; names[k]; k++)
            fault_text =
                lua_pushfstring(L, "%s%s%s", fault_text, k ? ", " : " ", names[k]);
        fault(L, r, m->name, fault_text);
    }
    *(int *)field = i;
}

#define READ_CHOICE(function, ...)                                               \
    static void function(lua_State *L, struct reader *r, const struct member *m, \
                         void *field)                                            \
    {                                                                            \
        read_choice(L, r, m, field, (const char *const[]){__VA_ARGS__, NULL});   \
    }

READ_CHOICE(read_storage, "qdq", "dq")
READ_CHOICE(read_method, "max", "mse")
READ_CHOICE(read_rounding, "nearest", "gptq", "auto", "reconstruct")
READ_CHOICE(read_range, "narrow", "full")
READ_CHOICE(read_scales, "range", "moments")

static void
read_format(lua_State *L, struct reader *r, const struct member *m, void *field,
            enum qdq_format_use use)
{
    const char *text = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
    static const struct {
        const char *name;
        unsigned uses;
    } formats[] = {
#define QDQ_FORMAT(name, text, bits, lowest, highest, fraction, min, opset, uses) \
    {text, uses},
#include "qdq/formats.h"
#undef QDQ_FORMAT
    };
    for (int i = 0; i < QDQ_N_FORMATS; i++)
        if ((formats[i].uses & (unsigned)use) && strcmp(formats[i].name, text) == 0) {
            *(enum qdq_format *)field = (enum qdq_format)i;
            return;
        }
    fault(L, r, m->name,
          use == QDQ_FOR_WEIGHTS ? "is no format of weights"
                                 : "is no format of activations");
}

static void
read_weight_format(lua_State *L, struct reader *r, const struct member *m, void *field)
{
    read_format(L, r, m, field, QDQ_FOR_WEIGHTS);
}

static void
read_activation_format(lua_State *L, struct reader *r, const struct member *m,
                       void *field)
{
    read_format(L, r, m, field, QDQ_FOR_ACTIVATIONS);
}

static void
read_symmetric(lua_State *L, struct reader *r, const struct member *m, void *field)
{
    bool is;
    read_bool(L, r, m, &is);
    *(enum qdq_tristate *)field = is ? QDQ_YES : QDQ_NO;
}

static void
read_block(lua_State *L, struct reader *r, const struct member *m, void *field)
{
    *(int64_t *)field = read_int(L, r, m->name, MIN_BLOCK, INT_MAX);
}

/* Reads "tensor", "channel", or {block = n}. */
static void
read_granularity(lua_State *L, struct reader *r, const struct member *m, void *field)
{
    static const struct member members[] = {
        {"block", read_block, offsetof(struct qdq_weights, block)}, {NULL, NULL, 0}};
    struct qdq_weights *weights = field;
    if (!lua_istable(L, -1)) {
        read_choice(L, r, m, &weights->granularity,
                    (const char *const[]){"tensor", "channel", NULL});
        return;
    }
    read_row(L, r, members, weights);
    if (weights->block == 0)
        fault(L, r, m->name, "has no block");
    weights->granularity = QDQ_PER_BLOCK;
}

/* Returns whether the table on top has the dtype float32. */
static bool
asks_for_float(lua_State *L)
{
    if (!lua_istable(L, -1))
        return false;
    lua_pushliteral(L, "dtype");
    lua_rawget(L, -2);
    bool is = lua_type(L, -1) == LUA_TSTRING && !strcmp(lua_tostring(L, -1), "float32");
    lua_pop(L, 1);
    return is;
}

static void
read_weights(lua_State *L, struct reader *r, const struct member *m, void *field)
{
    static const struct member members[] = {
        {"dtype", read_weight_format, offsetof(struct qdq_weights, format)},
        {"granularity", read_granularity, 0},
        {"method", read_method, offsetof(struct qdq_weights, method)},
        {"range", read_range, offsetof(struct qdq_weights, range)},
        {"rounding", read_rounding, offsetof(struct qdq_weights, rounding)},
        {"scales", read_scales, offsetof(struct qdq_weights, scales)},
        {"storage", read_storage, offsetof(struct qdq_weights, storage)},
        {NULL, NULL, 0}};
    struct qdq_layer_entry *entry = field;
    (void)m;
    if (asks_for_float(L)) {
        entry->quantize_weight = false;
        return;
    }
    struct qdq_weights *own = take(L, r, 1, sizeof *own);
    *own = QDQ_WEIGHTS_UNSTATED;
    read_row(L, r, members, own);
    entry->weights = own;
}

static void
read_activations(lua_State *L, struct reader *r, const struct member *m, void *field)
{
    static const struct member members[] = {
        {"dtype", read_activation_format, offsetof(struct qdq_activations, format)},
        {"symmetric", read_symmetric, offsetof(struct qdq_activations, symmetric)},
        {NULL, NULL, 0}};
    const struct qdqi_script_host *host = qdqi_sandbox_host(L);
    struct qdq_layer_entry *entry = field;
    if (asks_for_float(L)) {
        entry->quantize_input = false;
        return;
    }
    if (host->spec->weight_only)
        fault(L, r, m->name,
              "are for a spec whose activations are quantized before the model runs");
    struct qdq_activations *own = take(L, r, 1, sizeof *own);
    *own = QDQ_ACTIVATIONS_UNSTATED;
    read_row(L, r, members, own);
    entry->activations = own;
}

static const struct member entry_members[] = {
    {"activations", read_activations, 0},
    {"class", read_selector, 0},
    {"match", read_selector, 0},
    {"name", read_selector, 0},
    {"quantization_index", read_index, 0},
    {"quantize_input", read_bool, offsetof(struct qdq_layer_entry, quantize_input)},
    {"quantize_weight", read_bool, offsetof(struct qdq_layer_entry, quantize_weight)},
    {"weights", read_weights, 0},
    {NULL, NULL, 0},
};

static const struct member support_members[] = {
    {"channel_axis", read_axis, offsetof(struct qdq_support, channel_axis)},
    {"class", read_class, 0},
    {"kind", read_kind, 0},
    {"quantize_input", read_bool, offsetof(struct qdq_support, quantize_input)},
    {"quantize_weight", read_bool, offsetof(struct qdq_support, quantize_weight)},
    {"weight_input", read_weight_input, offsetof(struct qdq_support, weight_input)},
    {NULL, NULL, 0},
};

/* --- rows ----------------------------------------------------------------- */

static const char *
known_member(const void *members, size_t i)
{
    return ((const struct member *)members)[i].name;
}

static int
find_member(const struct member *members, const char *name)
{
    for (int i = 0; members[i].name; i++)
        if (strcmp(members[i].name, name) == 0)
            return i;
    return -1;
}

static void
unknown_member(lua_State *L, const struct reader *r, const struct member *members,
               const char *name)
{
    const char *nearest = qdq_nearest_word(name, known_member, members);
    luaL_error(L, "%s %I: unknown member '%s'%s%s%s", r->what, (LUAI_UACINT)r->row,
               name, nearest ? ", did you mean '" : "", nearest ? nearest : "",
               nearest ? "'?" : "");
}

/* Returns a bit set of the members that the table on top has. Raises an error about
   unknown members; if there are several, always about the same one. */
static unsigned
present_members(lua_State *L, const struct reader *r, const struct member *members)
{
    const char *unknown = NULL;
    unsigned present = 0;
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
        qdqi_sandbox_charge(L, 4);
        if (lua_type(L, -2) != LUA_TSTRING)
            luaL_error(L, "%s %I has a member that is a %s, not a name", r->what,
                       (LUAI_UACINT)r->row, luaL_typename(L, -2));
        const char *name = lua_tostring(L, -2);
        int i = find_member(members, name);
        if (i >= 0)
            present |= 1u << i;
        else if (!unknown || strcmp(name, unknown) < 0)
            unknown = name;
    }
    if (unknown)
        unknown_member(L, r, members, unknown);
    return present;
}

/* Reads the members that the table on top has, in the order of `members`. */
static void
read_row(lua_State *L, struct reader *r, const struct member *members, void *row)
{
    if (!lua_istable(L, -1))
        luaL_error(L, "%s %I is a %s, not a table", r->what, (LUAI_UACINT)r->row,
                   luaL_typename(L, -1));
    unsigned present = present_members(L, r, members);
    for (int i = 0; members[i].name; i++) {
        if (!(present & 1u << i))
            continue;
        lua_pushstring(L, members[i].name);
        lua_rawget(L, -2);
        members[i].read(L, r, &members[i], (char *)row + members[i].offset);
        lua_pop(L, 1);
    }
}

static struct reader
reader_of(lua_State *L, const char *what)
{
    struct qdqi_script_host *host = qdqi_sandbox_host(L);
    luaL_checkstack(L, 10, NULL);
    return (struct reader){.arena = host->arena, .left = MAX_BYTES, .what = what};
}

static size_t
rows_len(lua_State *L, const struct reader *r, size_t max)
{
    size_t n = list_len(L, r, NULL);
    if (n > max)
        luaL_error(L, "%I rows, at most %I are taken", (LUAI_UACINT)n,
                   (LUAI_UACINT)max);
    return n;
}

struct qdq_layer_entry *
qdqi_read_entries(lua_State *L, size_t max, size_t *ret_n)
{
    struct reader r = reader_of(L, "entry");
    size_t n = rows_len(L, &r, max);
    struct qdq_layer_entry *entries = take(L, &r, n, sizeof *entries);
    for (size_t i = 0; i < n; i++) {
        r.row = (lua_Integer)i + 1;
        r.given = NULL;
        entries[i].quantize_input = entries[i].quantize_weight = true;
        lua_rawgeti(L, -1, r.row);
        read_row(L, &r, entry_members, &entries[i]);
        lua_pop(L, 1);
        if (!r.given)
            luaL_error(L, "entry %I has none of name, match and class",
                       (LUAI_UACINT)r.row);
    }
    *ret_n = n;
    return entries;
}

/* Checks the members that depend on each other, and sets the defaults. */
static void
complete_support(lua_State *L, const struct reader *r, struct qdq_support *row)
{
    bool is_weighted = row->kind == QDQ_WEIGHTED;
    if (!row->cls || (int)row->kind < 0)
        luaL_error(L, "%s %I has no '%s'", r->what, (LUAI_UACINT)r->row,
                   row->cls ? "kind" : "class");
    if (!is_weighted && row->weight_input != NO_MEMBER)
        fault(L, r, "weight_input", "is for a weighted layer alone");
    if (!is_weighted && row->channel_axis != NO_MEMBER)
        fault(L, r, "channel_axis", "is for a weighted layer alone");
    if (row->weight_input == NO_MEMBER)
        row->weight_input = is_weighted ? 1 : -1;
    if (row->channel_axis == NO_MEMBER)
        row->channel_axis = is_weighted ? 0 : QDQ_NO_AXIS;
}

struct qdq_support *
qdqi_read_support(lua_State *L, size_t max, size_t *ret_n)
{
    struct reader r = reader_of(L, "layer_support row");
    size_t n = rows_len(L, &r, max);
    struct qdq_support *rows = take(L, &r, n, sizeof *rows);
    for (size_t i = 0; i < n; i++) {
        r.row = (lua_Integer)i + 1;
        rows[i] = (struct qdq_support){.kind = (enum qdq_kind) - 1,
                                       .weight_input = NO_MEMBER,
                                       .channel_axis = NO_MEMBER,
                                       .quantize_input = true,
                                       .quantize_weight = true};
        lua_rawgeti(L, -1, r.row);
        read_row(L, &r, support_members, &rows[i]);
        lua_pop(L, 1);
        complete_support(L, &r, &rows[i]);
    }
    *ret_n = n;
    return rows;
}
