/* libshoal-cuda.so: the table of kernel/device/kernel_device.h by CUDA.
 *
 * A slice's rows lie in device memory as they were put, with a copy in fp16 from which scores are computed; labels and
 * sums stay there from round to round.  Work is queued on a stream of the slice's own; kernels of rounds ask
 * Progress.halt, so that many rounds are queued without waiting for any. */
#include <cudaTypedefs.h>
#include <cuda_runtime.h>
#include <cstdio>
#include <new>
#include <type_traits>

#include "../kernel/device/kernel_device.h"
#include "filter_old.cuh"
#include "probe.cuh"
#include "sums.cuh"

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        cudaError_t tried = (call);                                                                                    \
        if (tried != cudaSuccess)                                                                                      \
            return fail(held->device, tried);                                                                          \
    } while (0)

struct Device {
    kernel_device table; /* first */
    int index, processors;
    bool groups; /* warpgroups multiply, and the probe was content with how */
    PFN_cuTensorMapEncodeTiled_v12000 encode;
    char name[24], about[320];
};

/* Memory of the device that grows. */
template <class T> struct Room {
    T *at = nullptr;
    size_t count = 0;
    cudaError_t grow(size_t wanted)
    {
        if (wanted <= count)
            return cudaSuccess;
        drop();
        cudaError_t status = cudaMalloc(&at, wanted * sizeof(T));
        if (status == cudaSuccess)
            count = wanted;
        else
            at = nullptr;
        return status;
    }
    void drop()
    {
        cudaFree(at);
        at = nullptr;
        count = 0;
    }
    ~Room() { cudaFree(at); }
};

/* Through which rows come: pinned memory, and where they are before they get their stride. */
struct Stage {
    unsigned char *values = nullptr;
    double *weights = nullptr;
    Room<unsigned char> raw;
    cudaEvent_t sent = nullptr;
    ~Stage()
    {
        cudaFreeHost(values);
        cudaFreeHost(weights);
        if (sent)
            cudaEventDestroy(sent);
    }
};

enum { STAGES = 4, STAGE_BYTES = 16 << 20, BLOCK_ROWS = 1 << 23, SPLIT_PARTS = 1 << 18 };
enum SumsState { SUMS_VOID, SUMS_PENDING, SUMS_CURRENT }; /* pending: what changed since is listed */

struct kernel_device_rows {
    Device *device;
    kernel_device_shape shape;
    int stride, padded, wide;
    bool narrow;
    cudaStream_t stream = nullptr;
    Stage *stage = nullptr; /* STAGES, while rows come */
    int64_t stage_rows, put = 0;
    int turn = 0;

    Room<unsigned char> values;
    Room<double> weights;

    /* measured */
    double prescale, scale, weight_scale, weight_inverse, most;
    int wide_bits;
    Room<double> origin, inverse, wide_inverse;
    Room<int64_t> wide_column;
    Room<__half> packed;
    Room<float> norm, residual;
    Room<unsigned> norm_most;
    CUtensorMap row_map, centre_map;

    /* centres */
    int k = 0, padded_k = 0, tile;
    Room<double> centres, moved, gained;
    Room<float> bias, centre_norm;
    Room<__half> packed_centres;
    Room<int> id, place, bounds; /* bounds: far, then of tiles residual and norm */
    Room<Progress> progress;

    /* labels */
    bool labelled = false;
    Room<int> label, out, some, all, changes, best_id, ended, sizes;
    Room<float> upper;
    Room<Candidate> candidates;
    Room<Change> change;
    Room<Counts> counts;
    Room<double> best, distance;

    /* sums */
    SumsState summed = SUMS_VOID;
    Room<int> counted, cursor, count;
    Room<Entry> sorted;
    Room<u64> sums, wide_sums, digits;
    Room<int64_t> weight;

    /* a round that follows another, ready to be launched as one; NULL: to be made */
    cudaGraphExec_t round = nullptr;
    double round_least;

    void forget_round()
    {
        if (round)
            cudaGraphExecDestroy(round);
        round = nullptr;
    }
    ~kernel_device_rows()
    {
        forget_round();
        delete[] stage;
        if (stream)
            cudaStreamDestroy(stream);
    }
};
typedef kernel_device_rows Held;

static int fail(Device *device, cudaError_t error)
{
    snprintf(device->table.message, sizeof device->table.message, "%s", cudaGetErrorString(error));
    cudaGetLastError();
    return error == cudaErrorMemoryAllocation ? KERNEL_DEVICE_MEMORY : KERNEL_DEVICE_LOST;
}

static size_t value_size(kernel_device_form form)
{
    return form == KERNEL_DEVICE_UINT8 ? 1 : form == KERNEL_DEVICE_FLOAT32 ? 4 : 8;
}

template <class T> static Rows<T> rows_of(const Held *held)
{
    return Rows<T>{(const T *)held->values.at, held->stride, (int)held->shape.columns, held->prescale};
}

/* Calls f with the rows in their form. */
template <class F> static void with_rows(const Held *held, F f)
{
    switch (held->shape.form) {
    case KERNEL_DEVICE_UINT8: f(rows_of<uint8_t>(held)); break;
    case KERNEL_DEVICE_FLOAT32: f(rows_of<float>(held)); break;
    default: f(rows_of<double>(held)); break;
    }
}

/* ---- rows come --------------------------------------------------------------------------------------------------- */

static int make_held(Held *held)
{
    const kernel_device_shape *shape = &held->shape;
    const size_t rows = (size_t)shape->rows, size = value_size(shape->form);
    held->stride = (int)((shape->columns + 3) / 4 * 4);
    held->padded = shape->columns <= 128 ? 128 : (int)((shape->columns + 63) / 64 * 64);
    held->narrow = held->padded == 128;
    held->tile = held->narrow ? 128 : 256;
    held->prescale = 1;
    held->stage_rows = STAGE_BYTES / (shape->columns * (int64_t)size);
    held->stage_rows = held->stage_rows < 1 ? 1 : held->stage_rows < shape->rows ? held->stage_rows : shape->rows;
    TRY(cudaStreamCreateWithFlags(&held->stream, cudaStreamNonBlocking));
    /* All that rows need, so that there is no want of memory later. */
    const size_t block = rows < BLOCK_ROWS ? rows : BLOCK_ROWS;
    TRY(held->values.grow(rows * held->stride * size));
    TRY(held->weights.grow(shape->weighted ? rows : 1));
    TRY(held->packed.grow(rows * held->padded));
    TRY(held->norm.grow(rows));
    TRY(held->residual.grow(rows));
    TRY(held->norm_most.grow(1));
    TRY(held->label.grow(rows));
    TRY(held->change.grow(rows + 1));
    TRY(held->sorted.grow(rows + 1));
    TRY(held->out.grow(block));
    TRY(held->some.grow(block));
    TRY(held->all.grow(block));
    TRY(held->upper.grow(block));
    TRY(held->candidates.grow(block * CANDIDATES));
    TRY(held->best.grow(SPLIT_PARTS));
    TRY(held->best_id.grow(SPLIT_PARTS));
    TRY(held->ended.grow(SPLIT_PARTS));
    TRY(cudaMemsetAsync(held->ended.at, 0, SPLIT_PARTS * sizeof(int), held->stream));
    TRY(held->changes.grow(1));
    TRY(held->counts.grow((rows + block - 1) / block));
    TRY(held->progress.grow(1));
    TRY(held->digits.grow(3));
    TRY(cudaMemsetAsync(held->label.at, 0, rows * sizeof(int), held->stream));
    return 0;
}

static int make_stages(Held *held)
{
    const size_t bytes = (size_t)(held->stage_rows * held->shape.columns) * value_size(held->shape.form);
    held->stage = new (std::nothrow) Stage[STAGES];
    if (!held->stage)
        return fail(held->device, cudaErrorMemoryAllocation);
    for (int i = 0; i < STAGES; i++) {
        TRY(cudaMallocHost(&held->stage[i].values, bytes));
        if (held->shape.weighted)
            TRY(cudaMallocHost(&held->stage[i].weights, (size_t)held->stage_rows * sizeof(double)));
        if (held->stride != held->shape.columns)
            TRY(held->stage[i].raw.grow(bytes));
        TRY(cudaEventCreateWithFlags(&held->stage[i].sent, cudaEventDisableTiming));
    }
    return 0;
}

static int open_rows(kernel_device_rows **out, kernel_device *table, const kernel_device_shape *shape)
{
    Device *device = (Device *)table;
    *out = nullptr;
    cudaSetDevice(device->index);
    if (shape->rows < 1 || shape->columns < 1 || shape->rows > INT_MAX - BLOCK_ROWS || shape->columns > 1 << 20) {
        snprintf(table->message, sizeof table->message, "%lld rows of %lld columns are more than it can index",
                 (long long)shape->rows, (long long)shape->columns);
        return KERNEL_DEVICE_MEMORY;
    }
    Held *held = new (std::nothrow) Held;
    if (!held)
        return fail(device, cudaErrorMemoryAllocation);
    held->device = device;
    held->shape = *shape;
    int status = make_held(held);
    if (status == 0)
        status = make_stages(held);
    if (status < 0)
        delete held;
    else
        *out = held;
    return status;
}

static void *stage_room(kernel_device_rows *held, int64_t *rows, double **weights)
{
    Stage *stage = &held->stage[held->turn];
    cudaSetDevice(held->device->index);
    cudaError_t status = cudaEventSynchronize(stage->sent);
    if (status != cudaSuccess) {
        fail(held->device, status);
        return nullptr;
    }
    *rows = held->stage_rows;
    *weights = stage->weights;
    return stage->values;
}

static int put_rows(kernel_device_rows *held, int64_t rows)
{
    Stage *stage = &held->stage[held->turn];
    const int64_t left = held->shape.rows - held->put, columns = held->shape.columns;
    const size_t size = value_size(held->shape.form), bytes = (size_t)(rows * columns) * size;
    cudaSetDevice(held->device->index);
    if (rows > left)
        return fail(held->device, cudaErrorInvalidValue);
    unsigned char *to = held->values.at + (size_t)(held->put * held->stride) * size;
    if (held->stride == columns) {
        TRY(cudaMemcpyAsync(to, stage->values, bytes, cudaMemcpyHostToDevice, held->stream));
    } else {
        TRY(cudaMemcpyAsync(stage->raw.at, stage->values, bytes, cudaMemcpyHostToDevice, held->stream));
        with_rows(held, [&](auto form) {
            typedef std::remove_const_t<std::remove_pointer_t<decltype(form.values)>> T;
            spread_rows<<<held->device->processors * 8, 256, 0, held->stream>>>(
                (T *)to, (const T *)stage->raw.at, (long)rows, (int)columns, held->stride);
        });
        TRY(cudaGetLastError());
    }
    if (stage->weights)
        TRY(cudaMemcpyAsync(held->weights.at + held->put, stage->weights, (size_t)rows * sizeof(double),
                            cudaMemcpyHostToDevice, held->stream));
    TRY(cudaEventRecord(stage->sent, held->stream));
    held->put += rows;
    held->turn = (held->turn + 1) % STAGES;
    return 0;
}

/* A matrix of halves, as bulk copies see it: boxes of 64 columns and `box` rows. */
static int make_map(Held *held, CUtensorMap *map, void *at, int64_t rows, int box)
{
    cuuint64_t sizes[2] = {(cuuint64_t)held->padded, (cuuint64_t)rows}, strides[1] = {(cuuint64_t)held->padded * 2};
    cuuint32_t boxes[2] = {64, (cuuint32_t)box}, steps[2] = {1, 1};
    if (!held->device->groups)
        return 0;
    CUresult status = held->device->encode(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, at, sizes, strides, boxes, steps,
                                           CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                           CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return status == CUDA_SUCCESS ? 0 : fail(held->device, cudaErrorInvalidValue);
}

static int measure_rows(kernel_device_rows *held, const kernel_device_units *units)
{
    const size_t columns = (size_t)held->shape.columns, wide = (size_t)units->wide;
    cudaSetDevice(held->device->index);
    if (held->put != held->shape.rows)
        return fail(held->device, cudaErrorInvalidValue);
    TRY(held->origin.grow(columns));
    TRY(held->inverse.grow(columns));
    TRY(held->wide_inverse.grow(wide + 1));
    TRY(held->wide_column.grow(wide + 1));
    if (held->prescale != units->prescale || held->scale != units->scale || held->weight_scale != units->weight_scale ||
        held->weight_inverse != units->weight_inverse || held->most != units->most || held->wide != (int)wide ||
        held->wide_bits != units->wide_bits) {
        held->forget_round();
        held->k = 0;
    }
    held->prescale = units->prescale;
    held->scale = units->scale;
    held->weight_scale = units->weight_scale;
    held->weight_inverse = units->weight_inverse;
    held->most = units->most;
    held->wide = (int)wide;
    held->wide_bits = units->wide_bits;
    held->labelled = false;
    held->summed = SUMS_VOID;
    TRY(cudaMemcpyAsync(held->origin.at, units->origin, columns * 8, cudaMemcpyHostToDevice, held->stream));
    TRY(cudaMemcpyAsync(held->inverse.at, units->inverse, columns * 8, cudaMemcpyHostToDevice, held->stream));
    if (wide > 0) {
        TRY(cudaMemcpyAsync(held->wide_column.at, units->wide_column, wide * 8, cudaMemcpyHostToDevice, held->stream));
        TRY(cudaMemcpyAsync(held->wide_inverse.at, units->wide_inverse, wide * 8, cudaMemcpyHostToDevice,
                            held->stream));
    }
    TRY(cudaMemsetAsync(held->norm_most.at, 0, sizeof(unsigned), held->stream));
    const Packed packed = {held->packed.at, held->norm.at, held->residual.at, held->norm_most.at};
    with_rows(held, [&](auto rows) {
        pack_rows<<<held->device->processors * 8, 256, 0, held->stream>>>(rows, (long)held->shape.rows, held->padded,
                                                                         held->origin.at, held->scale, packed);
    });
    TRY(cudaGetLastError());
    int status = make_map(held, &held->row_map, held->packed.at, held->shape.rows, held->narrow ? 256 : 128);
    TRY(cudaStreamSynchronize(held->stream));
    delete[] held->stage;
    held->stage = nullptr;
    return status;
}

/* ---- centres ----------------------------------------------------------------------------------------------------- */

/* Room for what k centres need.  Labels of another k are no guess for this one. */
static int make_centres(Held *held, int64_t k)
{
    const size_t columns = (size_t)held->shape.columns, padded_k = (size_t)((k + 255) / 256 * 256);
    if (held->k == k)
        return 0;
    held->k = 0;
    held->labelled = false;
    held->summed = SUMS_VOID;
    held->forget_round();
    TRY(held->centres.grow((size_t)k * columns));
    TRY(held->moved.grow((size_t)k));
    TRY(held->gained.grow((size_t)k));
    TRY(held->bias.grow(padded_k));
    TRY(held->centre_norm.grow(padded_k));
    TRY(held->packed_centres.grow(padded_k * held->padded));
    TRY(held->id.grow(padded_k));
    TRY(held->place.grow(padded_k));
    TRY(held->bounds.grow(4 + 2 * padded_k / 128));
    TRY(held->sizes.grow(padded_k));
    TRY(held->counted.grow((size_t)k));
    TRY(held->cursor.grow((size_t)k));
    TRY(held->count.grow((size_t)k));
    TRY(held->weight.grow((size_t)k));
    TRY(held->sums.grow((size_t)k * columns));
    TRY(held->wide_sums.grow(2 * (size_t)k * held->wide + 1));
    TRY(cudaMemsetAsync(held->counted.at, 0, (size_t)k * sizeof(int), held->stream));
    int status = make_map(held, &held->centre_map, held->packed_centres.at, (int64_t)padded_k, held->tile);
    if (status < 0)
        return status;
    held->k = (int)k;
    held->padded_k = (int)padded_k;
    return 0;
}

static Centres centres_of(const Held *held)
{
    return Centres{.values = held->centres.at,
                   .k = held->k,
                   .padded_k = held->padded_k,
                   .columns = (int)held->shape.columns,
                   .padded = held->padded,
                   .packed = held->packed_centres.at,
                   .bias = held->bias.at,
                   .id = held->id.at,
                   .place = held->place.at,
                   .residual = (unsigned *)held->bounds.at + 4,
                   .norm = (unsigned *)held->bounds.at + 4 + held->padded_k / 128,
                   .far = held->bounds.at,
                   .tile = held->tile};
}

static int take_centres(Held *held, const double *centres, int64_t k)
{
    int status = make_centres(held, k);
    if (status < 0)
        return status;
    TRY(cudaMemsetAsync(held->progress.at, 0, sizeof(Progress), held->stream));
    TRY(cudaMemcpyAsync(held->centres.at, centres, (size_t)(k * held->shape.columns) * sizeof(double),
                        cudaMemcpyHostToDevice, held->stream));
    measure_centres<<<held->k, 128, 0, held->stream>>>(held->progress.at, centres_of(held), held->origin.at,
                                                       held->scale, held->centre_norm.at);
    TRY(cudaGetLastError());
    return 0;
}

static int pack_them(Held *held)
{
    TRY(cudaMemsetAsync(held->bounds.at, 0, (4 + 2 * held->padded_k / 128) * sizeof(int), held->stream));
    pack_centres<<<held->padded_k, 128, 0, held->stream>>>(held->progress.at, centres_of(held), held->origin.at,
                                                          held->scale, held->centre_norm.at);
    TRY(cudaGetLastError());
    return 0;
}

/* ---- labels ------------------------------------------------------------------------------------------------------ */

static int run_groups(Held *held, Filter filter)
{
    typedef Layout<false> Narrow;
    typedef Layout<true> Wide;
    const int processors = held->device->processors;
    filter.tiles = (filter.rows + (held->narrow ? Narrow::BLOCK : Wide::BLOCK) - 1) /
                   (held->narrow ? Narrow::BLOCK : Wide::BLOCK);
    filter.chunks = (held->padded_k + CHUNK - 1) / CHUNK;
    const int blocks = filter.tiles < processors ? filter.tiles : processors;
    for (filter.chunk = 0; filter.chunk < filter.chunks; filter.chunk++) {
        if (!held->narrow)
            filter_wide<<<blocks, Wide::THREADS, Wide::BYTES, held->stream>>>(held->row_map, held->centre_map, filter);
        else if (filter.fresh && filter.chunk == 0)
            filter_narrow<false><<<blocks, Narrow::THREADS, Narrow::BYTES, held->stream>>>(held->row_map,
                                                                                          held->centre_map, filter);
        else
            filter_narrow<true><<<blocks, Narrow::THREADS, Narrow::BYTES, held->stream>>>(held->row_map,
                                                                                         held->centre_map, filter);
        TRY(cudaGetLastError());
    }
    return 0;
}

static int run_old(Held *held, Filter filter)
{
    filter.tiles = (filter.rows + OLD_ROWS - 1) / OLD_ROWS;
    filter.chunks = 1;
    const int most = held->device->processors * 3;
    filter_old<<<filter.tiles < most ? filter.tiles : most, OLD_THREADS, OLD_BYTES, held->stream>>>(held->packed.at,
                                                                                                    filter);
    TRY(cudaGetLastError());
    return 0;
}

template <bool PRODUCT> static void run_decisions(Held *held, const Decision &d)
{
    const int blocks = held->device->processors * 8;
    with_rows(held, [&](auto rows) {
        typedef std::remove_const_t<std::remove_pointer_t<decltype(rows.values)>> T;
        decide<T, PRODUCT><<<blocks, 256, 0, held->stream>>>(rows, d);
    });
}

static int label_block(Held *held, int64_t first, int block, bool fresh, kernel_device_way way)
{
    const int64_t left = held->shape.rows - first;
    const double rounding = held->shape.unit ? 0x1p-51 : 0x1p-53;
    const int rows = (int)(left < BLOCK_ROWS ? left : BLOCK_ROWS);
    const bool old = way == KERNEL_DEVICE_OLD || !held->device->groups;
    const Filter filter = {.progress = held->progress.at,
                           .c = centres_of(held),
                           .first = first,
                           .rows = rows,
                           .fresh = fresh,
                           .norm = held->norm.at,
                           .residual = held->residual.at,
                           .label = held->label.at,
                           .out = held->out.at,
                           .upper = held->upper.at,
                           .candidates = held->candidates.at,
                           .loss = held->padded / 16 * PROBE_UNITS * 0x1p-23f * 1.001f,
                           .roundings = (float)((held->shape.columns / 8 + 17) * rounding),
                           .norm_most = held->norm_most.at};
    const Decision decision = {.progress = held->progress.at,
                               .centres = held->centres.at,
                               .k = held->k,
                               .columns = (int)held->shape.columns,
                               .first = first,
                               .rows = rows,
                               .fresh = fresh,
                               .chunked = way != KERNEL_DEVICE_PLAIN && !old && held->padded_k > CHUNK,
                               .out = held->out.at,
                               .upper = held->upper.at,
                               .candidates = held->candidates.at,
                               .label = held->label.at,
                               .counts = held->counts.at + block,
                               .some = held->some.at,
                               .all = held->all.at,
                               .changes = held->changes.at,
                               .change = held->change.at,
                               .best = held->best.at,
                               .best_id = held->best_id.at,
                               .split = SPLIT_PARTS / ((held->k + 31) / 32),
                               .ended = held->ended.at};
    int status = 0;
    if (way == KERNEL_DEVICE_PLAIN)
        leave_rows<<<held->device->processors * 8, 256, 0, held->stream>>>(decision);
    else
        status = old ? run_old(held, filter) : run_groups(held, filter);
    if (status < 0)
        return status;
    collect<<<held->device->processors * 8, 256, 0, held->stream>>>(decision);
    if (held->shape.unit)
        run_decisions<true>(held, decision);
    else
        run_decisions<false>(held, decision);
    TRY(cudaGetLastError());
    return 0;
}

static int label_rows(Held *held, bool fresh, kernel_device_way way)
{
    const int blocks = (int)((held->shape.rows + BLOCK_ROWS - 1) / BLOCK_ROWS);
    TRY(cudaMemsetAsync(held->changes.at, 0, sizeof(int), held->stream));
    TRY(cudaMemsetAsync(held->counts.at, 0, blocks * sizeof(Counts), held->stream));
    for (int i = 0; i < blocks; i++) {
        int status = label_block(held, (int64_t)i * BLOCK_ROWS, i, fresh, way);
        if (status < 0)
            return status;
    }
    return 0;
}

static int assign_rows(kernel_device_rows *held, const double *centres, int64_t k, kernel_device_way way)
{
    cudaSetDevice(held->device->index);
    int status = take_centres(held, centres, k);
    if (status == 0)
        status = pack_them(held);
    if (status == 0)
        status = label_rows(held, !held->labelled, way);
    if (status < 0)
        return status;
    held->summed = held->labelled && held->summed == SUMS_CURRENT ? SUMS_PENDING : SUMS_VOID;
    held->labelled = false; /* until it is known that all went well */
    TRY(cudaStreamSynchronize(held->stream));
    held->labelled = true;
    return 0;
}

/* ---- sums -------------------------------------------------------------------------------------------------------- */

static int add_rows(Held *held, bool fresh)
{
    const int processors = held->device->processors, bytes = held->k <= COUNTED_IN_BLOCK ? held->k * 4 : 0;
    const Summing p = {.progress = held->progress.at,
                       .rows = (int)held->shape.rows,
                       .columns = (int)held->shape.columns,
                       .k = held->k,
                       .fresh = fresh,
                       .changes = held->changes.at,
                       .change = held->change.at,
                       .label = held->label.at,
                       .counted = held->counted.at,
                       .cursor = held->cursor.at,
                       .sorted = held->sorted.at,
                       .weights = held->shape.weighted ? held->weights.at : nullptr,
                       .origin = held->origin.at,
                       .inverse = held->inverse.at,
                       .weight_scale = held->weight_scale,
                       .weight_inverse = held->weight_inverse,
                       .most = held->most,
                       .sums = held->sums.at,
                       .count = held->count.at,
                       .weight = (i64 *)held->weight.at,
                       .wide = held->wide,
                       .wide_bits = held->wide_bits,
                       .wide_column = (const i64 *)held->wide_column.at,
                       .wide_inverse = held->wide_inverse.at,
                       .wide_sums = held->wide_sums.at,
                       .run = held->shape.columns > 256 ? 64 : 128};
    count_entries<<<processors * 2, 512, bytes, held->stream>>>(p);
    place_clusters<<<1, 1024, 0, held->stream>>>(p);
    sort_entries<<<processors * 2, 512, 2 * bytes, held->stream>>>(p);
    with_rows(held, [&](auto rows) {
        typedef std::remove_const_t<std::remove_pointer_t<decltype(rows.values)>> T;
        if (held->shape.weighted)
            add_runs<T, true, false><<<processors * 6, 256, 0, held->stream>>>(rows, p);
        else if (held->most <= 0x1p51)
            add_runs<T, false, true><<<processors * 6, 256, 0, held->stream>>>(rows, p);
        else
            add_runs<T, false, false><<<processors * 6, 256, 0, held->stream>>>(rows, p);
        if (p.wide > 0)
            add_wide<T><<<processors * 8, 256, 0, held->stream>>>(rows, p);
    });
    TRY(cudaGetLastError());
    return 0;
}

/* Memory of this process that is not pinned. */
static int fetch(Held *held, void *to, const void *from, size_t bytes)
{
    TRY(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, held->stream));
    return 0;
}

static int fetch_sums(kernel_device_rows *held, const kernel_device_sums *out)
{
    const size_t k = (size_t)held->k, columns = (size_t)held->shape.columns;
    int *count = new (std::nothrow) int[k];
    cudaSetDevice(held->device->index);
    int status = count ? 0 : fail(held->device, cudaErrorMemoryAllocation);
    if (status == 0 && held->summed != SUMS_CURRENT)
        status = add_rows(held, held->summed == SUMS_VOID);
    if (status == 0)
        status = fetch(held, out->values, held->sums.at, k * columns * 8);
    if (status == 0)
        status = fetch(held, count, held->count.at, k * sizeof(int));
    if (status == 0 && out->weight)
        status = fetch(held, out->weight, held->weight.at, k * 8);
    if (status == 0 && held->wide > 0)
        status = fetch(held, out->wide, held->wide_sums.at, 2 * k * held->wide * 8);
    cudaError_t done = cudaStreamSynchronize(held->stream);
    if (status == 0 && done != cudaSuccess)
        status = fail(held->device, done);
    for (size_t j = 0; status == 0 && j < k; j++)
        out->rows[j] = count[j];
    delete[] count;
    held->summed = status == 0 ? SUMS_CURRENT : SUMS_VOID;
    return status;
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

static int end_run(kernel_device_rows *held, kernel_device_ending *inout)
{
    const size_t k = (size_t)held->k, rows = (size_t)held->shape.rows;
    u64 digits[3];
    int *sizes = new (std::nothrow) int[k];
    cudaSetDevice(held->device->index);
    auto run = [&]() -> int {
        if (!sizes)
            return fail(held->device, cudaErrorMemoryAllocation);
        if (inout->distance)
            TRY(held->distance.grow(rows));
        TRY(cudaMemsetAsync(held->digits.at, 0, sizeof digits, held->stream));
        TRY(cudaMemsetAsync(held->sizes.at, 0, k * sizeof(int), held->stream));
        const Ending p = {.centres = held->centres.at,
                          .weights = held->shape.weighted ? held->weights.at : nullptr,
                          .label = held->label.at,
                          .rows = (int)rows,
                          .columns = (int)held->shape.columns,
                          .k = held->k,
                          .bits = inout->bits,
                          .weight_scale = held->weight_scale,
                          .inverse = inout->inverse,
                          .same = inout->same,
                          .distance = inout->distance ? held->distance.at : nullptr,
                          .digits = held->digits.at,
                          .sizes = held->sizes.at};
        with_rows(held, [&](auto form) {
            end_rows<<<held->device->processors * 8, 256, 0, held->stream>>>(form, p);
        });
        TRY(cudaGetLastError());
        int status = fetch(held, digits, held->digits.at, sizeof digits);
        if (status == 0)
            status = fetch(held, sizes, held->sizes.at, k * sizeof(int));
        if (status == 0)
            status = fetch(held, inout->label, held->label.at, rows * sizeof(int));
        if (status == 0 && inout->distance)
            status = fetch(held, inout->distance, held->distance.at, rows * sizeof(double));
        TRY(cudaStreamSynchronize(held->stream));
        return status;
    };
    const int status = run();
    for (size_t j = 0; status == 0 && j < k; j++)
        inout->sizes[j] += sizes[j];
    if (status == 0) {
        inout->objective[0] = (int64_t)digits[0];
        inout->objective[1] = (int64_t)digits[1];
        memcpy(&inout->most, &digits[2], sizeof inout->most);
    }
    delete[] sizes;
    return status;
}

/* ---- rounds on end ----------------------------------------------------------------------------------------------- */

static int queue_round(Held *held, const Means &means, double least, bool fresh_labels, bool fresh_sums)
{
    int status = pack_them(held);
    if (status == 0)
        status = label_rows(held, fresh_labels, KERNEL_DEVICE_BEST);
    if (status == 0)
        status = add_rows(held, fresh_sums);
    if (status < 0)
        return status;
    if (held->k > EMPTY_IN_MOVE)
        find_empty<<<1, 1024, 0, held->stream>>>(held->progress.at, means);
    move_centres<<<held->k, 128, 0, held->stream>>>(held->progress.at, means);
    end_round<<<1, 1024, 0, held->stream>>>(held->progress.at, means, least);
    TRY(cudaGetLastError());
    return 0;
}

/* Rounds that follow others are the same two dozen kernels with the same arguments, most of them short: as a graph they
 * are launched in one go.  Where none can be made they are queued one by one. */
static void make_round(Held *held, const Means &means, double least)
{
    cudaGraph_t graph = nullptr;
    if (held->round && held->round_least == least)
        return;
    held->forget_round();
    if (cudaStreamBeginCapture(held->stream, cudaStreamCaptureModeThreadLocal) != cudaSuccess)
        return;
    const int status = queue_round(held, means, least, false, false);
    if (cudaStreamEndCapture(held->stream, &graph) == cudaSuccess && status == 0 &&
        cudaGraphInstantiate(&held->round, graph, 0) != cudaSuccess)
        held->round = nullptr;
    if (graph)
        cudaGraphDestroy(graph);
    held->round_least = least;
    cudaGetLastError();
}

static int run_rounds(kernel_device_rows *held, kernel_device_rounds *inout)
{
    cudaSetDevice(held->device->index);
    int status = take_centres(held, inout->centres, inout->k);
    if (status < 0)
        return status;
    const bool labelled = held->labelled, summed = held->labelled && held->summed == SUMS_CURRENT;
    const Means means = {.sums = held->sums.at,
                         .rows = held->count.at,
                         .weight = held->shape.weighted ? (i64 *)held->weight.at : nullptr,
                         .origin = held->origin.at,
                         .inverse = held->inverse.at,
                         .weight_inverse = held->weight_inverse,
                         .scale = held->scale,
                         .centres = held->centres.at,
                         .moved = held->moved.at,
                         .gained = held->gained.at,
                         .norm = held->centre_norm.at,
                         .k = held->k,
                         .columns = (int)held->shape.columns};
    held->labelled = false; /* until it is known that all went well */
    held->summed = SUMS_VOID;
    int64_t queued = 0;
    if (!labelled || !summed) {
        status = queue_round(held, means, inout->least, !labelled, !summed);
        queued++;
    }
    if (status == 0 && inout->most - queued > 1)
        make_round(held, means, inout->least);
    for (; queued < inout->most && status == 0; queued++)
        if (!held->round || held->round_least != inout->least)
            status = queue_round(held, means, inout->least, false, false);
        else
            TRY(cudaGraphLaunch(held->round, held->stream));
    Progress progress = {};
    if (status == 0)
        status = fetch(held, &progress, held->progress.at, sizeof progress);
    if (status == 0)
        status = fetch(held, inout->centres, held->centres.at,
                       (size_t)(inout->k * held->shape.columns) * sizeof(double));
    TRY(cudaStreamSynchronize(held->stream));
    if (status < 0)
        return status;
    held->labelled = true;
    held->summed = SUMS_CURRENT;
    inout->done = progress.done;
    inout->converged = progress.converged != 0;
    inout->change = progress.change;
    inout->objective = fmax(inout->square_total + progress.objective, 0);
    inout->distances = held->shape.rows * inout->k * (progress.done + (progress.halt && !progress.converged));
    return 0;
}

static void close_rows(kernel_device_rows **held)
{
    if (!*held)
        return;
    cudaSetDevice((*held)->device->index);
    delete *held;
    *held = nullptr;
}

/* ---- opening a device -------------------------------------------------------------------------------------------- */

/* The worst that a way of multiplying does; infinity where it can't be found out. */
static float probe(void (*kernel)(const __half *, const __half *, float *), int threads, int bytes)
{
    const size_t count = (size_t)PROBES * PROBE_COLUMNS;
    __half *a = (__half *)calloc(count, sizeof *a), *b = (__half *)calloc(count, sizeof *b);
    float *out = (float *)calloc(2 * PROBES, sizeof *out), worst = INFINITY;
    Room<__half> da, db;
    Room<float> dout;
    if (a && b && out && da.grow(count) == cudaSuccess && db.grow(count) == cudaSuccess &&
        dout.grow(2 * PROBES) == cudaSuccess) {
        make_probes(a, b);
        cudaMemcpy(da.at, a, count * sizeof *a, cudaMemcpyHostToDevice);
        cudaMemcpy(db.at, b, count * sizeof *b, cudaMemcpyHostToDevice);
        cudaMemset(dout.at, 0xff, 2 * PROBES * sizeof *out);
        kernel<<<256, threads, bytes>>>(da.at, db.at, dout.at);
        if (cudaDeviceSynchronize() == cudaSuccess &&
            cudaMemcpy(out, dout.at, 2 * PROBES * sizeof *out, cudaMemcpyDeviceToHost) == cudaSuccess)
            worst = judge_probes(a, b, out);
    }
    cudaGetLastError();
    free(a);
    free(b);
    free(out);
    return worst;
}

static cudaError_t find_encode(Device *device)
{
    cudaDriverEntryPointQueryResult found;
#if CUDART_VERSION >= 12050
    return cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", (void **)&device->encode, 12000,
                                            cudaEnableDefault, &found);
#else
    return cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", (void **)&device->encode, cudaEnableDefault, &found);
#endif
}

static cudaError_t raise_limits(const Device *device)
{
    cudaError_t status =
        cudaFuncSetAttribute(filter_old, cudaFuncAttributeMaxDynamicSharedMemorySize, OLD_BYTES);
    if (status == cudaSuccess && device->groups)
        status = cudaFuncSetAttribute(filter_narrow<false>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      Layout<false>::BYTES);
    if (status == cudaSuccess && device->groups)
        status = cudaFuncSetAttribute(filter_narrow<true>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      Layout<false>::BYTES);
    if (status == cudaSuccess && device->groups)
        status = cudaFuncSetAttribute(filter_wide, cudaFuncAttributeMaxDynamicSharedMemorySize, Layout<true>::BYTES);
    return status;
}

/* Kernels with warpgroups are empty where this was compiled for others. */
static bool has_groups(const cudaDeviceProp *properties)
{
    cudaFuncAttributes about;
    return properties->major == 9 && properties->minor == 0 &&
           cudaFuncGetAttributes(&about, filter_wide) == cudaSuccess && about.binaryVersion == 90 && about.numRegs > 64;
}

static int open_device(Device *device, int index, char *message, size_t room)
{
    int count = 0, driver = 0;
    cudaDeviceProp properties;
    cudaError_t status = cudaDriverGetVersion(&driver);
    if (status != cudaSuccess || driver == 0)
        return snprintf(message, room, "there is no NVIDIA driver here");
    if (driver < 12000)
        return snprintf(message, room, "the driver is for CUDA %d.%d; shoal needs one for CUDA 12 or newer",
                        driver / 1000, driver % 1000 / 10);
    if ((status = cudaGetDeviceCount(&count)) != cudaSuccess)
        return snprintf(message, room, "%s", cudaGetErrorString(status));
    if (index >= count)
        return snprintf(message, room, "there are %d GPUs here, numbered from 0", count);
    if ((status = cudaSetDevice(index)) != cudaSuccess ||
        (status = cudaGetDeviceProperties(&properties, index)) != cudaSuccess)
        return snprintf(message, room, "%s", cudaGetErrorString(status));
    if (properties.major < 8)
        return snprintf(message, room, "%s has compute capability %d.%d; shoal needs 8.0 (Ampere) or newer",
                        properties.name, properties.major, properties.minor);
    const float warps = probe(probe_warps, 32, 0);
    if (!(warps <= PROBE_UNITS))
        return snprintf(message, room,
                        "its tensor cores lose %g units in the last place where labels are proven for %g at most",
                        warps, PROBE_UNITS);
    device->groups = has_groups(&properties) && find_encode(device) == cudaSuccess && device->encode &&
                     probe(probe_groups, 128, 8192 + 16384) <= PROBE_UNITS;
    if ((status = raise_limits(device)) != cudaSuccess)
        return snprintf(message, room, "%s", cudaGetErrorString(status));
    device->index = index;
    device->processors = properties.multiProcessorCount;
    snprintf(device->name, sizeof device->name, "cuda:%d", index);
    snprintf(device->about, sizeof device->about, "%s, %.1f GiB, %s", properties.name,
             (double)properties.totalGlobalMem * 0x1p-30, device->groups ? "warpgroups" : "warps");
    return 0;
}

extern "C" __attribute__((visibility("default"))) int shoal_cuda_enter(kernel_device **out, uint32_t version, int index,
                                                                       char *message, size_t room)
{
    Device *device = (Device *)calloc(1, sizeof *device);
    if (!device || version != KERNEL_DEVICE_VERSION) {
        free(device);
        return snprintf(message, room, device ? "the plug-in belongs to another version of shoal" : "out of memory");
    }
    if (open_device(device, index, message, room) != 0) {
        free(device);
        return 1;
    }
    device->table = kernel_device{};
    device->table.version = KERNEL_DEVICE_VERSION;
    device->table.bytes = sizeof device->table;
    device->table.name = device->name;
    device->table.about = device->about;
    device->table.open = open_rows;
    device->table.room = stage_room;
    device->table.put = put_rows;
    device->table.measure = measure_rows;
    device->table.assign = assign_rows;
    device->table.sums = fetch_sums;
    device->table.ending = end_run;
    device->table.rounds = run_rounds;
    device->table.close = close_rows;
    *out = &device->table;
    return 0;
}
