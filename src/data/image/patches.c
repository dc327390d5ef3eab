/* Drawing and cutting of patches.  See patches.h.
 *
 * A file that turns out to be broken when it is decoded has rows already.  When such files are left out these rows are
 * drawn once more, with the next numbers of the row's own sequence, until all have a file that can be read: a row is
 * the first of its draws whose file is whole. */
#include "patches.h"

#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "image.h"

/* Numbers of a row's sequence that one draw may use: more than can ever be refused as biased. */
enum { OF_A_CHOICE = 8, OF_A_DRAW = 3 * OF_A_CHOICE };

typedef struct file {
    int64_t images; /* that may be drawn from; 0 when they are too small or can't be read */
    int64_t height, width;
    int64_t before; /* images that may be drawn from, of the files before it */
    int64_t first;  /* where its rows start in `order` */
} file;

typedef struct draw {
    int64_t image; /* of its file */
    int32_t file, top, left;
    uint32_t attempt; /* the next one's number */
} draw;

typedef struct work {
    const data_patch_options *options;
    const char *const *paths;
    data_patch_report *report;
    data_buffer *rows;
    base_pool *pool;
    int64_t file_count, usable; /* usable: images */
    file *files;
    draw *draws;
    int64_t *order; /* the rows that are to be filled, by file */
    int64_t order_count;
    double *scratch; /* of each thread: a row, and a line of samples */
    const char *doing;
    atomic_llong done, first_broken; /* the first file that can't be read, or file_count */
} work;

int64_t data_patch_columns(const data_patch_options *options)
{
    return options->size * options->size * (options->colour ? 3 : 1);
}

/* ---- files that can't be read ------------------------------------------------------------------------------------ */

/* Remembers what is wrong with a file.  What is not the file's fault stays a failure. */
static int note_broken(work *in, int64_t index, int status)
{
    long long first = atomic_load(&in->first_broken);
    if (status != SHOAL_INVALID && status != SHOAL_SYSTEM)
        return status;
    in->files[index].images = 0;
    status = base_copy_text(&in->report->why[index], shoal_error());
    while (index < first && !atomic_compare_exchange_weak(&in->first_broken, &first, index))
        continue;
    return status;
}

/* Whether a file need not be looked at any more, since the call fails for one before it. */
static bool is_moot(work *in, int64_t index)
{
    return !in->options->skip_broken && index > atomic_load(&in->first_broken);
}

/* After a pass over the files: fails for the first broken one, or counts those that are left out. */
static int settle_broken(work *in)
{
    const int64_t first = atomic_load(&in->first_broken);
    in->report->broken = 0;
    if (first == in->file_count)
        return SHOAL_OK;
    for (int64_t i = 0; i < in->file_count; i++)
        in->report->broken += in->report->why[i] != NULL;
    if (in->options->skip_broken)
        return SHOAL_OK;
    in->report->broken = 1;
    return shoal_fail(SHOAL_INVALID, "%s", in->report->why[first]);
}

static void tell_progress(work *in, int thread)
{
    int64_t done = atomic_fetch_add(&in->done, 1) + 1;
    if (thread == 0 && in->options->progress)
        in->options->progress(in->options->context, in->doing, done, in->file_count);
}

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

static int probe(void *context, int64_t index, int thread)
{
    work *in = context;
    data_image image = {0};
    if (is_moot(in, index))
        return SHOAL_OK;
    int status = data_image_probe(&image, in->paths[index]);
    if (status == SHOAL_OK)
        in->files[index] = (file){.images = image.images, .height = image.height, .width = image.width};
    else
        status = note_broken(in, index, status);
    data_image_release(&image);
    tell_progress(in, thread);
    return status;
}

/* Counts the images that are large enough, and those that are not. */
static int count_usable(work *in)
{
    const int64_t size = in->options->size;
    int64_t broken = 0, readable = 0;
    for (int64_t i = 0; i < in->file_count; i++) {
        file *file = &in->files[i];
        broken += in->report->why[i] != NULL;
        readable += file->images;
        if (file->images && (file->height < size || file->width < size)) {
            in->report->small += file->images;
            file->images = 0;
        }
        file->before = in->usable;
        in->usable += file->images;
        in->report->files += file->images > 0;
    }
    in->report->images = in->usable;
    if (in->usable > 0)
        return SHOAL_OK;
    if (readable == 0)
        return shoal_fail(SHOAL_INVALID, "none of %" PRId64 " files can be read, such as %s", broken,
                          in->report->why[0]);
    return shoal_fail(SHOAL_INVALID, "none of %" PRId64 " images has %" PRId64 " x %" PRId64 " pixels%s%s", readable,
                      size, size, readable == 1 ? ": " : "", readable == 1 ? in->paths[0] : "");
}

/* ---- draws ------------------------------------------------------------------------------------------------------- */

/* The file that image `image` of all usable ones is in. */
static int64_t file_of(const work *in, int64_t image)
{
    int64_t low = 0, high = in->file_count;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (in->files[middle].before <= image)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Uniform below `bound`, from the row's own numbers. */
static int64_t choose(const work *in, int64_t row, uint32_t number, int64_t bound)
{
    return (int64_t)base_random_below((uint64_t)bound, in->options->seed, BASE_FOR_PATCHES, (uint64_t)row, number);
}

/* Files whose images were taken out later are still drawn, so that the others' draws do not change, and refused. */
static void draw_row(work *in, int64_t row)
{
    draw *draw = &in->draws[row];
    for (bool whole = false; !whole; draw->attempt++) {
        const uint32_t number = draw->attempt * OF_A_DRAW;
        int64_t image = choose(in, row, number, in->usable), found = file_of(in, image);
        const file *file = &in->files[found];
        whole = file->images > 0;
        draw->file = (int32_t)found;
        draw->image = image - file->before;
        draw->top = (int32_t)choose(in, row, number + OF_A_CHOICE, file->height - in->options->size + 1);
        draw->left = (int32_t)choose(in, row, number + 2 * OF_A_CHOICE, file->width - in->options->size + 1);
    }
}

/* Lists the rows of each file in `order`; files[i].first is where those of file i start. */
static void sort_rows(work *in)
{
    int64_t at = 0;
    for (int64_t i = 0; i < in->file_count; i++)
        in->files[i].first = 0;
    for (int64_t i = 0; i < in->options->count; i++)
        if (in->draws[i].file >= 0)
            in->files[in->draws[i].file].first++;
    for (int64_t i = 0; i < in->file_count; i++) {
        int64_t rows = in->files[i].first;
        in->files[i].first = at;
        at += rows;
    }
    in->order_count = at;
    for (int64_t i = 0; i < in->options->count; i++)
        if (in->draws[i].file >= 0)
            in->order[in->files[in->draws[i].file].first++] = i;
    for (int64_t i = in->file_count - 1; i >= 0; i--) /* each start was moved to the next one's */
        in->files[i].first = i > 0 ? in->files[i - 1].first : 0;
}

/* ---- cutting ----------------------------------------------------------------------------------------------------- */

static int store_row(work *in, int64_t row, const double *values, const char *path)
{
    const int64_t columns = data_patch_columns(in->options);
    if (in->options->type == SHOAL_FLOAT64) {
        memcpy((double *)in->rows->bytes + row * columns, values, (size_t)columns * sizeof *values);
        return SHOAL_OK;
    }
    float *out = (float *)in->rows->bytes + row * columns;
    for (int64_t i = 0; i < columns; i++) {
        out[i] = (float)values[i];
        if (!isfinite(out[i]))
            return shoal_fail(SHOAL_INVALID, "%s: its values are up to %g and more, beyond float32: use --type float64",
                              path, fabs(values[i]));
    }
    return SHOAL_OK;
}

static int cut_rows(work *in, const data_image *image, int64_t first, int64_t end, double *scratch)
{
    int status = SHOAL_OK;
    for (int64_t i = first; status == SHOAL_OK && i < end; i++) {
        const draw *draw = &in->draws[in->order[i]];
        const data_cut cut = {draw->image, draw->top, draw->left, in->options->size, in->options->colour};
        status = data_image_cut(scratch, image, &cut, scratch + data_patch_columns(in->options));
        if (status == SHOAL_OK)
            status = store_row(in, in->order[i], scratch, image->path);
    }
    return status;
}

/* Decodes one file and fills all of its rows. */
static int cut_file(void *context, int64_t index, int thread)
{
    work *in = context;
    const file *file = &in->files[index];
    const int64_t end = index + 1 < in->file_count ? in->files[index + 1].first : in->order_count;
    const int64_t room = data_patch_columns(in->options) + 3 * in->options->size;
    data_image image = {0};
    if (file->first == end || is_moot(in, index))
        return SHOAL_OK;
    int status = data_image_load(&image, in->paths[index], in->options->colour ? DATA_IMAGE_COLOUR : DATA_IMAGE_GREY);
    if (status == SHOAL_OK &&
        (image.images < file->images || image.height != file->height || image.width != file->width))
        status = shoal_fail(SHOAL_INVALID, "%s: changed while it was read", in->paths[index]);
    if (status == SHOAL_OK)
        status = cut_rows(in, &image, file->first, end, in->scratch + thread * room);
    data_image_release(&image);
    if (status < 0)
        status = note_broken(in, index, status);
    tell_progress(in, thread);
    return status;
}

/* Rows that are filled are marked as done, those of broken files are drawn again; false when there are none of
 * these. */
static bool draw_again(work *in)
{
    bool again = false;
    for (int64_t i = 0; i < in->options->count; i++) {
        draw *draw = &in->draws[i];
        if (draw->file < 0)
            continue;
        if (in->files[draw->file].images > 0) {
            draw->file = -1;
            continue;
        }
        draw_row(in, i);
        again = true;
    }
    return again;
}

static int count_whole(work *in)
{
    in->report->files = in->report->images = 0;
    for (int64_t i = 0; i < in->file_count; i++) {
        in->report->files += in->files[i].images > 0;
        in->report->images += in->files[i].images;
    }
    if (in->report->images == 0)
        return shoal_fail(SHOAL_INVALID, "none of the images that are large enough can be read");
    return SHOAL_OK;
}

static int cut_all(work *in)
{
    int status = SHOAL_OK;
    for (int64_t i = 0; i < in->options->count; i++)
        draw_row(in, i);
    in->doing = "cutting patches";
    do {
        sort_rows(in);
        atomic_store(&in->done, 0);
        status = base_pool_each(in->pool, in->file_count, cut_file, in);
        if (status == SHOAL_OK)
            status = settle_broken(in);
        if (status == SHOAL_OK)
            status = count_whole(in);
    } while (status == SHOAL_OK && draw_again(in));
    return status;
}

/* ---- all together ------------------------------------------------------------------------------------------------ */

static int reserve(work *in)
{
    const data_patch_options *options = in->options;
    const size_t columns = (size_t)data_patch_columns(options), files = (size_t)in->file_count;
    size_t bytes;
    if (!base_multiply(&bytes, (size_t)options->count, columns) ||
        !base_multiply(&bytes, bytes, shoal_type_size(options->type)) || bytes > INT64_MAX)
        return shoal_fail(SHOAL_USAGE, "%" PRId64 " patches of %zu values are too many", options->count, columns);
    int status = base_alloc(&in->files, files, sizeof *in->files, "a list of images");
    if (status == SHOAL_OK)
        status = base_alloc(&in->report->why, files, sizeof *in->report->why, "a list of images");
    if (status == SHOAL_OK)
        in->report->why_count = in->file_count;
    if (status == SHOAL_OK)
        status = base_alloc(&in->scratch, (columns + 3 * (size_t)options->size) * (size_t)base_pool_threads(in->pool),
                            sizeof *in->scratch, "a patch");
    return status;
}

int data_patches_cut(data_buffer *rows, data_patch_report *report, const char *const *paths, int64_t files,
                     const data_patch_options *options, base_pool *pool)
{
    work in = {.options = options,
               .paths = paths,
               .report = report,
               .rows = rows,
               .pool = pool,
               .file_count = files,
               .doing = "looking at images"};
    const size_t count = (size_t)options->count;
    atomic_init(&in.first_broken, files);
    int status = reserve(&in);
    if (status == SHOAL_OK)
        status = base_pool_each(pool, files, probe, &in);
    if (status == SHOAL_OK)
        status = settle_broken(&in);
    if (status == SHOAL_OK)
        status = count_usable(&in);
    if (status == SHOAL_OK)
        status = base_alloc(&in.draws, count, sizeof *in.draws, "a list of patches");
    if (status == SHOAL_OK)
        status = base_alloc(&in.order, count, sizeof *in.order, "a list of patches");
    if (status == SHOAL_OK)
        status =
            data_buffer_reserve(rows, count * (size_t)data_patch_columns(options) * shoal_type_size(options->type));
    if (status == SHOAL_OK)
        status = cut_all(&in);
    if (status == SHOAL_OK)
        rows->size = count * (size_t)data_patch_columns(options) * shoal_type_size(options->type);
    base_free(&in.scratch);
    base_free(&in.order);
    base_free(&in.draws);
    base_free(&in.files);
    return status;
}

void data_patch_report_release(data_patch_report *report)
{
    for (int64_t i = 0; i < report->why_count; i++)
        base_free(&report->why[i]);
    base_free(&report->why);
    report->why_count = 0;
}
