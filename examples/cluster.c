/* Clusters 1,000 generated rows into five groups with libshoal and prints where their centres are.
 *
 *     cc cluster.c $(pkg-config --cflags --libs shoal) -o cluster && ./cluster
 *
 * Any path would do in place of the "gen:" address: x.npy, x.csv.gz, train-images-idx3-ubyte.gz, ... */
#include <stdio.h>

#include <shoal/shoal.h>

static void print_centres(const shoal_result *result)
{
    const shoal_tensor *centres = shoal_result_tensor(result, "centres");
    const double *value = centres->values;
    for (int64_t centre = 0; centre < centres->shape[0]; centre++) {
        printf("centre %d:", (int)centre);
        for (int64_t column = 0; column < centres->shape[1]; column++)
            printf(" %7.3f", value[centre * centres->shape[1] + column]);
        printf("\n");
    }
    printf("objective: %.6g\n", shoal_result_number(result, "objective"));
}

int main(void)
{
    shoal_data *data = NULL;
    shoal_result *result = NULL;
    shoal_report report;
    shoal_kmeans_config config = {0};
    shoal_run_options options = {0}; /* all cores, the best kernel */

    int status = shoal_data_open(&data, "gen:blobs?rows=1000&cols=8&centres=5&seed=1", NULL);
    if (status == SHOAL_OK)
        status = shoal_options_default(&config, shoal_kmeans.options);
    config.k = 5;
    if (status == SHOAL_OK)
        status = shoal_run(&result, &report, &shoal_kmeans, &config, data, NULL, &options);
    if (status == SHOAL_OK)
        print_centres(result);
    else
        fprintf(stderr, "cluster: %s\n", shoal_error());

    shoal_result_free(&result);
    shoal_data_free(&data);
    return status == SHOAL_OK ? 0 : 1;
}
