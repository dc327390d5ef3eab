/* Every learner.  To add one, write its folder and add its face here. */
#include "face.h"

extern const learn_face learn_kmeans, learn_logistic, learn_bayes, learn_autoencoder, learn_exec, learn_of_module,
    learn_pack, learn_train;

const learn_face *const learn_faces[] = {
    &learn_kmeans, &learn_logistic, &learn_bayes, &learn_autoencoder, &learn_exec, &learn_of_module,
    &learn_pack,   &learn_train,    NULL,
};
