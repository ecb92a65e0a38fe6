/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fibers of cuda_runtime.h, and a CUDA module whose device is the host. Threads that
 * go on when they should wait, or wait for what never comes, are found; two that race
 * are not: a fiber runs until it waits.
 *
 * Mishaps, by the environment:
 *   EMULATED_CUDA_DRIVER=N  the driver knows CUDA N, as CUDA counts; 0: there is none
 *   EMULATED_CUDA_DEVICES=N there are so many
 *   EMULATED_CUDA_LOST=N    with the Nth of the kernels' launchers the device is lost
 *   EMULATED_CUDA_MOST=N    there is not the memory for tensors of more than N elements
 *   EMULATED_CUDA_FAKED=N   the same, of those that are fake-quantized
 *   EMULATED_CUDA_SUMMED=N  the same, of those that are compared
 *   EMULATED_CUDA_GATHERED=N the same, of rows that are copied for moments
 *   EMULATED_CUDA_BYTES=N   a device has so much memory
 *   EMULATED_CUDA_ONCE=PATH all that only in the process that finds this file, which is
 *                           gone then: a worker that comes after it fares well
 */
#include <cuda_runtime.h>

#include "numbers/cuda/api.h"

#include <dlfcn.h>
#include <atomic>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <ucontext.h>
#include <vector>

struct emulated_index threadIdx, blockIdx, blockDim, gridDim;

namespace
{

/* --- fibers ----------------------------------------------------------------- */

enum { MAX_THREADS = 1024, WARP = 32, STACK = 64 << 10 };

enum state { READY, AT_WARP, AT_BLOCK, DONE };

struct fiber {
    enum state state;
    bool begun;
    ucontext_t context; /* it begins with this, and goes on by jumps, which are quick */
    jmp_buf place;
    std::unique_ptr<char[]> stack; /* not cleared: most of it is never used */
};

std::vector<struct fiber> fibers(MAX_THREADS);
uint64_t slots[MAX_THREADS];
jmp_buf scheduler;
const std::function<void()> *kernel;

/* The C library's own: the one that a sanitizer puts before it looks after its shadow of
   the stack at each jump, which takes longer than all else. */
void (*const jump)(jmp_buf,
                   int) = (void (*)(jmp_buf, int))dlsym(dlopen("libc.so.6", RTLD_NOW),
                                                        "_longjmp");

void
leave(enum state state)
{
    struct fiber &f = fibers[threadIdx.x];
    f.state = state;
    if (_setjmp(f.place) == 0)
        jump(scheduler, 1);
}

/* A fiber outlives its thread: the next block's begins where this one ended. */
void
begin()
{
    for (;;) {
        (*kernel)();
        leave(DONE);
    }
}

void
resume(unsigned i)
{
    struct fiber &f = fibers[i];
    threadIdx.x = i;
    if (_setjmp(scheduler) != 0)
        return;
    if (f.begun)
        jump(f.place, 1);
    f.begun = true;
    setcontext(&f.context);
}

/* Threads may go on when all that have not ended wait at the same place. */
bool
let_go(unsigned from, unsigned to, enum state state)
{
    unsigned live = 0, waiting = 0;
    for (unsigned i = from; i < to; i++) {
        live += fibers[i].state != DONE;
        waiting += fibers[i].state == state;
    }
    if (waiting == 0 || waiting != live)
        return false;
    for (unsigned i = from; i < to; i++)
        if (fibers[i].state == state)
            fibers[i].state = READY;
    return true;
}

void
make_ready(struct fiber *f)
{
    f->state = READY;
    if (f->begun)
        return;
    f->stack.reset(new char[STACK]);
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack.get();
    f->context.uc_stack.ss_size = STACK;
    makecontext(&f->context, begin, 0);
}

/* The last thread first: it is not to matter. */
void
run_block(unsigned threads)
{
    bool going_on = true;
    for (unsigned i = 0; i < threads; i++)
        make_ready(&fibers[i]);
    while (going_on) {
        for (unsigned i = threads; i-- > 0;)
            if (fibers[i].state == READY)
                resume(i);
        going_on = let_go(0, threads, AT_BLOCK);
        for (unsigned w = 0; w < threads; w += WARP)
            going_on |= let_go(w, min(w + WARP, threads), AT_WARP);
    }
    for (unsigned i = 0; i < threads; i++)
        if (fibers[i].state != DONE) {
            fprintf(stderr, "block %u: thread %u waits for ever\n", blockIdx.x, i);
            abort();
        }
}

/* --- the module ------------------------------------------------------------- */

enum {
    FINE,
    INVALID = cudaErrorInvalidValue,
    NO_MEMORY,
    NO_DEVICE,
    LOST,
    NO_DRIVER,
    OLD_DRIVER,
    N_STATUSES
};

const long built = 13000; /* CUDA 13.0 */

/* Workers are locked in after the module was loaded: a file is found now or never. */
bool
is_due()
{
    const char *file = getenv("EMULATED_CUDA_ONCE");
    return !file || remove(file) == 0;
}

const bool due = is_due();

long
setting(const char *name, long otherwise)
{
    const char *value = due ? getenv(name) : NULL;
    return value ? strtol(value, NULL, 10) : otherwise;
}

std::atomic<unsigned long> launches;

bool
is_lost()
{
    long last = setting("EMULATED_CUDA_LOST", 0);
    return last > 0 && launches >= (unsigned long)last;
}

/* Returns the result of a launch with so many elements: FINE, or a failure that was asked for. */
int
luck(size_t n, const char *limit)
{
    long most = setting(limit, 0);
    launches++;
    return is_lost() ? LOST : most > 0 && n > (size_t)most ? NO_MEMORY : FINE;
}

const struct {
    enum qdqi_cuda_fault fault;
    const char *text;
} statuses[N_STATUSES] = {
    {QDQI_CUDA_FINE, "fine"},
    {QDQI_CUDA_OTHER, "invalid value"},
    {QDQI_CUDA_MEMORY, "out of memory"},
    {QDQI_CUDA_NO_DEVICE, "no device"},
    {QDQI_CUDA_LOST, "fell off the bus"},
    {QDQI_CUDA_NO_DRIVER, "no driver"},
    {QDQI_CUDA_OLD_DRIVER, "the driver is too old"},
};

enum qdqi_cuda_fault
fault(int status)
{
    return statuses[status].fault;
}

const char *
text(int status)
{
    return statuses[status].text;
}

int
versions(int *driver, int *ret_built)
{
    *driver = (int)setting("EMULATED_CUDA_DRIVER", built);
    *ret_built = (int)built;
    return FINE;
}

int
count(int *n)
{
    long driver = setting("EMULATED_CUDA_DRIVER", built);
    *n = driver < built ? 0 : (int)setting("EMULATED_CUDA_DEVICES", 1);
    return driver == 0 ? NO_DRIVER : driver < built ? OLD_DRIVER : FINE;
}

int
describe(int, struct qdqi_cuda_device *ret)
{
    *ret = {"emulated on the host", 9, 0, 1, (uint64_t)1 << 30};
    return FINE;
}

int
use(int device)
{
    int n;
    int status = count(&n);
    return status ? status : is_lost() ? LOST : device < n ? FINE : NO_DEVICE;
}

/* --- memory ----------------------------------------------------------------- */

/* Kernels run in one thread, and memory is allocated in several. */
std::mutex lock;
std::map<void *, size_t> allocated;
size_t in_use;

int
alloc(size_t bytes, void **ret)
{
    std::lock_guard<std::mutex> locked(lock);
    long most = setting("EMULATED_CUDA_BYTES", 0);
    bool fits = bytes >> 40 == 0 && (most == 0 || in_use + bytes <= (size_t)most);
    if (is_lost())
        return LOST;
    *ret = fits ? aligned_alloc(256, (bytes + 256) / 256 * 256) : NULL;
    if (!*ret)
        return NO_MEMORY;
    memset(*ret, 0xcd, bytes); /* as good as any */
    allocated[*ret] = bytes;
    in_use += bytes;
    return FINE;
}

int
release(void *memory)
{
    std::lock_guard<std::mutex> locked(lock);
    auto at = allocated.find(memory);
    if (memory && at == allocated.end()) {
        fprintf(stderr, "what is no memory of the device is released as such\n");
        abort();
    }
    if (memory) {
        in_use -= at->second;
        allocated.erase(at);
    }
    free(memory);
    return FINE;
}

int
alloc_host(size_t bytes, void **ret)
{
    *ret = malloc(bytes + 1);
    return *ret ? FINE : NO_MEMORY;
}

int
release_host(void *memory)
{
    free(memory);
    return FINE;
}

/* --- streams ---------------------------------------------------------------- */

/*
 * A stream is a list of what is still to be done, which is done as late as can be: when
 * somebody waits for it, or an event behind it. Code that reads without having waited, or
 * overwrites bytes that are still to be copied, gets wrong bytes. The default stream, as that
 * of the kernels here, does all at once.
 */
struct event;

struct item {
    void *to;
    const void *from;
    size_t bytes;
    struct event *event; /* reached here; NULL: a copy */
};

struct stream {
    std::vector<struct item> items;
};

struct event {
    struct stream *stream; /* that it is still to come in; NULL: it was reached */
};

int
stream_open(void **ret)
{
    *ret = new stream;
    return FINE;
}

/* Does all up to `last`, or all there is. */
void
catch_up(struct stream *s, const struct event *last)
{
    size_t n = 0;
    for (bool over = false; !over && n < s->items.size(); n++) {
        const struct item &item = s->items[n];
        if (item.event)
            item.event->stream = NULL;
        else
            memmove(item.to, item.from, item.bytes);
        over = last && item.event == last;
    }
    s->items.erase(s->items.begin(), s->items.begin() + (long)n);
}

int
stream_wait(void *stream)
{
    if (stream)
        catch_up((struct stream *)stream, NULL);
    return is_lost() ? LOST : FINE;
}

int
stream_close(void *stream)
{
    stream_wait(stream);
    delete (struct stream *)stream;
    return FINE;
}

int
copy(void *to, const void *from, size_t bytes, void *stream)
{
    if (is_lost())
        return LOST;
    if (stream)
        ((struct stream *)stream)->items.push_back({to, from, bytes, NULL});
    else
        memmove(to, from, bytes);
    return FINE;
}

int
clear(void *memory, size_t bytes, void *stream)
{
    if (is_lost())
        return LOST;
    stream_wait(stream);
    memset(memory, 0, bytes);
    return FINE;
}

int
event_open(void **ret)
{
    *ret = new event{NULL};
    return FINE;
}

int
event_close(void *event)
{
    delete (struct event *)event;
    return FINE;
}

int
event_record(void *event, void *stream)
{
    struct event *e = (struct event *)event;
    e->stream = (struct stream *)stream;
    if (stream)
        e->stream->items.push_back({NULL, NULL, 0, e});
    return is_lost() ? LOST : FINE;
}

/* Does all work before the event at once, for whichever stream waits. */
int
event_await(void *event, void *)
{
    struct event *e = (struct event *)event;
    if (e->stream)
        catch_up(e->stream, e);
    return is_lost() ? LOST : FINE;
}

int
event_wait(void *event)
{
    return event_await(event, NULL);
}

int
event_seconds(void *, void *, double *ret)
{
    *ret = 0;
    return FINE;
}

/* --- the kernels ------------------------------------------------------------ */

int
extremes_update(int type, const void *data, size_t n, struct qdqi_extremes *e,
                void *stream)
{
    int status = luck(n, "EMULATED_CUDA_MOST");
    return status ? status : qdqi_cuda_extremes_update(type, data, n, e, stream);
}

int
extremes_each(int type, const void *data, size_t n, size_t samples,
              struct qdqi_extremes *e, void *stream)
{
    int status = luck(n, "EMULATED_CUDA_MOST");
    return status ? status : qdqi_cuda_extremes_each(type, data, n, samples, e, stream);
}

int
histogram_update(int type, const void *data, size_t n, struct qdqi_cuda_histogram *h,
                 void *stream)
{
    int status = luck(n, "EMULATED_CUDA_MOST");
    return status ? status : qdqi_cuda_histogram_update(type, data, n, h, stream);
}

int
histogram_continue(int type, const void *data, size_t n, struct qdqi_cuda_histogram *h,
                   void *stream)
{
    int status = luck(n, "EMULATED_CUDA_MOST");
    return status ? status : qdqi_cuda_histogram_continue(type, data, n, h, stream);
}

int
fake(int type, const struct qdqi_grid *grid, const void *in, void *out, void *stream)
{
    int status =
        luck(grid->outer * grid->channels * grid->inner, "EMULATED_CUDA_FAKED");
    return status ? status : qdqi_cuda_fake(type, grid, in, out, stream);
}

int
sums_update(int type, const void *f, const void *q, size_t n, struct qdqi_noise *s,
            void *workspace, void *stream)
{
    int status = luck(n, "EMULATED_CUDA_SUMMED");
    return status ? status : qdqi_cuda_sums_update(type, f, q, n, s, workspace, stream);
}

int
moment_gather(const struct qdqi_cuda_window *w, const struct qdqi_cuda_moment *m,
              const struct qdqi_cuda_rows *rows, void *stream)
{
    int status = luck(rows->n * m->k, "EMULATED_CUDA_GATHERED");
    return status ? status : qdqi_cuda_moment_gather(w, m, rows, stream);
}

const struct qdqi_cuda_api api = {
    .version = QDQI_CUDA_VERSION,
    .is_host = true,
    .fault = fault,
    .text = text,
    .versions = versions,
    .count = count,
    .describe = describe,
    .use = use,
    .alloc = alloc,
    .release = release,
    .alloc_host = alloc_host,
    .release_host = release_host,
    .stream_open = stream_open,
    .stream_close = stream_close,
    .stream_wait = stream_wait,
    .upload = copy,
    .download = copy,
    .copy = copy,
    .clear = clear,
    .event_open = event_open,
    .event_close = event_close,
    .event_record = event_record,
    .event_await = event_await,
    .event_wait = event_wait,
    .event_seconds = event_seconds,
    .extremes_init = qdqi_cuda_extremes_init,
    .extremes_update = extremes_update,
    .extremes_each = extremes_each,
    .histogram_init = qdqi_cuda_histogram_init,
    .histogram_update = histogram_update,
    .histogram_continue = histogram_continue,
    .histogram_extremes = qdqi_cuda_histogram_extremes,
    .fake = fake,
    .sums_workspace = qdqi_cuda_sums_workspace,
    .sums_init = qdqi_cuda_sums_init,
    .sums_update = sums_update,
    .moment_gather = moment_gather,
    .moment_add = qdqi_cuda_moment_add,
};

} // namespace

void
emulated_launch(unsigned blocks, unsigned threads, const std::function<void()> &what)
{
    kernel = &what;
    gridDim.x = blocks;
    blockDim.x = threads;
    for (unsigned b = blocks; b-- > 0;) {
        blockIdx.x = b;
        run_block(threads);
    }
}

void
emulated_wait_block()
{
    leave(AT_BLOCK);
}

void
emulated_wait_warp()
{
    leave(AT_WARP);
}

uint64_t *
emulated_slots()
{
    return slots;
}

/* Bytes of the device that somebody holds. */
extern "C" size_t
emulated_cuda_in_use(void)
{
    return in_use;
}

extern "C" const struct qdqi_cuda_api *
qdqi_cuda_module(void)
{
    return &api;
}
