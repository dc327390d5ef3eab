/* Sparse autoencoders: one hidden layer that reproduces its input, by L-BFGS.
 *
 *     shoal_autoencoder_config config = {0};
 *     shoal_options_default(&config, shoal_autoencoder.options);
 *     config.hidden = 25;
 *     shoal_run(&result, NULL, &shoal_autoencoder, &config, data, NULL, NULL);
 *     const shoal_tensor *encoder = shoal_result_tensor(result, "encoder.weight");    // hidden x columns, float64
 *
 * The cost is  1/(2 rows) sum |output - row|^2 + decay/2 sum of squared weights + sparsity_weight * sum over hidden
 * units of KL(sparsity || mean activation over all rows).  docs/learn/autoencoder.md defines every term and how it is
 * computed in one round. */
#ifndef SHOAL_AUTOENCODER_H
#define SHOAL_AUTOENCODER_H

#include <shoal/learn.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum shoal_activation { SHOAL_LOGISTIC, SHOAL_TANH, SHOAL_RELU } shoal_activation;
typedef enum shoal_output { SHOAL_OUTPUT_AUTO, SHOAL_OUTPUT_SAME, SHOAL_OUTPUT_LINEAR } shoal_output;

typedef struct shoal_autoencoder_config {
    int64_t hidden;
    double sparsity;        /* target of each unit's mean activation; not for relu */
    double sparsity_weight; /* weight of the divergence from it; for relu, of the sum of mean activations; 0 for none */
    double weight_decay;
    int activation; /* shoal_activation */
    int output;     /* shoal_output; auto is as the activation, but linear for relu */
    bool tied;      /* the decoder's weights are the encoder's, transposed */
    /* "none", "auto", or "LOW:HIGH": values of the data that become the ends of the output's range. */
    const char *rescale;
    int64_t iterations, history, seed;
    double tolerance, change; /* of the gradient; relative, of the cost */
    int precision;            /* 0 auto (float64 for float64 data, else float32), 1 float32, 2 float64 */
    /* Where to start: the result of an earlier run, or NULL.  decoder is columns x hidden; NULL means the encoder
     * transposed, and is required if tied. */
    const double *start_encoder, *start_encoder_bias, *start_decoder, *start_decoder_bias;
    int64_t start_hidden, start_columns;
} shoal_autoencoder_config;

/* Tensors: encoder.weight (hidden x columns), encoder.bias, decoder.weight (columns x hidden; not when tied),
 * decoder.bias, activity (the mean activation of each hidden unit), all float64.  Numbers, besides those of every
 * gradient learner: error, decay, divergence, whose sum is the objective, and scale, shift: a value v of the data is v
 * * scale + shift to the network. */
SHOAL_API extern const shoal_algorithm shoal_autoencoder;

/* The hidden layer's values for rows, under a model: one round. */
typedef struct shoal_features_config {
    const double *encoder, *bias; /* hidden x columns; hidden */
    int64_t hidden, columns;
    int activation; /* shoal_activation */
    double scale, shift;
    int precision; /* 1 float32, 2 float64 */
} shoal_features_config;

/* Tensor: features, rows x hidden, in the type of the precision. */
SHOAL_API extern const shoal_algorithm shoal_features;

#ifdef __cplusplus
}
#endif
#endif
