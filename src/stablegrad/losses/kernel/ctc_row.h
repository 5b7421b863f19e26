/* One row: its workspace, and the three stages of its computation. */
#ifndef STABLEGRAD_CTC_ROW_H
#define STABLEGRAD_CTC_ROW_H

#include "ctc.h"

#define LOWEST -1e30f /* the exponent of zero */

typedef struct {
  int64_t width;  /* states of a kind, S + 1, in whole vectors */
  int64_t stride; /* of an array of states: a vector of zeros before it */
  float *label_mantissa, *label_exponent; /* frames x width: probabilities of the labels */
  float *blank_mantissa, *blank_exponent; /* frames */
  float *peak, *inverse_size;             /* frames */
  float *states;                          /* (frames + 1) x 4 x stride */
  float *jump, *jump_exponent;            /* stride + a vector: 1 and 0 where label n may follow n - 1, else 0 and LOWEST */
  float *back;                            /* 2 x 4 x (stride + a vector) */
  float *share;                           /* frames x width: share of alignments in each label */
  float *blank_share;                     /* frames */
  float *far;                             /* 4 x width: the states of a frame, far out */
  float *distinct;                        /* width: probabilities of distinct labels */
  int32_t *first;                         /* count: where the label occurs first */
  unsigned char *contained;               /* classes: whether the target or its alignments may contain it */
  int64_t row, frames, count;
  int impossible, invalid;
} row_workspace;

int64_t row_workspace_size(const ctc_problem *problem); /* in floats */
void row_workspace_at(row_workspace *w, const ctc_problem *problem, float *memory);

void row_begin(row_workspace *w, const ctc_problem *problem, int64_t row);
void row_probabilities(row_workspace *w, const ctc_problem *problem, int64_t from, int64_t to);
void row_alignments(row_workspace *w, const ctc_problem *problem);
void row_result(row_workspace *w, const ctc_problem *problem, int64_t from, int64_t to);

double row_probability_of_others(row_workspace *w, const ctc_problem *problem);

#endif
