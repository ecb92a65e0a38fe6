/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "calibrate/moments.h"

#include "rewrite/insert.h"

#include <stdlib.h>
#include <string.h>

enum {
    ROWS = 32768,      /* are taken of each layer's input, spread over all samples */
    MAX_MIB = 1024,    /* that all moments of a job may take */
    MAX_GROUPS = 65536 /* of a convolution */
};

struct collection {
    struct qdqi_job *job;
    const struct qdqi_tensor **tensors; /* by slot: the layer's input */
    struct qdqi_moments moments;
    uint64_t bytes;
};

/* --- layers --------------------------------------------------------------- */

/* Reads an attribute of `axes` integers. Returns false when it has another number. */
static bool
read_ints(const Onnx__NodeProto *node, const char *name, size_t n, int64_t otherwise,
          int64_t *ret)
{
    const Onnx__AttributeProto *a = qdqi_node_attribute(node, name);
    for (size_t i = 0; i < n; i++)
        ret[i] = a && a->n_ints == n ? a->ints[i] : otherwise;
    return !a || a->n_ints == n;
}

static bool
read_window(const Onnx__NodeProto *node, const struct qdqi_tensor *weight,
            struct qdqi_window *w)
{
    int64_t pads[2 * QDQI_PATCH_AXES];
    const Onnx__AttributeProto *pad = qdqi_node_attribute(node, "auto_pad");
    *w = (struct qdqi_window){.axes = weight->view.rank - 2};
    if (weight->view.rank < 3 || w->axes > QDQI_PATCH_AXES ||
        !read_ints(node, "strides", w->axes, 1, w->stride) ||
        !read_ints(node, "dilations", w->axes, 1, w->dilation) ||
        !read_ints(node, "pads", 2 * w->axes, 0, pads))
        return false;
    for (size_t i = 0; i < w->axes; i++) {
        w->kernel[i] = weight->view.dims[i + 2];
        w->begin[i] = pads[i];
        w->end[i] = pads[i + w->axes];
        if (w->stride[i] < 1 || w->dilation[i] < 1 || w->kernel[i] < 1)
            return false;
    }
    if (pad) {
        w->same_upper = pad->s.len == 10 && memcmp(pad->s.data, "SAME_UPPER", 10) == 0;
        w->same_lower = pad->s.len == 10 && memcmp(pad->s.data, "SAME_LOWER", 10) == 0;
    }
    return true;
}

/* The form of a layer, as far as its moments go. */
struct form {
    struct qdqi_window window;
    size_t groups, k;
    const char *why; /* there are none; NULL: there are */
};

static struct form
convolution(const struct qdqi_node *node, const struct qdqi_tensor *weight)
{
    struct form f = {.k = 1};
    int64_t groups = qdqi_node_int(node->proto, "group", 1);
    if (!read_window(node->proto, weight, &f.window) || groups < 1 ||
        groups > MAX_GROUPS || weight->view.dims[0] % groups != 0)
        return (struct form){.why = "its attributes do not fit its weight"};
    f.groups = (size_t)groups;
    for (size_t i = 1; i < weight->view.rank; i++)
        f.k *= (size_t)weight->view.dims[i];
    return f;
}

static struct form
form_of(const struct qdqi_node *node, const struct qdq_layer *layer)
{
    const struct qdqi_tensor *w = node->inputs[layer->weight_input];
    const struct qdqi_tensor *x = node->inputs[0];
    if (!w || !x || w->dtype != QDQI_FLOAT32 || x->dtype != QDQI_FLOAT32)
        return (struct form){.why = "it is not computed in float32"};
    if (layer->weight_input != 1)
        return (struct form){.why = "its weight is not its second input"};
    if (qdqi_node_is(node->proto, "Conv"))
        return convolution(node, w);
    if (w->view.rank != 2)
        return (struct form){.why = "its weight is not a matrix"};
    if (qdqi_node_is(node->proto, "MatMul"))
        return (struct form){.groups = 1, .k = (size_t)w->view.dims[0]};
    if (!qdqi_node_is(node->proto, "Gemm"))
        return (struct form){.why = "moments are known of Conv, Gemm and MatMul"};
    if (qdqi_node_int(node->proto, "transA", 0))
        return (struct form){.why = "it reads its input transposed"};
    bool across = qdqi_node_int(node->proto, "transB", 0);
    return (struct form){.groups = 1, .k = (size_t)w->view.dims[across ? 1 : 0]};
}

/* Returns the moments of the weight, made if it has none yet; NULL when out of
   memory. */
static struct qdqi_layer_moments *
moments_of(struct collection *c, const struct qdqi_tensor *weight, const struct form *f)
{
    struct qdqi_job *job = c->job;
    struct qdqi_layer_moments *m = qdqi_map_get(job->moments, weight->name);
    if (m)
        return m;
    if (!(m = qdqi_arena_alloc(job->scratch, sizeof *m)) ||
        !qdqi_map_put(job->moments, weight->name, m))
        return NULL;
    uint64_t bytes = f->why ? 0 : f->groups * qdqi_moment_bytes(f->k);
    m->next = job->all_moments;
    job->all_moments = m;
    m->why = f->why;
    if (!m->why && (f->k == 0 || bytes > ((uint64_t)MAX_MIB << 20) - c->bytes))
        m->why = "the moments of all layers would take more than 1 GiB";
    if (m->why)
        return m;
    c->bytes += bytes;
    m->moments = calloc(f->groups, sizeof *m->moments);
    for (; m->moments && m->groups < f->groups; m->groups++)
        if (!qdqi_moment_init(&m->moments[m->groups], f->k))
            return NULL;
    return m->moments ? m : NULL;
}

/* Gives the layer a slot, unless there is a reason not to. */
static enum qdq_code
add_layer(struct collection *c, const struct qdq_layer *layer, struct qdq_error *err)
{
    const struct qdqi_node *node = &c->job->model->graph.nodes[layer->node];
    const struct form f = form_of(node, layer);
    struct qdqi_patches *p = qdqi_arena_alloc(c->job->scratch, sizeof *p);
    struct qdqi_layer_moments *m =
        p ? moments_of(c, node->inputs[layer->weight_input], &f) : NULL;
    if (!m)
        return qdqi_no_memory(err);
    if (m->why)
        return QDQ_OK;
    if (f.why || f.groups != m->groups || f.k != m->moments->k) {
        m->why = "layers that share it use it in different ways";
        return QDQ_OK;
    }
    *p = (struct qdqi_patches){f.window, m->groups, m->moments, 0};
    c->tensors[c->moments.n] = node->inputs[0];
    c->moments.rows[c->moments.n++] = p;
    return QDQ_OK;
}

/* --- running -------------------------------------------------------------- */

static enum qdq_code
run_samples(struct collection *c, struct qdqi_session *session, struct qdqi_feed *feed,
            struct qdq_error *err)
{
    struct qdqi_job *job = c->job;
    uint64_t done = 0;
    for (;;) {
        const struct qdqi_input *inputs;
        const struct qdqi_output *outputs;
        size_t n_outputs;
        enum qdq_code code = qdqi_job_progress(job, QDQ_STAGE_CALIBRATE, done,
                                               (uint64_t)qdqi_feed_samples(feed), err);
        if (code || (code = qdqi_feed_next(feed, &inputs, &c->moments.samples, err)) ||
            c->moments.samples == 0 ||
            (code = qdqi_session_run(session, inputs, job->model->info.n_inputs,
                                     &outputs, &n_outputs, err)))
            return code;
        job->inferences++;
        done += (uint64_t)c->moments.samples;
    }
}

static enum qdq_code
run_model(struct collection *c, struct qdqi_feed *feed, struct qdq_error *err)
{
    struct qdqi_job *job = c->job;
    struct qdqi_session_options options = {.moments = &c->moments};
    struct qdqi_runtime *runtime;
    struct qdqi_session *session = NULL;
    const Onnx__ModelProto *proto;
    uint64_t samples = (uint64_t)qdqi_feed_samples(feed);
    c->moments.per_sample = samples < ROWS ? (ROWS + samples - 1) / samples : 1;
    enum qdq_code code = qdqi_engine_runtime(job->engine, &runtime, err);
    if (!code)
        code = qdqi_insert_sinks(job->model, QDQI_MOMENT, c->tensors, c->moments.n,
                                 job->scratch, &proto, err);
    if (!code)
        code = qdqi_session_open(runtime, job->model, proto, &options, &session, err);
    if (!code)
        code = run_samples(c, session, feed, err);
    qdqi_session_close(&session);
    return code;
}

/* Adds the rows that are left over. */
static void
finish(struct qdqi_layer_moments *m)
{
    for (; m; m = m->next)
        for (size_t g = 0; g < m->groups; g++) {
            struct qdqi_moment *moment = &m->moments[g];
            for (size_t i = 0; i < qdqi_moment_parts(moment); i++)
                qdqi_moment_add_part(moment, i);
            qdqi_moment_added(moment);
        }
}

static enum qdq_code
collect(struct collection *c, struct qdq_error *err)
{
    struct qdqi_job *job = c->job;
    const struct qdqi_feed_options options = {
        .batch = job->work->spec->calibration.batch,
        .max_samples = job->work->spec->calibration.max_samples};
    struct qdqi_feed *feed = NULL;
    if (!job->dataset)
        return qdq_error_set(err, QDQ_NO_CALIBRATION, QDQ_AT_POINTER,
                             "/weights/rounding",
                             "rounding and the correction of biases need calibration "
                             "data, and there is none");
    enum qdq_code code =
        qdqi_feed_open(&job->fixed, job->dataset, &options, &feed, err);
    if (!code && qdqi_feed_samples(feed) > 0)
        code = run_model(c, feed, err);
    qdqi_feed_close(&feed);
    if (!code)
        finish(job->all_moments);
    return code;
}

static enum qdq_code
collect_of_layers(struct qdqi_job *job, struct qdq_error *err)
{
    size_t n = job->plan->view.n_layers;
    struct collection c = {
        .job = job,
        .tensors = qdqi_arena_array(job->scratch, n, sizeof(*c.tensors)),
        .moments.rows = qdqi_arena_array(job->scratch, n, sizeof(*c.moments.rows))};
    enum qdq_code code = QDQ_OK;
    job->moments = qdqi_map_new(job->scratch);
    if (!c.tensors || !c.moments.rows || !job->moments)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < n && !code; i++)
        if (job->plan->view.layers[i].weight_input >= 0)
            code = add_layer(&c, &job->plan->view.layers[i], err);
    return code || c.moments.n == 0 ? code : collect(&c, err);
}

enum qdq_code
qdqi_collect_moments(struct qdqi_job *job, struct qdq_error *err)
{
    return qdqi_moments_wanted(job->work->spec) ? collect_of_layers(job, err) : QDQ_OK;
}

void
qdqi_moments_free(struct qdqi_job *job)
{
    for (struct qdqi_layer_moments *m = job->all_moments; m; m = m->next) {
        for (size_t g = 0; g < m->groups; g++)
            qdqi_moment_fini(&m->moments[g]);
        free(m->moments);
    }
    job->all_moments = NULL;
}
