/* Applying models to rows.  See apply.h. */
#include "apply.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/pool.h"
#include "base/text.h"
#include "load.h"
#include "outputs.h"
#include "ranks.h"
#include "run.h"

/* ---- the model --------------------------------------------------------------------------------------------------- */

static int new_config(learn_applied *out, const learn_predictor *predictor)
{
    return base_alloc(&out->config, 1, predictor->algorithm->config_size, "a model");
}

static void release_model(learn_applied *model)
{
    for (int i = 0; i < LEARN_VALUES_MOST; i++)
        base_free(&model->values[i]);
    base_free(&model->config);
}

/* The path that was given for an output of the learner; NULL for none. */
static const char *path_of(const run_application *application, const char *output)
{
    for (int i = 0; application->names[i]; i++)
        if (strcmp(application->names[i], output) == 0)
            return application->paths[i];
    return NULL;
}

/* Scores of classes are made of probabilities. */
static bool is_wanted(const run_application *application, const char *output)
{
    return path_of(application, output) || (application->score && strcmp(output, "probabilities") == 0);
}

static bool gives(const learn_predictor *predictor, const char *output)
{
    for (const learn_output *has = predictor->outputs; has->name; has++)
        if (strcmp(has->name, output) == 0)
            return true;
    return false;
}

/* Refuses an output that models of this kind do not have. */
static int check_outputs(const learn_face *face, const run_application *application)
{
    char all[160] = "";
    for (const learn_output *output = face->predictor->outputs; output->name; output++) {
        size_t length = strlen(all);
        snprintf(all + length, sizeof all - length, "%s--%s", length > 0 ? " and " : "", output->name);
    }
    for (int i = 0; application->names[i]; i++)
        if (application->paths[i] && !gives(face->predictor, application->names[i]))
            return shoal_fail(SHOAL_USAGE, "--%s: %s is a model of %s, which gives %s", application->names[i],
                              application->model, face->algorithm->name, all);
    return SHOAL_OK;
}

/* Rows of numbers are a model of the one learner that says so. */
static const learn_face *find_face_of_rows(void)
{
    for (const learn_face *const *face = learn_faces; *face; face++)
        if ((*face)->predictor && (*face)->predictor->takes_rows)
            return *face;
    return NULL;
}

/* What a model remembers must fit what it is. */
static int check_schema(const run_applied *self, const char *path)
{
    const learn_schema *schema = &self->schema;
    if (schema->columns > 0 && schema->columns != self->model.columns)
        return shoal_fail(SHOAL_INVALID, "%s: a schema of %" PRId64 " columns, but a model of %" PRId64, path,
                          schema->columns, self->model.columns);
    if (schema->classes && schema->classes_count != self->model.classes_count)
        return shoal_fail(SHOAL_INVALID, "%s: a schema of %" PRId64 " classes, but a model of %" PRId64, path,
                          schema->classes_count, self->model.classes_count);
    for (int64_t i = 0; i < schema->classes_count; i++)
        if (self->model.classes[i] != (double)i)
            return shoal_fail(SHOAL_INVALID, "%s: its classes have names, but are not numbered from 0", path);
    return SHOAL_OK;
}

static int load_model(run_applied *out, const run_application *application)
{
    learn_model_file model = {0};
    int status = run_ranks_can_read("MODEL", application->model);
    const bool plain = status == SHOAL_OK && !data_safetensors_is(application->model);
    if (status == SHOAL_OK && !plain)
        status = learn_model_file_open(&model, application->model);
    if (status < 0)
        return status;
    out->face = plain ? find_face_of_rows() : learn_face_find(model.learner);
    if (!out->face || !out->face->predictor)
        status = shoal_fail(SHOAL_INVALID, "%s: a model of '%s', a learner this program does not know",
                            application->model, plain ? "rows" : model.learner);
    if (status == SHOAL_OK)
        status = check_outputs(out->face, application);
    if (status == SHOAL_OK)
        status = new_config(&out->model, out->face->predictor);
    if (status == SHOAL_OK) {
        for (int i = 0; out->face->predictor->outputs[i].name; i++)
            out->model.wanted[i] = is_wanted(application, out->face->predictor->outputs[i].name);
        status = out->face->predictor->load(&out->model, plain ? NULL : &model, application->model);
    }
    if (status == SHOAL_OK && !plain)
        status = learn_model_file_schema(&out->schema, &model);
    if (status == SHOAL_OK)
        status = check_schema(out, application->model);
    learn_model_file_close(&model);
    return status;
}

/* ---- the run ----------------------------------------------------------------------------------------------------- */

static int check_columns(const run_applied *self, const run_application *application)
{
    const shoal_outcome *outcome = self->outcome;
    const char *hint =
        self->face->predictor->hint && outcome->columns == self->model.columns + 1 ? self->face->predictor->hint : "";
    if (outcome->columns == self->model.columns)
        return SHOAL_OK;
    return shoal_fail(SHOAL_INVALID, "%s has %" PRId64 " column%s, but %s is a model for %" PRId64 "%s",
                      outcome->data_name, outcome->columns, base_plural(outcome->columns), application->model,
                      self->model.columns, hint);
}

/* A request whose learner is the predictor: its options are the model. */
static int make_applying_request(run_applied *self, const run_application *application)
{
    const shoal_algorithm *algorithm = self->face->predictor->algorithm;
    int status = base_alloc(&self->request, 1, sizeof *self->request + algorithm->config_size, "a request");
    if (status < 0)
        return status;
    self->request->face = self->face;
    self->request->algorithm = algorithm;
    self->request->data = application->data;
    self->request->inputs.target = application->target;
    self->request->reading = application->reading;
    self->request->place = application->place;
    self->request->ranks = application->ranks;
    self->request->watch = application->watch;
    return run_outcome_new(&self->outcome, self->request);
}

/* Which columns the rows need, and what is to be known of them. */
static int settle_schema(run_applied *self, const run_application *application)
{
    run_columns *columns = &self->outcome->columns_used;
    int status = learn_schema_copy(&columns->schema, &self->schema);
    columns->schema.columns = self->model.columns;
    columns->model = application->model;
    columns->wants_known = application->score;
    columns->needs_known = application->score && self->model.classes_count > 0;
    return status;
}

/* The words that an output of the model is written in: labels of classes that are words. */
static data_codes words_of(const run_applied *self, const learn_output *output)
{
    const bool labels = self->face->classes_most > 0 && strcmp(output->name, "labels") == 0;
    return labels ? (data_codes){(const char *const *)self->schema.classes, self->schema.classes_count}
                  : (data_codes){0};
}

/* What the model gives, and where it goes. */
static void list_applied_outputs(run_files *out, const run_applied *self, const run_application *application)
{
    const learn_output *outputs = self->face->predictor->outputs;
    *out = (run_files){0};
    for (int i = 0; outputs[i].name; i++) {
        snprintf(out->name[i], sizeof out->name[i], "--%s", outputs[i].name);
        out->file[i] = (run_file){.name = out->name[i],
                                  .path = path_of(application, outputs[i].name),
                                  .content = run_output_content(&outputs[i], NULL, self->model.columns)};
        out->file[i].content.words = words_of(self, &outputs[i]);
        if (out->file[i].content.words.word)
            out->file[i].content.type = "words";
    }
}

static int check_applied_outputs(const run_applied *self, const run_application *application)
{
    run_files files;
    int status = SHOAL_OK;
    list_applied_outputs(&files, self, application);
    for (const run_file *file = files.file; file->name && status == SHOAL_OK; file++) /* which may be of words */
        if (file->path)
            status = data_content_check_name(file->name, file->path, &file->content);
    return status == SHOAL_OK ? run_files_check_old(files.file, application->force) : status;
}

static int write_applied_outputs(const run_applied *self, const run_application *application)
{
    double started = base_seconds();
    const learn_output *outputs = self->face->predictor->outputs;
    run_files files;
    run_moved moved = {0};
    int status = SHOAL_OK;
    list_applied_outputs(&files, self, application);
    for (int i = 0; outputs[i].name && status == SHOAL_OK; i++) {
        const data_codes words = words_of(self, &outputs[i]);
        char *place = NULL;
        if (!words.word)
            run_output_note(&files.file[i].content, shoal_result_tensor(self->outcome->result, outputs[i].name));
        if (files.file[i].path)
            status = run_file_place(&place, &moved, &files.file[i], application->force);
        if (place)
            status = run_write_tensor(place, self->outcome->result, outputs[i].name, &words);
        base_free(&place);
    }
    status = run_moved_tell(&moved, status);
    self->outcome->write_seconds = base_seconds() - started;
    return status;
}

static int check_missing(const run_applied *self, const run_application *application)
{
    if (application->reading.missing == SHOAL_MISSING_DROP)
        return shoal_fail(SHOAL_USAGE, "--missing drop: what is written has a value for each row of DATA, so that rows "
                                       "can't be left out; use --missing mean");
    if (application->reading.missing == SHOAL_MISSING_MEAN && !self->schema.fill)
        return shoal_fail(SHOAL_USAGE,
                          "--missing mean: %s was not trained with this option, so that it has no means to fill in",
                          application->model);
    return SHOAL_OK;
}

int run_apply(run_applied *out, const run_application *application)
{
    *out = (run_applied){0};
    int status = load_model(out, application);
    if (status == SHOAL_OK)
        status = make_applying_request(out, application);
    if (status == SHOAL_OK)
        status = check_missing(out, application);
    if (status == SHOAL_OK)
        status = settle_schema(out, application);
    if (status == SHOAL_OK)
        status = run_load(out->outcome);
    if (status == SHOAL_OK)
        status = check_columns(out, application);
    if (status == SHOAL_OK && run_is_first())
        status = check_applied_outputs(out, application);
    if (status < 0)
        return status;
    const learn_rows rows = run_rows_of(out->outcome);
    out->model.class_names = out->schema.classes;
    if (out->face->predictor->settle)
        out->face->predictor->settle(&out->model, &rows);
    memcpy(out->outcome->config, out->model.config, out->face->predictor->algorithm->config_size);
    status = run_here(out->outcome);
    return status == SHOAL_OK && run_is_first() ? write_applied_outputs(out, application) : status;
}

void run_applied_release(run_applied *applied)
{
    shoal_outcome_free(&applied->outcome);
    shoal_request_free(&applied->request);
    release_model(&applied->model);
    learn_schema_release(&applied->schema);
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
    int status = new_config(&model, predictor);
    for (int i = 0; predictor->outputs[i].name; i++)
        model.wanted[i] = strcmp(predictor->outputs[i].name, output) == 0;
    if (status == SHOAL_OK)
        status = predictor->load_ended(&model, ended);
    if (status == SHOAL_OK && predictor->settle)
        predictor->settle(&model, &ended->rows);
    if (status == SHOAL_OK)
        status =
            run_ranks_settled(shoal_run(out, NULL, predictor->algorithm, model.config, outcome->data, NULL, &options));
    release_model(&model);
    return status;
}
