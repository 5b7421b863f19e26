/* Connectionist temporal classification: losses and gradients of a batch, for any framework. */
#ifndef STABLEGRAD_CTC_H
#define STABLEGRAD_CTC_H

#include <stdint.h>

typedef struct {
  const float *scores;          /* scores[row * row_stride + frame * frame_stride + class] */
  const int32_t *labels;        /* labels[row * count + n] */
  const int32_t *input_lengths; /* one a row */
  const int32_t *label_lengths; /* one a row */
  int64_t rows, frames, classes, count;
  int64_t row_stride, frame_stride; /* of scores and of result */
  int32_t blank;
  int32_t are_logits; /* else log-probabilities, taken as they are */
  float *loss;        /* one a row, or NULL */
  float *result;      /* by the layout of scores, or NULL: not computed */
  int32_t posteriors; /* the result is posteriors, else the gradient */
} ctc_problem;

/* Computes what is asked for on up to `threads` threads, 0 for one on each processor. A row whose labels or lengths are
   not valid is NaN throughout. Returns 0, or 1 where there was no memory. */
int ctc_compute(const ctc_problem *problem, int threads);

#endif
