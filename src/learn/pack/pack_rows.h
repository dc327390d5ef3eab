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

typedef struct pack_item {
    int64_t size;
    int32_t class;
    char name[PACK_NAME_MOST + 1];
} pack_item;

/* How many bytes rows have whose longest name has so many. */
int64_t pack_row_bytes(size_t longest_name);
void pack_row_write(unsigned char *row, int64_t row_bytes, int64_t size, int32_t class, const char *name);
/* False for bytes that are no such row. */
bool pack_row_read(pack_item *out, const unsigned char *row, int64_t row_bytes);

#endif
