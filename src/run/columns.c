/* Which columns of DATA a run uses.  See columns.h. */
#include "columns.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "data/data_internal.h"
#include "data/table/data_select.h"
#include "learn/classes_face.h"
#include "learn/standardise.h"
#include "outcome.h"
#include "ranks.h"

void run_columns_release(run_columns *columns)
{
    learn_schema_release(&columns->schema);
    base_free(&columns->known);
    for (int64_t i = 0; i < columns->known_words_count; i++)
        base_free(&columns->known_words[i]);
    base_free(&columns->known_words);
    base_free(&columns->note);
}

/* ---- what people are told ---------------------------------------------------------------------------------------- */

static int add_note(run_columns *columns, const char *text)
{
    char *longer = NULL;
    int status = base_format(&longer, "%s%s%s", columns->note ? columns->note : "", columns->note ? ", " : "", text);
    if (status == SHOAL_OK) {
        base_free(&columns->note);
        columns->note = longer;
    }
    return status;
}

/* "column 5" or "'species'" */
static int name_column(char **out, const shoal_data *data, int64_t column)
{
    const char *name = shoal_data_column_name(data, column);
    int status = name ? base_format(out, "'%s'", name) : base_format(out, "column %" PRId64, column + 1);
    if (status == SHOAL_OK)
        base_text_clean(*out);
    return status;
}

/* Which columns are not among those that are kept. */
static int note_ignored(run_columns *columns, const shoal_data *data, const int64_t *kept, int64_t count)
{
    enum { NAMED = 8 };
    int64_t all = shoal_data_columns(data), ignored = 0;
    bool *used = NULL;
    char *line = NULL;
    int status = base_alloc(&used, (size_t)all, sizeof *used, "columns");
    for (int64_t i = 0; i < count && status == SHOAL_OK; i++)
        used[kept[i]] = true;
    for (int64_t i = 0; i < all && status == SHOAL_OK; i++) {
        char *name = NULL, *longer = NULL;
        if (used[i] || (columns->target_file && i == all - 1) || ++ignored > NAMED)
            continue; /* a target from a file is no column of DATA */
        status = name_column(&name, data, i);
        if (status == SHOAL_OK)
            status = base_format(&longer, "%s%s%s", line ? line : "left out ", line ? ", " : "", name);
        base_free(&name);
        base_free(&line);
        line = longer;
    }
    if (status == SHOAL_OK && line)
        status = add_note(columns, line);
    if (status == SHOAL_OK && ignored > NAMED) {
        base_free(&line);
        status = base_format(&line, "and %" PRId64 " more", ignored - NAMED);
        if (status == SHOAL_OK)
            status = add_note(columns, line);
    }
    base_free(&line);
    base_free(&used);
    return status;
}

/* How many columns DATA has; a target from a file is put after them. */
static int64_t own_columns(const shoal_outcome *outcome)
{
    return outcome->columns - outcome->columns_used.target_file;
}

/* ---- choosing columns -------------------------------------------------------------------------------------------- */

static bool in_order(const int64_t *columns, int64_t count)
{
    for (int64_t i = 1; i < count; i++)
        if (columns[i] < columns[i - 1])
            return false;
    return true;
}

/* Rows that the caller has in memory stay as they are. */
static int select_columns(shoal_outcome *outcome, const int64_t *columns, int64_t count)
{
    shoal_data *copy = NULL;
    int status = outcome->data_lent ? data_select_copy(&copy, outcome->data, columns, count)
                                    : data_select(&outcome->data, columns, count);
    if (status < 0)
        return status;
    if (copy) {
        outcome->data = copy;
        outcome->data_lent = false;
    }
    outcome->columns = count;
    return SHOAL_OK;
}

/* So that their values may be changed. */
static int copy_lent_rows(shoal_outcome *outcome)
{
    int64_t *columns = NULL;
    int status = base_alloc(&columns, (size_t)outcome->columns, sizeof *columns, "columns");
    for (int64_t i = 0; i < outcome->columns && status == SHOAL_OK; i++)
        columns[i] = i;
    if (status == SHOAL_OK)
        status = select_columns(outcome, columns, outcome->columns);
    base_free(&columns);
    return status;
}

/* Brings the rows to these columns, and tells of it. */
static int use_columns(shoal_outcome *outcome, const int64_t *columns, int64_t count)
{
    bool ordered = in_order(columns, count);
    if (ordered && count == outcome->columns)
        return SHOAL_OK;
    int status = ordered ? SHOAL_OK : add_note(&outcome->columns_used, "reordered by name");
    if (status == SHOAL_OK)
        status = note_ignored(&outcome->columns_used, outcome->data, columns, count);
    return status == SHOAL_OK ? select_columns(outcome, columns, count) : status;
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

/* The column of the target from 0, or -1 for a learner without one. */
static int64_t find_target(const shoal_outcome *outcome)
{
    const bool known = run_is_learning(outcome) && outcome->face->classes_most > 0;
    const int64_t target = shoal_data_target(outcome->data);
    return !known ? -1 : target >= 0 ? target : outcome->columns - 1;
}

/* The words that classes stand for, and what took the place of missing values. */
static int note_values(learn_schema *schema, const shoal_data *data, int64_t target)
{
    const char **words = NULL;
    int64_t count = 0;
    while (shoal_data_word(data, count))
        count++;
    int status = count > 0 ? base_alloc(&words, (size_t)count, sizeof *words, "words") : SHOAL_OK;
    for (int64_t i = 0; i < count && status == SHOAL_OK; i++)
        words[i] = shoal_data_word(data, i);
    if (status == SHOAL_OK && count > 0)
        status = learn_schema_note_classes(schema, words, count);
    base_free(&words);
    if (status < 0 || isnan(shoal_data_mean(data, target == 0 ? 1 : 0)))
        return status;
    status = base_alloc(&schema->fill, (size_t)schema->columns, sizeof *schema->fill, "means of columns");
    for (int64_t i = 0; i < schema->columns && status == SHOAL_OK; i++)
        schema->fill[i] = shoal_data_mean(data, target >= 0 && i >= target ? i + 1 : i);
    return status;
}

/* The model that training starts from, if it is one that can remember columns. */
static int read_start(learn_schema *out, const char **path, const shoal_outcome *outcome)
{
    const shoal_request *request = outcome->request;
    const char *option = NULL;
    learn_model_file model = {0};
    *path = request->face->start_file && !request->start
                ? request->face->start_file(&option, request->config, &request->inputs)
                : NULL;
    int status = run_ranks_can_read(option, *path);
    if (status < 0 || !*path || !data_safetensors_is(*path))
        return status;
    status = request->face->foreign_start ? learn_model_file_open_tensors(&model, *path)
                                          : learn_model_file_open(&model, *path);
    if (status == SHOAL_OK)
        status = learn_model_file_schema(out, &model);
    learn_model_file_close(&model);
    return status;
}

/* The model's columns in its order; the target stays at its place as far as there are columns before it. */
static int match_start(shoal_outcome *outcome, const learn_schema *start, const char *path, int64_t *target)
{
    int64_t *columns = NULL, count = start->columns;
    int status = base_alloc(&columns, (size_t)count + 1, sizeof *columns, "columns");
    if (status == SHOAL_OK)
        status = learn_schema_match(columns, start, outcome->data, own_columns(outcome), outcome->data_name, path);
    for (int64_t i = 0; i < count && status == SHOAL_OK; i++)
        if (columns[i] == *target)
            status = shoal_fail(SHOAL_USAGE, "--target: '%s' is one of the columns that %s was trained on",
                                start->names[i], path);
    if (status == SHOAL_OK && *target >= 0) {
        int64_t place = *target < count ? *target : count;
        memmove(columns + place + 1, columns + place, (size_t)(count - place) * sizeof *columns);
        columns[place] = *target;
        *target = place;
        count++;
    }
    if (status == SHOAL_OK)
        status = use_columns(outcome, columns, count);
    base_free(&columns);
    return status;
}

/* What the start was found on is what it goes on with. */
static int take_start_scaling(shoal_outcome *outcome, learn_schema *start, const char *path)
{
    learn_schema *schema = &outcome->columns_used.schema;
    if (!start->mean && outcome->request->inputs.standardise && data_safetensors_is(path))
        return shoal_fail(SHOAL_USAGE, "--standardise: %s was trained without it; leave out one of the two", path);
    if (!start->mean || start->columns != schema->columns)
        return SHOAL_OK; /* the learner says what columns it needs */
    schema->mean = start->mean;
    schema->scale = start->scale;
    start->mean = start->scale = NULL;
    return SHOAL_OK;
}

/* Classes are numbers to learners, so a start would take one word for another. */
static int check_start_classes(const shoal_outcome *outcome, const learn_schema *start, const char *path)
{
    const learn_schema *schema = &outcome->columns_used.schema;
    const int64_t ours = schema->classes_count, theirs = start->classes_count;
    if (!data_safetensors_is(path) || (ours == 0 && theirs == 0))
        return SHOAL_OK;
    if (ours == 0 || theirs == 0)
        return shoal_fail(SHOAL_USAGE, "--start: the classes of %s are %s, and those of %s are %s", path,
                          theirs ? "words" : "numbers", outcome->data_name, ours ? "words" : "numbers");
    for (int64_t i = 0; i < ours || i < theirs; i++) {
        const int order = i == ours ? 1 : i == theirs ? -1 : strcmp(schema->classes[i], start->classes[i]);
        if (order != 0) /* the lesser one is not among the other's, which are in order */
            return shoal_fail(SHOAL_USAGE, "--start: '%s' is a class of %s, but not of %s",
                              order < 0 ? schema->classes[i] : start->classes[i], order < 0 ? outcome->data_name : path,
                              order < 0 ? path : outcome->data_name);
    }
    return SHOAL_OK;
}

static int settle_training(shoal_outcome *outcome)
{
    run_columns *self = &outcome->columns_used;
    learn_schema start = {0};
    const char *path = NULL;
    int64_t target = find_target(outcome);
    int status = read_start(&start, &path, outcome);
    if (status == SHOAL_OK && start.names && learn_columns_named(outcome->data))
        status = match_start(outcome, &start, path, &target);
    learn_schema_release(&self->schema);
    if (status == SHOAL_OK)
        status = learn_schema_note(&self->schema, outcome->data, target, !self->target_file);
    if (status == SHOAL_OK)
        status = note_values(&self->schema, outcome->data, target);
    self->target = target + 1;
    if (status == SHOAL_OK && path && !outcome->request->face->foreign_start)
        status = check_start_classes(outcome, &start, path);
    if (status == SHOAL_OK && path)
        status = take_start_scaling(outcome, &start, path);
    learn_schema_release(&start);
    return status;
}

/* Rows of a job that is resumed, whose schema the job kept: the start is not read again. */
static int settle_again(shoal_outcome *outcome)
{
    run_columns *self = &outcome->columns_used;
    int64_t target = find_target(outcome);
    int status = SHOAL_OK;
    if (self->schema.names && learn_columns_named(outcome->data))
        status = match_start(outcome, &self->schema, "the job", &target);
    self->target = target + 1;
    return status;
}

/* A label that the file has and nobody asked for is no feature. */
static int leave_out_label(shoal_outcome *outcome)
{
    const int64_t label = outcome->data->label;
    int64_t *columns = NULL, count = 0;
    if (label < 0 || label == find_target(outcome))
        return SHOAL_OK;
    int status = base_alloc(&columns, (size_t)outcome->columns, sizeof *columns, "columns");
    for (int64_t i = 0; i < outcome->columns && status == SHOAL_OK; i++)
        if (i != label)
            columns[count++] = i;
    if (status == SHOAL_OK)
        status = use_columns(outcome, columns, count);
    base_free(&columns);
    return status;
}

/* ---- applying ---------------------------------------------------------------------------------------------------- */

/* Where the rows hold what is known of them; -1 where they do not. */
static int64_t find_known_target(const shoal_outcome *outcome, bool named)
{
    const learn_schema *schema = &outcome->columns_used.schema;
    if (outcome->request->inputs.target)
        return shoal_data_target(outcome->data);
    if (named && schema->target)
        return learn_column_find(outcome->data, schema->target);
    if (outcome->data->label >= 0)
        return outcome->data->label;
    return schema->target_column > 0 && outcome->columns == schema->columns + 1 ? schema->target_column - 1 : -1;
}

static int keep_known_words(run_columns *self, const shoal_data *data)
{
    int64_t count = 0;
    while (shoal_data_word(data, count))
        count++;
    int status =
        count > 0 ? base_alloc(&self->known_words, (size_t)count, sizeof *self->known_words, "words") : SHOAL_OK;
    for (int64_t i = 0; i < count && status == SHOAL_OK; i++) {
        status = base_copy_text(&self->known_words[i], shoal_data_word(data, i));
        self->known_words_count += status == SHOAL_OK;
        if (status == SHOAL_OK)
            base_text_clean(self->known_words[i]);
    }
    return status;
}

/* Copies one column before it is left out. */
static int keep_known(shoal_outcome *outcome, int64_t column)
{
    enum { AT_ONCE = 4096 };
    run_columns *self = &outcome->columns_used;
    const size_t size = shoal_type_size(outcome->type), row_bytes = (size_t)outcome->columns * size;
    void *scratch = NULL;
    int status = base_alloc(&self->known, (size_t)outcome->rows, sizeof *self->known, "the target");
    if (status == SHOAL_OK && !shoal_data_is_resident(outcome->data))
        status = base_alloc(&scratch, AT_ONCE, row_bytes, "rows");
    for (int64_t first = 0; first < outcome->rows && status == SHOAL_OK; first += AT_ONCE) {
        const int64_t count = outcome->rows - first < AT_ONCE ? outcome->rows - first : AT_ONCE;
        const void *read = NULL;
        status = shoal_data_read(&read, outcome->data, first, count, scratch);
        for (int64_t i = 0; i < count && status == SHOAL_OK; i++)
            shoal_convert_float64(&self->known[first + i],
                                  (const char *)read + (size_t)i * row_bytes + (size_t)column * size, outcome->type, 1);
    }
    base_free(&scratch);
    if (status == SHOAL_OK)
        status = shoal_data_check(outcome->data);
    return status == SHOAL_OK ? keep_known_words(self, outcome->data) : status;
}

static int settle_known(shoal_outcome *outcome, int64_t target)
{
    const run_columns *self = &outcome->columns_used;
    if (self->wants_known && target >= 0)
        return keep_known(outcome, target);
    if (!self->needs_known)
        return SHOAL_OK;
    return shoal_fail(SHOAL_USAGE,
                      "--score: %s does not hold the target of %s%s%s%s; give the known classes with "
                      "--target COLUMN|FILE",
                      outcome->data_name, self->model, self->schema.target ? ", '" : "",
                      self->schema.target ? self->schema.target : "", self->schema.target ? "'" : "");
}

/* Columns of text are none of a model's, which says how many there must be. */
static int choose_by_number(int64_t *columns, int64_t *count, const shoal_outcome *outcome, int64_t target)
{
    const char *text = NULL;
    *count = 0;
    for (int64_t i = 0; i < outcome->columns; i++) {
        const char *here = i == target ? NULL : shoal_data_column_text(outcome->data, i);
        text = text ? text : here;
        if (i != target && !here)
            columns[(*count)++] = i;
    }
    return text && *count != outcome->columns_used.schema.columns ? shoal_fail(SHOAL_INVALID, "%s", text) : SHOAL_OK;
}

static int choose_by_name(int64_t *columns, int64_t *count, const shoal_outcome *outcome)
{
    const run_columns *self = &outcome->columns_used;
    *count = self->schema.columns;
    int status = learn_schema_match(columns, &self->schema, outcome->data, own_columns(outcome), outcome->data_name,
                                    self->model);
    for (int64_t i = 0; i < *count && status == SHOAL_OK; i++)
        if (shoal_data_column_text(outcome->data, columns[i]))
            status = shoal_fail(SHOAL_INVALID, "%s", shoal_data_column_text(outcome->data, columns[i]));
    return status;
}

static int settle_applying(shoal_outcome *outcome)
{
    const run_columns *self = &outcome->columns_used;
    const learn_schema *schema = &self->schema;
    const bool named = schema->names && learn_columns_named(outcome->data);
    const int64_t target = find_known_target(outcome, named), all = outcome->columns;
    int64_t *columns = NULL, count = 0;
    int status = settle_known(outcome, target);
    if (status == SHOAL_OK)
        status =
            base_alloc(&columns, (size_t)(all > schema->columns ? all : schema->columns), sizeof *columns, "columns");
    if (status == SHOAL_OK)
        status = named ? choose_by_name(columns, &count, outcome) : choose_by_number(columns, &count, outcome, target);
    if (status == SHOAL_OK)
        status = use_columns(outcome, columns, count);
    base_free(&columns);
    return status;
}

/* ---- scaling ----------------------------------------------------------------------------------------------------- */

int run_columns_scale(shoal_outcome *outcome)
{
    run_columns *self = &outcome->columns_used;
    int status = SHOAL_OK;
    if (!self->schema.mean && outcome->request->inputs.standardise)
        status = learn_standardise_measure(&self->schema, outcome->data, self->target - 1,
                                           (int)outcome->request->place.threads);
    if (status < 0 || !self->schema.mean || (self->model && outcome->columns != self->schema.columns))
        return status; /* rows of another number of columns are refused by whoever applies the model */
    if (outcome->data_lent)
        status = copy_lent_rows(outcome);
    if (status == SHOAL_OK)
        status = learn_standardise_apply(outcome->data, &self->schema, self->target - 1);
    if (status < 0)
        return status;
    outcome->type = shoal_data_type(outcome->data);
    return add_note(self, "standardised");
}

int run_columns_settle(shoal_outcome *outcome)
{
    if (outcome->columns_used.model)
        return settle_applying(outcome);
    if (!outcome->kept && (!run_is_learning(outcome) || outcome->face->runs_code))
        return SHOAL_OK;
    int status = leave_out_label(outcome);
    if (status < 0)
        return status;
    return outcome->kept ? settle_again(outcome) : settle_training(outcome);
}
