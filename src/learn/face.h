/* A learner's face: what people see of it.  Options and files it takes, what it writes and how, the lines of its
 * summary, its model as a file, how a model is applied, what a probe of its speed looks like.
 *
 *     const learn_face learn_kmeans = {.algorithm = &shoal_kmeans, .summary = "cluster the rows of a data set", ...};
 *
 * A face lies in the learner's folder, is one line in learners.c, and gives it a verb, `shoal plan`, `shoal predict`,
 * `shoal job resume` and a place in shoal/run.h.  It never runs anything, prints nothing and meets no other process: it
 * is asked, and sees options, shapes, results and paths.  Where more has to be computed than the learner found, an
 * output says so (LEARN_APPLIED), and whoever runs learners applies the model. */
#ifndef LEARN_FACE_H
#define LEARN_FACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <shoal/learn.h>

#include "base/option.h"
#include "data/picture.h"
#include "data/picture_shape.h"
#include "learn/model_file.h"

/* ---- what a run is given ----------------------------------------------------------------------------------------- */

/* Files and words beside the rows and the learner's own options; a face lists those it takes as options of this. */
typedef struct learn_inputs {
    const char *weights;   /* a file with a weight for each row */
    const char *target;    /* what is known of each row: a column, by name or number, or a file */
    bool target_is_column; /* also if there is a file of that name: a job's own note says so */
    const char *start;     /* a model to start from */
    bool standardise;      /* columns are brought to mean 0 and standard deviation 1 */
} learn_inputs;

/* The row of options of learn_inputs for learners whose columns may be scaled. */
#define LEARN_STANDARDISE                                                                                              \
    {                                                                                                                  \
        "standardise", 0, SHOAL_OPTION_FLAG, offsetof(learn_inputs, standardise),                                      \
            .help =                                                                                                    \
                "subtract each column's mean and divide by its standard deviation before anything else; the model "    \
                "keeps both, and shoal predict applies them"                                                           \
    }

/* What is known of the rows before a run. */
typedef struct learn_rows {
    const char *name; /* what messages call them */
    int64_t rows, columns;
    shoal_type type;
    int64_t target;             /* the column of the target from 1; 0 for none */
    shoal_data *data;           /* for the names of columns; NULL when only workers have it */
    const learn_schema *schema; /* of the columns; NULL when nothing is known */
} learn_rows;

/* A run that has ended, as a face is asked about it. */
typedef struct learn_ended {
    const void *config; /* the learner's options */
    const shoal_result *result;
    learn_rows rows;
    const int64_t *counter; /* SHOAL_COUNTERS of them */
    bool stopped;           /* by a signal, before it was done */
} learn_ended;

/* ---- what it gives ----------------------------------------------------------------------------------------------- */

typedef enum learn_output_kind {
    LEARN_TENSOR,  /* the tensor of the result that has the output's name, as an array */
    LEARN_MODEL,   /* the model: safetensors of the face's parts */
    LEARN_PICTURE, /* what `draw` gives, as .png or .svg */
    LEARN_PLOT,    /* the rows as dots in the colours of their groups, which `plot` gives, as .png or .svg */
    LEARN_APPLIED, /* the model's prediction for the rows it was trained on, as an array */
    LEARN_RESULT,  /* all there is: an array when that is one tensor, or .safetensors */
    LEARN_CHART,   /* what `chart` gives: curves side by side, as .png or .svg */
} learn_output_kind;

/* A file that a run can write: an option that names it, and what it holds. */
typedef struct learn_output {
    const char *name; /* "centres"; NULL ends a list */
    char letter;      /* short name of the option, or 0 */
    const char *argument, *help;
    learn_output_kind kind;
    /* Of an array, as far as it is known before the run: a file that holds anything else is not replaced. */
    const char *type; /* "int32" */
    int rank;
    bool as_wide_as_data; /* it has the columns of the rows, and their units: --standardise is undone */
    bool of_rows;         /* it has a value, or a row, for each row */
    bool names_rows;      /* its first column has numbers of rows, from 0 */
} learn_output;

enum { LEARN_OUTPUTS_MOST = 8 };

/* Numbers over the same x, and which of them is picked. */
typedef struct learn_curve {
    const char *name;
    const double *values; /* NaN where there is none */
    double picked;        /* at this x; NaN for none */
    const char *rule;     /* that picks it */
} learn_curve;

enum { LEARN_CURVES_MOST = 4 };

typedef struct learn_chart {
    const char *title, *x_name;
    const int64_t *x; /* increasing */
    int64_t count;
    int curves;
    learn_curve curve[LEARN_CURVES_MOST];
} learn_chart;

/* Lines for people.  "objective  0.42 after 30 iterations" is learn_say(lines, "objective", "%g after ...", ...). */
typedef struct learn_lines {
    char *text; /* NULL while there is none; the caller frees it */
    int status; /* SHOAL_OK, or the failure after which nothing is added */
} learn_lines;

void learn_say(learn_lines *lines, const char *word, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Goes on with the last line. */
void learn_say_more(learn_lines *lines, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* What a plot shows of the rows. */
typedef struct learn_plot {
    const char *called;   /* a group: "cluster" */
    const int32_t *group; /* of each row, from 0 */
    int64_t groups;
    const double *centres; /* of the groups, which have the columns of the rows */
    bool unit;             /* rows count by their direction alone: they are shown as of length 1 */
} learn_plot;

/* ---- applying a model -------------------------------------------------------------------------------------------- */

enum { LEARN_VALUES_MOST = 4 };

/* A model in memory, ready to be applied to rows. */
typedef struct learn_applied {
    void *config;          /* of the predictor's algorithm: config_size bytes, zeroed before */
    int64_t columns;       /* that rows must have */
    const double *classes; /* the labels of its classes, one of `values`; NULL for models without */
    int64_t classes_count;
    char *const *class_names;          /* words that the classes stand for; NULL when they are numbers */
    int64_t clusters;                  /* of models whose labels are numbers of clusters; else 0 */
    bool linear;                       /* of networks: the outputs are not squashed */
    double *values[LEARN_VALUES_MOST]; /* what config points to; the owner of this frees them */
    bool wanted[LEARN_OUTPUTS_MOST];   /* which outputs, in the order of the predictor's list */
} learn_applied;

typedef struct learn_predictor {
    const shoal_algorithm *algorithm;
    const learn_output *outputs; /* tensors of its result, and plots of it; help follows "kmeans: " */
    /* Reads a model.  `model` is NULL when the file at `path` is not safetensors, for which only a face that says
     * takes_rows is asked. */
    int (*load)(learn_applied *out, const learn_model_file *model, const char *path);
    /* Optional.  The same of what a run has just found. */
    int (*load_ended)(learn_applied *out, const learn_ended *ended);
    /* Optional.  Sets what depends on what is wanted, and on the rows, as well. */
    void (*settle)(learn_applied *applied, const learn_rows *rows);
    /* Of an output of two dimensions, once it is settled: the columns, and the type if the list leaves it open. */
    void (*shape)(int64_t *columns, shoal_type *type, const learn_applied *applied, const char *output);
    /* Lines between "data" and "time". */
    void (*summarise)(learn_lines *lines, const learn_applied *applied, const shoal_result *result);
    /* Optional.  Adds to what --json prints: numbers, and tensors of one dimension as lists. */
    int (*tell)(shoal_result *facts, const learn_applied *applied, const shoal_result *result);
    /* LEARN_PLOT: what lies in the model and the result; on ranks other than the first there is no group. */
    void (*plot)(learn_plot *out, const learn_applied *applied, const shoal_result *result);
    /* Optional.  Adds to what --score prints: numbers, of the rows that the model was applied to. */
    int (*score)(shoal_result *facts, const learn_applied *applied, const shoal_result *result, shoal_data *rows,
                 int threads);
    bool takes_rows;  /* any data file of the right shape is a model, too */
    const char *hint; /* for rows of one column more than the model has; NULL for none */
} learn_predictor;

/* ---- measuring --------------------------------------------------------------------------------------------------- */

enum { LEARN_PROBES_MOST = 6 };

/* Runs by which the speed of a learner on a machine is measured, on rows that are spread evenly. */
typedef struct learn_probe {
    const char *size_option; /* of the learner, that `size` is given to; NULL: it is the number of classes */
    const char *set[4][2];   /* options and their values, ended by a NULL: runs that do not end early */
    struct {
        int columns;
        const char *size;
    } shape[LEARN_PROBES_MOST]; /* ended by one without columns */
} learn_probe;

/* ---- the face ---------------------------------------------------------------------------------------------------- */

typedef struct learn_example {
    const char *command, *what; /* what: "cluster rows into 100 groups" */
} learn_example;

typedef struct learn_face {
    const shoal_algorithm *algorithm;
    /* For `shoal NAME -h` and the manual.  A face without a summary has no verb of its own. */
    const char *summary;                           /* "cluster the rows of a data set" */
    const char *synopsis;                          /* "-k K [options]" */
    const char *const *description;                /* paragraphs, ended by NULL; what all learners share is added */
    const learn_example *examples, *plan_examples; /* ended by a row without a command */
    const char *options_title, *inputs_title;      /* "Clustering", "Weights" */
    const shoal_option *inputs;                    /* of learn_inputs; NULL for none */
    const shoal_option *plan_options; /* of the config, for `shoal plan` alone: what only a run finds out, such as
                                                    * the number of classes; NULL for none */
    const learn_output *outputs;
    int classes_most; /* labels are classes, at most this many; 0: any numbers */
    bool runs_code;   /* what people wrote: a command, or a module */
    bool keeps_part;  /* a stop leaves a result, which is written */
    const char *kept; /* "centres and labels are those": said of iteration N after a stop */

    /* Optional.  Refuses what can be refused before anything is read. */
    int (*check)(const void *config, const learn_inputs *inputs);
    /* Optional.  Refuses an output that runs with these options do not have. */
    int (*check_output)(const void *config, const learn_output *output);
    /* Optional.  The file that the run starts from, and the option that named it; NULL for none. */
    const char *(*start_file)(const char **option, const void *config, const learn_inputs *inputs);
    /* Optional.  Sets what depends on the rows, and reads the start, into config; what that then points to is in
     * `values`, which the caller frees. */
    int (*settle)(void *config, double *values[4], const learn_inputs *inputs, const learn_rows *rows);
    /* Optional.  Starts from values in memory, which have as many columns as the rows. */
    int (*start_from)(void *config, const double *values, int64_t rows);
    /* Optional.  Sets what only a result tells, for `cost`. */
    void (*learnt)(void *config, const shoal_result *result);

    /* Optional.  Lines between "data" and "time". */
    void (*summarise)(learn_lines *lines, const learn_ended *ended);
    /* Optional.  Adds to what --json prints. */
    int (*tell)(shoal_result *facts, const learn_ended *ended);
    /* LEARN_PICTURE: sets values, which are *images or lie in the result, and their number; height and width are
     * known. */
    int (*draw)(data_sheet *sheet, double **images, const learn_ended *ended);
    /* LEARN_CHART: the curves, whose numbers lie in the result. */
    void (*chart)(learn_chart *out, const learn_ended *ended);
    /* LEARN_PLOT: what lies in the result; on ranks other than the first there is no group. */
    void (*plot)(learn_plot *out, const learn_ended *ended);
    /* LEARN_MODEL: tensors that the model has, ended by NULL; those the result does not have are left out. */
    const char *const *parts;
    /* Optional.  Whole numbers that the model's metadata have besides, or instead of what they usually have. */
    void (*annotate)(shoal_result *facts, const learn_ended *ended);

    /* Of learners whose maps get and put blobs (shoal_crew), NULL for others.  The name of the one that the map of a
     * row gets, for workers that can't reach it; and what is to be done once all others are there: a list of them is
     * put, what only helped to go on is removed. */
    int (*blob_of)(char **name, const void *row, const learn_rows *rows);
    int (*end_blobs)(const shoal_blobs *to, const learn_ended *ended);

    const learn_predictor *predictor; /* how its models are applied; NULL: they are not */
    const learn_probe *probe;         /* NULL: its speed can't be measured by itself */
} learn_face;

/* Every learner, ended by NULL: the one list that a learner is a line of. */
extern const learn_face *const learn_faces[];

/* The learner of that name; NULL when there is none. */
const learn_face *learn_face_find(const char *learner);
/* The learner that an algorithm is, or is the predictor of; NULL when there is none. */
const learn_face *learn_face_of_algorithm(const char *algorithm);
/* All algorithms, those of predictors included, ended by NULL: what workers know. */
const shoal_algorithm *const *learn_algorithms(void);
/* The one with that name; NULL when there is none. */
const shoal_algorithm *learn_algorithm_find(const char *name);

/* The word for a number of the result that stands for one: "gradient", "iterations" or another for the "end" of a
 * descent; NULL for a number that is one. */
const char *learn_number_word(const shoal_result *result, const shoal_number *number);

/* ---- for faces --------------------------------------------------------------------------------------------------- */

/* What an option of the table accepts. */
const char *const *learn_option_choices(const shoal_option *table, const char *name);
/* What every learner says whose iterations ran out: both options raise what stopped it. */
#define LEARN_NOT_CONVERGED "not converged: raise --iterations or --tolerance"

/* "clusters   3, of 40 to 60 rows", or "of 50 rows each": how many groups there are, and how large they are. */
void learn_say_sizes(learn_lines *lines, const char *label, int64_t count, double least, double most);
/* "objective  0.42 after 30 iterations, converged": the line of a learner that went down a gradient. */
void learn_say_descent(learn_lines *lines, const learn_ended *ended);

#endif
