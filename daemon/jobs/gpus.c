/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "jobs/gpus.h"
#include "base/check.h"
#include "base/clock.h"

#include <string.h>

void
gpus_init(struct gpus *gpus, const char *text)
{
    memset(gpus, 0, sizeof *gpus);
    lock_init(&gpus->lock, LOCK_GPUS);
    (void)gpus_parse(text, gpus->devices, &gpus->n);
}

void
gpus_fini(struct gpus *gpus)
{
    lock_fini(&gpus->lock);
}

/* Finds the first of the jobs that lent the device. The caller holds the lock. */
static struct gpus_turn *
first_turn(struct gpus *gpus, int device)
{
    lock_assert_held(&gpus->lock);
    struct gpus_turn *turn = gpus->turns;
    while (turn && turn->device != device)
        turn = turn->next;
    return turn;
}

static size_t
index_of(const struct gpus *gpus, int device)
{
    size_t i = 0;
    while (i < gpus->n && gpus->devices[i] != device)
        i++;
    QDQD_CHECK(i < gpus->n);
    return i;
}

int
gpus_claim(struct gpus *gpus)
{
    int device = GPUS_NONE;
    int64_t now = clock_steady_ms();
    lock_acquire(&gpus->lock);
    for (size_t i = 0; device == GPUS_NONE && i < gpus->n; i++)
        if (!gpus->taken[i] &&
            (gpus->offered[i] > now || !first_turn(gpus, gpus->devices[i]))) {
            gpus->taken[i] = true;
            device = gpus->devices[i];
        }
    lock_release(&gpus->lock);
    return device;
}

void
gpus_keep(struct gpus *gpus, int device)
{
    lock_acquire(&gpus->lock);
    gpus->offered[index_of(gpus, device)] = 0;
    gpus->wanted = false;
    lock_release(&gpus->lock);
}

void
gpus_give_back(struct gpus *gpus, int device)
{
    lock_acquire(&gpus->lock);
    for (size_t i = 0; i < gpus->n; i++)
        if (gpus->devices[i] == device)
            gpus->taken[i] = false;
    lock_release(&gpus->lock);
}

bool
gpus_are_claimed(struct gpus *gpus)
{
    bool taken = gpus->n > 0;
    lock_acquire(&gpus->lock);
    for (size_t i = 0; i < gpus->n; i++)
        taken &= gpus->taken[i];
    lock_release(&gpus->lock);
    return taken;
}

/* --- between steps -------------------------------------------------------- */

/*
 * Milliseconds that a lane may take to claim the next job, since it waits for the disk.
 * No lane comes when that job was cancelled meanwhile, or the lane has found other
 * work.
 */
enum { OFFER_MS = 1000 };

void
gpus_want(struct gpus *gpus)
{
    lock_acquire(&gpus->lock);
    gpus->wanted = gpus->n > 0;
    lock_release(&gpus->lock);
}

bool
gpus_is_wanted(struct gpus *gpus, int device)
{
    lock_acquire(&gpus->lock);
    bool wanted = gpus->wanted || first_turn(gpus, device);
    lock_release(&gpus->lock);
    return wanted;
}

void
gpus_lend(struct gpus *gpus, int device, struct gpus_turn *turn)
{
    lock_acquire(&gpus->lock);
    size_t i = index_of(gpus, device);
    gpus->taken[i] = false;
    gpus->offered[i] = gpus->wanted ? clock_steady_ms() + OFFER_MS : 0;
    gpus->wanted = false;
    struct gpus_turn **last = &gpus->turns;
    while (*last)
        last = &(*last)->next;
    *turn = (struct gpus_turn){.device = device};
    *last = turn;
    lock_release(&gpus->lock);
}

/* The caller holds the lock. */
static void
remove_turn(struct gpus *gpus, struct gpus_turn *turn)
{
    lock_assert_held(&gpus->lock);
    struct gpus_turn **at = &gpus->turns;
    while (*at != turn) {
        QDQD_CHECK(*at);
        at = &(*at)->next;
    }
    *at = turn->next;
}

bool
gpus_regain(struct gpus *gpus, struct gpus_turn *turn)
{
    int64_t now = clock_steady_ms();
    lock_acquire(&gpus->lock);
    size_t i = index_of(gpus, turn->device);
    bool has_it = !gpus->taken[i] && gpus->offered[i] <= now &&
                  first_turn(gpus, turn->device) == turn;
    if (has_it) {
        gpus->taken[i] = true;
        remove_turn(gpus, turn);
    }
    lock_release(&gpus->lock);
    return has_it;
}

void
gpus_forgo(struct gpus *gpus, struct gpus_turn *turn)
{
    lock_acquire(&gpus->lock);
    remove_turn(gpus, turn);
    lock_release(&gpus->lock);
}
