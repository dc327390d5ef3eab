/* What rounds of a net say while a run goes: how far it is, what each epoch ended with, and that rows are sorted.
 *
 * A round may come from a store that anyone can write to: no number of it is believed. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "learn/train/follow.h"
#include "learn/train/train_internal.h"

const char *const train_follow_names[] = {
    [TRAIN_EPOCH_LOSS] = "loss",           [TRAIN_EPOCH_ACCURACY] = "accuracy",
    [TRAIN_HELD_LOSS] = "validation_loss", [TRAIN_HELD_ACCURACY] = "validation_accuracy",
    [TRAIN_EPOCH_RATE] = "rate",           [TRAIN_EPOCH_VALUES] = NULL,
};

/* From these on rows are said to be sorted; in random order both are near 0. */
static const double SORTED = 0.2, APART = 0.05;

bool train_is_sorted(double sorted, double apart)
{
    return sorted > SORTED || apart > APART;
}

static void warn_sorted(learn_told *out, bool apart)
{
    snprintf(out->warning, sizeof out->warning,
             "the rows are sorted by class%s: --shuffle-rows mixes them as they are loaded, and shoal data shuffle, or "
             "shoal data pack --shuffle, once for all",
             apart ? ", so that those held out have other classes than those that are trained on"
                   : ", so that the runs of them that batches draw from have different classes");
}

static void tell_line(learn_told *out, const shoal_round *round, const train_model *model, int64_t steps, bool patient)
{
    const int64_t epoch = (round->step < 0 ? 0 : round->step) / steps, at = round->step - epoch * steps;
    const double *last = model->last;
    int length = snprintf(out->line, sizeof out->line, "epoch %lld/%lld, step %lld/%lld",
                          (long long)(epoch < model->set.epochs ? epoch + 1 : epoch), (long long)model->set.epochs,
                          (long long)at, (long long)steps);
    if (isfinite(round->objective))
        length += snprintf(out->line + length, sizeof out->line - (size_t)length, ", loss %.4g", round->objective);
    else if (out->row > 0 && isfinite(last[TRAIN_EPOCH_LOSS]))
        length +=
            snprintf(out->line + length, sizeof out->line - (size_t)length, ", loss %.4g", last[TRAIN_EPOCH_LOSS]);
    if (out->row > 0 && isfinite(last[TRAIN_HELD_ACCURACY]))
        snprintf(out->line + length, sizeof out->line - (size_t)length, ", validation %.2f%%",
                 100 * last[TRAIN_HELD_ACCURACY]);
    out->done = (double)round->step / (double)round->steps;
    out->rows = (double)round->step * (double)model->set.batch;
    out->may_end = patient;
}

void train_follow(learn_told *out, const void *untyped, const shoal_round *round, const shoal_result *result)
{
    const train_config *config = untyped;
    if (!round) {
        if (shoal_result_number(result, "sorted") > 0)
            warn_sorted(out, false);
        return;
    }
    const train_model *model = round->model;
    const bool run = strcmp(round->phase, "run") == 0, held = strcmp(round->phase, "validate") == 0;
    if (!model || round->model_bytes < sizeof *model || !(run || held) || round->steps < 1 || round->step < 0 ||
        round->step > round->steps || model->set.epochs < 1 || model->set.batch < 1)
        return;
    /* Of validation rows in a file of their own other classes may be meant, and order changes nothing. */
    const bool apart = model->apart > APART && !(config && config->held > 0);
    if (apart || model->sorted > SORTED)
        warn_sorted(out, apart);
    const int64_t steps = run ? round->steps / model->set.epochs : 0;
    if (held)
        out->row = round->step > 0 ? round->step - 1 : 0;
    else
        out->row = steps > 0 ? round->step / steps : 0;
    out->values = model->last;
    if (run && steps > 0)
        tell_line(out, round, model, steps, model->set.patience > 0);
}
