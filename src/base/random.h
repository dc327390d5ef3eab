/* Random numbers that are a function of where they are used, not of who drew before.
 *
 * Philox-4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011):
 * 128 random bits from a 64-bit key and a 128-bit counter.  Here the key is the user's seed and the
 * counter is (purpose, index, draw), so any row's numbers can be made alone, on any machine. */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include <stdint.h>

/* What numbers are drawn for.  Values are part of every result: never renumber them. */
typedef enum base_purpose {
    BASE_FOR_DATA = 1,      /* generated rows */
    BASE_FOR_CENTRES = 2,   /* centres of generated blobs */
    BASE_FOR_SEEDING = 3,   /* draws of k-means++ and random starts */
    BASE_FOR_SAMPLING = 4,  /* the coin of each row in k-means|| */
    BASE_FOR_RECLUSTER = 5, /* k-means++ over the candidates of k-means|| */
    BASE_FOR_FAULTS = 6,    /* what calls of a faulty store meet */
    BASE_FOR_WEIGHTS = 7,   /* first weights of a network */
    BASE_FOR_PATCHES = 8,   /* the image and the place of each patch */
    BASE_FOR_SEARCH = 9,    /* first trials of a search for a configuration, and what its models believe */
    BASE_FOR_SAMPLE = 14,   /* rows by which several numbers of clusters are compared */
    BASE_FOR_TRIALS = 15,   /* fresh starts among those rows */
    BASE_FOR_ORDER = 16,    /* the order of rows that are shuffled or split */
    BASE_FOR_CLASSES = 17,  /* which classes get the rows that a split can't share evenly */
    BASE_FOR_PLOTS = 18,    /* rows that a plot's axes are found from, and where the search for those begins */
    BASE_FOR_PICKS = 19,    /* the order in which batches go through the rows of a stratum */
    BASE_FOR_RUNS = 20,     /* the order of runs that are timed, and where each begins to read */
    BASE_FOR_BATCHES = 21,  /* the keys of a run's batches, and which of the rows that were drawn are taken */
    BASE_FOR_DROPOUT = 22,  /* values of a net that a step leaves out */
    BASE_FOR_AUGMENT = 23,  /* what is done to the images that a net is trained on */
    BASE_FOR_SWEEPS = 24,   /* points of trials of a sweep */
} base_purpose;

/* 128 bits in out[0..3]. */
void base_random(uint32_t out[4], uint64_t seed, base_purpose purpose, uint64_t index, uint32_t draw);
/* 64 bits. */
uint64_t base_random_u64(uint64_t seed, base_purpose purpose, uint64_t index, uint32_t draw);
/* Uniform in [0, 1), 53 bits. */
double base_random_unit(uint64_t seed, base_purpose purpose, uint64_t index, uint32_t draw);
/* Uniform below `bound` > 0 without bias; consumes draws draw, draw + 1, ... until one is accepted. */
uint64_t base_random_below(uint64_t bound, uint64_t seed, base_purpose purpose, uint64_t index, uint32_t draw);

#endif
