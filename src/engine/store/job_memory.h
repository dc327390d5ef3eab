/* How much memory a worker needs in a round: a function of what the spec and the round's model say, both of which
 * anyone may have written.  It is asked before anything is allocated, and sums stop at INT64_MAX instead of
 * overflowing. */
#ifndef JOB_MEMORY_H
#define JOB_MEMORY_H

#include "engine/store/job_spec.h"

/* What a worker computes with. */
typedef struct job_means {
    int threads;
    unsigned roles; /* SHOAL_ROLE_MAP, ... */
    int64_t limit;  /* bytes it may use */
} job_means;

typedef struct job_memory {
    int64_t fixed;   /* whatever it holds: models, sums, partials of threads, what is on its way, the program itself */
    int64_t slice;   /* for each slice it holds: rows, memo, partials; the largest slice counts */
    int64_t slices;  /* that fit into the limit beside what is fixed, and scratch where it is known */
    int64_t fetched; /* pieces that may be fetched at once */
    int64_t blob;    /* that blobs on their way may have together where nothing tells how large they are */
    int64_t spare;   /* what one slice and what is fixed leave: for the scratch of threads, and then for more slices */
} job_memory;

/* Bytes of generated rows of one slice that are kept; what is more is made again whenever it is read. */
int64_t job_memory_kept_rows(int64_t limit);

/* The most that a blob may have to be fetched: what is decoded is there twice for a while. */
int64_t job_memory_blob(int64_t limit);

/* Pieces that are fetched at once, where there is room for them. */
enum { JOB_FETCHED_AT_ONCE = 32 };

/* The most bytes that a piece of this many slices and rows can have; INT64_MAX where a cell keeps all its records. */
int64_t job_memory_piece(const shoal_layout *layout, int64_t slices, int64_t rows);

/* Fills *out.  SHOAL_MEMORY, with need and limit, when not even one slice fits.  Scratch is not in it, nor are
 * records of which a layout keeps all: how many there are only maps find out. */
int job_memory_plan(job_memory *out, const job_spec *spec, const shoal_round *round, const job_means *means);
/* The plan once the scratch of all threads is known: slices make room for it.  One stays, for scratch has no more than
 * what is spare. */
void job_memory_scratch(job_memory *plan, int64_t scratch);

#endif
