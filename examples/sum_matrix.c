/* Sums a matrix with a learner of its own, in a program that links libshoal:
 *
 *     cc sum_matrix.c $(pkg-config --cflags --libs shoal) -o sum_matrix && ./sum_matrix
 *
 * A learner is a table of functions (shoal/learn.h).  This one has a single round, whose partial is one whole number:
 * `map` adds a run of rows to it, from any thread, and `update` makes the result of what all of them came to. */
#include <stdio.h>
#include <string.h>

#include <shoal/shoal.h>

static int start(shoal_round **out, const void *config, const shoal_shape *shape)
{
    (void)config;
    if (shape->type != SHOAL_INT64)
        return shoal_fail(SHOAL_INVALID, "this example sums int64 alone");
    int status = shoal_round_new(out, 0);
    if (status == SHOAL_OK) {
        (*out)->layout.cells = 1;
        (*out)->layout.cell[0] = (shoal_cell){.name = "sum", .kind = SHOAL_CELL_SUM, .count = 1};
        strcpy((*out)->phase, "run");
    }
    return status;
}

/* Rounds that came from elsewhere are looked at before anything is done with them.  This one has no model that could be
 * wrong. */
static int check(const shoal_algorithm *self, const shoal_round *round, const shoal_shape *shape)
{
    const shoal_layout *layout = &round->layout;
    (void)self, (void)shape;
    if (layout->cells == 1 && layout->cell[0].kind == SHOAL_CELL_SUM && layout->cell[0].count == 1)
        return SHOAL_OK;
    return shoal_fail(SHOAL_BROKEN, "round %lld does not sum a matrix", (long long)round->number);
}

static int map(shoal_partial *partial, const shoal_round *round, const void *prepared, const shoal_grain *grain,
               const shoal_scratch *scratch)
{
    const int64_t *values = grain->values;
    (void)round, (void)prepared, (void)scratch;
    for (int64_t i = 0; i < grain->rows * grain->shape->columns; i++)
        shoal_partial_values(partial, 0)[0] += values[i];
    return SHOAL_OK;
}

static int update(shoal_round **next, shoal_result **result, const shoal_round *round, shoal_partial *merged,
                  const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    (void)next, (void)round, (void)shape, (void)crew, (void)stop;
    int status = shoal_result_new(result);
    if (status == SHOAL_OK)
        shoal_result_set_whole(*result, "sum", shoal_partial_values(merged, 0)[0]);
    return status;
}

static const shoal_algorithm sum_matrix =
    SHOAL_ALGORITHM(.name = "sum_matrix", .summary = "the sum of all values", .kernel_free = true, .start = start,
                    .check = check, .map = map, .update = update);

int main(void)
{
    const int64_t matrix[3][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10, 11, 12}};
    const shoal_run_options options = {.rows_per_grain = 1}; /* so that three rows are work for three threads */
    shoal_data *data = NULL;
    shoal_result *result = NULL;
    int status = shoal_data_wrap(&data, matrix, 3, 4, SHOAL_INT64);
    if (status == SHOAL_OK)
        status = shoal_run(&result, NULL, &sum_matrix, NULL, data, NULL, &options);
    if (status == SHOAL_OK)
        printf("Result is: %.0f\n", shoal_result_number(result, "sum"));
    else
        fprintf(stderr, "sum_matrix: %s\n", shoal_error());
    shoal_result_free(&result);
    shoal_data_free(&data);
    return status == SHOAL_OK ? 0 : 1;
}
