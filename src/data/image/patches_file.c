/* Patches of images as a file.  See patches_file.h. */
#include "patches_file.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "data/array.h"
#include "base/option.h"
#include "base/text.h"

/* ---- what was asked for ------------------------------------------------------------------------------------------ */

/* The option is a text so that one that would do nothing can be told from one that was left out. */
static int read_epsilon(double *out, const data_patches_request *request)
{
    *out = 0.1;
    if (!request->epsilon)
        return SHOAL_OK;
    if (!request->whiten && !request->whiten_pca)
        return shoal_fail(SHOAL_USAGE, "--epsilon needs --whiten or --whiten-pca");
    if (base_parse_real(out, request->epsilon) && isfinite(*out) && *out >= 0)
        return SHOAL_OK;
    return shoal_fail(SHOAL_USAGE, "--epsilon: '%s' is not a number of 0 or more", request->epsilon);
}

static int read_preparation(data_whitening *how, const data_patches_request *request)
{
    if (request->whiten && request->whiten_pca)
        return shoal_fail(SHOAL_USAGE, "--whiten and --whiten-pca cannot be combined");
    how->whiten = request->whiten ? DATA_WHITEN_ZCA : request->whiten_pca ? DATA_WHITEN_PCA : DATA_WHITEN_NOT;
    if (request->use &&
        (how->whiten || request->centre || request->normalise || request->range || request->save || request->epsilon))
        return shoal_fail(SHOAL_USAGE,
                          "--use-whitening decides everything that is done to the patches: leave out --whiten, "
                          "--whiten-pca, --epsilon, --centre, --normalise, --range and --save-whitening");
    if (request->use)
        return data_whitening_load(how, request->use);
    if (request->save && !how->whiten)
        return shoal_fail(SHOAL_USAGE, "--save-whitening needs --whiten or --whiten-pca");
    if (request->normalise && request->range)
        return shoal_fail(SHOAL_USAGE,
                          "--normalise and --range: --normalise means 0.1:0.9; for another range use --centre --range");
    how->centre = request->centre || request->normalise;
    how->range = request->range || request->normalise;
    how->low = 0.1;
    how->high = 0.9;
    if (request->range && !base_parse_range(&how->low, &how->high, request->range))
        return shoal_fail(SHOAL_USAGE, "--range: '%s' is not a range LOW:HIGH, such as 0.1:0.9", request->range);
    return read_epsilon(&how->epsilon, request);
}

static int check_patch_shape(data_patches *self)
{
    const int64_t size = self->options.size, channels = self->options.colour ? 3 : 1;
    data_whitening *how = &self->how;
    if (self->request->use && (how->size != size || how->channels != channels))
        return shoal_fail(SHOAL_USAGE,
                          "%s is for %s patches of %" PRId64 " x %" PRId64 ": use --size %" PRId64 " and --%s",
                          self->request->use, how->channels == 3 ? "coloured" : "grey", how->size, how->size, how->size,
                          how->channels == 3 ? "colour" : "grey");
    how->size = size;
    how->channels = channels;
    if (how->whiten && data_patch_columns(&self->options) > DATA_WHITEN_COLUMNS_MOST)
        return shoal_fail(SHOAL_USAGE, "--whiten: patches of %" PRId64 " values are too long: %d are possible",
                          data_patch_columns(&self->options), DATA_WHITEN_COLUMNS_MOST);
    return SHOAL_OK;
}

/* The last word is written to: it must not be an image that was meant to be read. */
static int check_patches_target(const char *path)
{
    struct stat info;
    bool folder = stat(path, &info) == 0 && S_ISDIR(info.st_mode);
    if (!folder && data_write_check(path, NULL) == SHOAL_OK)
        return SHOAL_OK;
    return shoal_fail(SHOAL_USAGE, "%s: the last name is the file to write, and must end in " DATA_ARRAY_ENDINGS, path);
}

int data_patches_open(data_patches *self, const data_patches_request *request, const char *out)
{
    *self = (data_patches){.request = request, .out = out};
    self->options = (data_patch_options){.size = request->size,
                                         .count = request->count,
                                         .seed = (uint64_t)request->seed,
                                         .colour = request->colour,
                                         .type = request->type == 1 ? SHOAL_FLOAT64 : SHOAL_FLOAT32,
                                         .skip_broken = request->skip_broken};
    data_buffer_init(&self->rows, out, 0);
    int status = check_patches_target(out);
    if (status == SHOAL_OK)
        status = read_preparation(&self->how, request);
    return status == SHOAL_OK ? check_patch_shape(self) : status;
}

void data_patches_close(data_patches *self)
{
    data_patch_report_release(&self->report);
    data_buffer_release(&self->rows);
    data_image_list_release(&self->images);
    data_whitening_release(&self->how);
}

/* ---- the work ---------------------------------------------------------------------------------------------------- */

static int cut_patches(data_patches *self, base_pool *pool)
{
    int status = data_patches_cut(&self->rows, &self->report, (const char *const *)self->images.paths,
                                  self->images.count, &self->options, pool);
    if (status < 0 && self->report.broken && !self->options.skip_broken)
        return shoal_fail(status, "%s; --skip-broken leaves such files out", shoal_error());
    return status;
}

static int prepare_patches(data_patches *self, base_pool *pool)
{
    const data_rows rows = {self->rows.bytes, self->options.type, self->options.count,
                            data_patch_columns(&self->options)};
    if (self->how.whiten && self->options.progress)
        self->options.progress(self->options.context, "whitening", 0, 0);
    return self->request->use ? data_whitening_apply(&self->how, &rows, pool)
                              : data_whitening_learn(&self->how, &rows, pool);
}

static int write_patches(const data_patches *self)
{
    const int64_t shape[] = {self->options.count, data_patch_columns(&self->options)};
    int status = data_array_write(
        self->out, &(data_array){.values = self->rows.bytes, .type = self->options.type, .rank = 2, .shape = shape});
    if (status == SHOAL_OK && self->request->save)
        status = data_whitening_save(&self->how, self->request->save);
    return status;
}

/* A folder may hold the file that is to be written. */
static int check_apart(const data_patches *self)
{
    struct stat out, image;
    if (stat(self->out, &out) < 0 || !S_ISREG(out.st_mode))
        return SHOAL_OK;
    for (int64_t i = 0; i < self->images.count; i++)
        if (stat(self->images.paths[i], &image) == 0 && image.st_dev == out.st_dev && image.st_ino == out.st_ino)
            return shoal_fail(SHOAL_USAGE,
                              "OUT %s is one of the images, %s: an input is never overwritten; write to "
                              "another file",
                              self->out, self->images.paths[i]);
    return SHOAL_OK;
}

int data_patches_make(data_patches *self, const char *const *images, int count, int threads)
{
    base_pool *pool = NULL;
    int status = SHOAL_OK;
    for (int i = 0; status == SHOAL_OK && i < count; i++)
        status = data_image_list_add(&self->images, images[i]);
    if (status == SHOAL_OK)
        status = check_apart(self);
    if (status == SHOAL_OK)
        status = base_pool_new(&pool, threads);
    if (status == SHOAL_OK)
        status = cut_patches(self, pool);
    if (status == SHOAL_OK)
        status = prepare_patches(self, pool);
    if (status == SHOAL_OK)
        status = write_patches(self);
    base_pool_free(&pool);
    return status;
}
