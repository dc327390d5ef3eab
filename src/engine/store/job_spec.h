/* The spec: all that a job is.  Everything else in the store can be made again from it. */
#ifndef JOB_SPEC_H
#define JOB_SPEC_H

#include <shoal/job.h>

#include "base/hash.h"
#include "engine/store/job_tree.h"

enum { JOB_FORMAT = 1 };
#define JOB_KIND_SPEC SHOAL_KIND('s', 'p', 'e', 'c')

/* Where rows are. */
typedef enum job_source_kind {
    JOB_UPLOADED, /* each slice is a blob of the job */
    JOB_RANGES,   /* in byte ranges of one blob of a store, which must not change */
    JOB_FILE,     /* in byte ranges of a file of this machine, which must not change */
    JOB_GENERATED /* nowhere: workers make them from a gen: address */
} job_source_kind;

/* What people call them; specs have their own words. */
extern const char *const job_source_words[4];

typedef struct job_slice {
    int64_t first_grain, grains;
    unsigned char hash[BASE_HASH_SIZE];         /* SHA-256 of its rows; zero for RANGES and GENERATED, where the etag or
                                                 * the address vouches */
    unsigned char weights_hash[BASE_HASH_SIZE]; /* of its weights; zero without */
} job_slice;

/* A file that the job brings along: jobs/ID/code/SHA256. */
typedef struct job_code {
    char *name; /* as in shoal_code */
    int64_t size;
    unsigned char hash[BASE_HASH_SIZE];
} job_code;

enum { JOB_CODE_NAME_MOST = 255, JOB_CODE_BYTES_MOST = 1 << 30 };

typedef struct job_spec {
    char id[SHOAL_JOB_ID_BYTES];
    char version[24]; /* of the program that wrote it */
    char algorithm[32];
    shoal_shape shape;
    uint64_t fingerprint; /* kernel_fingerprint of who wrote it: another one would give other bits */
    char *data_name;      /* what messages call the data */
    char *settings;       /* JSON text, or NULL */

    job_source_kind source;
    char *place; /* RANGES: key; FILE: absolute path; GENERATED: gen: address; UPLOADED: the path it was read from */
    char *store_url; /* RANGES: address of store and key, for shoal_store_open_at; NULL: a key of the job's own store */
    shoal_etag etag; /* RANGES: version of the blob */
    int64_t offset;  /* RANGES, FILE: of row 0 */
    int64_t size;    /* RANGES, FILE: of the whole blob or file */

    int codes;
    job_code *code;

    /* Where blobs lie that maps get: an absolute folder, a URL, or "" for the job's own; NULL: they get none. */
    char *from;
    bool puts; /* maps put blobs, which the job keeps */

    int64_t slices;
    job_slice *slice; /* contiguous, in the order of their grains */
    job_tree tree;    /* how partials are reduced; its leaves are the slices */
    job_tree ranged;  /* the same in ranges, for rounds whose sums are large enough; `ranges` is 0 when there is none */
    int64_t range_bytes; /* that a range has at least, on average */
    double lease;
    int64_t keep_rounds;
    int64_t workers; /* expected slots; 0 unknown */
    double created;  /* seconds since 1970, for people */

    shoal_round *first;                   /* round 0 */
    unsigned char sha256[BASE_HASH_SIZE]; /* of the encoded spec; set by encode and decode */
} job_spec;

void job_spec_free(job_spec **spec);
/* JSON with everything but round 0, then round 0 as learn/wire.h has it. */
int job_spec_encode(void **out, size_t *size, job_spec *spec);
/* SHOAL_BROKEN for what is not a spec, SHOAL_INVALID for one of a newer format, with the job's name. */
int job_spec_decode(job_spec **out, const char *id, const void *bytes, size_t size);
/* Gets and decodes jobs/ID/spec.  SHOAL_ABSENT, "there is no job ID in STORE", when there is none. */
int job_spec_get(job_spec **out, shoal_store *store, const char *id, int64_t deadline);

/* The tree by which partials of that layout are reduced: in ranges, where it has sums and maxima alone and they are
 * large enough. */
const job_tree *job_spec_tree(const job_spec *spec, const shoal_layout *layout);

/* First row and rows of a slice. */
int64_t job_slice_first_row(const job_spec *spec, int64_t slice);
int64_t job_slice_rows(const job_spec *spec, int64_t slice);

#endif
