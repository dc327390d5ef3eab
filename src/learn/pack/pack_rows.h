/* Images as rows: what `shoal data pack` packs, one row of bytes an image.
 *
 * A row is the size of the image's file (int64), the number of its class (int32, -1 for none), the length of its name
 * (int32), and the name, filled up with NULs.  Names are paths below where the images are. */
#ifndef PACK_ROWS_H
#define PACK_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PACK_ROW_HEAD = 16, PACK_NAME_MOST = 4000 };

/* Sizes of what is no file that could be read, as it was found when images were listed: every worker leaves it out,
 * whatever it may read itself. */
enum { PACK_DENIED = -1, PACK_LOST = -2, PACK_ODD = -3, PACK_MISNAMED = -4 };

typedef struct pack_item {
    int64_t size; /* or PACK_DENIED, ... */
    int32_t class;
    char name[PACK_NAME_MOST + 1];
} pack_item;

/* How many bytes rows have whose longest name has so many. */
int64_t pack_row_bytes(size_t longest_name);
void pack_row_write(unsigned char *row, int64_t row_bytes, int64_t size, int32_t class, const char *name);
/* Why an image of such a size can't be read; NULL for a size that a file has. */
const char *pack_row_why(int64_t size);
/* False for bytes that are no such row. */
bool pack_row_read(pack_item *out, const unsigned char *row, int64_t row_bytes);

#endif
