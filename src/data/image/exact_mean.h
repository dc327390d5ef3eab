/* The mean of doubles as if computed without any rounding, and then rounded once: the same whatever their order. */
#ifndef EXACT_MEAN_H
#define EXACT_MEAN_H

#include <stdint.h>

/* Every finite double is a multiple of 2^-1074 below 2^1024; 2^62 of them take 62 bits more. */
enum { EXACT_MEAN_DIGITS = 68 };

/* All zero: no values yet. */
typedef struct exact_mean {
    int64_t
        digit[EXACT_MEAN_DIGITS]; /* digit d stands for 2^(32 d - 1074); each has 32 bits and what is to be carried */
    int64_t count, uncarried;
} exact_mean;

/* Adds a finite value. */
void exact_mean_add(exact_mean *mean, double value);
/* Rounded to nearest, ties to even; NaN of no values. */
double exact_mean_value(exact_mean *mean);

#endif
