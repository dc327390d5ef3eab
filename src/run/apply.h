/* Applying models to rows: what shoal/model.h and `shoal predict` do, and what a run does whose outputs need it. */
#ifndef RUN_APPLY_H
#define RUN_APPLY_H

#include "model.h"
#include "outcome.h"
#include "score.h"

/* Kinds of predictions, over all learners. */
enum { RUN_PREDICTIONS_MOST = 16 };

/* What is known of the rows, and whether predictions are compared with it. */
typedef struct run_scoring {
    const char *target;    /* a column or a file; NULL: the model's own target */
    const char *confusion; /* where the table of classes is drawn, which takes a score; NULL: nowhere */
    bool score;
} run_scoring;

/* What a model is asked, and of which rows: the options of `shoal predict`. */
typedef struct run_asked {
    const char *data;
    const char *output[RUN_PREDICTIONS_MOST]; /* paths, in the order of run_prediction_options; NULL: not written */
    run_plot_settings plot;
    run_scoring scoring;
    bool force; /* outputs replace whatever has their names */
    shoal_data_options reading;
    run_place place;
    run_ranks_options ranks;
    bool json; /* stdout has an object, so that no output may go there */
} run_asked;

/* One option for each kind of prediction, whose help says what it is of which learner. */
const shoal_option *run_prediction_options(void);

/* The groups of options of a run_asked that lies at `offset`; returns how many there are. */
int run_asked_groups(base_option_group groups[RUN_GROUPS_MOST], size_t offset);
/* The files that it names, as run_files_check takes them. */
void run_asked_outputs(run_files *out, const run_asked *asked);

struct shoal_application {
    const shoal_model *model;
    run_asked asked;
    shoal_data *rows; /* in memory, and their weights; not owned */
    const double *weights;
    shoal_row_memory into[LEARN_OUTPUTS_MOST + 1]; /* ended by one without a name */
    shoal_watcher watch;
    bool loaded, ran;
    struct run_texts *texts; /* that shoal_application_set copied */
    learn_applied applied;   /* its values are the model's */
    run_score score;         /* if that was asked for; of the first rank */
    shoal_request *request;  /* whose learner is the predictor */
    shoal_outcome *outcome;
};

/* Applies what a run has found to its own rows, for the output of that name. */
int run_apply_ended(shoal_result **out, const shoal_outcome *outcome, const learn_ended *ended, const char *output);

#endif
