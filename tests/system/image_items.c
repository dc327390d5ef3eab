/* Makes pictures ready, for test_images.py:
 *
 *     image_items HEIGHTxWIDTH tf|antialias raw|jpeg QUALITY fixed|best 444|420 upright|as-is FILE...
 *
 * writes the item of each file to FILE.item, or what is wrong with it to FILE.why. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/memory.h"
#include "data/image/image_prepare.h"

static unsigned char *read_file(const char *path, size_t *size)
{
    enum { MOST = 1 << 26 };
    char *bytes = NULL;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || base_read_whole(&bytes, size, file, MOST, path) < 0) {
        fprintf(stderr, "%s: can't be read\n", path);
        exit(2);
    }
    close(file);
    return (unsigned char *)bytes;
}

static void write_beside(const char *path, const char *ending, const void *bytes, size_t size)
{
    char name[4096];
    snprintf(name, sizeof name, "%s.%s", path, ending);
    FILE *stream = fopen(name, "wb");
    if (!stream || fwrite(bytes, 1, size, stream) != size || fclose(stream) != 0) {
        perror(name);
        exit(2);
    }
}

int main(int argc, char **argv)
{
    data_image_recipe recipe = data_image_recipe_default;
    data_image_maker *maker = NULL;
    if (argc < 9 || sscanf(argv[1], "%dx%d", &recipe.height, &recipe.width) != 2 || data_image_maker_new(&maker) < 0)
        return 2;
    recipe.resize = strcmp(argv[2], "tf") == 0 ? DATA_IMAGE_TF : DATA_IMAGE_ANTIALIAS;
    recipe.encode = strcmp(argv[3], "raw") == 0 ? DATA_IMAGE_RAW : DATA_IMAGE_JPEG;
    recipe.quality = atoi(argv[4]);
    recipe.huffman = strcmp(argv[5], "fixed") == 0 ? DATA_IMAGE_FIXED : DATA_IMAGE_BEST;
    recipe.chroma = strcmp(argv[6], "444") == 0 ? DATA_IMAGE_444 : DATA_IMAGE_420;
    recipe.orient = strcmp(argv[7], "upright") == 0;
    for (int i = 8; i < argc; i++) {
        size_t size = 0;
        data_image_item item;
        unsigned char *bytes = read_file(argv[i], &size);
        int status = data_image_prepare(&item, maker, &recipe, bytes, size, argv[i]);
        if (status == SHOAL_OK)
            write_beside(argv[i], "item", item.bytes, item.size);
        else
            write_beside(argv[i], "why", shoal_error(), strlen(shoal_error()));
        base_free(&bytes);
    }
    data_image_maker_free(&maker);
    return 0;
}
