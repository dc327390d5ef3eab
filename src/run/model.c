/* Models in memory: a safetensors file, or the bytes of one, that is checked once.  See shoal/model.h. */
#include "model.h"

#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "outcome.h"
#include "ranks.h"

/* ---- what is applied --------------------------------------------------------------------------------------------- */

int run_model_new_config(learn_applied *out, const learn_predictor *predictor)
{
    return base_alloc(&out->config, 1, predictor->algorithm->config_size, "a model");
}

void run_model_release(learn_applied *applied)
{
    for (int i = 0; i < LEARN_VALUES_MOST; i++)
        base_free(&applied->values[i]);
    base_free(&applied->config);
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

/* Rows of numbers are a model of the one learner that says so. */
static const learn_face *find_face_of_rows(void)
{
    for (const learn_face *const *face = learn_faces; *face; face++)
        if ((*face)->predictor && (*face)->predictor->takes_rows)
            return *face;
    return NULL;
}

/* What a model remembers must fit what it is. */
static int check_schema(const shoal_model *self)
{
    const learn_schema *schema = &self->schema;
    const learn_applied *applied = &self->loaded;
    if (schema->columns > 0 && schema->columns != applied->columns)
        return shoal_fail(SHOAL_INVALID, "%s: a schema of %" PRId64 " columns, but a model of %" PRId64, self->name,
                          schema->columns, applied->columns);
    if (schema->classes && schema->classes_count != applied->classes_count)
        return shoal_fail(SHOAL_INVALID, "%s: a schema of %" PRId64 " classes, but a model of %" PRId64, self->name,
                          schema->classes_count, applied->classes_count);
    for (int64_t i = 0; i < schema->classes_count; i++)
        if (applied->classes[i] != (double)i)
            return shoal_fail(SHOAL_INVALID, "%s: its classes have names, but are not numbered from 0", self->name);
    return SHOAL_OK;
}

/* Once its file is open, or it is known to be rows of numbers: all that it says is checked, so that applying it can't
 * fail for that. */
static int finish_model(shoal_model *self)
{
    const bool plain = !self->file.file;
    self->face = plain ? find_face_of_rows() : learn_face_find(self->file.learner);
    if (!self->face || !self->face->predictor)
        return shoal_fail(SHOAL_INVALID, "%s: a model of '%s', a learner this program does not know", self->name,
                          plain ? "rows" : self->file.learner);
    int status = run_model_new_config(&self->loaded, self->face->predictor);
    if (status == SHOAL_OK)
        status = self->face->predictor->load(&self->loaded, plain ? NULL : &self->file, self->name);
    if (status == SHOAL_OK && !plain)
        status = learn_model_file_schema(&self->schema, &self->file);
    self->loaded.class_names = self->schema.classes;
    return status == SHOAL_OK ? check_schema(self) : status;
}

static int new_model(shoal_model **out, const char *name)
{
    *out = NULL;
    int status = base_alloc(out, 1, sizeof **out, "a model");
    if (status == SHOAL_OK)
        status = base_copy_text(&(*out)->name, name);
    if (status < 0)
        shoal_model_free(out);
    return status;
}

int shoal_model_open(shoal_model **out, const char *path)
{
    int status = new_model(out, path);
    if (status == SHOAL_OK)
        status = run_ranks_can_read("MODEL", path);
    if (status == SHOAL_OK && data_safetensors_is(path))
        status = learn_model_file_open(&(*out)->file, (*out)->name);
    if (status == SHOAL_OK)
        status = finish_model(*out);
    if (status < 0)
        shoal_model_free(out);
    return status;
}

/* Takes the bytes. */
static int take_bytes(shoal_model *self, void *bytes, size_t size)
{
    self->bytes = bytes;
    int status = learn_model_file_parse(&self->file, bytes, size, self->name);
    return status == SHOAL_OK ? finish_model(self) : status;
}

int shoal_model_read(shoal_model **out, const void *bytes, size_t size, const char *name)
{
    void *copy = NULL;
    int status = new_model(out, name);
    if (status == SHOAL_OK)
        status = base_alloc_unset(&copy, size > 0 ? size : 1, 1, "a model");
    if (status == SHOAL_OK) {
        if (size > 0)
            memcpy(copy, bytes, size);
        status = take_bytes(*out, copy, size);
    }
    if (status < 0)
        shoal_model_free(out);
    return status;
}

int shoal_model_of(shoal_model **out, const shoal_outcome *outcome)
{
    void *bytes = NULL;
    size_t size = 0;
    *out = NULL;
    if (!outcome || !outcome->result)
        return shoal_fail(SHOAL_USAGE, "a run without a result has no model");
    if (!outcome->face->predictor || !run_is_learning(outcome))
        return shoal_fail(SHOAL_USAGE, "%s has no models that could be applied", outcome->algorithm->name);
    const learn_ended ended = run_ended(outcome);
    int status = new_model(out, "the model");
    if (status == SHOAL_OK)
        status = learn_model_file_make(&bytes, &size, outcome->face, &ended);
    if (status == SHOAL_OK)
        status = take_bytes(*out, bytes, size);
    if (status < 0)
        shoal_model_free(out);
    return status;
}

void shoal_model_free(shoal_model **inout)
{
    shoal_model *model = *inout;
    if (!model)
        return;
    learn_model_file_close(&model->file);
    learn_schema_release(&model->schema);
    run_model_release(&model->loaded);
    base_free(&model->bytes);
    base_free(&model->name);
    base_free(inout);
}

/* ---- what it says ------------------------------------------------------------------------------------------------ */

const char *shoal_model_learner(const shoal_model *model)
{
    return model->face->algorithm->name;
}

const void *shoal_model_bytes(const shoal_model *model, size_t *size)
{
    *size = 0;
    return model->file.file ? data_safetensors_bytes(model->file.file, size) : NULL;
}

int shoal_model_tensor(shoal_tensor *out, const shoal_model *model, const char *name)
{
    const data_tensor *found = model->file.file ? data_safetensors_find(model->file.file, name) : NULL;
    if (!found || found->rank > 4 || strlen(name) >= sizeof out->name)
        return shoal_fail(SHOAL_ABSENT, "%s has no tensor '%s'", model->name, name);
    *out = (shoal_tensor){.type = found->type, .rank = found->rank, .values = (void *)found->values, .lent = true};
    strcpy(out->name, name);
    memcpy(out->shape, found->shape, sizeof out->shape);
    return SHOAL_OK;
}

const char *shoal_model_text(const shoal_model *model, const char *key)
{
    return model->file.file ? learn_model_file_text(&model->file, key) : NULL;
}

int64_t shoal_model_columns(const shoal_model *model)
{
    return model->loaded.columns;
}

const char *shoal_model_column_name(const shoal_model *model, int64_t column)
{
    return model->schema.names && column >= 0 && column < model->schema.columns ? model->schema.names[column] : NULL;
}

const char *shoal_model_class_name(const shoal_model *model, int64_t number)
{
    return model->schema.classes && number >= 0 && number < model->schema.classes_count ? model->schema.classes[number]
                                                                                        : NULL;
}
