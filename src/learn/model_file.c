/* Models as files.  See model_file.h. */
#include "model_file.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <shoal/version.h>

#include "base/memory.h"
#include "base/option.h"
#include "base/text.h"
#include "data/read_whole.h"
#include "face.h"
#include "schema.h"

/* ---- writing ----------------------------------------------------------------------------------------------------- */

enum { ENTRIES_MOST = 160, KEY_BYTES = 80 };

/* The metadata of a model, which hold texts alone. */
typedef struct entries {
    int count, status;
    char key[ENTRIES_MOST][KEY_BYTES];
    char *text[ENTRIES_MOST];
} entries;

/* Takes the text; what is there under that key already is replaced. */
static void put_text(entries *self, const char *key, char *text)
{
    int at = 0;
    while (at < self->count && strcmp(self->key[at], key) != 0)
        at++;
    if (at == ENTRIES_MOST || !text) {
        self->status = shoal_fail(SHOAL_MEMORY, "out of memory for a model's metadata");
        base_free(&text);
        return;
    }
    if (at == self->count)
        snprintf(self->key[self->count++], KEY_BYTES, "%s", key);
    base_free(&self->text[at]);
    base_text_clean(text);
    self->text[at] = text;
}

static void put_copy(entries *self, const char *key, const char *text)
{
    char *copy = NULL;
    if (base_copy_text(&copy, text) == SHOAL_OK)
        put_text(self, key, copy);
    else
        self->status = SHOAL_MEMORY;
}

static void put_whole(entries *self, const char *key, int64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, value);
    put_copy(self, key, text);
}

static void put_format(entries *self, const char *key, const char *format, double value)
{
    char text[400];
    snprintf(text, sizeof text, format, value);
    put_copy(self, key, text);
}

/* As few digits as give the same number back. */
static void put_real(entries *self, const char *key, double value)
{
    char text[40] = "";
    double back = NAN;
    for (int digits = 15; digits <= 17 && back != value; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (!base_parse_real(&back, text))
            back = NAN;
    }
    put_copy(self, key, text);
}

/* Values that are not finite are left out. */
static void put_number(entries *self, const shoal_number *number)
{
    if (!isfinite(number->value))
        return;
    if (number->truth)
        put_copy(self, number->name, number->value != 0 ? "true" : "false");
    else if (number->whole)
        put_format(self, number->name, "%.0f", number->value);
    else
        put_real(self, number->name, number->value);
}

static void put_option(entries *self, const shoal_option *option, const void *config)
{
    const char *at = (const char *)config + option->offset;
    char key[KEY_BYTES];
    snprintf(key, sizeof key, "option.%s", option->name);
    switch (option->kind) {
    case SHOAL_OPTION_TEXT:
        if (*(const char *const *)at)
            put_copy(self, key, *(const char *const *)at);
        break;
    case SHOAL_OPTION_COUNT:
    case SHOAL_OPTION_BYTES: put_whole(self, key, *(const int64_t *)at); break;
    case SHOAL_OPTION_REAL:
        if (isfinite(*(const double *)at))
            put_real(self, key, *(const double *)at);
        break;
    case SHOAL_OPTION_FLAG: put_copy(self, key, *(const bool *)at ? "true" : "false"); break;
    case SHOAL_OPTION_CHOICE: put_copy(self, key, option->choices[*(const int *)at]); break;
    case SHOAL_OPTION_LIST: break;
    case SHOAL_OPTION_COUNTS:
        if (((const base_option_counts *)at)->several)
            put_copy(self, key, ((const base_option_counts *)at)->several);
        else
            put_whole(self, key, ((const base_option_counts *)at)->one);
        break;
    }
}

/* A schema that tells nothing new is left out, so that models of bare rows stay as they were. */
static void put_schema(entries *self, const learn_schema *schema)
{
    if (!schema || !learn_schema_says_more(schema))
        return;
    json_t *object = learn_schema_json(schema);
    char *text = object ? json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    if (text)
        put_copy(self, "schema", text);
    else
        self->status = shoal_fail(SHOAL_MEMORY, "out of memory for a model's metadata");
    json_decref(object);
    free(text);
}

/* An option of the name of what is composed is the text of that or the path of a file with it: the text is enough. */
static void collect_entries(entries *self, const learn_face *face, const learn_ended *ended, const char *composed)
{
    shoal_result *facts = NULL;
    put_copy(self, "learner", face->algorithm->name);
    put_copy(self, "version", shoal_version());
    put_whole(self, "rows", ended->rows.rows);
    put_whole(self, "columns", ended->rows.columns);
    put_schema(self, ended->rows.schema);
    for (int i = 0; i < ended->result->numbers; i++)
        put_number(self, &ended->result->number[i]);
    for (const shoal_option *option = face->algorithm->options; option && option->name; option++)
        if (!composed || strcmp(option->name, composed) != 0)
            put_option(self, option, ended->config);
    if (face->annotate && self->status == SHOAL_OK && (self->status = shoal_result_new(&facts)) == SHOAL_OK) {
        face->annotate(facts, ended);
        self->status = shoal_result_check(facts);
        for (int i = 0; i < facts->numbers; i++)
            put_number(self, &facts->number[i]);
    }
    shoal_result_free(&facts);
}

/* All that a model consists of. */
typedef struct content {
    data_tensor *tensors;
    int tensor_count;
    learn_composed composed;
    data_metadata metadata[ENTRIES_MOST];
    entries entries;
} content;

static int list_tensors(content *self, const shoal_result *result, const char *const *parts)
{
    size_t most = 0;
    while (parts[most])
        most++;
    most += (size_t)self->composed.tensors;
    int status = base_alloc(&self->tensors, most, sizeof *self->tensors, "the tensors of a model");
    for (; status == SHOAL_OK && *parts; parts++) {
        const shoal_tensor *tensor = shoal_result_tensor(result, *parts);
        if (!tensor)
            continue;
        data_tensor *listed = &self->tensors[self->tensor_count++];
        *listed =
            (data_tensor){.name = tensor->name, .type = tensor->type, .rank = tensor->rank, .values = tensor->values};
        memcpy(listed->shape, tensor->shape, (size_t)tensor->rank * sizeof tensor->shape[0]);
    }
    for (int i = 0; status == SHOAL_OK && i < self->composed.tensors; i++)
        self->tensors[self->tensor_count++] = self->composed.tensor[i];
    return status;
}

static void free_name(data_tensor *tensor)
{
    char *name = (char *)tensor->name;
    base_free(&name);
}

static void release_content(content **self)
{
    if (*self)
        base_free(&(*self)->tensors);
    for (int i = 0; *self && i < (*self)->entries.count; i++)
        base_free(&(*self)->entries.text[i]);
    for (int i = 0; *self && i < (*self)->composed.tensors; i++)
        free_name(&(*self)->composed.tensor[i]);
    if (*self)
        base_free(&(*self)->composed.text);
    base_free(self);
}

static int collect_content(content **out, const learn_face *face, const learn_ended *ended)
{
    content *self = NULL;
    int status = base_alloc(&self, 1, sizeof *self, "a model");
    if (status < 0)
        return status;
    if (face->compose)
        self->entries.status = face->compose(&self->composed, ended);
    if (self->entries.status == SHOAL_OK)
        collect_entries(&self->entries, face, ended, self->composed.key);
    if (self->composed.key && self->entries.status == SHOAL_OK)
        put_copy(&self->entries, self->composed.key, self->composed.text);
    for (int i = 0; i < self->entries.count; i++)
        self->metadata[i] = (data_metadata){self->entries.key[i], self->entries.text[i]};
    status = self->entries.status;
    if (status == SHOAL_OK)
        status = list_tensors(self, ended->result, face->parts);
    if (status < 0)
        release_content(&self);
    *out = self;
    return status;
}

int learn_model_file_write(const char *path, const learn_face *face, const learn_ended *ended)
{
    content *self = NULL;
    int status = collect_content(&self, face, ended);
    if (status == SHOAL_OK)
        status = data_safetensors_write(path, self->tensors, self->tensor_count, self->metadata, self->entries.count);
    release_content(&self);
    return status;
}

int learn_model_file_make(void **out, size_t *size, const learn_face *face, const learn_ended *ended)
{
    content *self = NULL;
    int status = collect_content(&self, face, ended);
    if (status == SHOAL_OK)
        status =
            data_safetensors_make(out, size, self->tensors, self->tensor_count, self->metadata, self->entries.count);
    release_content(&self);
    return status;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* Once the file is open. */
static int find_learner(learn_model_file *out)
{
    const char *path = out->path;
    out->learner = data_safetensors_metadata(out->file, "learner");
    if (!out->learner && data_safetensors_find(out->file, "centres"))
        out->learner = "kmeans";
    if (out->learner)
        return SHOAL_OK;
    learn_model_file_close(out);
    return shoal_fail(SHOAL_INVALID,
                      "%s: not a model: its metadata do not name a learner, and it has no tensor 'centres'", path);
}

int learn_model_file_open(learn_model_file *out, const char *path)
{
    *out = (learn_model_file){.path = path};
    int status = data_safetensors_open(&out->file, path);
    return status == SHOAL_OK ? find_learner(out) : status;
}

int learn_model_file_open_tensors(learn_model_file *out, const char *path)
{
    *out = (learn_model_file){.path = path};
    int status = data_safetensors_open(&out->file, path);
    if (status == SHOAL_OK)
        out->learner = data_safetensors_metadata(out->file, "learner");
    return status;
}

int learn_model_file_parse(learn_model_file *out, const void *bytes, size_t size, const char *name)
{
    *out = (learn_model_file){.path = name};
    int status = data_safetensors_parse(&out->file, bytes, size, name);
    return status == SHOAL_OK ? find_learner(out) : status;
}

int learn_model_file_open_as(learn_model_file *out, const char *path, const char *learner)
{
    int status = learn_model_file_open(out, path);
    if (status == SHOAL_OK && strcmp(out->learner, learner) != 0) {
        status = shoal_fail(SHOAL_INVALID, "%s: a model of %s, not of %s", path, out->learner, learner);
        learn_model_file_close(out);
    }
    return status;
}

int learn_model_file_schema(learn_schema *out, const learn_model_file *model)
{
    const char *text = learn_model_file_text(model, "schema");
    *out = (learn_schema){0};
    if (!text)
        return SHOAL_OK;
    json_t *object = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    int status = learn_schema_take(out, object, model->path);
    json_decref(object);
    return status;
}

void learn_model_file_close(learn_model_file *model)
{
    data_safetensors_close(&model->file);
    *model = (learn_model_file){0};
}

/* "25 x 64"; what is 0 is called by its name. */
static void format_shape(char *out, size_t size, int rank, const int64_t *shape, const char *const *names)
{
    size_t at = 0;
    snprintf(out, size, "%s", rank == 0 ? "a single value" : "");
    for (int i = 0; i < rank && at < size; i++) {
        const char *between = i > 0 ? " x " : "";
        int wrote = names && shape[i] == 0 ? snprintf(out + at, size - at, "%s%s", between, names[i])
                                           : snprintf(out + at, size - at, "%s%" PRId64, between, shape[i]);
        at += (size_t)wrote;
    }
}

static bool fits(const data_tensor *tensor, int rank, const int64_t *wanted)
{
    if (!tensor || tensor->rank != rank)
        return false;
    for (int i = 0; i < rank; i++)
        if (tensor->shape[i] < 1 || (wanted[i] != 0 && tensor->shape[i] != wanted[i]))
            return false;
    return true;
}

static int fail_shape(const learn_model_file *model, const char *name, const data_tensor *found, int rank,
                      const int64_t *wanted, const char *const *names)
{
    char right[96], wrong[200] = "";
    format_shape(right, sizeof right, rank, wanted, names);
    if (!found)
        return shoal_fail(SHOAL_INVALID, "%s: there is no tensor '%s' of %s", model->path, name, right);
    format_shape(wrong, sizeof wrong, found->rank, found->shape, NULL);
    return shoal_fail(SHOAL_INVALID, "%s: tensor '%s' has shape %s, not %s", model->path, name, wrong, right);
}

/* Copies a tensor as float64; its values may lie at any address. */
static int copy_tensor(double **out, const learn_model_file *model, const data_tensor *tensor)
{
    size_t count = tensor->bytes / shoal_type_size(tensor->type);
    int64_t columns = tensor->shape[tensor->rank - 1];
    void *aligned = NULL;
    char *what = NULL;
    double *values = NULL;
    int status = base_alloc(&aligned, tensor->bytes, 1, model->path);
    if (status == SHOAL_OK)
        status = base_alloc(&values, count, sizeof *values, model->path);
    if (status == SHOAL_OK)
        status = base_format(&what, "%s: tensor '%s'", model->path, tensor->name);
    if (status == SHOAL_OK)
        status = data_safetensors_copy(aligned, model->file, tensor, model->path);
    if (status == SHOAL_OK) {
        shoal_convert_float64(values, aligned, tensor->type, (int64_t)count);
        status = data_check_finite(values, (int64_t)count / columns, columns, what);
    }
    if (status == SHOAL_OK) {
        *out = values;
        values = NULL;
    }
    base_free(&values);
    base_free(&what);
    base_free(&aligned);
    return status;
}

int learn_model_file_matrix(double **out, int64_t *rows, int64_t *columns, const learn_model_file *model,
                            const char *name)
{
    static const char *const names[] = {"rows", "columns"};
    const int64_t wanted[] = {*rows, *columns};
    const data_tensor *tensor = data_safetensors_find(model->file, name);
    if (!fits(tensor, 2, wanted))
        return fail_shape(model, name, tensor, 2, wanted, names);
    *rows = tensor->shape[0];
    *columns = tensor->shape[1];
    return copy_tensor(out, model, tensor);
}

int learn_model_file_vector(double **out, int64_t *count, const learn_model_file *model, const char *name)
{
    static const char *const names[] = {"one dimension"};
    const data_tensor *tensor = data_safetensors_find(model->file, name);
    if (!fits(tensor, 1, count))
        return fail_shape(model, name, tensor, 1, count, names);
    *count = tensor->shape[0];
    return copy_tensor(out, model, tensor);
}

int learn_model_file_values(double *out, const learn_model_file *model, const char *name, int rank,
                            const int64_t *shape)
{
    const data_tensor *tensor = data_safetensors_find(model->file, name);
    double *values = NULL;
    if (!fits(tensor, rank, shape))
        return fail_shape(model, name, tensor, rank, shape, NULL);
    int status = copy_tensor(&values, model, tensor);
    if (status == SHOAL_OK)
        memcpy(out, values, tensor->bytes / shoal_type_size(tensor->type) * sizeof *out);
    base_free(&values);
    return status;
}

bool learn_model_file_has(const learn_model_file *model, const char *name)
{
    return data_safetensors_find(model->file, name) != NULL;
}

bool learn_model_file_fits(const learn_model_file *model, const char *name, int rank, const int64_t *shape)
{
    return fits(data_safetensors_find(model->file, name), rank, shape);
}

const char *learn_model_file_text(const learn_model_file *model, const char *key)
{
    return data_safetensors_metadata(model->file, key);
}

static int fail_entry(const learn_model_file *model, const char *key, const char *wanted)
{
    const char *text = learn_model_file_text(model, key);
    if (!text)
        return shoal_fail(SHOAL_INVALID, "%s: its metadata lack '%s', which must be %s", model->path, key, wanted);
    return shoal_fail(SHOAL_INVALID, "%s: '%s' is '%s' in its metadata, not %s", model->path, key, text, wanted);
}

int learn_model_file_number(double *out, const learn_model_file *model, const char *key)
{
    const char *text = learn_model_file_text(model, key);
    return text && base_parse_real(out, text) && isfinite(*out) ? SHOAL_OK : fail_entry(model, key, "a number");
}

int learn_model_file_truth(bool *out, const learn_model_file *model, const char *key)
{
    const char *text = learn_model_file_text(model, key);
    *out = text && strcmp(text, "true") == 0;
    return *out || (text && strcmp(text, "false") == 0) ? SHOAL_OK : fail_entry(model, key, "true or false");
}

int learn_model_file_choice(int *out, const learn_model_file *model, const char *key, const char *const *choices)
{
    const char *text = learn_model_file_text(model, key);
    char list[256] = "one of";
    for (int i = 0; choices[i]; i++) {
        size_t length = strlen(list);
        if (text && strcmp(text, choices[i]) == 0) {
            *out = i;
            return SHOAL_OK;
        }
        snprintf(list + length, sizeof list - length, "%s %s", i > 0 ? "," : "", choices[i]);
    }
    return fail_entry(model, key, list);
}
