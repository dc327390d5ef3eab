/* The least a user of the library writes: four rows, two clusters. */
#include <stdio.h>
#include <shoal/shoal.h>

int main(void)
{
    const float rows[4][2] = {{0, 0}, {0, 1}, {9, 9}, {9, 8}};
    shoal_data *data = NULL;
    shoal_result *result = NULL;
    shoal_report report;
    shoal_kmeans_config config = {0};
    int status = shoal_options_default(&config, shoal_kmeans.options);
    config.k = 2;
    if (status < 0 || shoal_data_wrap(&data, rows, 4, 2, SHOAL_FLOAT32) < 0 ||
        shoal_run(&result, &report, &shoal_kmeans, &config, data, NULL, &(shoal_run_options){0}) < 0)
        printf("%s\n", shoal_error());
    else
        printf("objective %g\n", shoal_result_number(result, "objective"));
    shoal_result_free(&result);
    shoal_data_free(&data);
    return 0;
}
