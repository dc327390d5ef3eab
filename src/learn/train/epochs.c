/* What the ends of epochs do: rows that are held out are scored, the weights of the best epoch are kept, and the run
 * may end; and the result.  See train_internal.h. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "learn/check.h"
#include "learn/train/follow.h"
#include "learn/train/train_internal.h"

const double *train_history(const train_now *self)
{
    const train_kept kept = train_kept_of(self->model, &self->net, 0);
    return self->kept_before ? (const double *)(const void *)(self->kept_before + kept.history) : NULL;
}

void train_epoch_values(double values[TRAIN_EPOCH_VALUES], const train_now *self, const train_model *header)
{
    const double rows = fmax((double)header->seen, 1);
    values[TRAIN_EPOCH_LOSS] = header->loss / rows;
    values[TRAIN_EPOCH_ACCURACY] = header->right / rows;
    values[TRAIN_HELD_LOSS] = values[TRAIN_HELD_ACCURACY] = NAN;
    values[TRAIN_EPOCH_RATE] = train_rate(&header->set, header->step - 1, self->steps);
}

void train_end_epoch(train_model *header, int64_t ended, const double values[TRAIN_EPOCH_VALUES], double loss)
{
    memcpy(header->last, values, sizeof header->last);
    header->loss = header->right = 0;
    header->seen = 0;
    if (header->best_epoch == 0 || loss < header->best_loss) {
        header->best_loss = loss;
        header->best_epoch = ended;
    }
    header->kept_epoch = header->set.keep == TRAIN_LAST ? ended : header->best_epoch;
}

/* ---- what rounds keep -------------------------------------------------------------------------------------------- */

/* Whether the round that this header is of has just ended the epoch whose weights are kept. */
static bool begins_weights(const train_now *self, const train_model *header)
{
    return header->kept_epoch > 0 && header->phase != TRAIN_VALIDATE &&
           header->step == header->kept_epoch * self->steps;
}

char *train_keep_round(shoal_round *made, const train_now *self, const train_model *header)
{
    const bool begins = begins_weights(self, header);
    if (header->kept_epoch > 0 && !begins)
        shoal_round_keep_on(made, self->round, 0);
    const train_kept kept = train_kept_of(header, &self->net, train_ended(header, self->shape));
    char *bytes = shoal_round_keep(made, begins ? kept.whole : kept.bytes);
    const size_t moments = (size_t)(kept.moments * train_net_learns(&self->net)) * sizeof(float);
    if (bytes) /* what is between them */
        memset(bytes + moments, 0, kept.history - moments);
    return bytes;
}

void train_write_history(char *kept, const train_now *self, const train_model *header,
                         const double values[TRAIN_EPOCH_VALUES])
{
    double *history = (double *)(void *)(kept + train_kept_of(header, &self->net, 0).history);
    const int64_t before = train_ended(self->model, self->shape), ended = train_ended(header, self->shape);
    if (before > 0)
        memcpy(history, train_history(self), (size_t)(before * TRAIN_EPOCH_VALUES) * sizeof *history);
    if (ended > before)
        memcpy(history + before * TRAIN_EPOCH_VALUES, values, TRAIN_EPOCH_VALUES * sizeof *history);
}

void train_write_weights(char *kept, const train_now *self, const shoal_round *made)
{
    const train_model *header = made->model;
    if (begins_weights(self, header))
        memcpy(kept + train_kept_of(header, &self->net, header->kept_epoch).weights, train_parameters(header),
               train_weights_bytes(&self->net));
}

const char *train_kept_weights(const train_now *self)
{
    return self->model->kept_epoch > 0 ? self->round->kept[0]->values : NULL;
}

/* ---- the result -------------------------------------------------------------------------------------------------- */

/* Whether the model is to have the weights of kept_epoch and not those of the moment. */
static bool takes_kept(const train_found *found, const shoal_shape *shape)
{
    return found->weights &&
           (found->end == TRAIN_DIVERGED || (shape->held > 0 && found->model->set.keep == TRAIN_BEST));
}

static void set_numbers(shoal_result *result, const train_now *self, const train_found *found, bool kept)
{
    const train_model *model = found->model;
    const bool at_end = model->step == found->epochs * self->steps;
    const int64_t epoch = kept ? model->kept_epoch : at_end ? found->epochs : 0;
    const int64_t last = epoch > 0 ? epoch : found->epochs;
    const double *of = last > 0 ? found->history + (last - 1) * TRAIN_EPOCH_VALUES : NULL;
    shoal_result_set_whole(result, "classes", model->classes);
    shoal_result_set_whole(result, "parameters", self->net.parameters);
    shoal_result_set_whole(result, "epochs", found->epochs);
    shoal_result_set_whole(result, "epoch", epoch);
    shoal_result_set_whole(result, "steps", model->step);
    shoal_result_set_whole(result, "steps_per_epoch", self->steps);
    shoal_result_set_whole(result, "batch", model->set.batch);
    shoal_result_set(result, "rate", model->set.rate);
    shoal_result_set_whole(result, "repeated", model->repeated);
    shoal_result_set(result, "loss", of ? of[TRAIN_EPOCH_LOSS] : NAN);
    shoal_result_set(result, "accuracy", of ? of[TRAIN_EPOCH_ACCURACY] : NAN);
    shoal_result_set(result, "validation_loss", of ? of[TRAIN_HELD_LOSS] : NAN);
    shoal_result_set(result, "validation_accuracy", of ? of[TRAIN_HELD_ACCURACY] : NAN);
    shoal_result_set_truth(result, "stopped_early", found->end == TRAIN_IDLE);
    shoal_result_set_truth(result, "diverged", found->end == TRAIN_DIVERGED);
    shoal_result_set_truth(result, "sorted", train_is_sorted(model->sorted, model->apart));
    shoal_result_set_whole(result, "channels", model->set.channels);
    shoal_result_set_whole(result, "height", model->set.height);
    shoal_result_set_whole(result, "width", model->set.width);
    shoal_result_set_truth(result, "flat", model->set.flat != 0);
    shoal_result_set(result, "scale", model->set.scale);
    shoal_result_set(result, "shift", model->set.shift);
    result->incomplete = found->end == TRAIN_STOPPED;
}

int train_make_result(shoal_result **out, const train_now *self, const train_found *found)
{
    const train_model *model = found->model;
    const int64_t text = (int64_t)strlen(model->text), sizes[2] = {found->epochs, TRAIN_EPOCH_VALUES};
    const bool kept = takes_kept(found, self->shape);
    const int64_t count = train_net_values(&self->net);
    shoal_result *result = NULL;
    int status = shoal_result_new(&result);
    if (status < 0)
        return status;
    float *values = shoal_result_add(result, "parameters", SHOAL_FLOAT32, 1, &count);
    double *classes = shoal_result_add(result, "classes", SHOAL_FLOAT64, 1, &model->classes);
    char *net = shoal_result_add(result, "net", SHOAL_UINT8, 1, &text);
    double *ended = shoal_result_add(result, "history", SHOAL_FLOAT64, 2, sizes);
    if (!values || !classes || !net || !ended) {
        shoal_result_free(&result);
        return SHOAL_MEMORY;
    }
    const size_t at = train_kept_of(model, &self->net, model->kept_epoch).weights;
    train_export(values, &self->net, kept ? (const float *)(const void *)(found->weights + at) : found->parameters);
    memcpy(classes, model->label, (size_t)model->classes * sizeof *classes);
    memcpy(net, model->text, (size_t)text);
    if (found->epochs > 0)
        memcpy(ended, found->history, (size_t)(found->epochs * TRAIN_EPOCH_VALUES) * sizeof *ended);
    set_numbers(result, self, found, kept);
    *out = result;
    return SHOAL_OK;
}

/* The shape of the rows and how they are scaled: a net is parsed with these to find its tensors. */
static bool has_settings(const shoal_result *result, const train_settings *set)
{
    return shoal_result_number(result, "channels") == (double)set->channels &&
           shoal_result_number(result, "height") == (double)set->height &&
           shoal_result_number(result, "width") == (double)set->width &&
           shoal_result_number(result, "flat") == (double)set->flat &&
           shoal_result_number(result, "scale") == set->scale && shoal_result_number(result, "shift") == set->shift;
}

int train_check_result(const shoal_algorithm *self, const shoal_result *result, const shoal_round *first,
                       const shoal_shape *shape)
{
    const train_model *model = first->model;
    const shoal_tensor *history = shoal_result_tensor(result, "history");
    const int64_t text = (int64_t)strlen(model->text), any[2] = {-1, TRAIN_EPOCH_VALUES};
    const double epoch = shoal_result_number(result, "epoch");
    train_net net;
    (void)self, (void)shape;
    if (train_model_net(&net, model) < 0)
        return SHOAL_BROKEN;
    const int64_t count = train_net_values(&net);
    const bool good = history && learn_result_has(result, "parameters", SHOAL_FLOAT32, 1, &count) &&
                      learn_result_has(result, "classes", SHOAL_FLOAT64, 1, &net.classes) &&
                      learn_result_has(result, "net", SHOAL_UINT8, 1, &text) &&
                      learn_result_has(result, "history", SHOAL_FLOAT64, 2, any) &&
                      history->shape[0] <= model->set.epochs && epoch >= 0 && epoch <= (double)history->shape[0] &&
                      epoch == floor(epoch) && has_settings(result, &model->set) &&
                      memcmp(shoal_result_tensor(result, "net")->values, model->text, (size_t)text) == 0 &&
                      learn_classes_good(shoal_result_tensor(result, "classes")->values, net.classes);
    return good ? SHOAL_OK : shoal_fail(SHOAL_BROKEN, "the result is not a net for these rows");
}

/* ---- the end of an epoch ----------------------------------------------------------------------------------------- */

int train_update_held(shoal_round **next, shoal_result **result, const train_now *self, const shoal_partial *merged,
                      bool stop)
{
    const train_model *model = self->model;
    const int64_t *measure = shoal_partial_values_const(merged, TRAIN_CELL_MEASURES), ended = model->step / self->steps;
    const double held = (double)self->shape->held;
    double values[TRAIN_EPOCH_VALUES];
    train_model *header = NULL;
    shoal_round *made = NULL;
    char *kept = NULL;
    int status = base_alloc_unset(&header, 1, sizeof *header, "a net");
    if (status < 0)
        return status;
    *header = *model;
    train_epoch_values(values, self, header);
    values[TRAIN_HELD_LOSS] = (double)measure[TRAIN_LOSS] * train_loss_unit(&self->round->layout, self->shape) / held;
    values[TRAIN_HELD_ACCURACY] = (double)measure[TRAIN_RIGHT] / held;
    header->phase = train_memo_values(&header->set, &self->net) > 0 ? TRAIN_REMEMBER : TRAIN_RUN;
    train_end_epoch(header, ended, values, values[TRAIN_HELD_LOSS]);
    status = train_new_round(&made, header, &self->net, self->shape);
    kept = status == SHOAL_OK ? train_keep_round(made, self, header) : NULL;
    if (!kept) {
        status = SHOAL_MEMORY;
        goto done;
    }
    const size_t history = train_kept_of(model, &self->net, 0).history;
    memcpy(train_parameters_of(made), train_parameters(model), train_weights_bytes(&self->net));
    memcpy(kept, self->kept_before, history);
    train_write_history(kept, self, header, values);
    train_write_weights(kept, self, made);
    const bool idle = model->set.patience > 0 && ended - header->best_epoch >= model->set.patience;
    if (stop || idle || ended == model->set.epochs) {
        train_now after = *self;
        after.round = made;
        after.model = made->model;
        status = train_make_result(result, &after,
                                   &(train_found){.model = header,
                                                  .parameters = train_parameters(model),
                                                  .history = (const double *)(const void *)(kept + history),
                                                  .weights = train_kept_weights(&after),
                                                  .epochs = ended,
                                                  .end = ended == model->set.epochs ? TRAIN_DONE
                                                         : idle                     ? TRAIN_IDLE
                                                                                    : TRAIN_STOPPED});
    } else {
        *next = made;
        made = NULL;
    }
done:
    shoal_round_free(&made);
    base_free(&header);
    return status;
}

int train_stop(shoal_result **result, const train_now *self)
{
    return train_make_result(result, self,
                             &(train_found){.model = self->model,
                                            .parameters = train_parameters(self->model),
                                            .history = train_history(self),
                                            .weights = train_kept_weights(self),
                                            .epochs = self->model->step / self->steps,
                                            .end = TRAIN_STOPPED});
}

int train_diverge(shoal_result **result, const train_now *self)
{
    const train_model *model = self->model;
    if (model->kept_epoch == 0)
        return shoal_fail(SHOAL_INVALID,
                          "the loss is no longer finite in epoch %" PRId64 ", step %" PRId64
                          ": try a lower --rate than %g, or a --warm-up",
                          model->step / self->steps + 1, model->step % self->steps + 1, model->set.rate);
    return train_make_result(result, self,
                             &(train_found){.model = model,
                                            .parameters = train_parameters(model),
                                            .history = train_history(self),
                                            .weights = train_kept_weights(self),
                                            .epochs = model->step / self->steps,
                                            .end = TRAIN_DIVERGED});
}
