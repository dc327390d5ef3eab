/* The order of rows, and borders in it.  See row_order.h.
 *
 * Borders are found as a radix sort would, but only along the way that leads to them: each pass over the rows counts
 * the next digit of those that share the digits found so far.  As keys are random, two or three passes do. */
#include "row_order.h"

#include <shoal/error.h>

#include "base/memory.h"
#include "base/random.h"

uint64_t data_order_key(const data_order *order, int64_t row)
{
    if (order->kept)
        return (uint64_t)row * (UINT64_MAX / (uint64_t)order->rows);
    return base_random_u64(order->seed, BASE_FOR_ORDER, (uint64_t)row, 0);
}

/* What is known of a group's border. */
typedef struct search {
    data_border prefix; /* its first digits */
    int64_t wanted;     /* rows before it, of those that have these digits */
    bool found;
} search;

typedef struct searches {
    const data_order *order;
    const int32_t *group;
    int64_t groups;
    search *search;
    int64_t *count; /* of each group, how many rows have each next digit */
    int digit_bits, known_bits;
} searches;

static void count_digits(searches *self)
{
    const int digits = 1 << self->digit_bits, rest = 128 - self->known_bits;
    for (int64_t i = 0; i < self->groups * digits; i++)
        self->count[i] = 0;
    for (int64_t row = 0; row < self->order->rows; row++) {
        const int64_t group = self->group ? self->group[row] : 0;
        const search *search = &self->search[group];
        if (search->found)
            continue;
        const data_border place = (data_border)data_order_key(self->order, row) << 64 | (uint64_t)row;
        if (rest == 128 || place >> rest == search->prefix >> rest)
            self->count[group * digits + (int64_t)(place >> (rest - self->digit_bits) & (data_border)(digits - 1))]++;
    }
}

/* Adds the next digit: the border is before the first row that has it, or among those that do. */
static void take_digit(search *search, const int64_t *count, const searches *self)
{
    const int rest = 128 - self->known_bits - self->digit_bits;
    int64_t digit = 0;
    if (search->found)
        return;
    for (; digit < 1 << self->digit_bits && count[digit] <= search->wanted && search->wanted > 0; digit++)
        search->wanted -= count[digit];
    search->found = search->wanted == 0;
    if (digit == 1 << self->digit_bits) /* only at the first digit: the group has no more rows than are wanted */
        search->prefix = ~(data_border)0;
    else
        search->prefix |= (data_border)digit << rest;
    search->found |= digit == 1 << self->digit_bits;
}

static bool all_are_found(const searches *self)
{
    for (int64_t i = 0; i < self->groups; i++)
        if (!self->search[i].found)
            return false;
    return true;
}

int data_order_borders(data_border *out, const data_order *order, const int32_t *group, int64_t groups,
                       const int64_t *wanted)
{
    enum { FEW = 16, DIGIT_OF_FEW = 16, DIGIT_OF_MANY = 8 }; /* counts take 8 MiB for 16 or 4096 groups */
    searches self = {.order = order, .group = group, .groups = groups};
    self.digit_bits = groups <= FEW ? DIGIT_OF_FEW : DIGIT_OF_MANY;
    int status = base_alloc(&self.search, (size_t)groups, sizeof *self.search, "borders");
    if (status == SHOAL_OK)
        status = base_alloc(&self.count, (size_t)groups << self.digit_bits, sizeof *self.count, "counts of digits");
    for (int64_t i = 0; i < groups && status == SHOAL_OK; i++)
        self.search[i].wanted = wanted[i];
    for (; status == SHOAL_OK && !all_are_found(&self); self.known_bits += self.digit_bits) {
        count_digits(&self);
        for (int64_t i = 0; i < groups; i++)
            take_digit(&self.search[i], self.count + (i << self.digit_bits), &self);
    }
    for (int64_t i = 0; i < groups && status == SHOAL_OK; i++)
        out[i] = self.search[i].prefix;
    base_free(&self.search);
    base_free(&self.count);
    return status;
}
