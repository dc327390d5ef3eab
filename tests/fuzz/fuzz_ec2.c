/* Fuzzes what EC2 answers: machines have ids and states, prices are above 0, texts end. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <shoal/error.h>

#include "base/memory.h"
#include "launch/cloud/ec2.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    cloud_machines machines = {0};
    cloud_prices prices = {0};
    char *next = NULL, *more = NULL, code[CLOUD_NAME_BYTES], message[2 * CLOUD_TEXT_BYTES];
    const char *text = (const char *)bytes;
    (void)ec2_read_machines(&machines, &next, text, size);
    for (int64_t i = 0; i < machines.count; i++)
        if (!*machines.machine[i].id || strpbrk(machines.machine[i].id, "/ &?"))
            abort();
    (void)ec2_read_prices(&prices, &more, text, size);
    for (int64_t i = 0; i < prices.count; i++)
        if (!(prices.price[i].dollars > 0) || !*prices.price[i].type)
            abort();
    ec2_read_error(code, message, text, size);
    cloud_machines_release(&machines);
    cloud_prices_release(&prices);
    base_free(&next);
    base_free(&more);
    return 0;
}
