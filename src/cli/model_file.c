/* Models as files.  See model_file.h. */
#include "model_file.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* As few digits as give the same number back. */
static void format_real(char *out, size_t size, double value)
{
    for (int digits = 15; digits <= 17; digits++) {
        double back = 0;
        snprintf(out, size, "%.*g", digits, value);
        if (base_parse_real(&back, out) && back == value)
            return;
    }
}

static json_t *text_of_real(double value)
{
    char text[40];
    format_real(text, sizeof text, value);
    return json_string(text);
}

static json_t *text_of_whole(int64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, value);
    return json_string(text);
}

/* Metadata hold texts alone.  What is not finite says nothing, and is left out. */
static void put_number(json_t **object, const shoal_number *number)
{
    if (!isfinite(number->value))
        return;
    cli_json_put(object, number->name,
                 number->truth   ? json_string(number->value != 0 ? "true" : "false")
                 : number->whole ? text_of_whole((int64_t)number->value)
                                 : text_of_real(number->value));
}

static void put_option(json_t **object, const char *name, const json_t *value)
{
    char key[80];
    snprintf(key, sizeof key, "option.%s", name);
    if (json_is_string(value))
        cli_json_put(object, key, cli_json_text(json_string_value(value)));
    else if (json_is_integer(value))
        cli_json_put(object, key, text_of_whole(json_integer_value(value)));
    else if (json_is_real(value))
        cli_json_put(object, key, text_of_real(json_real_value(value)));
    else if (json_is_boolean(value))
        cli_json_put(object, key, json_string(json_is_true(value) ? "true" : "false"));
}

/* All metadata as one object of texts; NULL when out of memory. */
static json_t *collect(const cli_job *job, const json_t *options, const data_metadata *more)
{
    json_t *object = json_object();
    const char *name;
    json_t *value;
    cli_json_put(&object, "learner", json_string(job->algorithm->name));
    cli_json_put(&object, "version", json_string(SHOAL_VERSION));
    cli_json_put(&object, "rows", text_of_whole(job->rows));
    cli_json_put(&object, "columns", text_of_whole(job->columns));
    for (int i = 0; i < job->result->numbers; i++)
        put_number(&object, &job->result->number[i]);
    json_object_foreach((json_t *)options, name, value) put_option(&object, name, value);
    for (; more && more->key; more++)
        cli_json_put(&object, more->key, cli_json_text(more->text));
    return object;
}

static int list_tensors(data_tensor tensors[SHOAL_TENSORS_MOST], const shoal_result *result, const char *const *parts)
{
    int count = 0;
    for (; *parts && count < SHOAL_TENSORS_MOST; parts++) {
        const shoal_tensor *tensor = shoal_result_tensor(result, *parts);
        if (!tensor)
            continue;
        tensors[count] =
            (data_tensor){.name = tensor->name, .type = tensor->type, .rank = tensor->rank, .values = tensor->values};
        memcpy(tensors[count++].shape, tensor->shape, (size_t)tensor->rank * sizeof tensor->shape[0]);
    }
    return count;
}

int cli_model_write(const char *path, const cli_job *job, const char *const *parts, const json_t *options,
                    const data_metadata *more)
{
    data_tensor tensors[SHOAL_TENSORS_MOST];
    data_metadata *metadata = NULL;
    const char *key;
    json_t *text;
    int entries = 0;
    if (!path)
        return SHOAL_OK;
    json_t *object = collect(job, options, more);
    int status = object ? base_alloc(&metadata, json_object_size(object), sizeof *metadata, path)
                        : shoal_fail(SHOAL_MEMORY, "%s: out of memory", path);
    if (status == SHOAL_OK) {
        json_object_foreach(object, key, text) metadata[entries++] = (data_metadata){key, json_string_value(text)};
        status = data_safetensors_write(path, tensors, list_tensors(tensors, job->result, parts), metadata, entries);
    }
    base_free(&metadata);
    json_decref(object);
    return status;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

int cli_model_open(cli_model *out, const char *path)
{
    *out = (cli_model){.path = path};
    int status = data_safetensors_open(&out->file, path);
    if (status < 0)
        return status;
    out->learner = data_safetensors_metadata(out->file, "learner");
    if (!out->learner && data_safetensors_find(out->file, "centres"))
        out->learner = "kmeans";
    if (out->learner)
        return SHOAL_OK;
    cli_model_close(out);
    return shoal_fail(SHOAL_INVALID, "%s: no model: its metadata name no learner, and it has no tensor 'centres'",
                      path);
}

int cli_model_open_as(cli_model *out, const char *path, const char *learner)
{
    int status = cli_model_open(out, path);
    if (status == SHOAL_OK && strcmp(out->learner, learner) != 0) {
        status = shoal_fail(SHOAL_INVALID, "%s: a model of %s, not of %s", path, out->learner, learner);
        cli_model_close(out);
    }
    return status;
}

void cli_model_close(cli_model *model)
{
    data_safetensors_close(&model->file);
    *model = (cli_model){0};
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

static int fail_shape(const cli_model *model, const char *name, const data_tensor *found, int rank,
                      const int64_t *wanted, const char *const *names)
{
    char right[96], wrong[200] = "";
    format_shape(right, sizeof right, rank, wanted, names);
    if (!found)
        return shoal_fail(SHOAL_INVALID, "%s: no tensor '%s' of %s in it", model->path, name, right);
    format_shape(wrong, sizeof wrong, found->rank, found->shape, NULL);
    return shoal_fail(SHOAL_INVALID, "%s: no tensor '%s' of %s in it: it is %s", model->path, name, right, wrong);
}

/* Copies a tensor as float64; its values may lie at any address. */
static int copy_tensor(double **out, const cli_model *model, const data_tensor *tensor)
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
    if (status == SHOAL_OK) {
        memcpy(aligned, tensor->values, tensor->bytes);
        shoal_convert_float64(values, aligned, tensor->type, (int64_t)count);
        status = cli_check_finite(values, (int64_t)count / columns, columns, what);
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

int cli_model_matrix(double **out, int64_t *rows, int64_t *columns, const cli_model *model, const char *name)
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

int cli_model_vector(double **out, int64_t *count, const cli_model *model, const char *name)
{
    static const char *const names[] = {"one dimension"};
    const data_tensor *tensor = data_safetensors_find(model->file, name);
    if (!fits(tensor, 1, count))
        return fail_shape(model, name, tensor, 1, count, names);
    *count = tensor->shape[0];
    return copy_tensor(out, model, tensor);
}

bool cli_model_has(const cli_model *model, const char *name)
{
    return data_safetensors_find(model->file, name) != NULL;
}

const char *cli_model_text(const cli_model *model, const char *key)
{
    return data_safetensors_metadata(model->file, key);
}

static int fail_entry(const cli_model *model, const char *key, const char *wanted)
{
    const char *text = cli_model_text(model, key);
    if (!text)
        return shoal_fail(SHOAL_INVALID, "%s: its metadata have no '%s', which is %s", model->path, key, wanted);
    return shoal_fail(SHOAL_INVALID, "%s: '%s' is '%s' in its metadata, not %s", model->path, key, text, wanted);
}

int cli_model_number(double *out, const cli_model *model, const char *key)
{
    const char *text = cli_model_text(model, key);
    return text && base_parse_real(out, text) && isfinite(*out) ? SHOAL_OK : fail_entry(model, key, "a number");
}

int cli_model_truth(bool *out, const cli_model *model, const char *key)
{
    const char *text = cli_model_text(model, key);
    *out = text && strcmp(text, "true") == 0;
    return *out || (text && strcmp(text, "false") == 0) ? SHOAL_OK : fail_entry(model, key, "true or false");
}

int cli_model_choice(int *out, const cli_model *model, const char *key, const char *const *choices)
{
    const char *text = cli_model_text(model, key);
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
