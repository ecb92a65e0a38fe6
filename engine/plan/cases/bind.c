/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "plan/cases/bind.h"

#include "ground/base/glob.h"
#include "numbers/arithmetic/format.h"

#include <lauxlib.h>
#include <string.h>

static const struct qdqi_layers *
layers_of(lua_State *L)
{
    return ((struct qdqi_script_host *)qdqi_sandbox_host(L))->layers;
}

static const struct qdq_spec *
spec_of(lua_State *L)
{
    return ((struct qdqi_script_host *)qdqi_sandbox_host(L))->spec;
}

/* --- objects -------------------------------------------------------------- */

/* A member of an object: either a method, or a function that reads a field of the
   object at index 1. */
struct member {
    const char *name;
    lua_CFunction method, field;
};

/* The __index of each object. Its upvalues are a table of the object's members by
   name (a field is light userdata) and the name of the object's type for messages. */
static int
get_member(lua_State *L)
{
    lua_settop(L, 2);
    lua_pushvalue(L, 2);
    int type = lua_rawget(L, lua_upvalueindex(1));
    if (type == LUA_TFUNCTION)
        return 1;
    if (type == LUA_TNIL)
        luaL_error(L, "a %s has no member '%s'", lua_tostring(L, lua_upvalueindex(2)),
                   lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2)
                                                 : luaL_typename(L, 2));
    const struct member *member = lua_touserdata(L, -1);
    return member->field(L);
}

static int
no_change(lua_State *L)
{
    return luaL_error(L, "a %s cannot be changed",
                      lua_tostring(L, lua_upvalueindex(1)));
}

/* Pushes a metatable for objects with these members. The last row has no name. */
static void
push_metatable(lua_State *L, const char *what, const struct member *members)
{
    lua_createtable(L, 0, 4);
    lua_newtable(L);
    for (const struct member *m = members; m->name; m++) {
        if (m->method)
            lua_pushcfunction(L, m->method);
        else
            lua_pushlightuserdata(L, (void *)(uintptr_t)m);
        lua_setfield(L, -2, m->name);
    }
    lua_pushstring(L, what);
    lua_pushcclosure(L, get_member, 2);
    lua_setfield(L, -2, "__index");
    lua_pushstring(L, what);
    lua_pushcclosure(L, no_change, 1);
    lua_setfield(L, -2, "__newindex");
    lua_pushstring(L, what);
    lua_setfield(L, -2, "__name");
}

/* --- layers --------------------------------------------------------------- */

static void
push_layer(lua_State *L, const struct qdqi_node *node)
{
    if (node)
        lua_pushlightuserdata(L, (void *)(uintptr_t)node);
    else
        lua_pushnil(L);
}

static const struct qdqi_node *
check_layer(lua_State *L, int index)
{
    luaL_argexpected(L, lua_type(L, index) == LUA_TLIGHTUSERDATA, index, "layer");
    return lua_touserdata(L, index);
}

static const struct qdqi_class *
class_of(lua_State *L, const struct qdqi_node *node)
{
    const struct qdqi_layers *layers = layers_of(L);
    return layers->classes[qdqi_layer_index(layers, node)];
}

/* Returns whether the name is that of the layer's class or of its ONNX operator.
   Comparing the first letters first is faster, because most names differ there. */
static bool
goes_by(const struct qdqi_class *cls, const struct qdqi_node *node, const char *name)
{
    const char *class_name = cls ? cls->support.cls : "";
    return (*class_name == *name && *name && strcmp(class_name, name) == 0) ||
           (*node->proto->op_type == *name && qdqi_node_is(node->proto, name));
}

static int
layer_tostring(lua_State *L)
{
    lua_pushstring(L, check_layer(L, 1)->name);
    return 1;
}

static int
layer_op(lua_State *L)
{
    lua_pushstring(L, check_layer(L, 1)->proto->op_type);
    return 1;
}

static int
layer_class(lua_State *L)
{
    const struct qdqi_class *cls = class_of(L, check_layer(L, 1));
    if (cls)
        lua_pushstring(L, cls->support.cls);
    else
        lua_pushnil(L);
    return 1;
}

static int
layer_inputs(lua_State *L)
{
    const struct qdqi_node *node = check_layer(L, 1);
    int n = 0;
    qdqi_sandbox_charge(L, node->proto->n_input * 4);
    lua_createtable(L, (int)node->proto->n_input, 0);
    for (size_t i = 0; i < node->proto->n_input; i++) {
        if (qdqi_layer_input(layers_of(L), node, (int)i) != QDQI_INPUT_DATA)
            continue;
        lua_pushinteger(L, (lua_Integer)i);
        lua_rawseti(L, -2, ++n);
    }
    return 1;
}

static int
layer_n_consumers(lua_State *L)
{
    const struct qdqi_layers *layers = layers_of(L);
    const struct qdqi_node *node = check_layer(L, 1);
    lua_pushinteger(L, layers->n_consumers[qdqi_layer_index(layers, node)]);
    return 1;
}

static int
layer_weight_shape(lua_State *L)
{
    const struct qdqi_node *node = check_layer(L, 1);
    const struct qdqi_class *cls = class_of(L, node);
    int i = cls && cls->kind == QDQ_WEIGHTED ? qdqi_weight_input(cls, node) : -1;
    const int64_t *dims;
    size_t rank;
    if (!qdqi_input_is_constant(node, i) ||
        !qdqi_tensor_dims(node->inputs[i], &dims, &rank)) {
        lua_pushnil(L);
        return 1;
    }
    qdqi_sandbox_charge(L, rank);
    lua_newtable(L);
    for (size_t k = 0; k < rank; k++) {
        lua_pushinteger(L, dims[k]);
        lua_rawseti(L, -2, (lua_Integer)k + 1);
    }
    return 1;
}

/* Returns the shape that the file states of a tensor, or NULL. */
static const Onnx__TensorShapeProto *
stated_shape(const Onnx__ValueInfoProto *value, const char *name)
{
    const Onnx__TypeProto *type = value->type;
    return value->name && strcmp(value->name, name) == 0 && type &&
                   type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE
               ? type->tensor_type->shape
               : NULL;
}

static const Onnx__TensorShapeProto *
find_shape(lua_State *L, const struct qdqi_tensor *t)
{
    const Onnx__GraphProto *graph = layers_of(L)->model->proto->graph;
    const Onnx__TensorShapeProto *shape = NULL;
    qdqi_sandbox_charge(L, graph->n_value_info + graph->n_output);
    for (size_t i = 0; t && !shape && i < graph->n_value_info; i++)
        shape = stated_shape(graph->value_info[i], t->name);
    for (size_t i = 0; t && !shape && i < graph->n_output; i++)
        shape = stated_shape(graph->output[i], t->name);
    return shape;
}

/* The list has false for a size that is no number. */
static int
layer_output_shape(lua_State *L)
{
    const struct qdqi_node *node = check_layer(L, 1);
    const Onnx__TensorShapeProto *shape =
        node->proto->n_output > 0 ? find_shape(L, node->outputs[0]) : NULL;
    if (!shape) {
        lua_pushnil(L);
        return 1;
    }
    qdqi_sandbox_charge(L, shape->n_dim);
    lua_newtable(L);
    for (size_t k = 0; k < shape->n_dim; k++) {
        if (shape->dim[k]->value_case ==
            ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE)
            lua_pushinteger(L, shape->dim[k]->dim_value);
        else
            lua_pushboolean(L, false);
        lua_rawseti(L, -2, (lua_Integer)k + 1);
    }
    return 1;
}

/* is(class, …) returns whether the layer is of one of these classes or operators. */
static int
layer_is(lua_State *L)
{
    const struct qdqi_node *node = check_layer(L, 1);
    const struct qdqi_class *cls = class_of(L, node);
    int n = lua_gettop(L);
    bool is = goes_by(cls, node, luaL_checkstring(L, 2));
    for (int i = 3; i <= n && !is; i++)
        is = goes_by(cls, node, luaL_checkstring(L, i));
    lua_pushboolean(L, is);
    return 1;
}

static int
layer_producer(lua_State *L)
{
    const struct qdqi_node *node = check_layer(L, 1);
    lua_Integer i = luaL_checkinteger(L, 2);
    luaL_argcheck(L, i >= 0, 2, "inputs are counted from 0");
    bool there = (lua_Unsigned)i < node->proto->n_input;
    push_layer(L, there ? qdqi_layer_producer(layers_of(L), node, (int)i) : NULL);
    return 1;
}

static int
layer_producers(lua_State *L)
{
    const struct qdqi_layers *layers = layers_of(L);
    const struct qdqi_node *node = check_layer(L, 1);
    int n = 0;
    qdqi_sandbox_charge(L, node->proto->n_input * 4);
    lua_newtable(L);
    for (size_t i = 0; i < node->proto->n_input; i++) {
        const struct qdqi_node *producer = qdqi_layer_producer(layers, node, (int)i);
        if (!producer || qdqi_layer_input(layers, node, (int)i) != QDQI_INPUT_DATA)
            continue;
        push_layer(L, producer);
        lua_rawseti(L, -2, ++n);
    }
    return 1;
}

struct nodes {
    const struct qdqi_node **rows; /* NULL: the nodes are only counted */
    size_t n;
};

static void
add_node(void *arg, const struct qdqi_node *node)
{
    struct nodes *nodes = arg;
    if (nodes->rows)
        nodes->rows[nodes->n] = node;
    nodes->n++;
}

/* consumers() returns a list of layers. It counts them first and then lists them, so
   that no Lua error is raised while the engine walks the graph. */
static int
layer_consumers(lua_State *L)
{
    const struct qdqi_node *node = check_layer(L, 1);
    struct nodes nodes = {0};
    qdqi_layer_consumers(layers_of(L), node, add_node, &nodes);
    qdqi_sandbox_charge(L, nodes.n * 4);
    nodes.rows = lua_newuserdatauv(L, (nodes.n + 1) * sizeof *nodes.rows, 0);
    nodes.n = 0;
    qdqi_layer_consumers(layers_of(L), node, add_node, &nodes);
    lua_newtable(L);
    for (size_t i = 0; i < nodes.n; i++) {
        push_layer(L, nodes.rows[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

static const struct member layer_members[] = {
    {"name", NULL, layer_tostring},
    {"op", NULL, layer_op},
    {"class", NULL, layer_class},
    {"inputs", NULL, layer_inputs},
    {"n_consumers", NULL, layer_n_consumers},
    {"weight_shape", NULL, layer_weight_shape},
    {"output_shape", NULL, layer_output_shape},
    {"is", layer_is, NULL},
    {"producer", layer_producer, NULL},
    {"producers", layer_producers, NULL},
    {"consumers", layer_consumers, NULL},
    {NULL, NULL, NULL},
};

void
qdqi_bind_layers(lua_State *L)
{
    lua_pushlightuserdata(L, L); /* all light userdata share one metatable */
    push_metatable(L, "layer", layer_members);
    lua_pushcfunction(L, layer_tostring);
    lua_setfield(L, -2, "__tostring");
    lua_setmetatable(L, -2);
    lua_pop(L, 1);
}

/* --- the model ------------------------------------------------------------ */

/* Checks that a method is called on its own object. This detects `model.layers(…)`
   in the place of `model:layers(…)`. */
static void
check_self(lua_State *L, const char *what)
{
    if (!luaL_testudata(L, 1, what))
        luaL_error(L, "a method of the %s is called with a colon: %s:METHOD(…)", what,
                   what);
}

/* Pushes an array of the nodes for which `takes` returns true, or of all nodes if
   `text` is NULL. */
static int
push_layers(lua_State *L,
            bool (*takes)(lua_State *L, const struct qdqi_node *node, const char *text),
            const char *text)
{
    const struct qdqi_graph *graph = &layers_of(L)->model->graph;
    lua_Integer n = 0;
    qdqi_sandbox_charge(L, graph->n_nodes / 4 + 1);
    lua_newtable(L);
    for (size_t i = 0; i < graph->n_nodes; i++) {
        if (text && !takes(L, &graph->nodes[i], text))
            continue;
        push_layer(L, &graph->nodes[i]);
        lua_rawseti(L, -2, ++n);
    }
    return 1;
}

static bool
is_of_class(lua_State *L, const struct qdqi_node *node, const char *name)
{
    return goes_by(class_of(L, node), node, name);
}

static int
model_layers(lua_State *L)
{
    check_self(L, "model");
    return push_layers(L, is_of_class, luaL_optstring(L, 2, NULL));
}

/* Returns whether the node's name matches. Charges for the worst case of a glob, in
   which each of its bytes is compared with each byte of the name. */
static bool
matches(lua_State *L, const struct qdqi_node *node, const char *glob)
{
    qdqi_sandbox_charge(L, 1 + strlen(glob) * strlen(node->name) / 64);
    return qdqi_glob(glob, node->name);
}

static int
model_matching(lua_State *L)
{
    size_t len;
    check_self(L, "model");
    const char *glob = luaL_checklstring(L, 2, &len);
    luaL_argcheck(L, len <= QDQI_MAX_GLOB, 2, "glob too long");
    return push_layers(L, matches, glob);
}

static int
model_layer(lua_State *L)
{
    check_self(L, "model");
    push_layer(L, qdqi_layer_find(layers_of(L), luaL_checkstring(L, 2)));
    return 1;
}

void
qdqi_push_model(lua_State *L)
{
    static const struct member members[] = {{"layers", model_layers, NULL},
                                            {"layer", model_layer, NULL},
                                            {"matching", model_matching, NULL},
                                            {NULL, NULL, NULL}};
    lua_newuserdatauv(L, 0, 0);
    push_metatable(L, "model", members);
    lua_pushvalue(L, -1);
    lua_setfield(L, LUA_REGISTRYINDEX, "model");
    lua_setmetatable(L, -2);
}

/* --- the spec ------------------------------------------------------------- */

static int
spec_mode(lua_State *L)
{
    lua_pushstring(L, spec_of(L)->mode == QDQ_MODE_PARTIAL ? "partial" : "full");
    return 1;
}

static int
spec_target(lua_State *L)
{
    lua_pushstring(L, spec_of(L)->target->name);
    return 1;
}

static int
spec_activations(lua_State *L)
{
    const struct qdq_spec *spec = spec_of(L);
    lua_pushstring(L, spec->weight_only
                          ? "none"
                          : qdqi_format_row((int)spec->activations.format)->name);
    return 1;
}

static void
push_names(lua_State *L, const struct qdq_layer_entry *entry)
{
    if (!entry->is_list) {
        lua_pushstring(L, entry->names[0]);
        return;
    }
    lua_newtable(L);
    for (size_t i = 0; i < entry->n_names; i++) {
        lua_pushstring(L, entry->names[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
}

static void
set_text(lua_State *L, const char *member, const char *text)
{
    lua_pushstring(L, text);
    lua_setfield(L, -2, member);
}

/* Sets a member to one of the names, unless it is not stated. */
static void
set_choice(lua_State *L, const char *member, const char *const *names, int i)
{
    if (i >= 0)
        set_text(L, member, names[i]);
}

static void
set_format(lua_State *L, enum qdq_format format)
{
    if (format != QDQ_FORMAT_DEFAULT)
        set_text(L, "dtype", qdqi_format_row((int)format)->name);
}

static void
push_weights(lua_State *L, const struct qdq_weights *w)
{
    lua_newtable(L);
    set_format(L, w->format);
    if (w->granularity == QDQ_PER_BLOCK) {
        lua_newtable(L);
        lua_pushinteger(L, w->block);
        lua_setfield(L, -2, "block");
        lua_setfield(L, -2, "granularity");
    } else {
        set_choice(L, "granularity", (const char *const[]){"tensor", "channel"},
                   w->granularity);
    }
    set_choice(L, "storage", (const char *const[]){"qdq", "dq"}, w->storage);
    set_choice(L, "method", (const char *const[]){"max", "mse"}, w->method);
    set_choice(L, "rounding",
               (const char *const[]){"nearest", "gptq", "auto", "reconstruct"},
               w->rounding);
    set_choice(L, "range", (const char *const[]){"narrow", "full"}, w->range);
    set_choice(L, "scales", (const char *const[]){"range", "moments"}, w->scales);
}

/* Sets the formats that an entry states. */
static void
push_formats(lua_State *L, const struct qdq_layer_entry *entry)
{
    if (entry->weights) {
        push_weights(L, entry->weights);
        lua_setfield(L, -2, "weights");
    }
    if (entry->activations) {
        lua_newtable(L);
        set_format(L, entry->activations->format);
        if (entry->activations->symmetric != QDQ_DEFAULT) {
            lua_pushboolean(L, entry->activations->symmetric == QDQ_YES);
            lua_setfield(L, -2, "symmetric");
        }
        lua_setfield(L, -2, "activations");
    }
}

/* Pushes an entry as a table with the members that the spec's JSON has, including
   those that have their default value. */
static void
push_entry(lua_State *L, const struct qdq_layer_entry *entry)
{
    static const char *const selectors[] = {
        [QDQ_BY_CLASS] = "class", [QDQ_BY_MATCH] = "match", [QDQ_BY_NAME] = "name"};
    lua_createtable(L, 0, 4);
    push_names(L, entry);
    lua_setfield(L, -2, selectors[entry->by]);
    lua_pushboolean(L, entry->quantize_input);
    lua_setfield(L, -2, "quantize_input");
    lua_pushboolean(L, entry->quantize_weight);
    lua_setfield(L, -2, "quantize_weight");
    push_formats(L, entry);
    if (!entry->index)
        return;
    lua_newtable(L);
    for (size_t i = 0; i < entry->n_index; i++) {
        lua_pushinteger(L, entry->index[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_setfield(L, -2, "quantization_index");
}

/* Pushes the spec's entries. The table is built at the first call and then stored as
   the object's uservalue 1. */
static int
spec_layers(lua_State *L)
{
    const struct qdq_spec *spec = spec_of(L);
    if (lua_getiuservalue(L, 1, 1) == LUA_TTABLE)
        return 1;
    qdqi_sandbox_charge(L, spec->n_layers * 4);
    lua_newtable(L);
    for (size_t i = 0; i < spec->n_layers; i++) {
        push_entry(L, &spec->layers[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_pushvalue(L, -1);
    lua_setiuservalue(L, 1, 1);
    return 1;
}

static int
spec_names(lua_State *L)
{
    const struct qdqi_layers *layers = layers_of(L);
    check_self(L, "spec");
    const struct qdqi_node *node = check_layer(L, 2);
    lua_pushboolean(L, layers->named[qdqi_layer_index(layers, node)]);
    return 1;
}

void
qdqi_push_spec(lua_State *L)
{
    static const struct member members[] = {{"mode", NULL, spec_mode},
                                            {"target", NULL, spec_target},
                                            {"activations", NULL, spec_activations},
                                            {"layers", NULL, spec_layers},
                                            {"names", spec_names, NULL},
                                            {NULL, NULL, NULL}};
    lua_newuserdatauv(L, 0, 1);
    push_metatable(L, "spec", members);
    lua_pushvalue(L, -1);
    lua_setfield(L, LUA_REGISTRYINDEX, "spec");
    lua_setmetatable(L, -2);
}
