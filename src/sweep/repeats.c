/* See repeats.h. */
#include "repeats.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/world.h"

static const double TURN = 0.2; /* seconds that one is listened to before the next */

/* One after another in turns; the first that fails is what the trial comes to. */
sweep_event sweep_repeats_follow(sweep_repeats *self, int64_t until, double timeout, int64_t moment,
                                 const volatile int *stop)
{
    if (self->count == 1)
        return sweep_process_follow(self->process[0], until, timeout, moment, stop);
    for (;;) {
        bool all = true, ended = false;
        for (int i = 0; i < self->count; i++) {
            const sweep_event event = sweep_process_follow(
                self->process[i], until, timeout, base_time_first(moment, base_time_after(base_now(), TURN)), stop);
            if (event == SWEEP_FAILS)
                snprintf(self->note, sizeof self->note, "repeat %d: %.480s", i, sweep_process_note(self->process[i]));
            if (event == SWEEP_FAILS || event == SWEEP_STOPPED)
                return event;
            ended = ended || event == SWEEP_ENDED;
            all = all && event != SWEEP_RUNS;
        }
        if (all)
            return ended ? SWEEP_ENDED : SWEEP_REACHED;
        if (base_now() >= moment)
            return SWEEP_RUNS;
    }
}

static const sweep_report *find_step(const sweep_ended *one, int64_t step)
{
    int64_t low = 0, high = one->reports;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (one->curve[middle].step < step)
            low = middle + 1;
        else
            high = middle;
    }
    return low < one->reports && one->curve[low].step == step ? &one->curve[low] : NULL;
}

/* False where one of them has not reported the step. */
static bool average(sweep_report *out, const sweep_ended *each, int count, int64_t step)
{
    *out = (sweep_report){.step = step};
    for (int i = 0; i < count; i++) {
        const sweep_report *one = find_step(&each[i], step);
        if (!one)
            return false;
        out->value += one->value / count;
        for (int k = 0; k < SWEEP_OTHERS_MOST; k++)
            out->other[k] += one->other[k] / count;
    }
    return true;
}

void sweep_repeats_take(sweep_ended *out, sweep_repeats *self, int64_t until)
{
    sweep_ended each[SWEEP_REPEATS_MOST];
    if (self->count == 1) {
        sweep_process_take(out, self->process[0], until);
        return;
    }
    for (int i = 0; i < self->count; i++) {
        each[i] = (sweep_ended){0};
        sweep_process_take(&each[i], self->process[i], until);
    }
    for (int k = 0; k < SWEEP_OTHERS_MOST; k++)
        out->other[k] = NAN;
    (void)base_alloc(&out->curve, (size_t)each[0].reports + 1, sizeof *out->curve, "a learning curve");
    for (int64_t i = 0; i < each[0].reports && out->curve; i++) {
        sweep_report *report = &out->curve[out->reports];
        if (!average(report, each, self->count, each[0].curve[i].step))
            continue;
        out->reports++;
        self->step = report->step;
        if (isnan(self->value) || self->sign * report->value < self->sign * self->value) {
            self->value = report->value;
            memcpy(out->other, report->other, sizeof out->other);
        }
    }
    for (int i = 0; i < self->count; i++)
        base_free(&each[i].curve);
    out->result.value = self->value;
    out->result.step = self->step;
}

const char *sweep_repeats_note(const sweep_repeats *self)
{
    return self->count == 1 ? sweep_process_note(self->process[0]) : self->note;
}

void sweep_repeats_end(sweep_repeats *self)
{
    for (int i = 0; i < self->count; i++)
        sweep_process_end(&self->process[i]);
    self->count = 0;
}
