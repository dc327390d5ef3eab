/* Chunks that are compressed by gzip, with or without shuffled bytes, or not at all, by threads: the library hands out
 * the bytes of a chunk as the file has them, under a lock, and each thread decompresses and puts into place its own.
 *
 * Everything out of the ordinary, such as other filters or chunks that were never written, is left to the library. */
#include <pthread.h>
#include <string.h>
#include <zlib.h>

#include "base/memory.h"
#include "base/pool.h"
#include "hdf5_dataset.h"

/* Chunks beyond this are left to the library; and so much may all threads use together. */
static const size_t chunk_most = (size_t)64 << 20, memory_most = (size_t)512 << 20;

typedef struct chunk_room {
    unsigned char *stored, *inflated, *plain; /* as the file has it; decompressed; with its bytes in order */
} chunk_room;

typedef struct chunk_reader {
    const hdf5_reading *reading;
    unsigned char *out;
    size_t size;        /* of a value */
    size_t chunk_bytes; /* decompressed */
    size_t stored_most;
    int shuffle, deflate;         /* which filter is it; -1: none */
    hsize_t grid[H5S_MAX_RANK];   /* chunks along each dimension */
    size_t strides[H5S_MAX_RANK]; /* of the rows, in bytes */
    size_t chunk_strides[H5S_MAX_RANK];
    chunk_room *room; /* of each thread */
    pthread_mutex_t lock;
    bool odd; /* a chunk is not what this can read */
} chunk_reader;

/* ---- filters ----------------------------------------------------------------------------------------------------- */

/* Whether the filters are none, or shuffling and gzip in this order. */
static bool know_filters(chunk_reader *self)
{
    const hdf5_library *hdf5 = self->reading->hdf5;
    const int count = hdf5->H5Pget_nfilters(self->reading->properties);
    self->shuffle = self->deflate = -1;
    for (int i = 0; i < count; i++) {
        unsigned flags, values[8] = {0}, config;
        size_t values_count = sizeof values / sizeof *values;
        char name[8];
        const H5Z_filter_t filter = hdf5->H5Pget_filter2(self->reading->properties, (unsigned)i, &flags, &values_count,
                                                         values, sizeof name, name, &config);
        if (filter == H5Z_FILTER_SHUFFLE && i == 0 && values_count > 0 && values[0] == self->size)
            self->shuffle = i;
        else if (filter == H5Z_FILTER_DEFLATE && i == count - 1)
            self->deflate = i;
        else
            return false;
    }
    return count >= 0;
}

/* Decompresses into exactly as many bytes as a chunk has. */
static bool inflate_chunk(const chunk_reader *self, unsigned char *out, unsigned char *in, size_t in_bytes)
{
    z_stream stream;
    data_zlib_init(&stream);
    if (inflateInit(&stream) != Z_OK)
        return false;
    stream.next_in = in;
    stream.avail_in = (uInt)in_bytes;
    stream.next_out = out;
    stream.avail_out = (uInt)self->chunk_bytes;
    const int result = inflate(&stream, Z_FINISH);
    const bool whole = result == Z_STREAM_END && stream.avail_out == 0;
    inflateEnd(&stream);
    return whole;
}

/* The bytes of a value lie `count` apart. */
#define JOIN_BYTES(bytes)                                                                                              \
    for (size_t i = 0; i < count; i++)                                                                                 \
        for (size_t k = 0; k < (bytes); k++)                                                                           \
            out[i * (bytes) + k] = in[k * count + i];                                                                  \
    break

static void unshuffle(unsigned char *restrict out, const unsigned char *restrict in, size_t count, size_t size)
{
    switch (size) {
    case 2: JOIN_BYTES(2);
    case 4: JOIN_BYTES(4);
    case 8: JOIN_BYTES(8);
    default: memcpy(out, in, count * size);
    }
}

/* ---- one chunk --------------------------------------------------------------------------------------------------- */

/* Copies what of a chunk lies within the data set, in runs that are contiguous on both sides. */
static void place_chunk(const chunk_reader *self, const unsigned char *chunk, const hsize_t *start)
{
    const hdf5_reading *reading = self->reading;
    hsize_t width[H5S_MAX_RANK], at[H5S_MAX_RANK] = {0};
    int inner = reading->rank - 1; /* the dimension that runs are along; those behind it are whole */
    unsigned char *out = self->out;
    for (int i = 0; i < reading->rank; i++) {
        width[i] = reading->shape[i] - start[i] < reading->chunk[i] ? reading->shape[i] - start[i] : reading->chunk[i];
        out += start[i] * self->strides[i];
    }
    while (inner > 0 && width[inner] == reading->shape[inner] && width[inner] == reading->chunk[inner])
        inner--;
    const size_t run = width[inner] * self->strides[inner];
    for (;;) {
        size_t from = 0, to = 0;
        for (int i = 0; i < inner; i++) {
            from += at[i] * self->chunk_strides[i];
            to += at[i] * self->strides[i];
        }
        memcpy(out + to, chunk + from, run);
        int i = inner - 1;
        while (i >= 0 && ++at[i] == width[i])
            at[i--] = 0;
        if (i < 0)
            return;
    }
}

/* The bytes of a chunk, at most `most`, as the file has them; 0 if there is something about it. */
static size_t fetch_chunk(chunk_reader *self, uint32_t *filters_off, unsigned char *out, size_t most,
                          const hsize_t *start)
{
    const hdf5_library *hdf5 = self->reading->hdf5;
    hsize_t stored = 0;
    pthread_mutex_lock(&self->lock);
    hdf5->H5Eset_auto2(H5E_DEFAULT, NULL, NULL); /* which libraries that know threads have for each of them */
    if (self->odd || hdf5->H5Dget_chunk_storage_size(self->reading->dataset, start, &stored) < 0 || stored > most ||
        (stored > 0 && hdf5->H5Dread_chunk(self->reading->dataset, H5P_DEFAULT, start, filters_off, out) < 0))
        stored = 0;
    self->odd |= stored == 0;
    pthread_mutex_unlock(&self->lock);
    return stored;
}

static void give_up(chunk_reader *self)
{
    pthread_mutex_lock(&self->lock);
    self->odd = true;
    pthread_mutex_unlock(&self->lock);
}

/* Whether a chunk is whole rows as they are, so that it can be read to its place. */
static bool is_in_place(const chunk_reader *self, const hsize_t *start)
{
    const hdf5_reading *reading = self->reading;
    bool whole = self->shuffle < 0 && self->deflate < 0 && reading->shape[0] - start[0] >= reading->chunk[0];
    for (int i = 1; i < reading->rank; i++)
        whole &= reading->chunk[i] == reading->shape[i];
    return whole;
}

static int read_chunk(void *context, int64_t item, int thread)
{
    chunk_reader *self = context;
    const hdf5_reading *reading = self->reading;
    chunk_room *room = &self->room[thread];
    hsize_t start[H5S_MAX_RANK] = {0};
    uint32_t off = 0;
    for (int i = reading->rank - 1; i >= 0; i--) {
        start[i] = (hsize_t)item % self->grid[i] * reading->chunk[i];
        item /= (int64_t)self->grid[i];
    }
    if (is_in_place(self, start)) {
        if (fetch_chunk(self, &off, self->out + start[0] * self->strides[0], self->chunk_bytes, start) !=
            self->chunk_bytes)
            give_up(self);
        return SHOAL_OK;
    }
    int status = room->stored ? SHOAL_OK : base_alloc_unset(&room->stored, self->stored_most, 1, "a chunk");
    if (status == SHOAL_OK && !room->inflated)
        status = base_alloc_unset(&room->inflated, self->chunk_bytes, 1, "a chunk");
    if (status == SHOAL_OK && !room->plain)
        status = base_alloc_unset(&room->plain, self->chunk_bytes, 1, "a chunk");
    if (status < 0)
        return status;
    const size_t stored = fetch_chunk(self, &off, room->stored, self->stored_most, start);
    const bool deflated = self->deflate >= 0 && !(off >> self->deflate & 1);
    unsigned char *bytes = deflated ? room->inflated : room->stored;
    if (stored == 0)
        return SHOAL_OK;
    if (deflated ? !inflate_chunk(self, room->inflated, room->stored, stored) : stored != self->chunk_bytes) {
        give_up(self); /* the library says whether it is damaged */
        return SHOAL_OK;
    }
    if (self->shuffle >= 0 && self->size > 1 && !(off >> self->shuffle & 1)) {
        unshuffle(room->plain, bytes, self->chunk_bytes / self->size, self->size);
        bytes = room->plain;
    }
    place_chunk(self, bytes, start);
    return SHOAL_OK;
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

/* Counts chunks and lays out strides; false when they are too large or too many. */
static bool measure(chunk_reader *self, int64_t *chunks)
{
    const hdf5_reading *reading = self->reading;
    size_t stride = self->size, chunk_stride = self->size, count = 1;
    for (int i = reading->rank - 1; i >= 0; i--) {
        const hsize_t chunk = reading->chunk[i];
        self->strides[i] = stride;
        self->chunk_strides[i] = chunk_stride;
        if (chunk == 0 || !base_multiply(&chunk_stride, chunk_stride, chunk))
            return false;
        stride *= reading->shape[i]; /* which is known to fit */
        self->grid[i] = reading->shape[i] / chunk + (reading->shape[i] % chunk != 0);
        if (!base_multiply(&count, count, self->grid[i]))
            return false;
    }
    self->chunk_bytes = chunk_stride;
    self->stored_most = chunk_stride + chunk_stride / 512 + 4096;
    *chunks = (int64_t)count;
    return chunk_stride <= chunk_most && count > 1 && count <= INT32_MAX;
}

int hdf5_read_chunks(bool *done, const hdf5_reading *reading, unsigned char *out, size_t size)
{
    chunk_reader self = {.reading = reading, .out = out, .size = size, .lock = PTHREAD_MUTEX_INITIALIZER};
    base_pool *pool = NULL;
    int64_t chunks = 0;
    *done = false;
    if (reading->layout != H5D_CHUNKED || !reading->hdf5->H5Dread_chunk || !know_filters(&self) ||
        !measure(&self, &chunks))
        return SHOAL_OK;
    const int64_t fitting = (int64_t)(memory_most / (3 * self.chunk_bytes)) + 1;
    const int threads = fitting < base_cores() ? (int)fitting : base_cores();
    int status = base_alloc(&self.room, (size_t)threads, sizeof *self.room, "chunks");
    if (status == SHOAL_OK)
        status = base_pool_new(&pool, threads);
    if (status == SHOAL_OK)
        status = base_pool_each(pool, chunks, read_chunk, &self);
    *done = status == SHOAL_OK && !self.odd;
    base_pool_free(&pool);
    for (int i = 0; i < threads && self.room; i++) {
        base_free(&self.room[i].stored);
        base_free(&self.room[i].inflated);
        base_free(&self.room[i].plain);
    }
    base_free(&self.room);
    return status;
}
