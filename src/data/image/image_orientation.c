/* The orientation in the EXIF data of a JPEG (its first APP1 segment that has any) or PNG (its eXIf chunk).  It stands
 * in a small TIFF directory, in either order of bytes.  Whatever is not as it should be says nothing. */
#include "image_orientation.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "image_kind.h"

typedef struct part {
    const unsigned char *bytes;
    size_t size;
    bool big; /* the greatest byte of a number comes first */
} part;

/* The number in `length` bytes, or 0 where the part has none. */
static uint32_t number(const part *in, size_t at, size_t length)
{
    uint32_t value = 0;
    if (at > in->size || in->size - at < length)
        return 0;
    for (size_t i = 0; i < length; i++)
        value |= (uint32_t)in->bytes[at + i] << 8 * (in->big ? length - 1 - i : i);
    return value;
}

static int orientation_of_tiff(part in)
{
    enum { ENTRY = 12, ORIENTATION = 0x112, SHORT = 3 };
    if (in.size < 8 || (memcmp(in.bytes, "II*\0", 4) != 0 && memcmp(in.bytes, "MM\0*", 4) != 0))
        return 1;
    in.big = in.bytes[0] == 'M';
    const size_t directory = number(&in, 4, 4);
    const uint32_t entries = number(&in, directory, 2);
    for (size_t i = 0; i < entries; i++) {
        const size_t at = directory + 2 + i * ENTRY;
        if (at >= in.size)
            return 1;
        if (number(&in, at, 2) != ORIENTATION)
            continue;
        const uint32_t value = number(&in, at + 2, 2) == SHORT ? number(&in, at + 8, 2) : 1;
        return value >= 1 && value <= 8 ? (int)value : 1;
    }
    return 1;
}

/* Segments up to the first scan. */
static int orientation_of_jpeg(const part *in)
{
    enum { START_OF_SCAN = 0xda, APP1 = 0xe1, FILL = 0xff };
    size_t at = 2;
    while (at + 4 <= in->size && in->bytes[at] == 0xff) {
        const unsigned char marker = in->bytes[at + 1];
        const size_t length = number(in, at + 2, 2);
        if (marker == FILL) {
            at++;
            continue;
        }
        if (marker == START_OF_SCAN || length < 2 || length > in->size - at - 2)
            return 1;
        if (marker == APP1 && length >= 8 && memcmp(in->bytes + at + 4, "Exif\0\0", 6) == 0)
            return orientation_of_tiff((part){in->bytes + at + 10, length - 8, false});
        at += 2 + length;
    }
    return 1;
}

static int orientation_of_png(const part *in)
{
    enum { SIGNATURE = 8, AROUND = 12 /* of a chunk: length, name and sum */ };
    size_t at = SIGNATURE;
    while (at + AROUND <= in->size) {
        const size_t length = number(in, at, 4);
        if (length > in->size - at - AROUND)
            return 1;
        if (memcmp(in->bytes + at + 4, "eXIf", 4) == 0)
            return orientation_of_tiff((part){in->bytes + at + 8, length, false});
        at += AROUND + length;
    }
    return 1;
}

int data_image_orientation(const unsigned char *bytes, size_t size)
{
    const part file = {bytes, size, true};
    switch (data_image_kind_of(bytes, size)) {
    case DATA_IMAGE_JPEG_FILE: return orientation_of_jpeg(&file);
    case DATA_IMAGE_PNG_FILE: return orientation_of_png(&file);
    default: return 1;
    }
}
