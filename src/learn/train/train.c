/* Nets by mini-batches as a learner: a scan, then steps down the gradient of batch after batch, and what is held out
 * after each epoch.  See docs/learn/train.md. */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/option.h"
#include "base/text.h"
#include "data/grain.h"
#include "learn/check.h"
#include "learn/pick.h"
#include "learn/train/train_internal.h"

/* A layer's gradient is counted in units so much smaller than its greatest value in the last batch: what is rounded
 * away is far below what float32 holds of it, and there is room for it to become a thousand times greater. */
enum { UNIT_BITS = 36, FIRST_UNIT = -36 };

/* The greatest share of the rows that may be held out. */
static const double SHARE_MOST = 0.95;

static const char *const optimisers[] = {"sgd", "momentum", "nesterov", "adam", "adamw", NULL};
static const char *const schedules[] = {"constant", "step", "cosine", NULL};
static const char *const keeps[] = {"best", "last", NULL};

#define AT(field) offsetof(train_config, field)
static const shoal_option options[] = {
    {"net", 0, SHOAL_OPTION_TEXT, AT(net), "NET|FILE",
     .help = "the layers, one per line or with semicolons between: conv N KxK [stride S] [pad P|same] [groups G], "
             "depthwise KxK [stride S] [pad P|same], pool [max|average] K [stride S], global pool [max|average], dense "
             "N, batch norm [momentum M] [epsilon E], dropout P, flatten, save NAME, add NAME, relu, relu6, tanh, "
             "logistic; the last is a softmax; most take an activation at the end of their line"},
    {"shape", 0, SHOAL_OPTION_TEXT, AT(shape), "HxW[xC]",
     .help = "rows are images of this height and width, and so many channels, whose values lie side by side",
     .default_text = "as the file says"},
    {"rescale", 0, SHOAL_OPTION_TEXT, AT(rescale), "MEAN:DEVIATION",
     .help = "subtract the mean from each value and divide by the deviation, once bytes have been divided by 255",
     .fallback = "0:1"},
    {"batch", 0, SHOAL_OPTION_COUNT, AT(batch), "ROWS", "rows that a step sees", "128", 1, .most = INT32_MAX},
    {"epochs", 0, SHOAL_OPTION_COUNT, AT(epochs), "N", "how often all rows are seen", "10", 0, .most = 1 << 20},
    {"optimiser", 0, SHOAL_OPTION_CHOICE, AT(optimiser), "NAME", "sgd, momentum, nesterov, adam or adamw", "momentum",
     .choices = optimisers},
    {"rate", 0, SHOAL_OPTION_REAL, AT(rate), "R", .help = "length of a step", .least = 1e-37, .most = 1e6,
     .default_text = "0.05; 0.001 for adam and adamw"},
    {"momentum", 0, SHOAL_OPTION_REAL, AT(momentum), "M", "what is kept of the last step, for momentum and nesterov",
     "0.9", 0, .most = 0.9999},
    {"schedule", 0, SHOAL_OPTION_CHOICE, AT(schedule), "NAME",
     "how the rate goes on: constant, step (times --decay every so many epochs) or cosine (down to 0)", "cosine",
     .choices = schedules},
    {"decay", 0, SHOAL_OPTION_REAL, AT(decay), "X", "of the schedule step: the rate is multiplied by it", "0.1", 0,
     .most = 1},
    {"every", 0, SHOAL_OPTION_COUNT, AT(every), "EPOCHS", "of the schedule step: how often", "3", 1, .most = INT32_MAX},
    {"warm-up", 0, SHOAL_OPTION_REAL, AT(warm_up), "EPOCHS", "in which the rate grows from 0", "0", 0, .most = 1e6},
    {"l2", 0, SHOAL_OPTION_REAL, AT(l2), "X",
     "weight of half the sum of squared weights; of adamw, the decay of weights apart from the gradient", "0", 0,
     .most = 1e6},
    {"l1", 0, SHOAL_OPTION_REAL, AT(l1), "X", "weight of the sum of absolute weights", "0", 0, .most = 1e6},
    {"validation", 0, SHOAL_OPTION_TEXT, AT(validation), "SHARE|DATA",
     .help =
         "score the net after each epoch on rows that it is not trained on: a share of DATA, such as 0.1, or a data "
         "set of its own; the model has the weights of the epoch whose validation loss is least",
     .default_text = "none"},
    {"early-stop", 0, SHOAL_OPTION_COUNT, AT(patience), "EPOCHS",
     .help = "stop when the validation loss has not improved for so many epochs; other programs call this patience",
     .most = INT32_MAX, .default_text = "go through all epochs"},
    {"keep", 0, SHOAL_OPTION_CHOICE, AT(keep), "WHICH",
     .help = "with --validation: which weights the model has, those of the best epoch or of the last one",
     .fallback = "best", .choices = keeps},
    {"augment", 0, SHOAL_OPTION_TEXT, AT(augment), "LIST",
     .help =
         "change images at random, in each epoch anew, before the net is trained on them: flip (left to right, every "
         "other one), crop:P (cut out of a border of P black pixels), shift:P (moved by up to P pixels, edges "
         "repeated); with commas between",
     .default_text = "none"},
    {"freeze", 0, SHOAL_OPTION_TEXT, AT(freeze), "LAYER",
     .help =
         "keep the weights that --start gives the layers up to this one, as --describe counts them, and train those "
         "behind it; outputs of frozen layers are computed once, and kept in memory",
     .default_text = "train all layers"},
    {"seed", 0, SHOAL_OPTION_COUNT, AT(seed), "N", "of first weights, batches, dropout and augmentation", "0", 0,
     .most = 0x1p53},
    {"group", 0, SHOAL_OPTION_COUNT, AT(group), "ROWS",
     "rows whose gradients are added in floating point before they are rounded: part of the result", "16", 1,
     .most = 4096},
    {"strata", 0, SHOAL_OPTION_COUNT, AT(strata), "N",
     .help = "runs of rows that each batch draws from in turn, and so the most workers: part of the result", .least = 0,
     .most = 65536, .default_text = "batch / group, rounded up: each run gives one group"},
    {0}};
#undef AT

/* ---- the first round --------------------------------------------------------------------------------------------- */

/* "4", or "0-4": layers as --describe counts them. */
static int freeze_net(train_net *net, const char *text)
{
    int64_t last;
    const char *number = strncmp(text, "0-", 2) == 0 ? text + 2 : text;
    if (!base_parse_count(&last, number) || last < 0 || last >= TRAIN_LAYERS_MOST)
        return shoal_fail(SHOAL_USAGE, "--freeze %s: not the number of a layer as --describe counts them, such as 4",
                          text);
    return train_net_freeze(net, last + 1);
}

int train_config_net(train_net *net, char **text, const train_config *config, int64_t columns)
{
    train_shape in = config->rows;
    *text = NULL;
    if (!config->net && !config->text)
        return shoal_fail(SHOAL_USAGE, "--net is missing: the layers, such as 'dense 32 relu; dense 10 softmax'");
    int status = config->text ? base_copy_text(text, config->text) : train_net_read(text, config->net);
    if (status == SHOAL_OK && config->shape)
        status = train_shape_parse(&in, config->shape);
    if (status == SHOAL_OK && in.channels == 0)
        in = (train_shape){.channels = columns, .height = 1, .width = 1, .flat = true};
    if (status == SHOAL_OK && (double)in.channels * (double)in.height * (double)in.width != (double)columns)
        status = shoal_fail(SHOAL_USAGE,
                            "--shape %s makes %.0f values, but the rows have %" PRId64 " columns beside the target",
                            config->shape ? config->shape : "of the rows",
                            (double)in.channels * (double)in.height * (double)in.width, columns);
    if (status == SHOAL_OK)
        status = train_net_parse(net, *text, "--net", &in);
    if (status == SHOAL_OK && config->freeze)
        status = freeze_net(net, config->freeze);
    if (status == SHOAL_OK && net->classes > LEARN_CLASSES_MOST)
        status = shoal_fail(SHOAL_USAGE, "--net: a softmax of %" PRId64 " classes, more than %d", net->classes,
                            LEARN_CLASSES_MOST);
    if (status < 0)
        base_free(text);
    return status;
}

static int read_rescale(train_settings *set, const char *text, bool is_bytes)
{
    double mean = 0, deviation = 1;
    const double bytes = is_bytes ? 255 : 1;
    char first[40];
    const char *colon = text ? strchr(text, ':') : NULL;
    if (text && (!colon || (size_t)(colon - text) >= sizeof first))
        return shoal_fail(SHOAL_USAGE, "--rescale: %s is not MEAN:DEVIATION, such as 0.5:0.25", text);
    if (text) {
        snprintf(first, sizeof first, "%.*s", (int)(colon - text), text);
        if (!base_parse_real(&mean, first) || !base_parse_real(&deviation, colon + 1) || !isfinite(mean) ||
            !(deviation > 0 && isfinite(deviation)))
            return shoal_fail(SHOAL_USAGE,
                              "--rescale: %s is not MEAN:DEVIATION, two numbers of which the second is above 0", text);
    }
    /* Through memory: gcc 12 leaves out both roundings where it makes a vector of the two. */
    const volatile float scale = (float)(1 / (bytes * deviation)), shift = (float)(-mean / deviation);
    set->scale = (double)scale;
    set->shift = (double)shift;
    return isfinite(set->scale) && isfinite(set->shift)
               ? SHOAL_OK
               : shoal_fail(SHOAL_USAGE, "--rescale: %s leads beyond float32", text);
}

double train_share(const train_config *config)
{
    double share = 0;
    return config->validation && base_parse_real(&share, config->validation) ? share : 0;
}

static int check_config(const train_config *config, const shoal_shape *shape)
{
    double share;
    if (shape->weighted)
        return shoal_fail(SHOAL_USAGE, "%s takes no weights of rows", TRAIN_CALLED);
    if (config->validation && base_parse_real(&share, config->validation) && !(share >= 0 && share <= SHARE_MOST))
        return shoal_fail(SHOAL_USAGE, "--validation %s: a share is between 0 and %g", config->validation, SHARE_MOST);
    if (shape->held == 0 && train_share(config) > 0)
        return shoal_fail(SHOAL_USAGE, "--validation %s of %" PRId64 " row%s holds out none of them",
                          config->validation, shape->rows, base_plural(shape->rows));
    if (config->patience > 0 && shape->held == 0)
        return shoal_fail(SHOAL_USAGE,
                          "--early-stop needs --validation: it watches the loss of rows that are held out");
    return SHOAL_OK;
}

/* What batch norms normalise by is found in each group: one row tells nothing. */
static int check_groups(const train_config *config, const train_net *net, const shoal_shape *shape)
{
    const int64_t rows = shape->rows - shape->held, batch = config->batch < rows ? config->batch : rows;
    const int64_t share = batch / (shape->strata > 0 ? shape->strata : 1);
    if (train_net_averages(net) == 0 || (config->group > 1 && share > 1))
        return SHOAL_OK;
    if (config->group < 2)
        return shoal_fail(SHOAL_USAGE, "--group 1: a batch norm finds its averages in each group, which needs at least "
                                       "two rows");
    return shoal_fail(SHOAL_USAGE,
                      "a batch norm needs groups of at least two rows, but a batch of %" PRId64 " has one or none of "
                      "each of %" PRId64 " strata: use a larger --batch or fewer --strata",
                      batch, shape->strata);
}

/* Random layers that never learn anything are hardly what was meant. */
static int check_frozen(const train_config *config, const train_net *net)
{
    for (int i = 0; i < net->frozen && config->settled; i++)
        if (net->layer[i].outputs > 0 && !(config->start && config->started[i]))
            return shoal_fail(SHOAL_USAGE, "--freeze %s: layer %d is to keep weights, but --start gives it none%s",
                              config->freeze, i, config->start ? " of its shape" : ": there is no --start");
    return SHOAL_OK;
}

int train_new_round(shoal_round **out, const train_model *header, const train_net *net, const shoal_shape *shape)
{
    static const char *const phases[] = {
        [TRAIN_SCAN] = "scan", [TRAIN_REMEMBER] = "frozen", [TRAIN_RUN] = "run", [TRAIN_VALIDATE] = "validate"};
    int status = shoal_round_new_unset(out, train_model_bytes(net));
    if (status < 0)
        return status;
    memcpy((*out)->model, header, sizeof *header);
    train_layout(&(*out)->layout, header, net, shape);
    const int64_t steps = train_steps_of_epoch(header, shape);
    snprintf((*out)->phase, sizeof(*out)->phase, "%s", phases[header->phase]);
    (*out)->step = header->phase == TRAIN_RUN ? header->step : header->step / steps;
    (*out)->steps = header->phase == TRAIN_RUN ? header->set.epochs * steps : header->phase ? header->set.epochs : 1;
    (*out)->objective = (*out)->change = NAN;
    return SHOAL_OK;
}

float *train_parameters_of(shoal_round *round)
{
    return (float *)((train_model *)round->model + 1);
}

static int start_train(shoal_round **out, const void *untyped, const shoal_shape *shape)
{
    const train_config *config = untyped;
    train_model *header = NULL;
    char *text = NULL;
    train_net net;
    int status = base_alloc(&header, 1, sizeof *header, "a net");
    if (status == SHOAL_OK)
        status = check_config(config, shape);
    if (status == SHOAL_OK)
        status = learn_target_place(&header->set.target, config->target, shape, TRAIN_CALLED);
    if (status == SHOAL_OK)
        status = train_config_net(&net, &text, config, shape->columns - 1);
    if (status == SHOAL_OK)
        status = read_rescale(&header->set, config->rescale, config->bytes || shape->type == SHOAL_UINT8);
    if (status == SHOAL_OK)
        status = train_augment_read(&header->set.augment, config->augment, &net.in);
    if (status == SHOAL_OK && config->start)
        status = train_check_parameters(config->start, &net);
    if (status == SHOAL_OK)
        status = check_groups(config, &net, shape);
    if (status == SHOAL_OK)
        status = check_frozen(config, &net);
    if (status < 0)
        goto done;
    const bool adam = config->optimiser == TRAIN_ADAM || config->optimiser == TRAIN_ADAMW;
    train_settings *set = &header->set;
    set->columns = shape->columns;
    set->channels = net.in.channels;
    set->height = net.in.height;
    set->width = net.in.width;
    set->flat = net.in.flat;
    set->batch = config->batch < shape->rows - shape->held ? config->batch : shape->rows - shape->held;
    set->patience = config->patience;
    set->keep = config->keep;
    set->epochs = config->epochs;
    set->group = config->group;
    set->seed = config->seed;
    set->every = config->every;
    set->optimiser = config->optimiser;
    set->schedule = config->schedule;
    set->rate = config->rate > 0 ? config->rate : adam ? 0.001 : 0.05;
    set->momentum = config->momentum;
    set->l1 = config->l1;
    set->l2 = config->l2;
    set->warm_up = config->warm_up;
    set->decay = config->decay;
    set->frozen = net.frozen;
    header->power[0] = header->power[1] = 1;
    for (int i = 0; i < net.layers; i++)
        header->unit[TRAIN_OF_GRADIENT][i] = header->unit[TRAIN_OF_RUNNING][i] = FIRST_UNIT;
    memcpy(header->text, text, strlen(text) + 1);
    status = train_new_round(out, header, &net, shape);
    if (status == SHOAL_OK)
        train_first_parameters(train_parameters_of(*out), &net, config->seed);
    if (status == SHOAL_OK && config->start)
        train_import(train_parameters_of(*out), &net, config->start, config->started);
done:
    base_free(&text);
    base_free(&header);
    return status;
}

/* Unless it is given, as many as make each run of rows give one whole group to a batch: a group of few rows takes as
 * long as one of many. */
static int64_t strata_of(const train_config *config, const shoal_shape *shape)
{
    const int64_t batch = config->batch < shape->rows ? config->batch : shape->rows;
    return config->strata > 0 ? config->strata : (batch + config->group - 1) / config->group;
}

/* About as the engine would choose, but no fewer grains than strata, and as many in each stratum: were some longer,
 * they would give a batch more rows than others, and a group of one. */
static int64_t rows_per_grain(const void *untyped, const shoal_shape *shape)
{
    const int64_t usual = data_rows_per_grain(shape->rows, shape->columns * (int64_t)shoal_type_size(shape->type));
    const int64_t strata = strata_of(untyped, shape), rows = (shape->rows + strata - 1) / strata;
    const int64_t grains = strata * ((rows + usual - 1) / usual), each = (shape->rows + grains - 1) / grains;
    return shape->rows / each >= strata ? each : shape->rows > strata ? shape->rows / strata : 1;
}

static int strata(const void *untyped, shoal_shape *shape)
{
    const train_config *config = untyped;
    shape->strata = strata_of(config, shape);
    shape->held = config->held > 0 ? config->held : (int64_t)rint(train_share(config) * (double)shape->rows);
    shape->held = shape->held < 0 ? 0 : shape->held < shape->rows ? shape->held : shape->rows - 1;
    return SHOAL_OK;
}

/* ---- from round to round ----------------------------------------------------------------------------------------- */

/* After the scan: how many classes there are is what the softmax must have. */
static int begin_run(shoal_round **next, shoal_result **result, const train_now *self, const shoal_partial *merged)
{
    train_model *header = NULL;
    learn_scanned *found = NULL;
    int status = base_alloc(&header, 1, sizeof *header, "a net");
    if (status == SHOAL_OK)
        status = base_alloc(&found, 1, sizeof *found, "what the scan found");
    if (status == SHOAL_OK)
        status = learn_scan_read(found, merged, self->shape, self->model->set.target, TRAIN_CALLED);
    if (status == SHOAL_OK && found->classes != self->net.classes)
        status = shoal_fail(SHOAL_INVALID,
                            "the target has %" PRId64 " classes, %g to %g, but the net's softmax has %" PRId64
                            " values: it needs one for each class",
                            found->classes, found->label[0], found->label[found->classes - 1], self->net.classes);
    if (status < 0)
        goto done;
    *header = *self->model;
    header->phase = train_memo_values(&header->set, &self->net) > 0 ? TRAIN_REMEMBER : TRAIN_RUN;
    header->classes = found->classes;
    memcpy(header->label, found->label, (size_t)found->classes * sizeof *header->label);
    train_spread_read(&header->sorted, &header->apart, merged, self->shape);
    if (header->set.epochs == 0) {
        status = train_make_result(result, self,
                                   &(train_found){.model = header, .parameters = train_parameters(self->model)});
    } else if ((status = train_new_round(next, header, &self->net, self->shape)) == SHOAL_OK) {
        memcpy(train_parameters_of(*next), train_parameters(self->model), train_weights_bytes(&self->net));
    }
done:
    base_free(&found);
    base_free(&header);
    return status;
}

/* Sets the next units from the greatest gradients; *fits says whether this round's were good for them, *finite whether
 * they are numbers at all. */
static void choose_units(train_model *header, bool *fits, bool *finite, const train_now *self, shoal_partial *merged)
{
    const int64_t *greatest = shoal_partial_values(merged, TRAIN_CELL_GREATEST);
    const int bits = train_sum_bits(&self->round->layout, self->shape);
    *fits = *finite = true;
    const int layers = self->net.layers - self->net.frozen;
    if (train_rows_of_batch(&self->round->layout.pick, &self->net, self->shape) == 0)
        return; /* all were left out */
    for (int i = 0; i < 2 * layers; i++) {
        const int which = i < layers ? TRAIN_OF_GRADIENT : TRAIN_OF_RUNNING, layer = self->net.frozen + i % layers;
        int exponent = 0;
        if (train_part_of(&self->net, layer, which).count == 0)
            continue;
        const double most = shoal_max_value(greatest[i]);
        if (most == 0)
            continue;
        *finite = *finite && isfinite(most) && most > 0;
        if (!*finite)
            return;
        *fits = *fits && ldexp(most, (int)-self->model->unit[which][layer]) < ldexp(1, 62 - bits);
        frexp(most, &exponent);
        exponent -= UNIT_BITS;
        header->unit[which][layer] = exponent < -300 ? -300 : exponent > 300 ? 300 : exponent;
    }
}

/* A round of the same weights as this one. */
static int stay(shoal_round **next, const train_now *self, const train_model *header)
{
    int status = train_new_round(next, header, &self->net, self->shape);
    if (status < 0)
        return status;
    memcpy(train_parameters_of(*next), train_parameters(self->model), train_weights_bytes(&self->net));
    for (int i = 0; i < self->round->keeps; i++)
        shoal_round_keep_on(*next, self->round, i);
    return SHOAL_OK;
}

/* A step may go beyond float32 where no gradient tells: of the last one, or of a unit that gives nothing any more. */
static bool finite_weights(const train_now *self, const float *weights)
{
    bool finite = true;
    for (int64_t i = 0; i < train_net_values(&self->net); i++)
        finite &= fabsf(weights[i]) <= FLT_MAX;
    return finite;
}

/* Takes one step, and goes to the next batch, to what is held out, or to the end. */
static int go_on(shoal_round **next, shoal_result **result, const train_now *self, train_model *header,
                 const shoal_partial *merged, const shoal_crew *crew, bool stop)
{
    const train_model *model = self->model;
    const int64_t *measure = shoal_partial_values_const(merged, TRAIN_CELL_MEASURES);
    const int64_t rows = train_rows_of_batch(&self->round->layout.pick, &self->net, self->shape);
    double values[TRAIN_EPOCH_VALUES];
    shoal_round *made = NULL;
    header->step++;
    header->loss += (double)measure[TRAIN_LOSS] * train_loss_unit(&self->round->layout, self->shape);
    header->right += (double)measure[TRAIN_RIGHT];
    header->seen += rows;
    header->power[0] *= 0.9;
    header->power[1] *= 0.999;
    const bool ends = header->step % self->steps == 0, held = self->shape->held > 0;
    const bool whole = !held && header->step == self->steps * model->set.epochs;
    const int64_t epochs = header->step / self->steps;
    const double so_far = header->loss / fmax((double)header->seen, 1);
    train_epoch_values(values, self, header);
    header->phase = TRAIN_RUN;
    if (ends)
        header->phase = held                                              ? TRAIN_VALIDATE
                        : train_memo_values(&header->set, &self->net) > 0 ? TRAIN_REMEMBER
                                                                          : TRAIN_RUN;
    if (ends && !held)
        train_end_epoch(header, epochs, values, values[TRAIN_EPOCH_LOSS]);
    const size_t history = train_kept_of(model, &self->net, 0).history;
    int status = train_new_round(&made, header, &self->net, self->shape);
    char *kept = status == SHOAL_OK ? train_keep_round(made, self, header) : NULL;
    if (!kept) {
        shoal_round_free(&made);
        return SHOAL_MEMORY;
    }
    const train_step step = {.model = model,
                             .net = &self->net,
                             .power = {header->power[0], header->power[1]},
                             .sum = shoal_partial_values_const(merged, TRAIN_CELL_GRADIENT),
                             .rows = fmax((double)rows, 1),
                             .rate = train_rate(&model->set, model->step, self->steps),
                             .before = train_parameters(model),
                             .moments_before = (const float *)(const void *)self->kept_before,
                             .after = train_parameters_of(made),
                             .moments_after = (float *)(void *)kept};
    status = train_step_run(&step, crew);
    if (rows > 0)
        train_step_running(&step);
    else
        memcpy(step.after + self->net.parameters, step.before + self->net.parameters,
               (size_t)self->net.running * sizeof(float));
    train_write_history(kept, self, header, values);
    train_write_weights(kept, self, made);
    made->objective = so_far;
    if (status == SHOAL_OK && (ends || stop) && !finite_weights(self, train_parameters_of(made))) {
        status = train_diverge(result, self);
    } else if (status == SHOAL_OK && (whole || stop)) {
        train_now after = *self;
        after.round = made;
        after.model = made->model;
        status = train_make_result(result, &after,
                                   &(train_found){.model = header,
                                                  .parameters = train_parameters_of(made),
                                                  .history = (const double *)(const void *)(kept + history),
                                                  .weights = train_kept_weights(&after),
                                                  .epochs = held && ends ? epochs - 1 : epochs,
                                                  .end = whole ? TRAIN_DONE : TRAIN_STOPPED});
    } else if (status == SHOAL_OK) {
        *next = made;
        made = NULL;
    }
    shoal_round_free(&made);
    return status;
}

/* The memo is filled. */
static int update_remember(shoal_round **next, shoal_result **result, const train_now *self, bool stop)
{
    train_model *header = NULL;
    if (stop && self->model->step == 0)
        return shoal_fail(SHOAL_STOPPED, "stopped before there was a result");
    if (stop)
        return train_stop(result, self);
    int status = base_alloc_unset(&header, 1, sizeof *header, "a net");
    if (status < 0)
        return status;
    *header = *self->model;
    header->phase = TRAIN_RUN;
    header->filled = self->round->number;
    status = stay(next, self, header);
    base_free(&header);
    return status;
}

static int update_run(shoal_round **next, shoal_result **result, const train_now *self, shoal_partial *merged,
                      const shoal_crew *crew, bool stop)
{
    train_model *header = NULL;
    bool fits, finite;
    int status = base_alloc_unset(&header, 1, sizeof *header, "a net");
    if (status < 0)
        return status;
    *header = *self->model;
    choose_units(header, &fits, &finite, self, merged);
    if (!finite)
        status = train_diverge(result, self);
    else if (!fits && stop)
        status = train_stop(result, self);
    else if (!fits) { /* the same batch again, with units that its gradient fits into */
        header->repeated++;
        status = stay(next, self, header);
    } else
        status = go_on(next, result, self, header, merged, crew, stop);
    base_free(&header);
    return status;
}

static int update_train(shoal_round **next, shoal_result **result, const shoal_round *round, shoal_partial *merged,
                        const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    const train_model *model = round->model;
    train_now self = {.round = round, .model = model, .shape = shape, .steps = train_steps_of_epoch(model, shape)};
    int status = train_model_net(&self.net, model);
    if (status < 0)
        return status;
    self.kept_before = round->keeps ? round->kept[round->keeps - 1]->values : NULL;
    if (model->phase == TRAIN_SCAN)
        return stop ? shoal_fail(SHOAL_STOPPED, "stopped before there was a result")
                    : begin_run(next, result, &self, merged);
    if (model->phase == TRAIN_REMEMBER)
        return update_remember(next, result, &self, stop);
    return model->phase == TRAIN_RUN ? update_run(next, result, &self, merged, crew, stop)
                                     : train_update_held(next, result, &self, merged, stop);
}

/* ---- the learner ------------------------------------------------------------------------------------------------- */

/* Operations of a row: what is computed once and remembered, what is computed forwards in each epoch, and of that what
 * is trained and so goes back as well, which takes twice as long. */
typedef struct train_operations {
    double remembered, forwards, trained;
    int64_t memo; /* values that are remembered */
} train_operations;

static int count_operations(train_operations *out, const train_config *config, const train_net *net)
{
    train_settings set = {.epochs = config->epochs};
    int status = train_augment_read(&set.augment, config->augment, &net->in);
    if (status < 0)
        return status;
    *out = (train_operations){.memo = train_memo_values(&set, net)};
    for (int i = 0; i < net->layers; i++) {
        const double operations = train_layer_operations(&net->layer[i]);
        *(out->memo > 0 && i < net->remembered ? &out->remembered : &out->forwards) += operations;
        out->trained += i < net->frozen ? 0 : operations;
    }
    return SHOAL_OK;
}

static int cost_train(shoal_cost *out, const void *untyped, const shoal_shape *shape)
{
    enum { ROUND_BYTES = 256, PARTIAL_BYTES = 28 }; /* names, numbers and a layout around them on the way */
    const train_config *config = untyped;
    train_net net;
    char *text = NULL;
    int status = train_config_net(&net, &text, config, shape->columns - 1);
    train_operations of = {0};
    base_free(&text);
    if (status == SHOAL_OK)
        status = count_operations(&of, config, &net);
    if (status < 0)
        return status;
    const double apart = config->held > 0 ? (double)config->held / (double)shape->rows : train_share(config);
    const double rows = (double)shape->rows * (1 - apart), word = sizeof(int64_t);
    const double batch = fmin((double)config->batch, fmax(rows, 1));
    const double steps = ceil(rows / batch), share = batch / fmax(rows, 1);
    const double model = ROUND_BYTES + (double)train_model_bytes(&net), learns = (double)train_net_learns(&net);
    const bool held = apart > 0;
    const shoal_cost_phase scan = {.name = "scan",
                                   .rounds = 1,
                                   .model_bytes = model,
                                   .partial_bytes = PARTIAL_BYTES + learn_scan_bytes(net.classes)};
    const shoal_cost_phase run = {
        .name = "run",
        .rounds = steps * (double)config->epochs,
        .operations_per_row = (of.forwards + 2 * of.trained) * share,
        .model_bytes = model,
        .partial_bytes = PARTIAL_BYTES + ((double)train_net_added(&net) + 2 * (net.layers - net.frozen) + 2) * word,
        .kept_bytes = (double)train_moments(config->optimiser) * learns * sizeof(float)};
    const double epochs = fmax((double)config->epochs, 1);
    const shoal_cost_phase frozen = {.name = "frozen",
                                     .rounds = of.memo > 0 ? epochs : 0,
                                     .operations_per_row = of.remembered / epochs, /* by the first of them */
                                     .model_bytes = model,
                                     .partial_bytes = PARTIAL_BYTES + 2 * word};
    const shoal_cost_phase validate = {.name = "validate",
                                       .rounds = held ? (double)config->epochs : 0,
                                       .operations_per_row = of.forwards * apart,
                                       .model_bytes = model,
                                       .partial_bytes = PARTIAL_BYTES + 2 * word};
    *out = (shoal_cost){.operations_per_row = run.operations_per_row,
                        .model_bytes = run.model_bytes,
                        .partial_bytes = run.partial_bytes,
                        .memo_row_bytes = (double)of.memo * sizeof(float),
                        .rounds = (int64_t)(1 + frozen.rounds + run.rounds + validate.rounds)};
    out->phase[out->phases++] = scan;
    if (of.memo > 0)
        out->phase[out->phases++] = frozen;
    out->phase[out->phases++] = run;
    if (held)
        out->phase[out->phases++] = validate;
    return SHOAL_OK;
}

const shoal_algorithm train_algorithm = {
    .version = SHOAL_ALGORITHM_VERSION,
    .bytes = sizeof(shoal_algorithm),
    .name = "train",
    .summary = "convolutional and dense nets by mini-batches",
    .options = options,
    .config_size = sizeof(train_config),
    .counter = {"frozen_computed", "frozen_remembered", NULL},
    .kernel_free = true,
    .spares_memo = true,
    .start = start_train,
    .check = train_check,
    .check_result = train_check_result,
    .rows_per_grain = rows_per_grain,
    .strata = strata,
    .prepare = train_prepare,
    .forget = train_forget,
    .scratch_bytes = train_scratch,
    .map = train_map,
    .update = update_train,
    .cost = cost_train,
};
