/* The file of a whitening.  See whitening.h. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/format/safetensors.h"
#include "whitening.h"

static const char *const method_names[] = {"none", "zca", "pca"};

int data_whitening_save(const data_whitening *how, const char *path)
{
    const double range[] = {how->low, how->high, how->middle, how->reach};
    char size[24], channels[24], epsilon[40];
    const data_tensor tensors[] = {
        {.name = "mean", .type = SHOAL_FLOAT64, .rank = 1, .shape = {how->columns}, .values = how->mean},
        {.name = "matrix",
         .type = SHOAL_FLOAT64,
         .rank = 2,
         .shape = {how->columns, how->columns},
         .values = how->matrix},
        {.name = "range", .type = SHOAL_FLOAT64, .rank = 1, .shape = {4}, .values = range},
    };
    const data_metadata metadata[] = {
        {"kind", "whitening"},  {"method", method_names[how->whiten]},      {"size", size},
        {"channels", channels}, {"centre", how->centre ? "true" : "false"}, {"epsilon", epsilon},
    };
    snprintf(size, sizeof size, "%" PRId64, how->size);
    snprintf(channels, sizeof channels, "%" PRId64, how->channels);
    snprintf(epsilon, sizeof epsilon, "%.17g", how->epsilon);
    return data_safetensors_write(path, tensors, how->range ? 3 : 2, metadata, sizeof metadata / sizeof metadata[0]);
}

/* A whole number of the metadata between 1 and 2^20; 0 when it is none. */
static int64_t whole(const data_tensors *file, const char *key)
{
    const char *text = data_safetensors_metadata(file, key);
    char *end = NULL;
    long long value = text ? strtoll(text, &end, 10) : 0;
    return text && *text && *end == '\0' && value >= 1 && value <= 1 << 20 ? (int64_t)value : 0;
}

static bool says(const data_tensors *file, const char *key, const char *text)
{
    const char *value = data_safetensors_metadata(file, key);
    return value && strcmp(value, text) == 0;
}

/* Copies a tensor of float64 with just this shape; all of its values are finite. */
static int copy_tensor(double *out, const data_tensors *file, const char *name, int64_t count, const char *path)
{
    const data_tensor *tensor = data_safetensors_find(file, name);
    if (!tensor || tensor->type != SHOAL_FLOAT64 || tensor->bytes != (size_t)count * sizeof *out)
        return shoal_fail(SHOAL_INVALID, "%s: no tensor '%s' of %lld float64 in it, as a whitening has", path, name,
                          (long long)count);
    int status = data_safetensors_copy(out, file, tensor, path);
    for (int64_t i = 0; i < count && status == SHOAL_OK; i++)
        if (!isfinite(out[i]))
            return shoal_fail(SHOAL_INVALID, "%s: value %lld of its tensor '%s' is not finite", path, (long long)i + 1,
                              name);
    return status;
}

static int read_metadata(data_whitening *out, const data_tensors *file, const char *path)
{
    bool zca = says(file, "method", "zca"), pca = says(file, "method", "pca");
    out->size = whole(file, "size");
    out->channels = whole(file, "channels");
    out->columns = out->size * out->size * out->channels;
    out->centre = says(file, "centre", "true");
    out->whiten = zca ? DATA_WHITEN_ZCA : DATA_WHITEN_PCA;
    if (!says(file, "kind", "whitening") || (!zca && !pca) || (out->channels != 1 && out->channels != 3) ||
        out->columns < 1 || out->columns > DATA_WHITEN_COLUMNS_MOST)
        return shoal_fail(SHOAL_INVALID, "%s: not a whitening as --save-whitening writes it", path);
    return SHOAL_OK;
}

int data_whitening_load(data_whitening *out, const char *path)
{
    data_tensors *file = NULL;
    double range[4] = {0};
    *out = (data_whitening){0};
    int status = data_safetensors_open(&file, path);
    if (status < 0)
        return status;
    status = read_metadata(out, file, path);
    const size_t columns = (size_t)out->columns;
    if (status == SHOAL_OK)
        status = base_alloc(&out->mean, columns, sizeof *out->mean, path);
    if (status == SHOAL_OK)
        status = copy_tensor(out->mean, file, "mean", out->columns, path);
    if (status == SHOAL_OK)
        status = base_alloc(&out->matrix, columns * columns, sizeof *out->matrix, path);
    if (status == SHOAL_OK)
        status = copy_tensor(out->matrix, file, "matrix", out->columns * out->columns, path);
    if (status == SHOAL_OK && data_safetensors_find(file, "range")) {
        status = copy_tensor(range, file, "range", 4, path);
        out->range = true;
        out->low = range[0];
        out->high = range[1];
        out->middle = range[2];
        out->reach = range[3];
        if (status == SHOAL_OK && !(out->reach > 0 && out->low < out->high))
            status = shoal_fail(SHOAL_INVALID, "%s: its tensor 'range' is not a range", path);
    }
    data_safetensors_close(&file);
    if (status < 0)
        data_whitening_release(out);
    return status;
}
