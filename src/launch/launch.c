/* A group of launchers, one for each --workers: counts are distributed among them, and the rest continue when some
 * fail.  See launch.h. */
#include "launch/launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <shoal/error.h>

#include "base/memory.h"
#include "base/world.h"
#include "launch/launch_internal.h"

static const struct launcher *const launchers[] = {&launch_local, &launch_ssh, &launch_slurm};
enum { LAUNCHERS = sizeof launchers / sizeof *launchers, WAIT_POLL_MS = 5 };

typedef struct member {
    launch_workers *workers;
    int64_t share; /* workers it was first asked for */
    bool failed;   /* its last tick did, and that was reported */
} member;

struct launch_group {
    launch_order order;
    int count;
    member members[SHOAL_TEXTS_MOST];
    int64_t wanted, slots; /* slots: numbers of workers that may be given out */
};

/* ---- what is asked for ------------------------------------------------------------------------------------------- */

/* The launcher that a spec names; *rest is the text after its colon.  A bare number means processes of this machine. */
static int find_launcher(const struct launcher **out, const char **rest, const char *spec)
{
    const char *colon = strchr(spec, ':');
    size_t length = colon ? (size_t)(colon - spec) : 0;
    if (*spec && !spec[strspn(spec, "0123456789.")]) {
        *out = &launch_local;
        *rest = spec;
        return SHOAL_OK;
    }
    for (int i = 0; i < LAUNCHERS; i++)
        if (strlen(launchers[i]->scheme) == length && strncmp(launchers[i]->scheme, spec, length) == 0) {
            *out = launchers[i];
            *rest = colon + 1;
            return SHOAL_OK;
        }
    char forms[128] = "N, ";
    for (int i = 0; i < LAUNCHERS; i++) {
        size_t used = strlen(forms);
        snprintf(forms + used, sizeof forms - used, "%s%s",
                 i == 0              ? ""
                 : i + 1 < LAUNCHERS ? ", "
                                     : " or ",
                 launchers[i]->form);
    }
    return shoal_fail(SHOAL_USAGE, "--workers: '%s' is not one of %s", spec, forms);
}

/* "1..8" at the start of what follows the colon: *rest is the text from the 8 on.  `least` is 0 without a range. */
static int take_range(int64_t *least, const char **rest, const struct launcher *launcher, const char *spec)
{
    const char *dots = strstr(*rest, "..");
    char number[24];
    size_t length = dots ? (size_t)(dots - *rest) : 0;
    *least = 0;
    if (length == 0 || strspn(*rest, "0123456789") != length)
        return SHOAL_OK;
    snprintf(number, sizeof number, "%.*s", (int)(length < 20 ? length : 20), *rest);
    int64_t most = strtoll(dots + 2, NULL, 10);
    *least = strtoll(number, NULL, 10);
    size_t digits = strspn(dots + 2, "0123456789");
    if (*least < 1 || most < *least || digits == 0 || (dots[2 + digits] && dots[2 + digits] != '?'))
        return shoal_fail(SHOAL_USAGE, "--workers: '%s' should be a range such as 1..8, from 1 up", spec);
    if (launcher == &launch_ssh) /* "ssh:2" would be a host */
        return shoal_fail(SHOAL_USAGE,
                          "--workers: '%s': hosts have no range; with --deadline or --budget their list "
                          "is the most, and one worker the least",
                          spec);
    *rest = dots + 2;
    return SHOAL_OK;
}

int launch_ask_for(launch_ask *out, const launch_specs *specs, const char *store_scheme, int64_t threads)
{
    *out = (launch_ask){.local = true, .patience = specs->count == 0 ? 3600 : 0};
    for (int i = 0; i < specs->count; i++) {
        const struct launcher *launcher = NULL;
        const char *rest = NULL;
        int64_t before = out->workers, least = 0;
        int status = find_launcher(&launcher, &rest, specs->text[i]);
        if (status == SHOAL_OK)
            status = take_range(&least, &rest, launcher, specs->text[i]);
        if (status == SHOAL_OK)
            status = launcher->ask(out, rest, store_scheme, threads);
        if (status < 0)
            return status;
        if (out->workers > LAUNCH_WORKERS_MOST)
            return shoal_fail(SHOAL_USAGE, "--workers: %lld workers are more than the %d there can be",
                              (long long)out->workers, LAUNCH_WORKERS_MOST);
        out->least += least;
        out->patience = launcher->patience > out->patience ? launcher->patience : out->patience;
        out->part[out->count++] = (launch_part){.launcher = launcher, .rest = rest, .workers = out->workers - before};
    }
    return SHOAL_OK;
}

/* ---- starting ---------------------------------------------------------------------------------------------------- */

static int start_member(launch_group *self, const launch_part *part, int64_t begin, int64_t extra)
{
    member *member = &self->members[self->count];
    int status = base_alloc((void **)&member->workers, 1, part->launcher->size, "the workers");
    if (status < 0)
        return status;
    *member->workers =
        (launch_workers){.class = part->launcher, .order = &self->order, .first_slot = self->slots, .begin = begin};
    member->share = part->workers;
    status = part->launcher->start(member->workers, part->rest, extra);
    if (status < 0) {
        part->launcher->free(member->workers);
        base_free(&member->workers);
        return status;
    }
    self->slots += part->workers + extra;
    self->wanted += (begin >= 0 ? begin : part->workers) + extra;
    self->count++;
    return SHOAL_OK;
}

/* How many of `count` workers belong to the first `parts` of them, as share_up_to. */
static int64_t share_of_ask(const launch_ask *ask, int parts, int64_t count)
{
    int64_t before = 0;
    for (int i = 0; i < parts; i++)
        before += ask->part[i].workers;
    return ask->workers > 0 ? (int64_t)((double)count * (double)before / (double)ask->workers + 0.5) : 0;
}

int launch_new(launch_group **out, const launch_ask *ask, const launch_order *order)
{
    launch_group *self = NULL;
    *out = NULL;
    int status = base_alloc(&self, 1, sizeof *self, "the workers");
    if (status < 0)
        return status;
    self->order = *order;
    for (int i = 0; i < ask->count && status == SHOAL_OK; i++) {
        int64_t begin =
            order->begin > 0 ? share_of_ask(ask, i + 1, order->begin) - share_of_ask(ask, i, order->begin) : -1;
        status = start_member(self, &ask->part[i], begin, i == 0 ? order->helpers : 0);
    }
    if (status < 0) {
        char *why = NULL;
        bool kept = base_copy_text(&why, shoal_error()) == SHOAL_OK;
        launch_stop(self, 2);
        launch_free(&self);
        shoal_fail(status, "%s", kept ? why : "out of memory");
        base_free(&why);
        return status;
    }
    *out = self;
    return SHOAL_OK;
}

/* ---- while they run ---------------------------------------------------------------------------------------------- */

/* The rest continue without those of this launcher. */
static void note_failure(launch_group *self, member *member)
{
    if (!member->failed && self->count > 1 && self->order.say)
        self->order.say(self->order.context, shoal_error());
    member->failed = true;
}

int launch_tick(launch_group *self)
{
    int failed = 0, last = SHOAL_OK;
    for (int i = 0; i < self->count; i++) {
        member *member = &self->members[i];
        int status = member->workers->class->tick(member->workers);
        if (status < 0) {
            note_failure(self, member);
            failed++;
            last = status;
        } else {
            member->failed = false;
        }
    }
    return failed > 0 && failed == self->count ? last : SHOAL_OK;
}

void launch_progress(launch_group *self)
{
    for (int i = 0; i < self->count; i++)
        self->members[i].workers->class->progress(self->members[i].workers);
}

/* How many of `count` workers belong to the first `members` launchers, in proportion to what they were first asked for;
 * helpers belong to the first launcher. */
static int64_t share_up_to(const launch_group *self, int members, int64_t count)
{
    int64_t before = 0, all = 0;
    for (int i = 0; i < self->count; i++) {
        all += self->members[i].share;
        before += i < members ? self->members[i].share : 0;
    }
    return all > 0 ? (int64_t)((double)count * (double)before / (double)all + 0.5) : 0;
}

int launch_scale(launch_group *self, int64_t count)
{
    if (count < 0 || count > LAUNCH_WORKERS_MOST)
        return shoal_fail(SHOAL_USAGE, "%lld workers: there can be 0 to %d", (long long)count, LAUNCH_WORKERS_MOST);
    int64_t helpers = count < self->order.helpers ? count : self->order.helpers, mapping = count - helpers;
    int status = SHOAL_OK;
    for (int i = 0; i < self->count && status == SHOAL_OK; i++) {
        launch_workers *workers = self->members[i].workers;
        int64_t share = share_up_to(self, i + 1, mapping) - share_up_to(self, i, mapping);
        status = workers->class->scale(workers, share + (i == 0 ? helpers : 0));
    }
    if (status == SHOAL_OK)
        self->wanted = count;
    return status;
}

int64_t launch_running(const launch_group *self)
{
    int64_t running = 0;
    for (int i = 0; i < self->count; i++)
        running += self->members[i].workers->class->running(self->members[i].workers);
    return running;
}

int64_t launch_wanted(const launch_group *self)
{
    return self->wanted;
}

/* ---- their end --------------------------------------------------------------------------------------------------- */

bool launch_wait(launch_group *self, double seconds)
{
    int64_t until = base_time_after(base_now(), seconds);
    for (;;) {
        bool over = true;
        for (int i = 0; i < self->count; i++)
            over = self->members[i].workers->class->is_over(self->members[i].workers) && over;
        if (over || base_now() >= until)
            return over;
        base_sleep_until(base_time_after(base_now(), WAIT_POLL_MS / 1000.0));
    }
}

void launch_stop(launch_group *self, double seconds)
{
    for (int i = 0; i < self->count; i++)
        self->members[i].workers->class->tell_leave(self->members[i].workers);
    if (launch_wait(self, seconds))
        return;
    for (int i = 0; i < self->count; i++)
        self->members[i].workers->class->end(self->members[i].workers);
}

void launch_free(launch_group **group)
{
    launch_group *self = *group;
    if (!self)
        return;
    for (int i = 0; i < self->count; i++) {
        self->members[i].workers->class->free(self->members[i].workers);
        base_free(&self->members[i].workers);
    }
    base_free(group);
}
