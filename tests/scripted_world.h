/* A world whose clock moves only when someone sleeps, and whose chance is what a test says. */
#ifndef SCRIPTED_WORLD_H
#define SCRIPTED_WORLD_H

#include <string.h>

#include "base/world.h"

static int64_t clock_now = 1000000000;
static uint32_t random_word = 0x5a5a5a5a; /* the first four random bytes */

static int64_t now_scripted(void)
{
    return clock_now;
}

static void wait_scripted(const _Atomic uint32_t *word, uint32_t value, int64_t until)
{
    (void)word;
    (void)value;
    clock_now = until > clock_now ? until : clock_now;
}

static void wake_scripted(const _Atomic uint32_t *word, int most)
{
    (void)word;
    (void)most;
}

static void random_scripted(void *bytes, size_t size)
{
    memset(bytes, 0x5a, size);
    memcpy(bytes, &random_word, size < sizeof random_word ? size : sizeof random_word);
}

static const base_world scripted_world = {
    .now = now_scripted, .wait = wait_scripted, .wake = wake_scripted, .random = random_scripted};

#endif
