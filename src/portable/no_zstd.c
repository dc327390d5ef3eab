/* In place of src/data/data_zstd.c in programs that are built without libzstd. */
#include "data/data_codec.h"

const struct data_coder *const data_coder_zstd = (void *)0;
