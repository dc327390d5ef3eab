/* What it takes to make pictures ready:
 *
 *     bench_image_rates REPETITIONS WAY FILE...
 *
 * runs the files REPETITIONS times through one way and prints the least processor time of a pass, in microseconds for a
 * file, and the mean bytes of an item.  Ways: "decode", all of each picture to RGB by libjpeg-turbo and no more (what
 * the others are compared with); "raw", "fixed", "best", "fixed420", "best420"; "antialias", raw. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <jpeglib.h>

#include "base/io.h"
#include "data/image/image_prepare.h"

typedef struct file {
    char *bytes;
    size_t size;
    const char *path;
} file;

static double processor_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static file read_file(const char *path)
{
    enum { MOST = 1 << 26 };
    file out = {.path = path};
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0 || base_read_whole(&out.bytes, &out.size, descriptor, MOST, path) < 0) {
        fprintf(stderr, "%s: can't be read\n", path);
        exit(1);
    }
    close(descriptor);
    return out;
}

/* Rows go into one buffer, again and again: nothing is kept. */
static void decode(struct jpeg_decompress_struct *jpeg, const file *in, unsigned char *rows[], int count)
{
    jpeg_mem_src(jpeg, (const unsigned char *)in->bytes, (unsigned long)in->size);
    jpeg_read_header(jpeg, TRUE);
    jpeg->out_color_space = JCS_RGB;
    jpeg->dct_method = JDCT_ISLOW;
    jpeg_start_decompress(jpeg);
    while (jpeg->output_scanline < jpeg->output_height)
        jpeg_read_scanlines(jpeg, rows, (JDIMENSION)count);
    jpeg_finish_decompress(jpeg);
}

static double pass_decoding(const file *files, int count)
{
    enum { ROWS = 4, WIDEST = 65500 };
    static unsigned char memory[ROWS][3 * WIDEST];
    unsigned char *rows[ROWS];
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    for (int i = 0; i < ROWS; i++)
        rows[i] = memory[i];
    const double began = processor_seconds();
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&jpeg);
    for (int i = 0; i < count; i++)
        decode(&jpeg, &files[i], rows, ROWS);
    jpeg_destroy_decompress(&jpeg);
    return processor_seconds() - began;
}

static double pass_preparing(const data_image_recipe *recipe, const file *files, int count, double *bytes)
{
    data_image_maker *maker = NULL;
    data_image_item item = {0};
    const double began = processor_seconds();
    int status = data_image_maker_new(&maker);
    *bytes = 0;
    for (int i = 0; status == SHOAL_OK && i < count; i++) {
        status = data_image_prepare(&item, maker, recipe, files[i].bytes, files[i].size, files[i].path);
        *bytes += (double)item.size;
    }
    data_image_maker_free(&maker);
    if (status < 0) {
        fprintf(stderr, "%s\n", shoal_error());
        exit(1);
    }
    return processor_seconds() - began;
}

static data_image_recipe recipe_of(const char *way)
{
    data_image_recipe recipe = data_image_recipe_default;
    if (strcmp(way, "raw") == 0 || strcmp(way, "antialias") == 0)
        recipe.encode = DATA_IMAGE_RAW;
    if (strcmp(way, "antialias") == 0)
        recipe.resize = DATA_IMAGE_ANTIALIAS;
    if (strncmp(way, "best", 4) == 0)
        recipe.huffman = DATA_IMAGE_BEST;
    if (strstr(way, "420"))
        recipe.chroma = DATA_IMAGE_420;
    return recipe;
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: bench_image_rates REPETITIONS WAY FILE...\n");
        return 1;
    }
    const int repetitions = atoi(argv[1]), count = argc - 3;
    const data_image_recipe recipe = recipe_of(argv[2]);
    file *files = malloc((size_t)count * sizeof *files);
    double least = 0, bytes = 0;
    for (int i = 0; i < count; i++)
        files[i] = read_file(argv[3 + i]);
    for (int i = 0; i < repetitions; i++) {
        double seconds = strcmp(argv[2], "decode") == 0 ? pass_decoding(files, count)
                                                        : pass_preparing(&recipe, files, count, &bytes);
        least = i == 0 || seconds < least ? seconds : least;
    }
    printf("%.1f %.1f\n", 1e6 * least / count, bytes / count);
    return 0;
}
