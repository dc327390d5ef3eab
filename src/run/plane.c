/* Rows on a plane, as a learner of two rounds: the sample that the components are found from, then the places of all
 * rows.  See plane.h. */
#include "plane.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "components.h"
#include "kernel/kernel.h"
#include "ranks.h"

enum { PLANE_CELL = 0 };

/* The model: this, and for principal components behind it the two directions. */
typedef struct plane_model {
    run_plane_wanted wanted;
    int64_t columns, sample; /* rows of the sample; 0 in the round that places rows */
    double origin[2], share[2];
} plane_model;

static bool is_of_columns(const plane_model *model)
{
    return model->wanted.column[0] >= 0;
}

static double *directions_of(const plane_model *model)
{
    return (double *)(model + 1);
}

static size_t model_bytes(const plane_model *model)
{
    const bool directions = !is_of_columns(model) && model->sample == 0;
    return sizeof *model + (directions ? 2 * (size_t)model->columns * sizeof(double) : 0);
}

static void lay_out(shoal_layout *layout, const plane_model *model)
{
    *layout = (shoal_layout){.cells = 1, .carry_from = -1};
    layout->cell[PLANE_CELL] =
        model->sample > 0 ? (shoal_cell){"sample", SHOAL_CELL_RECORD, 0, (size_t)model->columns * sizeof(double), false}
                          : (shoal_cell){"places", SHOAL_CELL_ROW, 0, 2 * sizeof(double), false};
}

static int new_round(shoal_round **out, const plane_model *header)
{
    int status = shoal_round_new(out, model_bytes(header));
    if (status < 0)
        return status;
    memcpy((*out)->model, header, sizeof *header);
    lay_out(&(*out)->layout, header);
    snprintf((*out)->phase, sizeof(*out)->phase, header->sample > 0 ? "sample" : "plot");
    return SHOAL_OK;
}

static int64_t choose_sample(const shoal_shape *shape)
{
    int64_t most = RUN_PLANE_VALUES / shape->columns;
    most = most > RUN_PLANE_SAMPLE ? RUN_PLANE_SAMPLE : most < 2 ? 2 : most;
    return shape->rows < most ? shape->rows : most;
}

static int start_plane(shoal_round **out, const void *untyped, const shoal_shape *shape)
{
    plane_model header = {.wanted = *(const run_plane_wanted *)untyped, .columns = shape->columns};
    if (!is_of_columns(&header))
        header.sample = choose_sample(shape);
    return new_round(out, &header);
}

/* No round of it ever comes from elsewhere. */
static int check_plane(const shoal_algorithm *self, const shoal_round *round, const shoal_shape *shape)
{
    const plane_model *model = round->model;
    (void)self;
    return round->model_bytes >= sizeof *model && model->columns == shape->columns &&
                   round->model_bytes == model_bytes(model)
               ? SHOAL_OK
               : shoal_fail(SHOAL_BROKEN, "the model of a round is not a plane for these rows");
}

/* ---- maps -------------------------------------------------------------------------------------------------------- */

typedef struct prepared {
    const kernel_set *kernel;
} prepared;

static int prepare_plane(void **inout, const shoal_round *round, const shoal_shape *shape, const shoal_crew *crew)
{
    (void)round, (void)shape;
    int status = *inout ? SHOAL_OK : base_alloc(inout, 1, sizeof(prepared), "what rounds share");
    return status < 0 ? status : kernel_choose(&((prepared *)*inout)->kernel, crew->kernel);
}

static void forget_plane(void **inout)
{
    base_free(inout);
}

static size_t scratch_bytes_plane(const shoal_round *round, const void *shared, const shoal_shape *shape)
{
    (void)round, (void)shared;
    return (size_t)shape->columns * sizeof(double);
}

/* Brings a row to length 1; one of zeros, which learners refuse, stays. */
static void make_unit(double *row, const kernel_set *kernel, int64_t columns)
{
    double greatest = 0;
    int exponent;
    for (int64_t j = 0; j < columns; j++)
        greatest = fmax(greatest, fabs(row[j]));
    if (!(greatest > 0) || !isfinite(greatest))
        return;
    frexp(greatest, &exponent);
    for (int64_t j = 0; j < columns; j++)
        row[j] = ldexp(row[j], -exponent);
    const double length = sqrt(kernel->product64(row, row, columns));
    for (int64_t j = 0; j < columns; j++)
        row[j] /= length;
}

static void read_row(double *out, const plane_model *model, const kernel_set *kernel, const shoal_grain *grain,
                     int64_t row)
{
    const shoal_shape *shape = grain->shape;
    const char *from = (const char *)grain->values + (size_t)(row * shape->columns) * shoal_type_size(shape->type);
    shoal_convert_float64(out, from, shape->type, shape->columns);
    if (model->wanted.unit)
        make_unit(out, kernel, shape->columns);
}

static void place_row(double place[2], const plane_model *model, const kernel_set *kernel, const double *row)
{
    const double *direction = directions_of(model);
    for (int k = 0; k < 2; k++)
        place[k] = is_of_columns(model) ? row[model->wanted.column[k]]
                                        : kernel->product64(row, direction + k * model->columns, model->columns);
}

/* The row of each run of rows that is in the sample. */
static int64_t sampled_row(int64_t index, int64_t sample, int64_t rows)
{
    const double run = (double)rows / (double)sample;
    const int64_t first = (int64_t)((double)index * run), next = (int64_t)((double)(index + 1) * run),
                  end = index + 1 == sample || next > rows ? rows : next;
    return first +
           (int64_t)base_random_below((uint64_t)(end > first ? end - first : 1), 0, BASE_FOR_PLOTS, (uint64_t)index, 8);
}

static int take_sample(shoal_partial *partial, const plane_model *model, const kernel_set *kernel,
                       const shoal_grain *grain, double *row)
{
    const int64_t rows = grain->shape->rows, sample = model->sample, end = grain->first_row + grain->rows;
    int64_t index = (int64_t)((double)grain->first_row / (double)rows * (double)sample) - 2;
    int status = SHOAL_OK;
    for (index = index < 0 ? 0 : index; index < sample && status == SHOAL_OK; index++) {
        const int64_t at = sampled_row(index, sample, rows);
        if (at >= end)
            break;
        if (at < grain->first_row)
            continue;
        read_row(row, model, kernel, grain, at - grain->first_row);
        status = shoal_partial_record(partial, PLANE_CELL, (shoal_key){0, (uint64_t)index}, row);
    }
    return status;
}

static int map_plane(shoal_partial *partial, const shoal_round *round, const void *shared, const shoal_grain *grain,
                     const shoal_scratch *scratch)
{
    const plane_model *model = round->model;
    const kernel_set *kernel = ((const prepared *)shared)->kernel;
    double *row = scratch->memory;
    if (model->sample > 0)
        return take_sample(partial, model, kernel, grain, row);
    double *out = shoal_partial_row(partial, PLANE_CELL, grain->first_row);
    for (int64_t i = 0; i < grain->rows; i++) {
        double place[2];
        read_row(row, model, kernel, grain, i);
        place_row(place, model, kernel, row);
        for (int k = 0; k < 2; k++)
            out[2 * i + k] = place[k] - model->origin[k];
    }
    return SHOAL_OK;
}

/* ---- updates ----------------------------------------------------------------------------------------------------- */

/* From the sample to the plane. */
static int find_components(shoal_round **next, const plane_model *model, shoal_partial *merged, const shoal_crew *crew)
{
    const int64_t count = shoal_partial_records(merged, PLANE_CELL), columns = model->columns;
    const kernel_set *kernel = NULL;
    run_components found = {0};
    double *rows = NULL;
    plane_model header = *model;
    header.sample = 0;
    int status = kernel_choose(&kernel, crew->kernel);
    if (status == SHOAL_OK)
        status = base_alloc(&rows, (size_t)count, (size_t)columns * sizeof *rows, "a sample of the rows");
    for (int64_t i = 0; i < count && status == SHOAL_OK; i++)
        memcpy(rows + i * columns, shoal_partial_record_at(merged, PLANE_CELL, i, NULL),
               (size_t)columns * sizeof *rows);
    if (status == SHOAL_OK)
        status = run_components_find(&found, rows, count, columns, crew);
    for (int k = 0; k < 2 && status == SHOAL_OK; k++) {
        header.origin[k] = kernel->product64(found.mean, found.direction + k * columns, columns);
        header.share[k] = found.share[k];
    }
    if (status == SHOAL_OK)
        status = new_round(next, &header);
    if (status == SHOAL_OK)
        memcpy(directions_of((*next)->model), found.direction, 2 * (size_t)columns * sizeof(double));
    run_components_release(&found);
    base_free(&rows);
    return status;
}

static int make_result(shoal_result **out, const plane_model *model, shoal_partial *merged, const shoal_shape *shape)
{
    const int64_t both[2] = {2, model->columns};
    int status = shoal_result_new(out);
    if (status == SHOAL_OK)
        status = shoal_result_take_table(*out, "places", SHOAL_FLOAT64, merged, PLANE_CELL, shape->rows, 2);
    if (status == SHOAL_OK && !is_of_columns(model)) {
        double *direction = shoal_result_add(*out, "directions", SHOAL_FLOAT64, 2, both);
        status = direction ? SHOAL_OK : SHOAL_MEMORY;
        if (direction)
            memcpy(direction, directions_of(model), 2 * (size_t)model->columns * sizeof(double));
        shoal_result_set(*out, "origin_x", model->origin[0]);
        shoal_result_set(*out, "origin_y", model->origin[1]);
        shoal_result_set(*out, "share_x", model->share[0]);
        shoal_result_set(*out, "share_y", model->share[1]);
    }
    if (status < 0)
        shoal_result_free(out);
    return status;
}

static int update_plane(shoal_round **next, shoal_result **result, const shoal_round *round, shoal_partial *merged,
                        const shoal_shape *shape, const shoal_crew *crew, bool stop)
{
    const plane_model *model = round->model;
    (void)stop;
    return model->sample > 0 ? find_components(next, model, merged, crew) : make_result(result, model, merged, shape);
}

static int cost_plane(shoal_cost *out, const void *config, const shoal_shape *shape)
{
    (void)config;
    *out = (shoal_cost){.operations_per_row = 4 * (double)shape->columns, .rounds = 2};
    return SHOAL_OK;
}

static const shoal_algorithm plane_algorithm = {.version = SHOAL_ALGORITHM_VERSION,
                                                .bytes = sizeof(shoal_algorithm),
                                                .name = "plane",
                                                .summary = "where rows lie on a plane",
                                                .config_size = sizeof(run_plane_wanted),
                                                .kernel_free = true,
                                                .start = start_plane,
                                                .check = check_plane,
                                                .prepare = prepare_plane,
                                                .forget = forget_plane,
                                                .scratch_bytes = scratch_bytes_plane,
                                                .map = map_plane,
                                                .update = update_plane,
                                                .cost = cost_plane};

/* ---- the plane --------------------------------------------------------------------------------------------------- */

int run_plane_find(run_plane *out, const shoal_outcome *outcome, const run_plane_wanted *wanted)
{
    const run_place *place = &outcome->request->place;
    const shoal_run_options options = {.threads = (int)place->threads,
                                       .kernel = place->kernel,
                                       .memory = outcome->request->reading.memory,
                                       .ranks = run_ranks()};
    *out = (run_plane){.wanted = *wanted, .rows = outcome->rows, .columns = outcome->columns};
    int status =
        run_ranks_settled(shoal_run(&out->result, NULL, &plane_algorithm, wanted, outcome->data, NULL, &options));
    if (status < 0)
        return status;
    const shoal_tensor *places = shoal_result_tensor(out->result, "places"),
                       *directions = shoal_result_tensor(out->result, "directions");
    out->places = places ? places->values : NULL;
    if (directions) {
        const shoal_shape shape = {.rows = outcome->rows, .columns = outcome->columns};
        out->direction = directions->values;
        out->sampled = choose_sample(&shape);
        out->origin[0] = shoal_result_number(out->result, "origin_x");
        out->origin[1] = shoal_result_number(out->result, "origin_y");
        out->share[0] = shoal_result_number(out->result, "share_x");
        out->share[1] = shoal_result_number(out->result, "share_y");
    }
    return SHOAL_OK;
}

void run_plane_place(double place[2], const run_plane *plane, const double *values)
{
    for (int k = 0; k < 2; k++) {
        place[k] = 0;
        for (int64_t j = 0; plane->direction && j < plane->columns; j++)
            place[k] += values[j] * plane->direction[k * plane->columns + j];
        if (!plane->direction)
            place[k] = values[plane->wanted.column[k]];
    }
}

void run_plane_release(run_plane *plane)
{
    shoal_result_free(&plane->result);
}
