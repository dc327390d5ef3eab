/* How --picture draws rows as small images.  See picture_shape.h. */
#include "picture_shape.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/option.h"
#include "data/data_internal.h"

static const shoal_option rows[] = {
    {"picture-shape", 0, SHOAL_OPTION_TEXT, offsetof(data_picture_settings, shape), "HxW[x3]",
     .help =
         "height and width of one image; x3 for red, green and blue of each pixel (default: the shape of the images "
         "in the data, or a square, or the rectangle nearest to one)"},
    {"picture-columns", 0, SHOAL_OPTION_COUNT, offsetof(data_picture_settings, columns), "N",
     .help = "number of images in a row (default: about as many as there are rows)", .least = 1},
    {"picture-scale", 0, SHOAL_OPTION_COUNT, offsetof(data_picture_settings, scale), "N",
     .help = "width in pixels of each value (default: such that images are at least 32 pixels wide or "
             "high)",
     .least = 1, .most = 1000},
    {0},
};
const shoal_option *const data_picture_options = rows;

/* Reads "28x28" or "8x8x3". */
static int read_shape(data_sheet *sheet, const char *text)
{
    int64_t part[3] = {0, 0, 1};
    const char *at = text;
    bool more = true;
    int count = 0;
    for (; more && count < 3; count++) {
        char number[24] = "";
        size_t length = strcspn(at, "xX");
        if (length < sizeof number)
            memcpy(number, at, length);
        if (!base_parse_count(&part[count], number) || part[count] < 1)
            break;
        more = at[length] != '\0';
        at += length + more;
    }
    if (count < 2 || more || *at != '\0' || (part[2] != 1 && part[2] != 3))
        return shoal_fail(SHOAL_USAGE, "--picture-shape: %s is not a height and a width such as 28x28 or 8x8x3", text);
    sheet->height = part[0];
    sheet->width = part[1];
    sheet->channels = (int)part[2];
    return SHOAL_OK;
}

int data_picture_check(const data_picture_settings *settings, const char *path)
{
    data_sheet sheet;
    if (!path && (settings->shape || settings->columns || settings->scale))
        return shoal_fail(SHOAL_USAGE,
                          "--picture-shape, --picture-columns and --picture-scale change how --picture FILE is drawn: "
                          "add --picture FILE");
    return settings->shape ? read_shape(&sheet, settings->shape) : SHOAL_OK;
}

/* Whether images of the sheet's height and width, in grey or in colour, have that many values; sets the channels. */
static bool makes(data_sheet *sheet, int64_t columns)
{
    if (sheet->height > columns || columns % sheet->height != 0)
        return false;
    int64_t across = columns / sheet->height;
    if (sheet->channels == 3)
        return sheet->width <= across && across == 3 * sheet->width;
    if (sheet->width <= across && across == 3 * sheet->width)
        sheet->channels = 3; /* 8x8 is enough to say of 192 columns */
    return sheet->width == across || sheet->channels == 3;
}

/* Whether the data say that rows of so many columns are images. */
static bool is_image(data_sheet *sheet, int64_t columns, const shoal_data *data)
{
    return data && data_shape_image(&sheet->height, &sheet->width, &sheet->channels, data) &&
           sheet->height * sheet->width * sheet->channels == columns;
}

/* Fewer pixels in colour are more likely a table. */
enum { COLOUR_SIDE_LEAST = 4 };

static bool is_square(data_sheet *sheet, int64_t columns, int channels)
{
    int64_t side = (int64_t)llrint(sqrt((double)(columns / channels)));
    sheet->height = sheet->width = side;
    sheet->channels = channels;
    return columns % channels == 0 && side * side == columns / channels && (channels == 1 || side >= COLOUR_SIDE_LEAST);
}

/* The rectangle nearest to a square; a strip of one line where all are much wider than high. */
static void find_rectangle(data_sheet *sheet, int64_t columns)
{
    enum { TOO_WIDE = 8 };
    int64_t height = (int64_t)sqrt((double)columns);
    while (height > 1 && columns % height != 0)
        height--;
    if (columns / height / height >= TOO_WIDE)
        height = 1;
    sheet->height = height;
    sheet->width = columns / height;
    sheet->channels = 1;
    sheet->guessed = true;
}

int data_picture_find(data_sheet *sheet, const data_picture_settings *settings, int64_t columns, const shoal_data *data)
{
    enum { PIXELS_LEAST = 32 };
    int status = SHOAL_OK;
    *sheet = (data_sheet){.columns = settings->columns};
    if (settings->shape) {
        status = read_shape(sheet, settings->shape);
        if (status == SHOAL_OK && !makes(sheet, columns))
            status = shoal_fail(SHOAL_USAGE, "--picture-shape: %s does not make the %" PRId64 " columns of the data",
                                settings->shape, columns);
    } else if (!is_image(sheet, columns, data) && !is_square(sheet, columns, 1) && !is_square(sheet, columns, 3)) {
        find_rectangle(sheet, columns);
    }
    if (status < 0)
        return status;
    int64_t side = sheet->height > sheet->width ? sheet->height : sheet->width;
    sheet->scale = settings->scale ? settings->scale : (PIXELS_LEAST + side - 1) / side;
    return SHOAL_OK;
}
