/* How fast shoal_data_open reads a file, and how much memory it takes for that.
 *
 *     bench_read_rates ADDRESS [TYPE]
 *
 * Prints JSON.  Opening is all there is to what is decoded; of what is mapped each page is touched, so that in either
 * case the values are in memory in the end, as they are after h5py or numpy have read them. */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include <shoal/data.h>
#include <shoal/error.h>

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The most memory that this process ever had; getrusage would count what its parent had, too. */
static int64_t peak_memory(void)
{
    char line[256];
    long long kib = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        if (sscanf(line, "VmHWM: %lld", &kib) == 1)
            break;
    if (status)
        fclose(status);
    return (int64_t)kib * 1024;
}

static unsigned touch_pages(shoal_data *data, int64_t bytes)
{
    const void *rows = NULL;
    unsigned sum = 0;
    if (!shoal_data_is_resident(data) || shoal_data_read(&rows, data, 0, shoal_data_rows(data), NULL) < 0)
        return 0;
    for (int64_t at = 0; at < bytes; at += 4096)
        sum += ((const unsigned char *)rows)[at];
    return sum;
}

int main(int count, char **words)
{
    shoal_data *data = NULL;
    const shoal_data_options options = {.type = count > 2 ? words[2] : NULL};
    if (count < 2)
        return 2;
    const double start = seconds();
    if (shoal_data_open(&data, words[1], &options) < 0) {
        fprintf(stderr, "%s\n", shoal_error());
        return 1;
    }
    const int64_t bytes =
        shoal_data_rows(data) * shoal_data_columns(data) * (int64_t)shoal_type_size(shoal_data_type(data));
    const unsigned sum = touch_pages(data, bytes);
    const double took = seconds() - start;
    printf("{\"seconds\": %.6f, \"bytes\": %" PRId64 ", \"memory\": %" PRId64 ", \"sum\": %u, \"detail\": \"%s\"}\n",
           took, bytes, peak_memory(), sum, shoal_data_detail(data));
    shoal_data_free(&data);
    return 0;
}
