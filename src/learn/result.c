/* Results: plain containers that cross the contract.  See shoal/learn.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <shoal/learn.h>

#include "base/memory.h"
#include "learn/partial_internal.h"
#include "learn/wire.h"

int shoal_result_new(shoal_result **out)
{
    return base_alloc(out, 1, sizeof **out, "a result");
}

void shoal_result_free(shoal_result **inout)
{
    if (!*inout)
        return;
    for (int i = 0; i < (*inout)->tensors; i++)
        if (!(*inout)->tensor[i].lent)
            base_free(&(*inout)->tensor[i].values);
    base_free(&(*inout)->tensor);
    base_free(&(*inout)->number);
    base_free(inout);
}

/* Makes room for one more behind `count`: the room is a power of two. */
static int make_room(void *list, int count, size_t size, const char *what)
{
    enum { LEAST = 8 };
    if (count > 0 && (count < LEAST || (count & (count - 1)) != 0))
        return SHOAL_OK;
    if (count == LEARN_RESULT_MOST)
        return shoal_fail(SHOAL_USAGE, "a result has no more than %d %s", LEARN_RESULT_MOST, what);
    return base_grow(list, (size_t)count, count ? 2 * (size_t)count : LEAST, size, what);
}

/* There is room for it. */
static shoal_tensor *append_tensor(shoal_result *result, const char *name, shoal_type type)
{
    shoal_tensor *tensor = &result->tensor[result->tensors++];
    snprintf(tensor->name, sizeof tensor->name, "%s", name);
    tensor->type = type;
    return tensor;
}

void *shoal_result_add(shoal_result *result, const char *name, shoal_type type, int rank, const int64_t *shape)
{
    void *values = NULL;
    size_t count = 1;
    for (int i = 0; i < rank; i++)
        if (!base_multiply(&count, count, (size_t)shape[i])) {
            shoal_fail(SHOAL_MEMORY, "out of memory: %s is too large", name);
            return NULL;
        }
    if (make_room(&result->tensor, result->tensors, sizeof *result->tensor, "tensors") < 0 ||
        base_alloc(&values, count, shoal_type_size(type), name) < 0)
        return NULL;
    shoal_tensor *tensor = append_tensor(result, name, type);
    tensor->rank = rank;
    memcpy(tensor->shape, shape, (size_t)rank * sizeof *shape);
    tensor->values = values;
    return values;
}

/* The rows of a partial that covers none are elsewhere (another rank has them): any number may be said of them. */
static int take_result_rows(shoal_result *result, const char *name, shoal_type type, shoal_partial *partial, int cell,
                            int rank, const int64_t *shape)
{
    size_t bytes = shoal_type_size(type) * (rank == 2 ? (size_t)shape[1] : 1);
    if (shoal_partial_layout(partial)->cell[cell].bytes != bytes)
        SHOAL_BUG("the rows of cell %d have no %zu bytes each", cell, bytes);
    if (partial->row_count != 0 && partial->row_count != shape[0])
        return shoal_fail(SHOAL_BROKEN, "%s: %lld rows were asked for, and there are %lld", name, (long long)shape[0],
                          (long long)partial->row_count);
    int status = make_room(&result->tensor, result->tensors, sizeof *result->tensor, "tensors");
    if (status < 0)
        return status;
    const bool lent = partial->rows_lent[cell];
    void *values = learn_partial_take_rows(partial, cell);
    if (!values)
        SHOAL_BUG("the rows of cell %d were taken before", cell);
    shoal_tensor *tensor = append_tensor(result, name, type);
    tensor->rank = rank;
    memcpy(tensor->shape, shape, (size_t)rank * sizeof *shape);
    tensor->values = values;
    tensor->lent = lent;
    return SHOAL_OK;
}

int shoal_result_take_rows(shoal_result *result, const char *name, shoal_type type, shoal_partial *partial, int cell,
                           int64_t rows)
{
    return take_result_rows(result, name, type, partial, cell, 1, &rows);
}

int shoal_result_take_table(shoal_result *result, const char *name, shoal_type type, shoal_partial *partial, int cell,
                            int64_t rows, int64_t columns)
{
    return take_result_rows(result, name, type, partial, cell, 2, (int64_t[]){rows, columns});
}

static void append_number(shoal_result *result, const char *name, shoal_number number)
{
    int status = make_room(&result->number, result->numbers, sizeof *result->number, "numbers");
    if (status < 0) {
        result->status = status;
        return;
    }
    snprintf(number.name, sizeof number.name, "%s", name);
    result->number[result->numbers++] = number;
}

void shoal_result_set(shoal_result *result, const char *name, double value)
{
    append_number(result, name, (shoal_number){.value = value});
}

void shoal_result_set_whole(shoal_result *result, const char *name, int64_t value)
{
    append_number(result, name, (shoal_number){.value = (double)value, .whole = true});
}

void shoal_result_set_truth(shoal_result *result, const char *name, bool value)
{
    append_number(result, name, (shoal_number){.value = value, .truth = true});
}

int shoal_result_check(const shoal_result *result)
{
    if (result->status == SHOAL_USAGE)
        return shoal_fail(SHOAL_USAGE, "a result has no more than %d numbers", LEARN_RESULT_MOST);
    return result->status < 0 ? shoal_fail(result->status, "out of memory: the numbers of a result") : SHOAL_OK;
}

const shoal_tensor *shoal_result_tensor(const shoal_result *result, const char *name)
{
    for (int i = 0; result && i < result->tensors; i++)
        if (strcmp(result->tensor[i].name, name) == 0)
            return &result->tensor[i];
    return NULL;
}

double shoal_result_number(const shoal_result *result, const char *name)
{
    for (int i = 0; result && i < result->numbers; i++)
        if (strcmp(result->number[i].name, name) == 0)
            return result->number[i].value;
    return NAN;
}
