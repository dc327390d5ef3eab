/* How --picture draws rows as small images.  See picture_shape.h. */
#include "picture_shape.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/option.h"

static const shoal_option rows[] = {
    {"picture-shape", 0, SHOAL_OPTION_TEXT, offsetof(data_picture_settings, shape), "HxW",
     .help = "height and width of one image; square when left out and the columns allow it"},
    {"picture-columns", 0, SHOAL_OPTION_COUNT, offsetof(data_picture_settings, columns), "N",
     .help = "images side by side; about as many as lines when left out", .least = 1},
    {0},
};
const shoal_option *const data_picture_options = rows;

int data_picture_check(const data_picture_settings *settings, const char *path)
{
    if (!path && (settings->shape || settings->columns))
        return shoal_fail(SHOAL_USAGE, "--picture-shape and --picture-columns say how --picture FILE.png is drawn");
    return SHOAL_OK;
}

static int find_square(data_sheet *sheet, int64_t columns)
{
    int64_t side = (int64_t)llrint(sqrt((double)columns));
    sheet->height = sheet->width = side;
    if (side * side == columns)
        return SHOAL_OK;
    return shoal_fail(SHOAL_USAGE, "--picture needs --picture-shape HxW: %" PRId64 " columns make no square", columns);
}

int data_picture_find(data_sheet *sheet, const data_picture_settings *settings, int64_t columns)
{
    const char *text = settings->shape;
    char height[24] = "";
    sheet->columns = settings->columns;
    if (!text)
        return find_square(sheet, columns);
    size_t length = strcspn(text, "xX");
    if (text[length])
        snprintf(height, sizeof height, "%.*s", (int)(length < 20 ? length : 20), text);
    if (!text[length] || !base_parse_count(&sheet->height, height) ||
        !base_parse_count(&sheet->width, text + length + 1) || sheet->height < 1 || sheet->width < 1)
        return shoal_fail(SHOAL_USAGE, "--picture-shape: %s is not a height and a width such as 28x28", text);
    if (sheet->height > columns || sheet->width != columns / sheet->height || columns % sheet->height != 0)
        return shoal_fail(SHOAL_USAGE, "--picture-shape: %s does not make the %" PRId64 " columns of the data", text,
                          columns);
    return SHOAL_OK;
}
