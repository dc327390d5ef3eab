/* Everything the library offers, in one include. */
#ifndef SHOAL_SHOAL_H
#define SHOAL_SHOAL_H

#include <shoal/data.h>
#include <shoal/engine.h>
#include <shoal/error.h>
#include <shoal/exec.h>
#include <shoal/job.h>
#include <shoal/autoencoder.h>
#include <shoal/kmeans.h>
#include <shoal/logistic.h>
#include <shoal/learn.h>
#include <shoal/model.h>
#include <shoal/module.h>
#include <shoal/option.h>
#include <shoal/plan.h>
#include <shoal/run.h>
#include <shoal/store.h>
#include <shoal/task.h>
#include <shoal/version.h>

#endif
