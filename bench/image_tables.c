/* Makes the Huffman tables in src/data/image/image_huffman.c from photographs:
 *
 *     bench_image_tables FOLDER [EVERY [FIRST]] > src/data/image/image_huffman.c
 *
 * prints tables for the codes that the items of all photographs in FOLDER have, or of every EVERY-th from the FIRST on:
 * items of the default recipe, and of quality 70.  Those in the repository are of every second one of 200 photographs
 * of flowers, so that the others can show what they are worth.  Every code that may occur counts at least once, so that
 * any image can be written; clang-format does the rest. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jpeglib.h>

#include "base/io.h"
#include "base/memory.h"
#include "data/image/image_list.h"
#include "data/image/image_prepare.h"

enum { SYMBOLS = 256, LONGEST = 16, DEEPEST = 64 };

typedef struct tallies {
    long dc[2][SYMBOLS], ac[2][SYMBOLS]; /* of luminance and chrominance */
} tallies;

static int bits_of(int value)
{
    int bits = 0;
    for (value = abs(value); value; value >>= 1)
        bits++;
    return bits;
}

static void count_block(tallies *in, int kind, const JCOEF *block, int *last_dc)
{
    static const int order[DCTSIZE2] = {0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,
                                        12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28,
                                        35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
                                        58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};
    int zeros = 0;
    in->dc[kind][bits_of(block[0] - *last_dc)]++;
    *last_dc = block[0];
    for (int i = 1; i < DCTSIZE2; i++) {
        if (block[order[i]] == 0) {
            zeros++;
            continue;
        }
        for (; zeros > 15; zeros -= 16)
            in->ac[kind][0xf0]++;
        in->ac[kind][zeros << 4 | bits_of(block[order[i]])]++;
        zeros = 0;
    }
    if (zeros)
        in->ac[kind][0]++;
}

static void count_item(tallies *in, const data_image_item *item)
{
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&jpeg);
    jpeg_mem_src(&jpeg, item->bytes, (unsigned long)item->size);
    jpeg_read_header(&jpeg, TRUE);
    jvirt_barray_ptr *coefficients = jpeg_read_coefficients(&jpeg);
    for (int c = 0; c < jpeg.num_components; c++) {
        const jpeg_component_info *component = &jpeg.comp_info[c];
        int last_dc = 0;
        for (JDIMENSION y = 0; y < component->height_in_blocks; y++) {
            JBLOCKARRAY rows = jpeg.mem->access_virt_barray((j_common_ptr)&jpeg, coefficients[c], y, 1, FALSE);
            for (JDIMENSION x = 0; x < component->width_in_blocks; x++)
                count_block(in, c > 0, rows[0][x], &last_dc);
        }
    }
    jpeg_destroy_decompress(&jpeg);
}

static unsigned char *read_file(const char *path, size_t *size)
{
    enum { MOST = 1 << 26 };
    char *bytes = NULL;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || base_read_whole(&bytes, size, file, MOST, path) < 0) {
        fprintf(stderr, "%s: can't be read\n", path);
        exit(1);
    }
    close(file);
    return (unsigned char *)bytes;
}

static void count_all(tallies *in, const data_image_list *list, int64_t every, int64_t first, int quality)
{
    data_image_maker *maker = NULL;
    data_image_recipe recipe = data_image_recipe_default;
    recipe.huffman = DATA_IMAGE_BEST;
    recipe.quality = quality;
    int status = data_image_maker_new(&maker);
    for (int64_t i = first; status == SHOAL_OK && i < list->count; i += every) {
        size_t size = 0;
        data_image_item item;
        unsigned char *bytes = read_file(list->paths[i], &size);
        status = data_image_prepare(&item, maker, &recipe, bytes, size, list->paths[i]);
        if (status == SHOAL_OK)
            count_item(in, &item);
        base_free(&bytes);
    }
    data_image_maker_free(&maker);
    if (status < 0) {
        fprintf(stderr, "%s\n", shoal_error());
        exit(1);
    }
}

/* ---- codes ------------------------------------------------------------------------------------------------------- */

typedef struct node {
    double count; /* 0: it is part of another */
    int parent;
} node;

/* The two least of the nodes that are not part of another, the last of equal ones first. */
static void find_least(const node *nodes, int count, int least[2])
{
    least[0] = least[1] = -1;
    for (int i = 0; i < count; i++) {
        if (nodes[i].count <= 0)
            continue;
        if (least[0] < 0 || nodes[i].count <= nodes[least[0]].count) {
            least[1] = least[0];
            least[0] = i;
        } else if (least[1] < 0 || nodes[i].count <= nodes[least[1]].count)
            least[1] = i;
    }
}

/* How many codes there are of each length (ITU T.81, K.2); one of the longest, which would be all ones, is left out. */
static void find_lengths(int lengths[DEEPEST], const long counts[SYMBOLS])
{
    node nodes[2 * SYMBOLS + 2] = {0};
    int used = SYMBOLS + 1, least[2];
    for (int i = 0; i < SYMBOLS; i++)
        nodes[i].count = (double)counts[i];
    nodes[SYMBOLS].count = 1e-3;
    for (find_least(nodes, used, least); least[1] >= 0; find_least(nodes, used, least)) {
        nodes[used].count = nodes[least[0]].count + nodes[least[1]].count;
        nodes[least[0]].count = nodes[least[1]].count = 0;
        nodes[least[0]].parent = nodes[least[1]].parent = used++;
    }
    for (int i = 0; i <= SYMBOLS; i++) {
        int length = 0;
        for (int at = i; nodes[at].parent; at = nodes[at].parent)
            length++;
        lengths[length] += length > 0;
    }
    for (int i = DEEPEST - 1; i > LONGEST; i--)
        while (lengths[i] > 0) { /* two codes of this length: one moves up, the other below a shorter one */
            int above = i - 2;
            while (lengths[above] == 0)
                above--;
            lengths[i] -= 2;
            lengths[i - 1]++;
            lengths[above + 1] += 2;
            lengths[above]--;
        }
    int longest = LONGEST;
    while (lengths[longest] == 0)
        longest--;
    lengths[longest]--;
}

static void print_numbers(const char *name, const int *numbers, int count)
{
    printf("     .%s = {", name);
    for (int i = 0; i < count; i++)
        printf("%s%d", i == 0 ? "" : i % 24 == 0 ? ",\n                " : ", ", numbers[i]);
    printf("}");
}

static void print_table(const long counts[SYMBOLS])
{
    int lengths[DEEPEST] = {0}, values[SYMBOLS], count = 0;
    find_lengths(lengths, counts);
    for (int i = 0; i < SYMBOLS; i++)
        if (counts[i] > 0)
            values[count++] = i;
    for (int i = 1; i < count; i++) /* by falling counts */
        for (int at = i; at > 0 && counts[values[at - 1]] < counts[values[at]]; at--) {
            int other = values[at];
            values[at] = values[at - 1];
            values[at - 1] = other;
        }
    printf("    {\n");
    print_numbers("counts", lengths, LONGEST + 1);
    printf(",\n");
    print_numbers("values", values, count);
    printf(",\n    },\n");
}

/* A set of tables, from the codes at some quality. */
static void print_set(const char *name, const data_image_list *list, int64_t every, int64_t first, int quality)
{
    tallies all = {0};
    for (int kind = 0; kind < 2; kind++) {
        for (int bits = 0; bits < 12; bits++)
            all.dc[kind][bits] = 1;
        all.ac[kind][0] = all.ac[kind][0xf0] = 1;
        for (int run = 0; run < 16; run++)
            for (int bits = 1; bits < 11; bits++)
                all.ac[kind][run << 4 | bits] = 1;
    }
    count_all(&all, list, every, first, quality);
    printf("\nconst data_huffman_set %s = {\n.dc = {\n", name);
    print_table(all.dc[0]);
    print_table(all.dc[1]);
    printf("},\n.ac = {\n");
    print_table(all.ac[0]);
    print_table(all.ac[1]);
    printf("},\n};\n");
}

int main(int argc, char **argv)
{
    data_image_list list = {0};
    if (argc < 2 || data_image_list_add(&list, argv[1]) < 0) {
        fprintf(stderr, "%s\n", argc < 2 ? "usage: bench_image_tables FOLDER [EVERY [FIRST]]" : shoal_error());
        return 1;
    }
    const int64_t every = argc > 2 ? atoll(argv[2]) : 1, first = argc > 3 ? atoll(argv[3]) : 0;
    printf("/* Made by bench/image_tables.c, which says how; see image_huffman.h. */\n#include \"image_huffman.h\"\n");
    print_set("data_huffman_fine", &list, every, first, 95);
    print_set("data_huffman_coarse", &list, every, first, 70);
    data_image_list_release(&list);
    return 0;
}
