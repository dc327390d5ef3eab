/* Batches of pixels from a source, one after another, from some place on and round again.
 *
 *     speed_reader *reader = NULL;
 *     int status = speed_reader_new(&reader, &source, &settings, pool);
 *     if (status == SHOAL_OK) status = speed_reader_start(reader, 12345);
 *     while (status == SHOAL_OK && batches-- > 0)
 *         status = speed_reader_batch(reader, pixels, batch_size);
 *     speed_reader_stop(reader);
 *     speed_reader_free(&reader); */
#ifndef RUN_SPEED_READER_H
#define RUN_SPEED_READER_H

#include "base/pool.h"
#include "speed_source.h"

typedef struct speed_reader speed_reader;

typedef struct speed_reading {
    int height, width; /* of an image in a batch */
    bool skip_broken;
} speed_reading;

/* Memory, threads and decoders, which stay from run to run.  The source and the pool must last. */
int speed_reader_new(speed_reader **out, const speed_source *source, const speed_reading *how, base_pool *pool);
void speed_reader_free(speed_reader **reader);

/* Lists the source; the first image is one that the number chooses, or the first of a shard that it chooses. */
int speed_reader_start(speed_reader *reader, uint64_t start);
/* Writes count images of height x width x 3 bytes.  After the last image of the source the first one follows.  What is
 * broken is SHOAL_INVALID with a sentence that names it, or passed over. */
int speed_reader_batch(speed_reader *reader, unsigned char *pixels, int64_t count);
void speed_reader_stop(speed_reader *reader);

/* Since the start: bytes that were read, and what was passed over. */
int64_t speed_reader_bytes(const speed_reader *reader);
int64_t speed_reader_skipped(const speed_reader *reader);
/* The first sentence about what was passed over since the reader was made; NULL: none. */
const char *speed_reader_broken(const speed_reader *reader);

#endif
