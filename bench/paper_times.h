/* The experiment of Durut and Rossi, "Communication challenges in cloud k-means" (ESANN 2011): 500,000 rows of 1,000
 * columns, 1,000 clusters, 10 iterations, 669 Mflop/s and 8 MB/s a worker; what they measured with P mappers, data
 * loading included. */
#ifndef PAPER_TIMES_H
#define PAPER_TIMES_H

enum { PAPER_RUNS = 14 };

static const struct {
    int mappers;
    double seconds, efficiency;
} paper_times[PAPER_RUNS] = {{10, 2223, 0.67}, {50, 657, 0.58},  {60, 574, 0.57},  {70, 551, 0.51},  {80, 560, 0.44},
                             {90, 525, 0.42},  {95, 521, 0.41},  {100, 539, 0.37}, {110, 544, 0.34}, {120, 544, 0.31},
                             {130, 574, 0.27}, {140, 603, 0.24}, {150, 605, 0.23}, {160, 674, 0.19}};

#endif
