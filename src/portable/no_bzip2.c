/* In place of src/data/codec/data_bzip2.c in programs that are built without libbz2. */
#include "data/codec/data_codec.h"

const struct data_coder *const data_coder_bzip2 = (void *)0;
