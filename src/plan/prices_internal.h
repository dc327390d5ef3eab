/* What the files of the price tables share: text becomes a table here, wherever it comes from. */
#ifndef PLAN_PRICES_INTERNAL_H
#define PLAN_PRICES_INTERNAL_H

#include "data/table/data_table.h"
#include "prices.h"

/* Prices of the rows of a table. */
int plan_prices_from(plan_prices **out, data_table *table);
/* The same from text, which messages call `name`. */
int plan_prices_parse(plan_prices **out, const char *name, const char *text, size_t length);

/* The table of this program, as text. */
extern const char plan_prices_table[];

#endif
