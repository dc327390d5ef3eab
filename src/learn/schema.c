/* What a model remembers of the columns it was trained on.  See schema.h. */
#include "learn/schema.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/option.h"
#include "base/text.h"
#include "learn/classes.h"

/* ---- lists ------------------------------------------------------------------------------------------------------- */

static void free_texts(char ***texts, int64_t count)
{
    for (int64_t i = 0; *texts && i < count; i++)
        base_free(&(*texts)[i]);
    base_free(texts);
}

static int copy_texts(char ***out, const char *const *from, int64_t count)
{
    char **texts = NULL;
    int status = base_alloc(&texts, (size_t)count, sizeof *texts, "a model's names");
    for (int64_t i = 0; i < count && status == SHOAL_OK; i++) {
        status = base_copy_text(&texts[i], from[i]);
        if (status == SHOAL_OK)
            base_text_clean(texts[i]);
    }
    if (status < 0)
        free_texts(&texts, count);
    *out = texts;
    return status;
}

static int copy_numbers(double **out, const double *from, int64_t count)
{
    if (!from)
        return SHOAL_OK;
    int status = base_alloc(out, (size_t)count, sizeof **out, "a model's columns");
    if (status == SHOAL_OK)
        memcpy(*out, from, (size_t)count * sizeof **out);
    return status;
}

void learn_schema_release(learn_schema *schema)
{
    free_texts(&schema->names, schema->columns);
    free_texts(&schema->classes, schema->classes_count);
    base_free(&schema->target);
    base_free(&schema->fill);
    base_free(&schema->mean);
    base_free(&schema->scale);
    *schema = (learn_schema){0};
}

int learn_schema_copy(learn_schema *out, const learn_schema *from)
{
    learn_schema copy = {
        .columns = from->columns, .target_column = from->target_column, .classes_count = from->classes_count};
    int status = from->target ? base_copy_text(&copy.target, from->target) : SHOAL_OK;
    if (status == SHOAL_OK && from->names)
        status = copy_texts(&copy.names, (const char *const *)from->names, from->columns);
    if (status == SHOAL_OK && from->classes)
        status = copy_texts(&copy.classes, (const char *const *)from->classes, from->classes_count);
    if (status == SHOAL_OK)
        status = copy_numbers(&copy.fill, from->fill, from->columns);
    if (status == SHOAL_OK)
        status = copy_numbers(&copy.mean, from->mean, from->columns);
    if (status == SHOAL_OK)
        status = copy_numbers(&copy.scale, from->scale, from->columns);
    if (status < 0)
        learn_schema_release(&copy);
    *out = copy;
    return status;
}

/* ---- names of columns -------------------------------------------------------------------------------------------- */

/* A name and where it stands, for looking names up in order. */
typedef struct place {
    const char *name;
    int64_t column;
} place;

static int compare_places(const void *a, const void *b)
{
    const place *left = a, *right = b;
    int order = strcmp(left->name, right->name);
    return order ? order : (left->column > right->column) - (left->column < right->column);
}

/* The first of that name; NULL when there is none. */
static const place *find_place(const place *places, int64_t count, const char *name)
{
    int64_t low = 0, high = count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (strcmp(places[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && strcmp(places[low].name, name) == 0 ? &places[low] : NULL;
}

static int sort_places(place **out, char *const *names, int64_t count)
{
    int status = base_alloc(out, (size_t)count, sizeof **out, "names of columns");
    for (int64_t i = 0; i < count && status == SHOAL_OK; i++)
        (*out)[i] = (place){names[i], i};
    if (status == SHOAL_OK)
        qsort(*out, (size_t)count, sizeof **out, compare_places);
    return status;
}

/* Whether all names are different. */
static int check_distinct(bool *distinct, char *const *names, int64_t count)
{
    place *places = NULL;
    int status = sort_places(&places, names, count);
    *distinct = true;
    for (int64_t i = 1; i < count && status == SHOAL_OK; i++)
        *distinct &= strcmp(places[i - 1].name, places[i].name) != 0;
    base_free(&places);
    return status;
}

bool learn_columns_named(const shoal_data *data)
{
    for (int64_t i = 0; i < shoal_data_columns(data); i++)
        if (!shoal_data_column_name(data, i))
            return false;
    return true;
}

/* Names as models keep them. */
static int copy_column_names(char ***out, const shoal_data *data, int64_t without)
{
    int64_t columns = shoal_data_columns(data), count = 0;
    const char **names = NULL;
    int status = base_alloc(&names, (size_t)columns, sizeof *names, "names of columns");
    for (int64_t i = 0; i < columns && status == SHOAL_OK; i++)
        if (i != without)
            names[count++] = shoal_data_column_name(data, i);
    if (status == SHOAL_OK)
        status = copy_texts(out, names, count);
    base_free(&names);
    return status;
}

int64_t learn_column_find(const shoal_data *data, const char *name)
{
    for (int64_t i = 0; i < shoal_data_columns(data); i++) {
        const char *here = shoal_data_column_name(data, i);
        char *clean = NULL;
        if (!here || base_copy_text(&clean, here) < 0)
            continue;
        base_text_clean(clean);
        bool same = strcmp(clean, name) == 0;
        base_free(&clean);
        if (same)
            return i;
    }
    return -1;
}

/* ---- while training ---------------------------------------------------------------------------------------------- */

int learn_schema_note(learn_schema *schema, const shoal_data *data, int64_t target, bool in_file)
{
    const char *name = target >= 0 && in_file ? shoal_data_column_name(data, target) : NULL;
    bool distinct = true;
    int status = SHOAL_OK;
    schema->columns = shoal_data_columns(data) - (target >= 0);
    schema->target_column = in_file ? target + 1 : 0;
    if (name && (status = base_copy_text(&schema->target, name)) == SHOAL_OK)
        base_text_clean(schema->target);
    if (status == SHOAL_OK && learn_columns_named(data))
        status = copy_column_names(&schema->names, data, target);
    if (status == SHOAL_OK && schema->names)
        status = check_distinct(&distinct, schema->names, schema->columns);
    for (int64_t i = 0; i < schema->columns && schema->names && schema->target; i++)
        distinct &= strcmp(schema->names[i], schema->target) != 0;
    if (!distinct)
        free_texts(&schema->names, schema->columns);
    return status;
}

int learn_schema_note_classes(learn_schema *schema, const char *const *words, int64_t count)
{
    free_texts(&schema->classes, schema->classes_count);
    schema->classes_count = 0;
    int status = copy_texts(&schema->classes, words, count);
    if (status == SHOAL_OK)
        schema->classes_count = count;
    return status;
}

bool learn_schema_says_more(const learn_schema *schema)
{
    return schema->names || schema->target_column || schema->classes || schema->fill || schema->mean;
}

/* ---- as JSON ----------------------------------------------------------------------------------------------------- */

static json_t *json_numbers(const double *numbers, int64_t count)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < count && list; i++)
        if (json_array_append_new(list, json_real(numbers[i])) < 0) {
            json_decref(list);
            list = NULL;
        }
    return list;
}

json_t *learn_schema_json(const learn_schema *schema)
{
    json_t *object = json_object();
    base_json_put(&object, "columns", json_integer(schema->columns));
    if (schema->names)
        base_json_put(&object, "names", base_json_texts((const char *const *)schema->names, schema->columns));
    if (schema->target)
        base_json_put(&object, "target", base_json_text(schema->target));
    if (schema->target_column)
        base_json_put(&object, "target_column", json_integer(schema->target_column));
    if (schema->classes)
        base_json_put(&object, "classes", base_json_texts((const char *const *)schema->classes, schema->classes_count));
    if (schema->fill)
        base_json_put(&object, "missing_mean", json_numbers(schema->fill, schema->columns));
    if (schema->mean)
        base_json_put(&object, "standardise_mean", json_numbers(schema->mean, schema->columns));
    if (schema->scale)
        base_json_put(&object, "standardise_scale", json_numbers(schema->scale, schema->columns));
    return object;
}

static int fail_entry(const char *path, const char *entry, const char *wrong)
{
    return shoal_fail(SHOAL_INVALID, "%s: '%s' of its schema %s", path, entry, wrong);
}

static int take_text(char **out, const json_t *value, const char *entry, const char *path)
{
    if (!json_is_string(value) || !base_text_is_clean(json_string_value(value)))
        return fail_entry(path, entry, "is not plain text");
    return base_copy_text(out, json_string_value(value));
}

/* A list of texts that are all different; NULL when the object has none. */
static int take_texts(char ***out, const json_t *object, const char *entry, int64_t count, const char *path)
{
    const json_t *list = json_object_get(object, entry);
    bool distinct = true;
    int status = SHOAL_OK;
    if (!list)
        return SHOAL_OK;
    if (!json_is_array(list) || (int64_t)json_array_size(list) != count)
        return fail_entry(path, entry, "does not have one text for each column");
    status = base_alloc(out, (size_t)count, sizeof **out, path);
    for (int64_t i = 0; i < count && status == SHOAL_OK; i++)
        status = take_text(&(*out)[i], json_array_get(list, (size_t)i), entry, path);
    if (status == SHOAL_OK)
        status = check_distinct(&distinct, *out, count);
    return distinct ? status : fail_entry(path, entry, "has the same text twice");
}

static int take_numbers(double **out, const json_t *object, const char *entry, int64_t count, bool positive,
                        const char *path)
{
    const json_t *list = json_object_get(object, entry);
    if (!list)
        return SHOAL_OK;
    if (!json_is_array(list) || (int64_t)json_array_size(list) != count)
        return fail_entry(path, entry, "does not have one number for each column");
    int status = base_alloc(out, (size_t)count, sizeof **out, path);
    for (int64_t i = 0; i < count && status == SHOAL_OK; i++) {
        const json_t *value = json_array_get(list, (size_t)i);
        (*out)[i] = json_number_value(value);
        if (!json_is_number(value) || !isfinite((*out)[i]) || (positive && !((*out)[i] > 0)))
            status = fail_entry(path, entry, positive ? "has a number that is not above 0" : "has no finite number");
    }
    return status;
}

/* Their number is checked first: it decides what is allocated. */
static int take_classes(learn_schema *out, const json_t *object, const char *path)
{
    const json_t *list = json_object_get(object, "classes");
    int64_t count = (int64_t)json_array_size(list);
    if (!list)
        return SHOAL_OK;
    if (count < 2 || count > LEARN_CLASSES_MOST)
        return fail_entry(path, "classes", "is not a list of 2 to 1,000 words");
    out->classes_count = count;
    int status = take_texts(&out->classes, object, "classes", count, path);
    for (int64_t i = 1; i < count && status == SHOAL_OK; i++)
        if (strcmp(out->classes[i - 1], out->classes[i]) >= 0)
            status = fail_entry(path, "classes", "is not in order");
    return status;
}

static int take_target(learn_schema *out, const json_t *object, const char *path)
{
    const json_t *name = json_object_get(object, "target"), *column = json_object_get(object, "target_column");
    int status = name ? take_text(&out->target, name, "target", path) : SHOAL_OK;
    out->target_column = json_integer_value(column);
    if (status == SHOAL_OK && column &&
        (!json_is_integer(column) || out->target_column < 1 || out->target_column > out->columns + 1))
        status = fail_entry(path, "target_column", "is not the number of a column");
    for (int64_t i = 0; i < out->columns && out->names && out->target && status == SHOAL_OK; i++)
        if (strcmp(out->names[i], out->target) == 0)
            status = fail_entry(path, "target", "is one of its other columns, too");
    return status;
}

static int take_all(learn_schema *out, const json_t *object, const char *path)
{
    const json_t *columns = json_object_get(object, "columns");
    out->columns = json_integer_value(columns);
    if (!json_is_integer(columns) || out->columns < 1 || out->columns > INT32_MAX) {
        out->columns = 0;
        return fail_entry(path, "columns", "is not a number of columns");
    }
    int status = take_texts(&out->names, object, "names", out->columns, path);
    if (status == SHOAL_OK)
        status = take_target(out, object, path);
    if (status == SHOAL_OK)
        status = take_classes(out, object, path);
    if (status == SHOAL_OK)
        status = take_numbers(&out->fill, object, "missing_mean", out->columns, false, path);
    if (status == SHOAL_OK)
        status = take_numbers(&out->mean, object, "standardise_mean", out->columns, false, path);
    if (status == SHOAL_OK)
        status = take_numbers(&out->scale, object, "standardise_scale", out->columns, true, path);
    if (status == SHOAL_OK && !out->mean != !out->scale)
        status = fail_entry(path, "standardise_mean", "and 'standardise_scale' go together");
    return status;
}

int learn_schema_take(learn_schema *out, const json_t *object, const char *path)
{
    *out = (learn_schema){0};
    int status = json_is_object(object) ? take_all(out, object, path)
                                        : shoal_fail(SHOAL_INVALID, "%s: its schema is not a JSON object", path);
    if (status < 0)
        learn_schema_release(out);
    return status;
}

/* ---- matching ---------------------------------------------------------------------------------------------------- */

/* "new.csv has no columns 'a', 'b' and 3 more, which m.safetensors needs; did you mean 'A'?" */
static int fail_missing(char *const *missing, int64_t count, char *const *names, int64_t named, const char *data_name,
                        const char *model)
{
    enum { NAMED = 3, NEAR_MOST = 10000 };
    char list[512] = "", more[48] = "";
    const char *near = NULL;
    for (int64_t i = 0; i < count && i < NAMED; i++) {
        size_t length = strlen(list);
        if (!near)
            near = base_nearest(missing[i], (const char *const *)names, (int)(named < NEAR_MOST ? named : NEAR_MOST));
        snprintf(list + length, sizeof list - length, "%s'%.100s'", i > 0 ? ", " : "", missing[i]);
    }
    if (count > NAMED)
        snprintf(more, sizeof more, " and %" PRId64 " more", count - NAMED);
    return shoal_fail(SHOAL_INVALID, "%s has no column%s %s%s, which %s needs%s%s%s", data_name, count == 1 ? "" : "s",
                      list, more, model, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static int match_places(int64_t *columns, const learn_schema *schema, const place *places, int64_t count,
                        const char *data_name, const char *model)
{
    char **missing = NULL, **others = NULL; /* those that the model does not know */
    int64_t absent = 0, unknown = 0;
    place *known = NULL;
    int status = base_alloc(&missing, (size_t)schema->columns, sizeof *missing, "names of columns");
    if (status == SHOAL_OK)
        status = base_alloc(&others, (size_t)count, sizeof *others, "names of columns");
    for (int64_t i = 0; i < schema->columns && status == SHOAL_OK; i++) {
        const place *found = find_place(places, count, schema->names[i]);
        if (!found)
            missing[absent++] = schema->names[i];
        else if (found + 1 < places + count && strcmp(found[1].name, found->name) == 0)
            status =
                shoal_fail(SHOAL_INVALID, "%s has two columns '%s', and %s needs one", data_name, found->name, model);
        else
            columns[i] = found->column;
    }
    if (status == SHOAL_OK && absent > 0)
        status = sort_places(&known, schema->names, schema->columns);
    for (int64_t i = 0; i < count && known && status == SHOAL_OK; i++)
        if (!find_place(known, schema->columns, places[i].name))
            others[unknown++] = (char *)places[i].name;
    if (status == SHOAL_OK && absent > 0)
        status = fail_missing(missing, absent, others, unknown, data_name, model);
    base_free(&known);
    base_free(&others);
    base_free(&missing);
    return status;
}

int learn_schema_match(int64_t *columns, const learn_schema *schema, const shoal_data *data, int64_t count,
                       const char *data_name, const char *model)
{
    char **names = NULL;
    place *places = NULL;
    int status = copy_column_names(&names, data, -1);
    if (status == SHOAL_OK)
        status = sort_places(&places, names, count);
    if (status == SHOAL_OK)
        status = match_places(columns, schema, places, count, data_name, model);
    base_free(&places);
    free_texts(&names, shoal_data_columns(data));
    return status;
}
