/* What a file is by its first bytes.  See image_kind.h. */
#include "image_kind.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

/* Bytes at a place of the file; a brand is those of HEIF's family, which name themselves behind "ftyp". */
typedef struct signature {
    size_t at, length;
    const char *bytes, *name;
} signature;

static const signature signatures[] = {
    {0, 4, "GIF8", "a GIF image"},
    {8, 4, "WEBP", "a WebP image"},
    {0, 4, "II*\0", "a TIFF image"},
    {0, 4, "MM\0*", "a TIFF image"},
    {0, 4, "II+\0", "a TIFF image"},
    {0, 4, "MM\0+", "a TIFF image"},
    {4, 8, "ftypavif", "an AVIF image"},
    {4, 8, "ftypavis", "an AVIF image"},
    {4, 7, "ftyphei", "a HEIC image"},
    {4, 7, "ftyphev", "a HEIC image"},
    {4, 8, "ftypmif1", "a HEIC image"},
    {4, 8, "ftypmsf1", "a HEIC image"},
    {4, 4, "ftyp", "a video"},
    {0, 12, "\0\0\0\x0cjP  \r\n\x87\n", "a JPEG 2000 image"},
    {0, 4, "\xff\x4f\xff\x51", "a JPEG 2000 image"},
    {0, 12, "\0\0\0\x0cJXL \r\n\x87\n", "a JPEG XL image"},
    {0, 2, "\xff\x0a", "a JPEG XL image"},
    {0, 4, "8BPS", "a Photoshop document"},
    {0, 4, "\0\0\1\0", "an icon"},
    {0, 5, "%PDF-", "a PDF document"},
    {0, 4, "PK\3\4", "a ZIP archive"},
    {0, 3, "\x1f\x8b\x08", "a gzip file"},
};

static bool has(const unsigned char *head, size_t size, size_t at, const char *bytes, size_t length)
{
    return size >= at + length && memcmp(head + at, bytes, length) == 0;
}

/* The size of its header and its reserved bytes make sure: two letters might be anything. */
static bool is_bmp(const unsigned char *head, size_t size)
{
    return has(head, size, 0, "BM", 2) && has(head, size, 6, "\0\0\0\0", 4);
}

/* Markup, behind a byte order mark and blanks. */
static const char *markup(const unsigned char *head, size_t size)
{
    static const struct {
        const char *start, *name;
    } known[] = {
        {"<!doctype html", "an HTML page"}, {"<html", "an HTML page"}, {"<head", "an HTML page"},
        {"<svg", "an SVG image"},           {"<?xml", "an XML file"},
    };
    char text[DATA_IMAGE_HEAD + 1] = "";
    size_t at = has(head, size, 0, "\xef\xbb\xbf", 3) ? 3 : 0;
    while (at < size && isspace(head[at]))
        at++;
    if (size - at > DATA_IMAGE_HEAD)
        size = at + DATA_IMAGE_HEAD;
    memcpy(text, head + at, size - at);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strncasecmp(text, known[i].start, strlen(known[i].start)) == 0)
            return known[i].name;
    return NULL;
}

data_image_kind data_image_kind_of(const unsigned char *head, size_t size)
{
    if (has(head, size, 0, "\x89PNG\r\n\x1a\n", 8))
        return DATA_IMAGE_PNG_FILE;
    return has(head, size, 0, "\xff\xd8\xff", 3) ? DATA_IMAGE_JPEG_FILE : DATA_IMAGE_OTHER;
}

const char *data_image_foreign(const unsigned char *head, size_t size)
{
    for (size_t i = 0; i < sizeof signatures / sizeof signatures[0]; i++)
        if (has(head, size, signatures[i].at, signatures[i].bytes, signatures[i].length))
            return signatures[i].name;
    return is_bmp(head, size) ? "a BMP image" : markup(head, size);
}
