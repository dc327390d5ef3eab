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
#include "data/image/picture.h"
#include "data/image/picture_shape.h"
#include "learn/model_file.h"

/* ---- what a run is given ----------------------------------------------------------------------------------------- */

/* Files and words beside the rows and the learner's own options; a face lists those it takes as options of this. */
typedef struct learn_inputs {
    const char *weights;     /* a file with a weight for each row */
    const char *target;      /* what is known of each row: a column, by name or number, or a file */
    bool target_is_column;   /* also if there is a file of that name: a job's own note says so */
    const char *start;       /* a model to start from, */
    bool planned;            /* the run is only planned: nothing was said about a start */
    const char *start_names; /* and what its layers are called, with commas between; NULL: as they are */
    bool standardise;        /* columns are brought to mean 0 and standard deviation 1 */
    /* How rows are arranged (learn_arrangement); `held` is only set where a job's own note says what it was. */
    const char *held, *held_target;
    bool held_target_is_column, shuffle_rows, of_job;
} learn_inputs;

/* Which rows a run has beside those of DATA, and in which order (run/arrange.h). */
typedef struct learn_arrangement {
    const char *held, *held_target; /* rows of this file are held out; NULL: none, or some of DATA's */
    bool shuffle;                   /* rows of DATA are put in random order first, which is a function of */
    uint64_t seed;
    int64_t *held_rows; /* of the config: set to how many rows `held` has */
} learn_arrangement;

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
    shoal_type type, own_type;  /* own: of the values beside the target */
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
    double seconds;         /* that rounds took, but for the first phase; 0 when that is not known */
} learn_ended;

/* What a round says to people while a run goes. */
typedef struct learn_told {
    char line[160];       /* how far it is, in words, instead of phase, step and objective; "" for those */
    double done;          /* with a line: the share of the run that is done, */
    double rows;          /* how many rows it has gone through, each as often as it did, */
    bool may_end;         /* and whether it may end before all is done */
    char warning[320];    /* of the rows; said once.  "" for none */
    int64_t row;          /* so many rows of the result's "history" are known, */
    const double *values; /* and these are the values of the last of them */
} learn_told;

/* ---- what it gives ----------------------------------------------------------------------------------------------- */

typedef enum learn_output_kind {
    LEARN_TENSOR,  /* the tensor of the result that has the output's name, as an array */
    LEARN_MODEL,   /* the model: safetensors of the face's parts */
    LEARN_PICTURE, /* what `draw` gives, as .png or .svg */
    LEARN_PLOT,    /* the rows as dots in the colours of their groups, which `plot` gives, as .png or .svg */
    LEARN_APPLIED, /* the model's prediction for the rows it was trained on, as an array */
    LEARN_RESULT,  /* all there is: an array when that is one tensor, or .safetensors */
    LEARN_CHART,   /* what `chart` gives: curves side by side, as .png or .svg */
    LEARN_SHEET,   /* what `show` gives of the blobs that maps put, as .png or .svg */
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

/* Numbers over the same x, or two of one kind, and which of them is picked. */
typedef struct learn_curve {
    const char *name;
    const double *values;  /* NaN where there is none */
    double picked;         /* at this x; NaN for none */
    const char *rule;      /* that picks it */
    const double *others;  /* NULL for none; the rule picks among these if there are any */
    int64_t stride;        /* from one to the next; 0 means 1 */
    const char *called[2]; /* what both are called, where there are others */
} learn_curve;

/* Weights as small images. */
typedef struct learn_filters {
    const float *values; /* images * channels * height * width, channels 1 or 3; NULL for none */
    int64_t images, channels, height, width;
    char title[96];
} learn_filters;

enum { LEARN_CURVES_MOST = 4 };

typedef struct learn_chart {
    const char *title, *x_name;
    const int64_t *x; /* increasing; NULL: 1, 2, ... */
    int64_t count;
    int curves;
    learn_curve curve[LEARN_CURVES_MOST];
    learn_filters filters; /* below the curves */
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

/* Images in colour side by side, each with its name. */
typedef struct learn_shown {
    unsigned char *pixels;         /* images * height * width * 3 */
    int64_t images, height, width; /* images: as many as have a name */
    char **names, *title;
} learn_shown;

void learn_shown_release(learn_shown *shown);

/* Parts of a model besides those that the result has as they are. */
enum { LEARN_COMPOSED_MOST = 768 };

typedef struct learn_composed {
    int tensors;
    data_tensor tensor[LEARN_COMPOSED_MOST]; /* their names belong to this */
    const char *key;                         /* of the metadata; NULL for none */
    char *text;
} learn_composed;

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
    bool foreign_start; /* it may hold tensors that another program wrote, and classes that are others */
    /* Optional.  How the rows of a run are arranged. */
    void (*arrange)(learn_arrangement *out, void *config, const learn_inputs *inputs);
    /* Optional.  Sets what depends on the rows, and reads the start, into config; what that then points to is in
     * `values`, which the caller frees. */
    int (*settle)(void *config, double *values[4], const learn_inputs *inputs, const learn_rows *rows);
    /* Optional.  After `settle`: a sentence about what the run starts from, if people should know it before the run;
     * the caller frees it. */
    int (*tell_start)(char **out, const void *config, const learn_rows *rows);
    /* Optional.  About how many bytes rounds take beside the rows, once and for each thread: a run here for which there
     * are not so many is refused. */
    int (*need)(double *all, double *each, const void *config, const learn_rows *rows);
    /* Optional.  Starts from values in memory, which have as many columns as the rows. */
    int (*start_from)(void *config, const double *values, int64_t rows);
    /* Optional.  Sets what only a result tells, for `cost`. */
    void (*learnt)(void *config, const shoal_result *result);

    /* Optional.  A text about what a run would do with these rows, which --describe prints instead; the caller frees
     * it.  Without rows, all that they say is zero and the options are not settled. */
    int (*describe)(char **out, const void *config, const learn_rows *rows);
    /* Optional.  What a round that is about to be mapped says, which may be from anyone, or once there is no more, with
     * `round` NULL, the result.  `config` is NULL where it is not known, *out is zero before. */
    void (*tell_round)(learn_told *out, const void *config, const shoal_round *round, const shoal_result *result);
    const char *const *history; /* what the columns of the result's "history" are called, ended by NULL; NULL: none */
    /* Optional.  Lines between "data" and "time". */
    void (*summarise)(learn_lines *lines, const learn_ended *ended);
    /* Optional.  A sentence about a run that was stopped, or whose result says that it "diverged"; the caller frees
     * it. */
    int (*tell_end)(char **out, const learn_ended *ended);
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
    /* Optional.  More tensors of a model, and a text of its metadata, for learners whose tensors have names and shapes
     * that only a run tells.  What *out points to, names and text, is the caller's to free, values are not. */
    int (*compose)(learn_composed *out, const learn_ended *ended);
    /* Optional.  Whole numbers that the model's metadata have besides, or instead of what they usually have. */
    void (*annotate)(shoal_result *facts, const learn_ended *ended);

    /* Of learners whose maps get and put blobs (shoal_crew), NULL for others.  The name of the one that the map of a
     * row gets, NULL for none, for workers that can't reach it; and what is to be done once all others are there: a
     * list of them is put, what only helped to go on is removed. */
    int (*blob_of)(char **name, const void *row, const learn_rows *rows);
    int (*end_blobs)(const shoal_blobs *to, const learn_ended *ended);
    /* Optional.  Before the first map: whether blobs may be put there, and removes what a run that was killed has left
     * and this one will not replace.  `names` has those of all blobs there as its keys; `begun` has no result. */
    int (*begin_blobs)(const shoal_blobs *to, const json_t *names, const learn_ended *begun);
    /* LEARN_SHEET: images among them, after `end_blobs`; what is in *out is released also after a failure. */
    int (*show)(learn_shown *out, const shoal_blobs *to, const learn_ended *ended);

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
