/* Fuzzes the reader of price tables: whatever comes is refused with a sentence or gives machines whose names
 * patterns can find and whose numbers can be counted with. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <shoal/error.h>

#include "plan/prices_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_price(double price)
{
    if (!isnan(price) && !(price > 0 && price <= 1e6))
        abort();
}

static void check_machine(const plan_machine *m)
{
    if (!*m->cloud || !*m->region || !*m->name || strpbrk(m->name, ":/,*?") || m->line < 2)
        abort();
    if (!(m->vcpus > 0 && m->memory_gib > 0 && m->speed > 0 && m->network >= 0 && m->accelerators >= 0))
        abort();
    check_price(m->dollars_per_hour);
    check_price(m->dollars_spot);
    if (isnan(m->dollars_per_hour) && isnan(m->dollars_spot))
        abort();
}

/* A machine's own name finds it; the beginning of it finds it, or names what is near. */
static void check_selection(const plan_prices *prices, const plan_machine *m)
{
    plan_selection chosen;
    if (plan_prices_select(&chosen, prices, m->name, isnan(m->dollars_per_hour)) < 0 || chosen.machines < 1)
        abort();
    plan_selection_free(&chosen);
    char start[sizeof m->name];
    strcpy(start, m->name);
    start[strlen(start) / 2] = '\0';
    int status = plan_prices_select(&chosen, prices, start, false);
    if (status < 0 && (status != SHOAL_USAGE || chosen.machine || !*shoal_error()))
        abort();
    plan_selection_free(&chosen);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    plan_prices *prices = NULL;
    shoal_fail(SHOAL_OK, "%s", "");
    int status = plan_prices_parse(&prices, "t.csv", (const char *)bytes, size);
    if (status < 0 && ((status != SHOAL_INVALID && status != SHOAL_MEMORY) || prices || !*shoal_error()))
        abort();
    if (status == SHOAL_OK && prices->machines < 1)
        abort();
    for (int64_t i = 0; prices && i < prices->machines; i++)
        check_machine(&prices->machine[i]);
    for (int64_t i = 0; prices && i < prices->machines && i < 4; i++)
        check_selection(prices, &prices->machine[i]);
    plan_prices_free(&prices);
    return 0;
}
