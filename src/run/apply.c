/* Applying models to rows.  See apply.h and shoal/model.h. */
#include "apply.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/pool.h"
#include "base/text.h"
#include "kernel/kernel.h"
#include "load.h"
#include "outputs.h"
#include "plot.h"
#include "ranks.h"
#include "run.h"
#include "target.h"

/* ---- options ----------------------------------------------------------------------------------------------------- */

static shoal_option prediction_rows[RUN_PREDICTIONS_MOST + 1];
static learn_output_kind prediction_kinds[RUN_PREDICTIONS_MOST];
static const shoal_option *const prediction_table = prediction_rows;
static pthread_once_t predictions_made = PTHREAD_ONCE_INIT;

/* "kmeans: write ...; logistic: ...": one option for all learners that give such an output. */
static void add_prediction(const learn_face *face, const learn_output *output)
{
    char *help = NULL;
    int at = 0;
    while (prediction_rows[at].name && strcmp(prediction_rows[at].name, output->name) != 0)
        at++;
    if (at == RUN_PREDICTIONS_MOST)
        SHOAL_BUG("there are more kinds of predictions than options for them");
    char *before = (char *)prediction_rows[at].help;
    if (base_format(&help, "%s%s%s: %s", before ? before : "", before ? "; " : "", face->algorithm->name,
                    output->help) < 0)
        abort();
    base_free(&before);
    prediction_kinds[at] = output->kind;
    prediction_rows[at] = (shoal_option){.name = output->name,
                                         .letter = output->letter,
                                         .kind = SHOAL_OPTION_TEXT,
                                         .offset = (size_t)at * sizeof(char *),
                                         .argument = output->argument,
                                         .help = help}; /* which lasts as long as the process */
}

static void make_predictions(void)
{
    for (const learn_face *const *face = learn_faces; *face; face++)
        for (const learn_output *output = (*face)->predictor ? (*face)->predictor->outputs : NULL;
             output && output->name; output++)
            add_prediction(*face, output);
}

const shoal_option *run_prediction_options(void)
{
    pthread_once(&predictions_made, make_predictions);
    return prediction_rows;
}

static const shoal_option scoring_rows[] = {
    {"score", 's', SHOAL_OPTION_FLAG, offsetof(run_scoring, score),
     .help = "print how well the model does: accuracy, log loss and confusion matrix of classes; the objective of "
             "clusters and, with known classes, the adjusted Rand index; the reconstruction error of an autoencoder"},
    {"confusion", 0, SHOAL_OPTION_TEXT, offsetof(run_scoring, confusion), "FILE",
     .help = "score, and draw the confusion matrix, or how many rows of each class are in each cluster: .svg or .png"},
    {"target", 'y', SHOAL_OPTION_TEXT, offsetof(run_scoring, target), "COLUMN|FILE",
     .help = "the known class of each row, for --score: a column of DATA, by its name, its number from 1, or from -1 "
             "backwards; or a file of one column or one row",
     .default_text = "the column the model was trained to predict"},
    {0},
};
static const shoal_option *const scoring_options = scoring_rows;

int run_asked_groups(base_option_group groups[RUN_GROUPS_MOST], size_t offset)
{
    int count = 0;
    run_prediction_options();
    groups[count++] = (base_option_group){"Output", &prediction_table, offset + offsetof(run_asked, output)};
    groups[count++] = (base_option_group){"Plot", &run_plot_options, offset + offsetof(run_asked, plot)};
    groups[count++] = (base_option_group){"Scoring", &scoring_options, offset + offsetof(run_asked, scoring)};
    groups[count++] = (base_option_group){"Replacing files", &run_force_options, offset + offsetof(run_asked, force)};
    groups[count++] = (base_option_group){"Reading the data", &run_data_options, offset + offsetof(run_asked, reading)};
    groups[count++] = (base_option_group){"Running", &run_place_options, offset + offsetof(run_asked, place)};
    groups[count++] = (base_option_group){"Ranks", &run_engine_options, offset + offsetof(run_asked, ranks)};
    groups[count] = (base_option_group){0};
    return count;
}

static run_file confusion_file(const run_asked *asked)
{
    return (run_file){"--confusion", asked->scoring.confusion, {.kind = DATA_CONTENT_PICTURE}};
}

void run_asked_outputs(run_files *out, const run_asked *asked)
{
    const shoal_option *options = run_prediction_options();
    int i = 0;
    *out = (run_files){0};
    for (; options[i].name; i++) {
        snprintf(out->name[i], sizeof out->name[i], "--%s", options[i].name);
        out->file[i] =
            (run_file){out->name[i],
                       asked->output[i],
                       {.kind = prediction_kinds[i] == LEARN_PLOT ? DATA_CONTENT_PICTURE : DATA_CONTENT_ARRAY}};
    }
    out->file[i] = confusion_file(asked);
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

int shoal_application_new(shoal_application **out, const shoal_model *model)
{
    base_option_group groups[RUN_GROUPS_MOST];
    *out = NULL;
    int status = base_alloc(out, 1, sizeof **out, "an application of a model");
    run_asked_groups(groups, offsetof(shoal_application, asked));
    if (status == SHOAL_OK)
        status = base_options_default(*out, groups);
    if (status < 0) {
        base_free(out);
        return status;
    }
    (*out)->model = model;
    (*out)->asked.ranks.engine = RUN_ENGINE_THREADS;
    return SHOAL_OK;
}

void shoal_application_free(shoal_application **inout)
{
    shoal_application *self = *inout;
    if (!self)
        return;
    run_score_release(&self->score);
    shoal_outcome_free(&self->outcome);
    shoal_request_free(&self->request);
    run_texts_free(&self->texts);
    base_free(&self->applied.config);
    base_free(inout);
}

int shoal_application_set(shoal_application *self, const char *name, const char *text)
{
    base_option_group groups[RUN_GROUPS_MOST];
    const char *kept = NULL;
    const bool data = strcmp(name, "data") == 0;
    run_asked_groups(groups, offsetof(shoal_application, asked));
    if (!data && !base_options_find(groups, name, strlen(name)))
        return run_fail_no_option("a model that is applied", groups, name);
    int status = text ? run_texts_keep(&kept, &self->texts, text) : SHOAL_OK;
    if (status == SHOAL_OK && data)
        self->asked.data = kept;
    return status == SHOAL_OK && !data ? base_options_set(self, groups, name, kept) : status;
}

int shoal_application_rows(shoal_application *self, shoal_data *rows, const double *weights)
{
    self->rows = rows;
    self->weights = weights;
    return SHOAL_OK;
}

void shoal_application_watch(shoal_application *self, const shoal_watcher *watcher)
{
    self->watch = watcher ? *watcher : (shoal_watcher){0};
}

/* ---- outputs ----------------------------------------------------------------------------------------------------- */

/* The path that was given for an output of the learner; NULL for none. */
static const char *path_of(const shoal_application *self, const char *output)
{
    const shoal_option *options = run_prediction_options();
    for (int i = 0; options[i].name; i++)
        if (strcmp(options[i].name, output) == 0)
            return self->asked.output[i];
    return NULL;
}

static int find_output(const shoal_application *self, const char *name)
{
    const learn_output *outputs = self->model->face->predictor->outputs;
    for (int i = 0; outputs[i].name; i++)
        if (strcmp(outputs[i].name, name) == 0)
            return i;
    return -1;
}

/* The same of those that are arrays, and so can be had in memory. */
static int find_array(const shoal_application *self, const char *name)
{
    const int at = find_output(self, name);
    return at >= 0 && self->model->face->predictor->outputs[at].kind == LEARN_TENSOR ? at : -1;
}

static int fail_no_output(const shoal_application *self, const char *name)
{
    char all[160] = "";
    const learn_output *outputs = self->model->face->predictor->outputs;
    for (int i = 0; outputs[i].name; i++) {
        size_t length = strlen(all);
        const char *joint = i == 0 ? "" : outputs[i + 1].name ? ", " : " and ";
        snprintf(all + length, sizeof all - length, "%s--%s", joint, outputs[i].name);
    }
    return shoal_fail(SHOAL_USAGE, "--%s: %s is a model of %s, which gives %s", name, self->model->name,
                      self->model->face->algorithm->name, all);
}

/* Refuses an output that models of this kind do not have. */
static int check_kinds(const shoal_application *self)
{
    const shoal_option *options = run_prediction_options();
    for (int i = 0; options[i].name; i++)
        if (self->asked.output[i] && find_output(self, options[i].name) < 0)
            return fail_no_output(self, options[i].name);
    return SHOAL_OK;
}

/* A table has classes on both sides, or classes and clusters. */
static int check_confusion(const shoal_application *self)
{
    const learn_applied *model = &self->model->loaded;
    if (!self->asked.scoring.confusion || model->classes_count > 0 || model->clusters > 0)
        return SHOAL_OK;
    return shoal_fail(SHOAL_USAGE, "--confusion: %s is a model of %s, which has neither classes nor clusters",
                      self->model->name, self->model->face->algorithm->name);
}

static bool is_in_memory(const shoal_application *self, const char *output)
{
    for (const shoal_row_memory *into = self->into; into->name; into++)
        if (strcmp(into->name, output) == 0)
            return true;
    return false;
}

/* Scores of classes are made of probabilities. */
static bool is_wanted(const shoal_application *self, const char *output)
{
    return path_of(self, output) || is_in_memory(self, output) ||
           (self->asked.scoring.score && strcmp(output, "probabilities") == 0);
}

/* The words that an output of the model is written in: labels of classes that are words. */
static data_codes words_of(const shoal_application *self, const learn_output *output)
{
    const bool labels = self->model->face->classes_most > 0 && strcmp(output->name, "labels") == 0;
    return labels ? (data_codes){(const char *const *)self->model->schema.classes, self->model->schema.classes_count}
                  : (data_codes){0};
}

/* What the model gives, and where it goes. */
static void list_applied_outputs(run_files *out, const shoal_application *self)
{
    const learn_output *outputs = self->model->face->predictor->outputs;
    int i = 0;
    *out = (run_files){0};
    for (; outputs[i].name; i++) {
        snprintf(out->name[i], sizeof out->name[i], "--%s", outputs[i].name);
        out->file[i] = (run_file){.name = out->name[i],
                                  .path = path_of(self, outputs[i].name),
                                  .content = run_output_content(&outputs[i], NULL, self->applied.columns)};
        out->file[i].content.words = words_of(self, &outputs[i]);
        if (out->file[i].content.words.word)
            out->file[i].content.type = "words";
    }
    out->file[i] = confusion_file(&self->asked);
}

static int check_applied_outputs(const shoal_application *self)
{
    run_files files;
    int status = SHOAL_OK;
    list_applied_outputs(&files, self);
    for (const run_file *file = files.file; file->name && status == SHOAL_OK; file++) /* which may be of words */
        if (file->path)
            status = data_content_check_name(file->name, file->path, &file->content);
    return status == SHOAL_OK ? run_files_check_old(files.file, self->asked.force) : status;
}

static int write_confusion(const shoal_application *self, run_moved *moved)
{
    const run_file file = confusion_file(&self->asked);
    char *place = NULL, *name = NULL;
    int status = run_plot_name(&name, self->outcome);
    if (status == SHOAL_OK)
        status = run_file_place(&place, moved, &file, self->asked.force);
    if (status == SHOAL_OK)
        status = run_score_draw(place, &self->score, name);
    base_free(&name);
    base_free(&place);
    return status;
}

static int write_applied_outputs(const shoal_application *self)
{
    double started = base_seconds();
    const learn_output *outputs = self->model->face->predictor->outputs;
    run_files files;
    run_moved moved = {0};
    int status = SHOAL_OK;
    list_applied_outputs(&files, self);
    for (int i = 0; outputs[i].name && status == SHOAL_OK; i++) {
        const data_codes words = words_of(self, &outputs[i]);
        char *place = NULL;
        if (outputs[i].kind == LEARN_PLOT)
            continue;
        if (!words.word)
            run_output_note(&files.file[i].content, shoal_result_tensor(self->outcome->result, outputs[i].name));
        if (files.file[i].path)
            status = run_file_place(&place, &moved, &files.file[i], self->asked.force);
        if (place)
            status = run_write_tensor(place, self->outcome->result, outputs[i].name, &words);
        base_free(&place);
    }
    if (status == SHOAL_OK && self->asked.scoring.confusion)
        status = write_confusion(self, &moved);
    status = run_moved_tell(&moved, status);
    self->outcome->write_seconds = base_seconds() - started;
    return status;
}

/* The plot, which all ranks make together, and rank 0 alone writes. */
static int write_plot(const shoal_application *self)
{
    const double started = base_seconds();
    const char *path = path_of(self, "plot");
    const run_file file = {"--plot", path, {.kind = DATA_CONTENT_PICTURE}};
    bool wanted = path != NULL;
    run_moved moved = {0};
    run_plotted plotted;
    learn_plot shown;
    char *place = NULL;
    int status = run_ranks_follow(&wanted);
    if (status < 0 || !wanted)
        return status;
    self->model->face->predictor->plot(&shown, &self->applied, self->outcome->result);
    status = run_plot_make(&plotted, self->outcome, &self->asked.plot, &shown);
    if (status == SHOAL_OK && run_is_first())
        status = run_file_place(&place, &moved, &file, self->asked.force);
    if (place)
        status = run_plot_write(place, &plotted, self->outcome);
    status = run_moved_tell(&moved, status);
    base_free(&place);
    run_plot_release(&plotted);
    self->outcome->write_seconds += base_seconds() - started;
    return status;
}

/* ---- the rows ---------------------------------------------------------------------------------------------------- */

static int check_missing(const shoal_application *self)
{
    const int missing = self->asked.reading.missing;
    if (missing == SHOAL_MISSING_DROP)
        return shoal_fail(SHOAL_USAGE, "--missing drop: what is written has a value for each row of DATA, so that rows "
                                       "can't be left out; use --missing mean");
    if (missing == SHOAL_MISSING_MEAN && !self->model->schema.fill)
        return shoal_fail(SHOAL_USAGE,
                          "--missing mean: %s was not trained with this option, so that it has no means to fill in",
                          self->model->name);
    return SHOAL_OK;
}

/* Refuses what can be refused before anything is read, and meets other ranks. */
static int check_asked(const shoal_application *self)
{
    const run_asked *asked = &self->asked;
    const run_file sources[] = {{.name = "MODEL", .path = self->model->bytes ? NULL : self->model->name},
                                {.name = "DATA", .path = asked->data},
                                {.name = "--target", .path = run_target_file(asked->scoring.target)},
                                {0}};
    const kernel_set *set = NULL;
    run_files written;
    if (!asked->data == !self->rows)
        return shoal_fail(SHOAL_USAGE, "a model is applied either to data, named by a path, or to rows in memory");
    int status = kernel_choose(&set, asked->place.kernel);
    if (status == SHOAL_OK)
        status = run_ranks_begin(&asked->ranks, false);
    run_asked_outputs(&written, asked);
    if (status == SHOAL_OK && run_is_first())
        status = run_files_check(written.file, sources, asked->json);
    if (status == SHOAL_OK)
        status = check_kinds(self);
    if (status == SHOAL_OK)
        status = check_confusion(self);
    if (status == SHOAL_OK)
        status = run_plot_check(&asked->plot, path_of(self, "plot"));
    return status == SHOAL_OK ? check_missing(self) : status;
}

/* A request whose learner is the predictor: its options are the model. */
static int make_applying_request(shoal_application *self)
{
    const shoal_algorithm *algorithm = self->model->face->predictor->algorithm;
    int status = base_alloc(&self->request, 1, sizeof *self->request + algorithm->config_size, "a request");
    if (status < 0)
        return status;
    self->request->face = self->model->face;
    self->request->algorithm = algorithm;
    self->request->data = self->asked.data;
    self->request->rows = self->rows;
    self->request->weights = self->weights;
    self->request->inputs.target = self->asked.scoring.target;
    self->request->reading = self->asked.reading;
    self->request->place = self->asked.place;
    self->request->ranks = self->asked.ranks;
    self->request->watch = self->watch;
    self->request->into = self->into;
    return run_outcome_new(&self->outcome, self->request);
}

/* Which columns the rows need, and what is to be known of them. */
static int settle_schema(shoal_application *self)
{
    run_columns *columns = &self->outcome->columns_used;
    int status = learn_schema_copy(&columns->schema, &self->model->schema);
    columns->schema.columns = self->model->loaded.columns;
    columns->model = self->model->name;
    columns->wants_known = self->asked.scoring.score;
    columns->needs_known =
        self->asked.scoring.score && (self->model->loaded.classes_count > 0 || self->asked.scoring.confusion);
    return status;
}

static int check_columns(const shoal_application *self)
{
    const shoal_outcome *outcome = self->outcome;
    const int64_t columns = self->model->loaded.columns;
    const char *hint =
        self->model->face->predictor->hint && outcome->columns == columns + 1 ? self->model->face->predictor->hint : "";
    if (outcome->columns == columns)
        return SHOAL_OK;
    return shoal_fail(SHOAL_INVALID, "%s has %" PRId64 " column%s, but %s is a model for %" PRId64 "%s",
                      outcome->data_name, outcome->columns, base_plural(outcome->columns), self->model->name, columns,
                      hint);
}

/* The model's values, and options of its own. */
static int settle_applied(shoal_application *self)
{
    const learn_predictor *predictor = self->model->face->predictor;
    const learn_rows rows = run_rows_of(self->outcome);
    void *config = self->applied.config;
    int status = config ? SHOAL_OK : base_alloc(&config, 1, predictor->algorithm->config_size, "a model");
    if (status < 0)
        return status;
    self->applied = self->model->loaded;
    self->applied.config = config;
    memcpy(config, self->model->loaded.config, predictor->algorithm->config_size);
    for (int i = 0; predictor->outputs[i].name; i++)
        self->applied.wanted[i] = is_wanted(self, predictor->outputs[i].name);
    if (predictor->settle)
        predictor->settle(&self->applied, &rows);
    return SHOAL_OK;
}

int shoal_application_load(shoal_application *self)
{
    if (self->loaded)
        return shoal_fail(SHOAL_USAGE, "the rows are loaded already");
    self->loaded = true;
    self->asked.scoring.score |= self->asked.scoring.confusion != NULL;
    int status = check_asked(self);
    if (status == SHOAL_OK)
        status = make_applying_request(self);
    if (status == SHOAL_OK)
        status = settle_schema(self);
    if (status == SHOAL_OK)
        status = run_load(self->outcome);
    if (status == SHOAL_OK)
        status = check_columns(self);
    if (status == SHOAL_OK && path_of(self, "plot"))
        status = run_plot_prepare(self->outcome, &self->asked.plot);
    return status == SHOAL_OK ? settle_applied(self) : status;
}

int shoal_application_output(shoal_tensor *out, const shoal_application *self, const char *name)
{
    const learn_predictor *predictor = self->model->face->predictor;
    const int at = find_array(self, name);
    if (at < 0)
        return fail_no_output(self, name);
    if (!self->applied.config)
        return shoal_fail(SHOAL_USAGE, "%s: how large it is depends on the rows, which are not loaded", name);
    const learn_output *output = &predictor->outputs[at];
    *out = (shoal_tensor){.rank = output->rank, .shape = {self->outcome->rows}};
    snprintf(out->name, sizeof out->name, "%s", name);
    int status = output->type ? shoal_type_parse(&out->type, output->type) : SHOAL_OK;
    if (status == SHOAL_OK && output->rank == 2)
        predictor->shape(&out->shape[1], &out->type, &self->applied, name);
    return status;
}

int shoal_application_into(shoal_application *self, const char *name, void *values, size_t bytes)
{
    const int at = find_array(self, name);
    int used = 0;
    if (at < 0)
        return fail_no_output(self, name);
    while (self->into[used].name && strcmp(self->into[used].name, name) != 0)
        used++;
    self->into[used] = (shoal_row_memory){self->model->face->predictor->outputs[at].name, values, bytes};
    return SHOAL_OK;
}

/* ---- the run ----------------------------------------------------------------------------------------------------- */

int shoal_application_run(shoal_application *self)
{
    if (self->ran)
        return shoal_fail(SHOAL_USAGE, "the model was applied already");
    self->ran = true;
    int status = self->loaded ? settle_applied(self) : shoal_application_load(self);
    if (status == SHOAL_OK && run_is_first())
        status = check_applied_outputs(self);
    if (status < 0)
        return status;
    memcpy(self->outcome->config, self->applied.config, self->model->face->predictor->algorithm->config_size);
    status = run_here(self->outcome);
    if (status == SHOAL_OK && run_is_first() && self->asked.scoring.score)
        status = run_score_make(&self->score, self);
    if (status == SHOAL_OK && run_is_first() && self->asked.scoring.confusion)
        status = run_score_check_picture(&self->score);
    if (status == SHOAL_OK && run_is_first())
        status = write_applied_outputs(self);
    return status == SHOAL_OK ? write_plot(self) : status;
}

const shoal_result *shoal_application_result(const shoal_application *self)
{
    return shoal_outcome_result(self->outcome);
}

int run_apply_ended(shoal_result **out, const shoal_outcome *outcome, const learn_ended *ended, const char *output)
{
    const learn_predictor *predictor = outcome->face->predictor;
    const run_place *place = &outcome->request->place;
    const shoal_run_options options = {.threads = (int)place->threads,
                                       .kernel = place->kernel,
                                       .rows_per_grain = place->rows_per_grain,
                                       .memory = outcome->request->reading.memory,
                                       .ranks = run_ranks()};
    learn_applied model = {0};
    int status = run_model_new_config(&model, predictor);
    for (int i = 0; predictor->outputs[i].name; i++)
        model.wanted[i] = strcmp(predictor->outputs[i].name, output) == 0;
    if (status == SHOAL_OK)
        status = predictor->load_ended(&model, ended);
    if (status == SHOAL_OK && predictor->settle)
        predictor->settle(&model, &ended->rows);
    if (status == SHOAL_OK)
        status =
            run_ranks_settled(shoal_run(out, NULL, predictor->algorithm, model.config, outcome->data, NULL, &options));
    run_model_release(&model);
    return status;
}
