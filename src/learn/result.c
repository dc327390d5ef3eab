/* Results: plain containers that cross the contract.  See shoal/learn.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <shoal/learn.h>

#include "base/memory.h"
#include "learn/partial.h"

int shoal_result_new(shoal_result **out)
{
    return base_alloc(out, 1, sizeof **out, "a result");
}

void shoal_result_free(shoal_result **inout)
{
    if (!*inout)
        return;
    for (int i = 0; i < (*inout)->tensors; i++)
        base_free(&(*inout)->tensor[i].values);
    base_free(inout);
}

static shoal_tensor *append_tensor(shoal_result *result, const char *name, shoal_type type)
{
    if (result->tensors == SHOAL_TENSORS_MOST)
        SHOAL_BUG("a result with more than %d tensors", SHOAL_TENSORS_MOST);
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
    if (base_alloc(&values, count, shoal_type_size(type), name) < 0)
        return NULL;
    shoal_tensor *tensor = append_tensor(result, name, type);
    tensor->rank = rank;
    memcpy(tensor->shape, shape, (size_t)rank * sizeof *shape);
    tensor->values = values;
    return values;
}

static shoal_tensor *take_rows(shoal_result *result, const char *name, shoal_type type, shoal_partial *partial,
                               int cell, int64_t rows)
{
    void *values = learn_partial_take_rows(partial, cell);
    if (!values)
        SHOAL_BUG("the rows of cell %d were taken before", cell);
    shoal_tensor *tensor = append_tensor(result, name, type);
    tensor->rank = 1;
    tensor->shape[0] = rows;
    tensor->values = values;
    return tensor;
}

int shoal_result_take_rows(shoal_result *result, const char *name, shoal_type type, shoal_partial *partial, int cell,
                           int64_t rows)
{
    take_rows(result, name, type, partial, cell, rows);
    return SHOAL_OK;
}

int shoal_result_take_table(shoal_result *result, const char *name, shoal_type type, shoal_partial *partial, int cell,
                            int64_t rows, int64_t columns)
{
    if (shoal_partial_layout(partial)->cell[cell].bytes != (size_t)columns * shoal_type_size(type))
        SHOAL_BUG("the rows of cell %d have no %lld values each", cell, (long long)columns);
    shoal_tensor *tensor = take_rows(result, name, type, partial, cell, rows);
    tensor->rank = 2;
    tensor->shape[1] = columns;
    return SHOAL_OK;
}

static shoal_number *append_number(shoal_result *result, const char *name, double value)
{
    if (result->numbers == SHOAL_NUMBERS_MOST)
        SHOAL_BUG("a result with more than %d numbers", SHOAL_NUMBERS_MOST);
    shoal_number *number = &result->number[result->numbers++];
    snprintf(number->name, sizeof number->name, "%s", name);
    number->value = value;
    return number;
}

void shoal_result_set(shoal_result *result, const char *name, double value)
{
    append_number(result, name, value);
}

void shoal_result_set_whole(shoal_result *result, const char *name, int64_t value)
{
    append_number(result, name, (double)value)->whole = true;
}

void shoal_result_set_truth(shoal_result *result, const char *name, bool value)
{
    append_number(result, name, value)->truth = true;
}

const shoal_tensor *shoal_result_tensor(const shoal_result *result, const char *name)
{
    for (int i = 0; i < result->tensors; i++)
        if (strcmp(result->tensor[i].name, name) == 0)
            return &result->tensor[i];
    return NULL;
}

double shoal_result_number(const shoal_result *result, const char *name)
{
    for (int i = 0; i < result->numbers; i++)
        if (strcmp(result->number[i].name, name) == 0)
            return result->number[i].value;
    return NAN;
}
