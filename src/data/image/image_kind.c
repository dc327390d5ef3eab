/* What a file is by its first bytes.  See image_kind.h. */
#include "image_kind.h"

#include <string.h>

data_image_kind data_image_kind_of(const unsigned char *head, size_t size)
{
    if (size >= 8 && memcmp(head, "\x89PNG\r\n\x1a\n", 8) == 0)
        return DATA_IMAGE_PNG_FILE;
    return size >= 3 && memcmp(head, "\xff\xd8\xff", 3) == 0 ? DATA_IMAGE_JPEG_FILE : DATA_IMAGE_OTHER;
}
