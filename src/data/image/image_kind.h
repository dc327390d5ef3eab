/* What a file is by its first bytes, whatever it is called. */
#ifndef DATA_IMAGE_KIND_H
#define DATA_IMAGE_KIND_H

#include <stddef.h>

typedef enum data_image_kind { DATA_IMAGE_OTHER, DATA_IMAGE_PNG_FILE, DATA_IMAGE_JPEG_FILE } data_image_kind;

enum { DATA_IMAGE_HEAD = 512 /* so many first bytes tell, or all of a shorter file */ };

data_image_kind data_image_kind_of(const unsigned char *head, size_t size);

#endif
