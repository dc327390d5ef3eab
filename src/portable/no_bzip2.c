/* In place of src/data/data_bzip2.c in programs that are built without libbz2. */
#include "data/data_codec.h"

const struct data_coder *const data_coder_bzip2 = (void *)0;
