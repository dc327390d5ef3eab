/* Sums of doubles without rounding, in SUM cells.
 *
 * A sum is a row of int64 digits of 32 bits each, that covers a *window* of powers of two.  Adding a double adds to two
 * or three of them; digits of different grains are added independently, in any order, and carried only once all are
 * there.  So the sum is exact, and rounding it to a double happens once.  A window that holds every double takes 66
 * digits; nearly all sums get along with nine, so a value that does not fit is not added but noted in a MAX cell, and
 * the round is asked for again with a window that has room for it. */
#ifndef LEARN_EXACT_H
#define LEARN_EXACT_H

#include <stdbool.h>
#include <stdint.h>
#include <shoal/learn.h>

/* How often a sum may be added to before a digit could overflow. */
#define LEARN_EXACT_ADDITIONS_MOST (INT64_C(1) << 30)

enum { LEARN_EXACT_DIGITS_MOST = 66, LEARN_EXACT_RANGE = 2 };

/* Digit d stands for 2^(low + 32 d). */
typedef struct learn_window {
    int32_t low, digits;
} learn_window;

/* From 2^-160 to 2^128. */
learn_window learn_window_usual(void);
/* Whether it is one that this file can have made; for what came from elsewhere. */
bool learn_window_good(const learn_window *window);

/* Adds a finite value to one sum.  `range` are the LEARN_EXACT_RANGE values of a MAX cell. */
void learn_exact_add(int64_t *digits, const learn_window *window, double value, int64_t *range);
/* Widens the window to what the merged range asks for; false when all values had room. */
bool learn_window_widen(learn_window *window, const int64_t *range);
/* The sum rounded to nearest, ties to even; infinite when it is beyond every double.  A sum of 0 is +0. */
double learn_exact_value(const int64_t *digits, const learn_window *window);

#endif
