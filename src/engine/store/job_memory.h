/* How much memory a worker needs in a round: a function of what the spec and the round's model say, both of which
 * anyone may have written.  It is computed before anything is allocated, and sums saturate at INT64_MAX. */
#ifndef JOB_MEMORY_H
#define JOB_MEMORY_H

#include "engine/store/job_spec.h"

/* A worker's resources. */
typedef struct job_means {
    int threads;
    unsigned roles;   /* SHOAL_ROLE_MAP, ... */
    int64_t limit;    /* bytes it may use */
    bool spares_memo; /* the learner does without a memo (shoal_algorithm) */
} job_means;

typedef struct job_memory {
    int64_t fixed;   /* needed in any case: models, sums, partials of threads, data in transit, the program itself */
    int64_t slice;   /* for each slice it holds: rows, memo, partials; the largest slice counts */
    int64_t slices;  /* slices that fit beside what is fixed, and scratch where it is known */
    int64_t fetched; /* pieces that may be fetched at once */
    int64_t blob;    /* total bytes of blobs in transit where their size is unknown */
    bool spared;     /* slices have no memo: with it, one would take more than half of what is not fixed */
    int64_t spare;   /* what is left beside one slice and what is fixed: for the scratch of threads, then for more
                      * slices */
} job_memory;

/* Bytes of one slice's generated rows that are kept; more are made again whenever they are read. */
int64_t job_memory_kept_rows(int64_t limit);

/* The largest blob that may be fetched: while it is decoded it is in memory twice. */
int64_t job_memory_blob(int64_t limit);

/* Pieces that are fetched at once, if there is room. */
enum { JOB_FETCHED_AT_ONCE = 32 };

/* The most bytes that a piece of this many slices and rows can have; INT64_MAX where a cell keeps all its records. */
int64_t job_memory_piece(const shoal_layout *layout, int64_t slices, int64_t rows);

/* Fills *out.  SHOAL_MEMORY, with need and limit, when not even one slice fits.  Scratch is not included, nor are
 * records of which a layout keeps all: only maps find out how many there are. */
int job_memory_plan(job_memory *out, const job_spec *spec, const shoal_round *round, const job_means *means);
/* The plan once the scratch of all threads is known: slices make room for it.  One stays, since scratch takes no more
 * than what is spare. */
void job_memory_scratch(job_memory *plan, int64_t scratch);

#endif
