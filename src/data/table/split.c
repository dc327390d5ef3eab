/* Which rows go to which file.  See split.h; split_write.c writes them. */
#include "split.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/option.h"
#include "base/text.h"
#include "data_columns.h"
#include "data_lines.h"
#include "data_words.h"

enum { TRAIN, TEST };

/* ---- how many ---------------------------------------------------------------------------------------------------- */

int data_split_size(int64_t *out, const char *option, const char *size, int64_t rows, bool up)
{
    double value;
    if (!base_parse_real(&value, size))
        return shoal_fail(SHOAL_USAGE, "%s: '%s' is neither a share of the rows, such as 0.2, nor a number of them",
                          option, size);
    if (value > 0 && value < 1) {
        const double share = value * (double)rows; /* as scikit-learn computes it, so that sizes are the same */
        *out = (int64_t)(up ? ceil(share) : floor(share));
        return SHOAL_OK;
    }
    if (strchr(size, '.') || !base_parse_count(out, size) || *out < 1)
        return shoal_fail(SHOAL_USAGE,
                          "%s: %s is neither a share, which lies between 0 and 1, nor a number of rows, "
                          "which is whole and at least 1",
                          option, size);
    return SHOAL_OK;
}

static int check_sizes(const data_split *split)
{
    const int64_t rows = shoal_data_rows(split->data), train = split->part[TRAIN].rows, test = split->part[TEST].rows;
    const char *path = shoal_data_path(split->data);
    if (train < 1 && split->request.train_size)
        return shoal_fail(SHOAL_INVALID, "%s: --train %s of %" PRId64 " row%s is none", path, split->request.train_size,
                          rows, base_plural(rows));
    if (train < 1)
        return shoal_fail(SHOAL_INVALID,
                          "%s: %" PRId64 " of the %" PRId64 " row%s for the test leave%s none for training", path, test,
                          rows, base_plural(rows), test == 1 ? "s" : "");
    if (test < 1)
        return shoal_fail(SHOAL_INVALID,
                          "%s: %" PRId64 " of the %" PRId64 " row%s for training leave%s none for the test", path,
                          train, rows, base_plural(rows), train == 1 ? "s" : "");
    if (train > rows - test)
        return shoal_fail(SHOAL_INVALID,
                          "%s: %" PRId64 " rows for training and %" PRId64 " for the test are more than the %" PRId64
                          " there are",
                          path, train, test, rows);
    return SHOAL_OK;
}

static int choose_sizes(data_split *split)
{
    const data_split_request *request = &split->request;
    const int64_t rows = shoal_data_rows(split->data);
    int64_t *train = &split->part[TRAIN].rows, *test = &split->part[TEST].rows;
    int status = SHOAL_OK;
    if (split->parts == 1) {
        *train = rows;
        return SHOAL_OK;
    }
    if (request->train_size)
        status = data_split_size(train, "--train", request->train_size, rows, false);
    if (status == SHOAL_OK && (request->test_size || !request->train_size))
        status = data_split_size(test, "--test", request->test_size ? request->test_size : "0.25", rows, true);
    else if (status == SHOAL_OK)
        *test = rows > *train ? rows - *train : 0;
    if (status == SHOAL_OK && !request->train_size)
        *train = rows > *test ? rows - *test : 0;
    return status == SHOAL_OK ? check_sizes(split) : status;
}

/* ---- of which classes -------------------------------------------------------------------------------------------- */

static int check_classes(const data_split *split)
{
    const data_strata *strata = &split->strata;
    char room[DATA_NUMBER_CHARS];
    for (int64_t i = 0; i < strata->count; i++)
        if (strata->rows[i] < 2)
            return shoal_fail(SHOAL_INVALID,
                              "--stratify: class %.*s of %s has 1 row, but each class needs 2, one to train on and one "
                              "to test",
                              DATA_SHOWN_BYTES, data_strata_name(room, strata, i), strata->source);
    for (int i = 0; i < split->parts; i++)
        if (split->part[i].rows < strata->count)
            return shoal_fail(SHOAL_INVALID,
                              "--stratify: %" PRId64 " row%s for %s can't hold the %" PRId64 " classes of %s",
                              split->part[i].rows, base_plural(split->part[i].rows),
                              i == TRAIN ? "training" : "the test", strata->count, strata->source);
    return SHOAL_OK;
}

/* The test set gets its shares first, and the training set shares of what is left. */
static int share_classes(data_split *split)
{
    const data_strata *strata = &split->strata;
    int64_t *left = NULL;
    int status = check_classes(split);
    for (int i = 0; i < split->parts && status == SHOAL_OK; i++)
        status = base_alloc(&split->part[i].of_class, (size_t)strata->count, sizeof *left, "classes");
    if (status == SHOAL_OK)
        status = base_alloc(&left, (size_t)strata->count, sizeof *left, "classes");
    if (status == SHOAL_OK)
        status = data_strata_share(split->part[TEST].of_class, strata->rows, strata->count, split->part[TEST].rows,
                                   split->request.seed);
    for (int64_t i = 0; i < strata->count && status == SHOAL_OK; i++)
        left[i] = strata->rows[i] - split->part[TEST].of_class[i];
    if (status == SHOAL_OK)
        status = data_strata_share(split->part[TRAIN].of_class, left, strata->count, split->part[TRAIN].rows,
                                   split->request.seed);
    base_free(&left);
    return status;
}

/* Of each class the first rows, in random order, go to the test set, and those behind them to the training set; with
 * rows in order it is the other way round. */
static int find_borders(data_split *split)
{
    const int64_t groups = split->strata.count ? split->strata.count : 1;
    const int32_t *group = split->strata.count ? data_strata_group(&split->strata) : NULL;
    int64_t *wanted = NULL;
    int status = base_alloc(&wanted, (size_t)groups, sizeof *wanted, "classes");
    for (int i = 0; i < split->parts && status == SHOAL_OK; i++) {
        data_split_part *part = &split->part[split->order.kept || split->parts == 1 ? i : TEST - i];
        for (int64_t k = 0; k < groups; k++)
            wanted[k] += part->of_class ? part->of_class[k] : part->rows;
        status = base_alloc(&part->border, (size_t)groups, sizeof *part->border, "classes");
        if (status == SHOAL_OK)
            status = data_order_borders(part->border, &split->order, group, groups, wanted);
    }
    base_free(&wanted);
    return status;
}

/* ---- what is written --------------------------------------------------------------------------------------------- */

static int open_values(data_split *split)
{
    shoal_data_options reading = split->request.reading;
    bool needed = false;
    for (int i = 0; i < split->parts; i++) {
        data_split_part *part = &split->part[i];
        part->text = split->data->lines &&
                     data_write_is_text(&part->delimiter, part->path, split->data->file ? split->data->file : "");
        needed |= !part->text;
    }
    reading.missing = SHOAL_MISSING_KEEP;
    int status = split->data->lines && needed ? data_lines_values(&split->values, split->data, &reading) : SHOAL_OK;
    for (int i = 0; i < split->parts && status == SHOAL_OK; i++) {
        split->part[i].rank = data_shape_whole(split->part[i].shape, data_split_values(split));
        split->part[i].shape[0] = split->part[i].rows;
    }
    return status;
}

/* Rows of numbers can't hold the words of a label, which svmlight files may have. */
static int check_label(const data_split *split)
{
    const shoal_data *data = split->data;
    const char *sentence = data->label >= 0 ? shoal_data_column_text(data, data->label) : NULL;
    if (sentence)
        return shoal_fail(SHOAL_INVALID, "%s", sentence);
    if (data->label >= 0 && !data->lines && split->strata.words)
        return shoal_fail(SHOAL_INVALID,
                          "%s: the labels are words, which rows of numbers can't hold; --drop-column %s "
                          "leaves them out",
                          data->path, shoal_data_column_name(data, data->label));
    return SHOAL_OK;
}

/* Opens the data with all columns, which a class may be one of, and then chooses those that are written. */
static int open_rows(data_split *split)
{
    const data_split_request *request = &split->request;
    shoal_data_options reading = request->reading;
    reading.keep_columns = reading.drop_columns = NULL;
    reading.missing = SHOAL_MISSING_KEEP;
    reading.keep_text = true;
    reading.target = request->stratify;
    int status = data_open_lines(&split->data, request->data, &reading, INT64_MAX);
    if (status == SHOAL_OK && request->stratify)
        status = data_strata_open(&split->strata, split->data, request->stratify, &request->reading);
    reading = request->reading;
    if (status == SHOAL_OK && split->data->lines)
        return data_lines_choose(split->data, &reading);
    if (status == SHOAL_OK && (reading.keep_columns || reading.drop_columns || split->data->label >= 0)) {
        reading.target = NULL;
        status = data_columns_apply(&split->data, &reading);
    }
    return status == SHOAL_OK ? check_label(split) : status;
}

int data_split_open(data_split *out, const data_split_request *request)
{
    *out = (data_split){.request = *request, .parts = request->test ? 2 : 1};
    out->strata.group.descriptor = -1;
    out->part[TRAIN].path = request->train;
    out->part[TEST].path = request->test;
    if (request->in_order && request->stratify)
        return shoal_fail(SHOAL_USAGE, "--stratify and --in-order: rows that stay in order can't be chosen by class");
    int status = open_rows(out);
    if (status == SHOAL_OK)
        status = choose_sizes(out);
    if (status == SHOAL_OK && request->stratify)
        status = share_classes(out);
    if (status == SHOAL_OK)
        status = open_values(out);
    if (status < 0)
        return status;
    out->order = (data_order){.rows = shoal_data_rows(out->data), .seed = request->seed, .kept = request->in_order};
    return find_borders(out);
}

void data_split_close(data_split *split)
{
    for (int i = 0; i < DATA_SPLIT_PARTS; i++) {
        data_writer_close(&split->part[i].writer);
        base_free(&split->part[i].of_class);
        base_free(&split->part[i].border);
    }
    data_strata_close(&split->strata);
    shoal_data_free(&split->values);
    shoal_data_free(&split->data);
}
