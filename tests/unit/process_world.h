/* A world for tests of real processes: the clock moves when someone waits, so that a minute takes no time, but each
 * wait gives processes a moment.  Every random number is another one. */
#ifndef PROCESS_WORLD_H
#define PROCESS_WORLD_H

#include <stdint.h>
#include <string.h>
#include <time.h>

#include "base/world.h"

static int64_t clock_now = 1000000000;
static unsigned char chance;

static int64_t now_own(void)
{
    return clock_now;
}

static void wait_own(const _Atomic uint32_t *word, uint32_t value, int64_t until)
{
    (void)word;
    (void)value;
    clock_now = until > clock_now ? until : clock_now;
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void wake_own(const _Atomic uint32_t *word, int most)
{
    (void)word;
    (void)most;
}

static void random_own(void *bytes, size_t size)
{
    memset(bytes, ++chance, size);
}

static const base_world own_world = {.now = now_own, .wait = wait_own, .wake = wake_own, .random = random_own};

#endif
