/* Clusters 1,000 generated rows into five groups with libshoal and prints where their centres are.
 *
 *     cc cluster.c $(pkg-config --cflags --libs shoal) -o cluster && ./cluster
 *     ./cluster local:4 /usr/bin/shoal              # the same bits, by four processes of that program
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

int main(int argc, char **argv)
{
    shoal_request *request = NULL;
    shoal_outcome *outcome = NULL;

    int status = shoal_request_new(&request, "kmeans");
    if (status == SHOAL_OK)
        status = shoal_request_set(request, "data", "gen:blobs?rows=1000&cols=8&centres=5&seed=1");
    if (status == SHOAL_OK)
        status = shoal_request_set(request, "clusters", "5");
    if (status == SHOAL_OK && argc > 1)
        status = shoal_request_set(request, "workers", argv[1]);
    if (status == SHOAL_OK && argc > 2)
        status = shoal_request_program(request, argv[2]);
    if (status == SHOAL_OK)
        status = shoal_request_run(&outcome, request);
    if (status == SHOAL_OK)
        print_centres(shoal_outcome_result(outcome));
    else
        fprintf(stderr, "cluster: %s\n", shoal_error());

    shoal_outcome_free(&outcome);
    shoal_request_free(&request);
    return status == SHOAL_OK ? 0 : 1;
}
