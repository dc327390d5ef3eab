/* JPEG files in memory.  See image_encode.h.  libjpeg leaves by longjmp, so what must survive it is in the writer. */
#include "image_encode.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

#include "base/memory.h"
#include "image_codes.h"
#include "image_huffman.h"

struct data_jpeg_writer {
    struct jpeg_error_mgr errors; /* first: libjpeg hands out pointers to it */
    jmp_buf leave;
    struct jpeg_compress_struct jpeg;
    struct jpeg_destination_mgr out;
    unsigned char *bytes;
    size_t room;
    int status; /* of a failure that has its message already */
    char reason[JMSG_LENGTH_MAX];
};

static void on_error(j_common_ptr jpeg)
{
    data_jpeg_writer *writer = (data_jpeg_writer *)jpeg->err;
    jpeg->err->format_message(jpeg, writer->reason);
    longjmp(writer->leave, 1);
}

static void on_message(j_common_ptr jpeg, int level)
{
    (void)jpeg;
    (void)level;
}

/* ---- where the bytes go ------------------------------------------------------------------------------------------ */

/* Makes the buffer twice as large; libjpeg writes behind the first `used` bytes. */
static void grow(data_jpeg_writer *writer, size_t used)
{
    enum { FIRST = 1 << 16 };
    const size_t room = writer->room ? 2 * writer->room : FIRST;
    writer->status = base_grow(&writer->bytes, writer->room, room, 1, "an image");
    if (writer->status < 0)
        longjmp(writer->leave, 1);
    writer->room = room;
    writer->out.next_output_byte = writer->bytes + used;
    writer->out.free_in_buffer = room - used;
}

static void on_start(j_compress_ptr jpeg)
{
    data_jpeg_writer *writer = jpeg->client_data;
    writer->out.next_output_byte = writer->bytes;
    writer->out.free_in_buffer = writer->room;
    if (!writer->bytes)
        grow(writer, 0);
}

static boolean on_full(j_compress_ptr jpeg)
{
    data_jpeg_writer *writer = jpeg->client_data;
    grow(writer, writer->room);
    return TRUE;
}

static void on_end(j_compress_ptr jpeg)
{
    (void)jpeg;
}

/* ---- settings ---------------------------------------------------------------------------------------------------- */

static void create(data_jpeg_writer *writer)
{
    struct jpeg_compress_struct *jpeg = &writer->jpeg;
    jpeg->err = jpeg_std_error(&writer->errors);
    writer->errors.error_exit = on_error;
    writer->errors.emit_message = on_message;
    jpeg->client_data = writer;
    jpeg_create_compress(jpeg);
    writer->out = (struct jpeg_destination_mgr){
        .init_destination = on_start, .empty_output_buffer = on_full, .term_destination = on_end};
    jpeg->dest = &writer->out;
}

static void set_table(j_compress_ptr jpeg, JHUFF_TBL **out, const data_huffman_table *table)
{
    if (!*out)
        *out = jpeg_alloc_huff_table((j_common_ptr)jpeg);
    memcpy((*out)->bits, table->counts, sizeof table->counts);
    memcpy((*out)->huffval, table->values, sizeof table->values);
    (*out)->sent_table = FALSE;
}

/* Samples of luminance for one of colour, across and down. */
static int factor_of(const data_image_recipe *recipe)
{
    return recipe->chroma == DATA_IMAGE_420 ? 2 : 1;
}

static void set(j_compress_ptr jpeg, const data_image_recipe *recipe, const data_huffman_set *tables)
{
    jpeg->image_height = (JDIMENSION)recipe->height;
    jpeg->image_width = (JDIMENSION)recipe->width;
    jpeg->input_components = 3;
    jpeg->in_color_space = JCS_RGB;
    jpeg_set_defaults(jpeg);
    jpeg_set_quality(jpeg, recipe->quality, TRUE);
    jpeg->dct_method = JDCT_ISLOW;
    jpeg->comp_info[0].h_samp_factor = jpeg->comp_info[0].v_samp_factor = factor_of(recipe);
    for (int i = 0; i < 2; i++) {
        set_table(jpeg, &jpeg->dc_huff_tbl_ptrs[i], &tables->dc[i]);
        set_table(jpeg, &jpeg->ac_huff_tbl_ptrs[i], &tables->ac[i]);
    }
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static void write_file(data_jpeg_writer *writer, const data_image_recipe *recipe, const data_huffman_set *tables,
                       const unsigned char *pixels)
{
    j_compress_ptr jpeg = &writer->jpeg;
    set(jpeg, recipe, tables);
    jpeg_start_compress(jpeg, TRUE);
    while (jpeg->next_scanline < jpeg->image_height) {
        JSAMPROW row = (JSAMPROW)(uintptr_t)(pixels + 3 * (size_t)jpeg->next_scanline * jpeg->image_width);
        (void)jpeg_write_scanlines(jpeg, &row, 1);
    }
    jpeg_finish_compress(jpeg);
}

static size_t size_of(const data_jpeg_writer *writer)
{
    return writer->room - writer->out.free_in_buffer;
}

/* The tables that are the best for what was written with others. */
static int find_best(data_huffman_set *best, data_jpeg_writer *writer, const data_image_recipe *recipe,
                     const data_huffman_set *tables, const char *name)
{
    const int factor = factor_of(recipe), side = DCTSIZE * factor;
    const int64_t units = (int64_t)((recipe->height + side - 1) / side) * ((recipe->width + side - 1) / side);
    data_huffman_tallies tallies = {0};
    if (!data_huffman_count(&tallies, tables, writer->bytes, size_of(writer), units, factor * factor))
        return shoal_fail(SHOAL_SYSTEM, "%s: the JPEG library does not write the baseline JPEG that it was asked for",
                          name);
    data_huffman_shortest(best, &tallies);
    return SHOAL_OK;
}

/* Everything that may longjmp.  No local of this function changes after setjmp. */
static int encode(data_jpeg_writer *writer, const data_image_recipe *recipe, const unsigned char *pixels,
                  const char *name)
{
    j_compress_ptr jpeg = &writer->jpeg;
    const data_huffman_set *tables =
        recipe->quality >= DATA_HUFFMAN_FINE_FROM ? &data_huffman_fine : &data_huffman_coarse;
    if (setjmp(writer->leave)) {
        if (writer->status < 0)
            return writer->status;
        if (jpeg->err->msg_code == JERR_OUT_OF_MEMORY)
            return shoal_fail(SHOAL_MEMORY, "%s: out of memory for an image", name);
        return shoal_fail(SHOAL_INVALID, "%s: can't be made a JPEG image: %s", name, writer->reason);
    }
    if (!jpeg->mem)
        create(writer);
    write_file(writer, recipe, tables, pixels);
    if (recipe->huffman == DATA_IMAGE_FIXED)
        return SHOAL_OK;
    data_huffman_set best;
    writer->status = find_best(&best, writer, recipe, tables, name);
    if (writer->status == SHOAL_OK)
        write_file(writer, recipe, &best, pixels);
    return writer->status;
}

int data_jpeg_encode(const unsigned char **bytes, size_t *size, data_jpeg_writer *writer,
                     const data_image_recipe *recipe, const unsigned char *pixels, const char *name)
{
    writer->status = SHOAL_OK;
    int status = encode(writer, recipe, pixels, name);
    if (status < 0) /* perhaps it is half made */
        jpeg_destroy_compress(&writer->jpeg);
    *bytes = writer->bytes;
    *size = size_of(writer);
    return status;
}

int data_jpeg_writer_new(data_jpeg_writer **out)
{
    return base_alloc(out, 1, sizeof **out, "an image");
}

void data_jpeg_writer_free(data_jpeg_writer **writer)
{
    if (*writer) {
        jpeg_destroy_compress(&(*writer)->jpeg);
        base_free(&(*writer)->bytes);
    }
    base_free(writer);
}
