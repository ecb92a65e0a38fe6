/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fibers of cuda_runtime.h, and a CUDA module whose device is the host. Threads that
 * go on when they should wait, or wait for what never comes, are found; two that race
 * are not: a fiber runs until it waits.
 *
 * Mishaps, by the environment:
 *   EMULATED_CUDA_LOST=N    with the Nth of the kernels' launchers the device is lost
 *   EMULATED_CUDA_MOST=N    there is not the memory for tensors of more than N elements
 */
#include <cuda_runtime.h>

#include "cuda/api.h"

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
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
    std::vector<char> stack;
};

std::vector<struct fiber> fibers(MAX_THREADS);
uint64_t slots[MAX_THREADS];
jmp_buf scheduler;
const std::function<void()> *kernel;

void
leave(enum state state)
{
    struct fiber &f = fibers[threadIdx.x];
    f.state = state;
    if (state == DONE || _setjmp(f.place) == 0)
        _longjmp(scheduler, 1);
}

void
begin()
{
    (*kernel)();
    leave(DONE);
}

void
resume(unsigned i)
{
    struct fiber &f = fibers[i];
    threadIdx.x = i;
    if (_setjmp(scheduler) != 0)
        return;
    if (f.begun)
        _longjmp(f.place, 1);
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
    f->stack.resize(STACK);
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack.data();
    f->context.uc_stack.ss_size = STACK;
    makecontext(&f->context, begin, 0);
    f->state = READY;
    f->begun = false;
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

enum { FINE, INVALID = cudaErrorInvalidValue, NO_MEMORY, NO_DEVICE, LOST };

long
setting(const char *name)
{
    const char *value = getenv(name);
    return value ? strtol(value, NULL, 10) : 0;
}

unsigned long launches;

bool
is_lost()
{
    long last = setting("EMULATED_CUDA_LOST");
    return last > 0 && launches >= (unsigned long)last;
}

/* What becomes of a launcher's work on so many elements. */
int
luck(size_t n)
{
    long most = setting("EMULATED_CUDA_MOST");
    launches++;
    return is_lost() ? LOST : most > 0 && n > (size_t)most ? NO_MEMORY : FINE;
}

enum qdqi_cuda_fault
fault(int status)
{
    static const enum qdqi_cuda_fault faults[] = {
        QDQI_CUDA_FINE, QDQI_CUDA_OTHER, QDQI_CUDA_MEMORY, QDQI_CUDA_NO_DEVICE,
        QDQI_CUDA_LOST};
    return faults[status];
}

const char *
text(int status)
{
    static const char *const texts[] = {"fine", "invalid value", "out of memory",
                                        "no device", "fell off the bus"};
    return texts[status];
}

int
versions(int *driver, int *built)
{
    *driver = *built = 13000;
    return FINE;
}

int
count(int *n)
{
    *n = 1;
    return FINE;
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
    return device == 0 ? FINE : NO_DEVICE;
}

int
alloc(size_t bytes, void **ret)
{
    *ret = bytes >> 40 ? NULL : aligned_alloc(256, (bytes + 256) / 256 * 256);
    if (*ret)
        memset(*ret, 0xcd, bytes); /* as good as any */
    return *ret ? FINE : NO_MEMORY;
}

int
release(void *memory)
{
    free(memory);
    return FINE;
}

int
open_handle(void **ret)
{
    return alloc(1, ret);
}

/* All is done when it is asked for. */
int
wait(void *)
{
    return is_lost() ? LOST : FINE;
}

int
extremes_update(int type, const void *data, size_t n, struct qdqi_extremes *e,
                void *stream)
{
    int status = luck(n);
    return status ? status : qdqi_cuda_extremes_update(type, data, n, e, stream);
}

int
histogram_update(int type, const void *data, size_t n, struct qdqi_cuda_histogram *h,
                 void *stream)
{
    int status = luck(n);
    return status ? status : qdqi_cuda_histogram_update(type, data, n, h, stream);
}

int
fake(int type, const struct qdqi_grid *grid, const void *in, void *out, void *stream)
{
    int status = luck(grid->outer * grid->channels * grid->inner);
    return status ? status : qdqi_cuda_fake(type, grid, in, out, stream);
}

int
copy(void *to, const void *from, size_t bytes, void *)
{
    memmove(to, from, bytes);
    return FINE;
}

int
mark(void *, void *)
{
    return FINE;
}

int
seconds(void *, void *, double *ret)
{
    *ret = 0;
    return FINE;
}

const struct qdqi_cuda_api api = {
    .version = QDQI_CUDA_VERSION,
    .fault = fault,
    .text = text,
    .versions = versions,
    .count = count,
    .describe = describe,
    .use = use,
    .alloc = alloc,
    .release = release,
    .alloc_host = alloc,
    .release_host = release,
    .stream_open = open_handle,
    .stream_close = release,
    .stream_wait = wait,
    .upload = copy,
    .download = copy,
    .copy = copy,
    .event_open = open_handle,
    .event_close = release,
    .event_record = mark,
    .event_await = mark,
    .event_seconds = seconds,
    .extremes_init = qdqi_cuda_extremes_init,
    .extremes_update = extremes_update,
    .histogram_init = qdqi_cuda_histogram_init,
    .histogram_update = histogram_update,
    .fake = fake,
    .sums_workspace = qdqi_cuda_sums_workspace,
    .sums_init = qdqi_cuda_sums_init,
    .sums_update = qdqi_cuda_sums_update,
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

extern "C" const struct qdqi_cuda_api *
qdqi_cuda_module(void)
{
    return &api;
}
