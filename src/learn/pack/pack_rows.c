/* Rows that name images.  See pack_rows.h. */
#include "learn/pack/pack_rows.h"

#include <string.h>

#include "base/path.h"

int64_t pack_row_bytes(size_t longest_name)
{
    return PACK_ROW_HEAD + (int64_t)((longest_name + 15) / 16 * 16);
}

void pack_row_write(unsigned char *row, int64_t row_bytes, int64_t size, int32_t class, const char *name)
{
    int32_t length = (int32_t)strlen(name);
    memset(row, 0, (size_t)row_bytes);
    memcpy(row, &size, sizeof size);
    memcpy(row + 8, &class, sizeof class);
    memcpy(row + 12, &length, sizeof length);
    memcpy(row + PACK_ROW_HEAD, name, (size_t)length);
}

const char *pack_row_why(int64_t size)
{
    switch (size) {
    case PACK_DENIED: return "it may not be read (permission denied)";
    case PACK_LOST: return "there is no file behind this link";
    case PACK_ODD: return "it is not a plain file";
    case PACK_MISNAMED: return "its name has control characters, empty parts or '..', or more than 4000 bytes";
    default: return NULL;
    }
}

bool pack_row_read(pack_item *out, const unsigned char *row, int64_t row_bytes)
{
    int32_t length = 0;
    memcpy(&out->size, row, sizeof out->size);
    memcpy(&out->class, row + 8, sizeof out->class);
    memcpy(&length, row + 12, sizeof length);
    if (length < 1 || length > PACK_NAME_MOST || length > row_bytes - PACK_ROW_HEAD || out->size < PACK_MISNAMED ||
        out->class < -1)
        return false;
    memcpy(out->name, row + PACK_ROW_HEAD, (size_t)length);
    out->name[length] = '\0';
    return strlen(out->name) == (size_t)length && (out->size == PACK_MISNAMED || base_path_stays_below(out->name));
}
