/* What the files of nets share.
 *
 * net.c parses the text of a net and net_describe.c prints its table; layers.c and its neighbours layers_conv.c,
 * layers_pooled.c and layers_norm.c compute; model.c has what rounds hold and checks them; map.c maps; augment.c
 * changes the rows that it trains on; step.c goes one step down a gradient; train.c begins and goes from batch to
 * batch; epochs.c ends epochs and makes the result; spread.c finds whether rows are sorted by class; follow.c says how
 * far a run is; need.c how much memory it takes; names.c what layers are called in other files; predict.c applies
 * a model. */
#ifndef TRAIN_INTERNAL_H
#define TRAIN_INTERNAL_H

#include <shoal/learn.h>

#include "learn/classes.h"
#include "learn/train/layers.h"
#include "learn/train/net.h"

#define TRAIN_CALLED "train"

typedef enum train_optimiser { TRAIN_SGD, TRAIN_MOMENTUM, TRAIN_NESTEROV, TRAIN_ADAM, TRAIN_ADAMW } train_optimiser;
typedef enum train_schedule { TRAIN_CONSTANT, TRAIN_STEPS, TRAIN_COSINE } train_schedule;

/* Which weights a model has: of the epoch whose validation loss is least, or of the last one. */
typedef enum train_keep { TRAIN_BEST, TRAIN_LAST } train_keep;

typedef struct train_config {
    const char *net, *shape, *rescale, *validation, *augment, *freeze;
    int64_t batch, epochs, group, strata, seed, every, patience;
    int optimiser, schedule, keep;
    double rate, momentum, l1, l2, warm_up, decay;
    int64_t target;      /* the column with the labels, from 1; 0 is the last */
    const char *text;    /* of the net, if `net` has been read already */
    train_shape rows;    /* as the data say; all zero when they say nothing */
    bool bytes;          /* values are bytes, whatever type holds them and the target */
    int64_t held;        /* rows that --validation names a data set of, and which are among the rows; else 0 */
    const double *start; /* parameters to start from, in PyTorch's order; NULL: random ones, */
    bool started[TRAIN_LAYERS_MOST];       /* which layers but these have */
    const char *start_name, *start_layers; /* the file, and what layers are called there if not by their numbers */
    bool settled;                          /* `start` is what was asked for: a trial of a plan does without */
} train_config;

/* ---- model.c ----------------------------------------------------------------------------------------------------- */

/* REMEMBER fills the memo with what frozen layers give, at the beginning of each epoch for those who do not have it. */
typedef enum train_phase { TRAIN_SCAN, TRAIN_REMEMBER, TRAIN_RUN, TRAIN_VALIDATE, TRAIN_PHASES } train_phase;

/* What is done to rows that are trained on; 0: nothing. */
typedef struct train_augment {
    int64_t flip, crop, shift;
} train_augment;

/* How it is gone down: what stays the same in all rounds. */
typedef struct train_settings {
    int64_t target, columns; /* target: from 0 */
    int64_t channels, height, width, flat;
    int64_t batch, epochs, group, seed, every, optimiser, schedule, patience, keep;
    int64_t frozen; /* layers that --freeze names */
    train_augment augment;
    double rate, momentum, l1, l2, warm_up, decay;
    double scale, shift; /* a value v of the data is v * scale + shift to the net, as float32 */
} train_settings;

/* What an epoch ended with; NaN where there is none. */
enum {
    TRAIN_EPOCH_LOSS,
    TRAIN_EPOCH_ACCURACY,
    TRAIN_HELD_LOSS,
    TRAIN_HELD_ACCURACY,
    TRAIN_EPOCH_RATE, /* of its last step */
    TRAIN_EPOCH_VALUES
};

/* What all that maps know.  The parameters and running averages follow it, as float. */
typedef struct train_model {
    train_settings set;
    int64_t phase, step;                /* step: how many were done; in VALIDATE an epoch has just ended */
    int64_t filled;                     /* the round that filled the memo last; 0 for none */
    int64_t classes;                    /* 0 before the scan */
    int64_t repeated;                   /* rounds whose gradient did not fit into the quantum it was counted in */
    double power[2];                    /* of Adam: its decays to the power of the step */
    double loss, right;                 /* of the rows of this epoch, before each step */
    int64_t seen;                       /* so many rows: of batch norm, groups of one row are left out */
    int64_t kept_epoch;                 /* whose weights are kept, from 1; 0: none are yet */
    int64_t best_epoch;                 /* whose loss is least, where rows are held out theirs; 0: none has ended */
    double best_loss;                   /* which is this */
    double last[TRAIN_EPOCH_VALUES];    /* of the epoch that ended last, for people */
    double sorted, apart;               /* what the scan found (train_spread) */
    int64_t unit[2][TRAIN_LAYERS_MOST]; /* a layer's gradient is counted in 2^unit, and its running averages */
    double label[LEARN_CLASSES_MOST];
    char text[TRAIN_TEXT_MOST];
} train_model;

static inline const float *train_parameters(const train_model *model)
{
    return (const float *)(model + 1);
}

/* The cells of rounds that are no scan: SUMs are of whole numbers, the loss in units of train_loss_unit.  The gradient
 * is followed by the running averages, and the greatest values of layers by those of their averages.  There is nothing
 * for frozen layers. */
enum { TRAIN_LOSS, TRAIN_RIGHT, TRAIN_MEASURES };
enum { TRAIN_CELL_MEASURES, TRAIN_CELL_GRADIENT, TRAIN_CELL_GREATEST };
/* What one map adds to the loss at most, and where that is not a number. */
#define TRAIN_LOSS_MOST 0x1p20

train_shape train_shape_of(const train_settings *set);
/* Parses the net that a model holds; it was good when the round was checked. */
int train_model_net(train_net *out, const train_model *model);
size_t train_model_bytes(const train_net *net);
/* All that follows the header. */
size_t train_weights_bytes(const train_net *net);
/* Values that the memo has for each row: what the first net->remembered layers give, which is the same in every epoch.
 * 0 where they are seen but once, or change, since images do. */
int64_t train_memo_values(const train_settings *set, const train_net *net);
/* Epochs that are over, with what is held out. */
int64_t train_ended(const train_model *model, const shoal_shape *shape);
int64_t train_steps_of_epoch(const train_model *model, const shoal_shape *shape);
/* Where units and greatest values are. */
enum { TRAIN_OF_GRADIENT, TRAIN_OF_RUNNING };
/* The stretch of a layer among all values, and among those that batches add; the count is 0 where it has none, as where
 * it is frozen. */
typedef struct train_part {
    int64_t first, at, count;
} train_part;
train_part train_part_of(const train_net *net, int index, int which);
/* Groups of fewer rows are left out. */
int64_t train_group_least(const train_net *net);
/* How many rows a batch has, without these. */
int64_t train_rows_of_batch(const shoal_pick *pick, const train_net *net, const shoal_shape *shape);
/* How many bits the sum of a batch needs beyond those of one map. */
int train_sum_bits(const shoal_layout *layout, const shoal_shape *shape);
/* In which the loss is counted: so small a unit that the greatest losses of all maps fit into 64 bits. */
double train_loss_unit(const shoal_layout *layout, const shoal_shape *shape);

void train_layout(shoal_layout *layout, const train_model *model, const train_net *net, const shoal_shape *shape);
int train_check(const shoal_algorithm *self, const shoal_round *round, const shoal_shape *shape);

/* What rounds keep: for the optimiser, what epochs ended with, and the weights of an epoch.
 *
 * Each round keeps one block of its own, the last one.  An epoch whose weights are kept (kept_epoch) ends with a block
 * that has them, too; rounds after it keep that one on as their first. */
typedef struct train_kept {
    size_t bytes;
    int64_t moments; /* arrays of as many floats as there are parameters */
    size_t history;  /* where the epochs begin, as doubles */
    size_t weights;  /* where the parameters are, in a block that has them, */
    size_t whole;    /* and the bytes of it */
} train_kept;

/* Of a block that is of the end of so many epochs, or of a step before the next end. */
train_kept train_kept_of(const train_model *model, const train_net *net, int64_t ended);

/* What maps count: rows whose frozen layers were computed, and rows that the memo had that of. */
enum { TRAIN_COMPUTED, TRAIN_REMEMBERED };

/* Rows that are looked at together outside batches. */
enum { TRAIN_ROWS_AT_ONCE = 16 };

/* ---- map.c ------------------------------------------------------------------------------------------------------- */

/* What the maps of a process share. */
typedef struct train_prepared {
    train_net net;
    char text[TRAIN_TEXT_MOST]; /* that the net was parsed from, */
    int64_t frozen;             /* and what it was told to freeze */
    train_with with;
    float *turned;
} train_prepared;

int train_prepare(void **prepared, const shoal_round *round, const shoal_shape *shape, const shoal_crew *crew);
void train_forget(void **prepared);
size_t train_scratch(const shoal_round *round, const void *prepared, const shoal_shape *shape);
int train_map(shoal_partial *partial, const shoal_round *round, const void *prepared, const shoal_grain *grain,
              const shoal_scratch *scratch);

/* The values of a grain's row as the net takes them; `spare` has room for as many. */
void train_take_row(float *out, float *spare, const train_settings *set, const shoal_grain *grain, int64_t row,
                    const kernel_dense32 *dense);
/* Parses and prepares anew what a text and parameters ask for. */
int train_prepare_net(train_prepared **inout, const char *text, const train_shape *in, int64_t frozen,
                      const float *parameters, const char *kernel);

/* ---- augment.c --------------------------------------------------------------------------------------------------- */

/* Reads "flip,crop:4,shift:2"; NULL is nothing. */
int train_augment_read(train_augment *out, const char *text, const train_shape *in);
/* Changes an image of the net, channel by channel, as `row` has it in `epoch`; `spare` has room for as many values.
 * `zero` is what a 0 of the data is to the net. */
void train_augment_row(float *image, float *spare, const train_augment *how, const train_shape *in, float zero,
                       uint64_t seed, int64_t epoch, int64_t row);

/* ---- spread.c ---------------------------------------------------------------------------------------------------- */

/* Counts of labels in runs of strata, and apart for rows that are drawn and held out: cells of the scan. */
enum { TRAIN_CELL_SPREAD = LEARN_SCAN_CELLS };

void train_spread_layout(shoal_layout *layout);
void train_spread_map(shoal_partial *partial, const shoal_grain *grain, int64_t target);
/* From 0, classes are spread evenly, to 1: of `sorted`, each run of strata has one class; of `apart`, rows that are
 * held out have none of the classes of the others. */
void train_spread_read(double *sorted, double *apart, const shoal_partial *merged, const shoal_shape *shape);

/* ---- step.c ------------------------------------------------------------------------------------------------------ */

/* One step: from the sums of a batch's gradient to the next parameters and moments, which may be NULL where the
 * optimiser has none. */
typedef struct train_step {
    const train_model *model; /* before the step; `power` is that after it */
    const train_net *net;
    double power[2];
    const int64_t *sum;
    double rows, rate;
    const float *before, *moments_before;
    float *after, *moments_after;
} train_step;

int train_step_run(const train_step *step, const shoal_crew *crew);
/* Of the step that has so many before it, out of so many an epoch. */
double train_rate(const train_settings *set, int64_t step, int64_t steps_of_epoch);
/* Arrays of moments that an optimiser keeps. */
int64_t train_moments(int64_t optimiser);
void train_first_parameters(float *out, const train_net *net, int64_t seed);

/* Parameters as PyTorch orders them, an output's weights side by side, and back. */
void train_export(float *out, const train_net *net, const float *parameters);
/* `taken` says of which layers; NULL for all. */
void train_import(float *out, const train_net *net, const double *parameters, const bool *taken);
/* SHOAL_INVALID unless all of them are finite as float32, and no running variance is below 0. */
int train_check_parameters(const double *parameters, const train_net *net);
/* Brings running averages from those of a batch, whose sum over the rows follows that of the gradient. */
void train_step_running(const train_step *step);

/* ---- epochs.c ---------------------------------------------------------------------------------------------------- */

/* A round from which another one follows, or the result. */
typedef struct train_now {
    const shoal_round *round;
    const train_model *model;
    const shoal_shape *shape;
    train_net net;
    const char *kept_before; /* NULL where none was kept */
    int64_t steps;           /* of an epoch */
} train_now;

/* Makes a round with a header, and the text of its phase. */
int train_new_round(shoal_round **out, const train_model *header, const train_net *net, const shoal_shape *shape);
float *train_parameters_of(shoal_round *round);
const double *train_history(const train_now *self);
/* What the rows of the epoch gave before each step, as means. */
void train_epoch_values(double values[TRAIN_EPOCH_VALUES], const train_now *self, const train_model *header);
/* Notes in the header that an epoch has ended, whose loss is compared with those before. */
void train_end_epoch(train_model *header, int64_t ended, const double values[TRAIN_EPOCH_VALUES], double loss);
/* Gives `made` the block that it keeps, with the weights of an epoch if it ends one that is to be kept; returns it, or
 * NULL with a message.  Moments in it are the caller's to write. */
char *train_keep_round(shoal_round *made, const train_now *self, const train_model *header);
/* Copies the history, and adds what the last epoch ended with if one just did. */
void train_write_history(char *kept, const train_now *self, const train_model *header,
                         const double values[TRAIN_EPOCH_VALUES]);
/* Once the parameters of `made` are known: copies them where its block has the weights of an epoch. */
void train_write_weights(char *kept, const train_now *self, const shoal_round *made);

/* Why it ends. */
typedef enum train_end { TRAIN_DONE, TRAIN_STOPPED, TRAIN_IDLE, TRAIN_DIVERGED } train_end;

/* `parameters` are those of the moment, `history` has the values of `epochs` epochs that have ended, and `weights` is
 * the kept block with those of kept_epoch, or NULL. */
typedef struct train_found {
    const train_model *model;
    const float *parameters;
    const double *history;
    const char *weights;
    int64_t epochs;
    train_end end;
} train_found;

int train_make_result(shoal_result **out, const train_now *self, const train_found *found);
int train_check_result(const shoal_algorithm *self, const shoal_result *result, const shoal_round *first,
                       const shoal_shape *shape);
/* The kept block with the weights of kept_epoch, or NULL. */
const char *train_kept_weights(const train_now *self);
/* After an epoch, when the rows that are held out have been looked at. */
int train_update_held(shoal_round **next, shoal_result **result, const train_now *self, const shoal_partial *merged,
                      bool stop);
/* The result of a run that is stopped where this round begins. */
int train_stop(shoal_result **result, const train_now *self);
/* A gradient that is not finite, or a step to weights that are not: the result with the weights of an epoch before, or
 * a failure where there is none. */
int train_diverge(shoal_result **result, const train_now *self);

/* ---- train.c, predict.c ------------------------------------------------------------------------------------------ */

extern const shoal_algorithm train_algorithm;

/* The share of --validation; 0 where it is not given, or names a data set. */
double train_share(const train_config *config);
/* Which text, which shape the net's rows have, and what is frozen; `text` is the caller's to free. */
int train_config_net(train_net *net, char **text, const train_config *config, int64_t columns);

typedef struct train_predict_config {
    const char *text;
    const double *parameters, *classes; /* parameters: in PyTorch's order */
    int64_t columns, channels, height, width, flat, classes_count;
    double scale, shift;
    bool probabilities; /* also the probability of each class, float64 */
} train_predict_config;

/* Tensors: labels (float64, values of `classes`), probabilities (rows x classes, float64). */
extern const shoal_algorithm train_predict_algorithm;

#endif
