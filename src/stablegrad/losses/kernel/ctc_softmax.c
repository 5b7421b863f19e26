/* The classes of each frame: probabilities of what the lattice needs, and the result that it leads to. */
#include <math.h>

#include "ctc_row.h"
#include "vector.h"

static const float *frame_of(const ctc_problem *p, int64_t row, int64_t frame) {
  return p->scores + row * p->row_stride + frame * p->frame_stride;
}

/* The last, partial vector of a frame, filled up. */
static vector rest_of(const float *x, int64_t count, float fill) {
  vector v = all(fill);
  memcpy(&v, x, (size_t)count * sizeof(float));
  return v;
}

/* NaN where anything is NaN. */
static float maximum(const float *x, int64_t count) {
  vector most = all(-INFINITY);
  whole bad = {0};
  int64_t i = 0;
  for (; i + LANES <= count; i += LANES) {
    vector v = load(x + i);
    most = larger(v, most);
    bad |= v != v;
  }
  if (i < count) {
    vector v = rest_of(x + i, count - i, -INFINITY);
    most = larger(v, most);
    bad |= v != v;
  }
  float result = most[0];
  int32_t any = bad[0];
  for (int k = 1; k < LANES; k++) {
    result = most[k] > result ? most[k] : result;
    any |= bad[k];
  }
  return any ? NAN : result;
}

static float sum_of_exponentials(const float *x, int64_t count, float peak) {
  vector first = all(0), second = all(0);
  int64_t i = 0;
  for (; i + 2 * LANES <= count; i += 2 * LANES) {
    first += exponential(load(x + i) - peak);
    second += exponential(load(x + i + LANES) - peak);
  }
  for (; i + LANES <= count; i += LANES) first += exponential(load(x + i) - peak);
  if (i < count) second += exponential(rest_of(x + i, count - i, -INFINITY) - peak);
  return sum_of_lanes(first + second);
}

/* exp(x - peak) * inverse_size as mantissa and exponent: the difference is taken exactly (two-sum). NaN of inf. */
static inline void probability(vector x, vector peak, vector inverse_size, vector *mantissa, vector *exponent) {
  const vector lowest = all(LOWEST);
  const vector difference = x - peak;
  const vector back = difference - x;
  const vector lost = (x - (difference - back)) - (peak + back);
  const vector k = rounded(difference * LOG2_E);
  vector r = ((difference - k * 0.6875f) - k * 0.005645751953125f) - k * 1.42860682e-6f;
  r = larger(all(-0.5f), r + lost); /* in this order NaN stays */
  r = -larger(all(-0.5f), -r);
  *mantissa = where_less(difference, lowest, all(0), small_exponential(r)) * inverse_size;
  *exponent = where_less(difference, lowest, lowest, k);
}

void row_probabilities(row_workspace *w, const ctc_problem *p, int64_t from, int64_t to) {
  const int32_t *labels = p->labels + w->row * p->count;
  for (int64_t t = from; t < to; t++) {
    const float *x = frame_of(p, w->row, t);
    float peak = 0, inverse_size = 1;
    if (p->are_logits) {
      peak = maximum(x, p->classes);
      inverse_size = 1 / sum_of_exponentials(x, p->classes, peak);
    }
    w->peak[t] = peak;
    w->inverse_size[t] = inverse_size;
    vector mantissa, exponent;
    probability(all(x[p->blank]), all(peak), all(inverse_size), &mantissa, &exponent);
    w->blank_mantissa[t] = mantissa[0];
    w->blank_exponent[t] = exponent[0];
    float *of_label = w->label_mantissa + t * w->width;
    for (int64_t n = 0; n < w->count; n++) of_label[n] = x[labels[n]];
    for (int64_t n = w->count; n < w->width; n++) of_label[n] = -INFINITY;
    for (int64_t n = 0; n < w->width; n += LANES) {
      probability(load(of_label + n), all(peak), all(inverse_size), &mantissa, &exponent);
      store(of_label + n, mantissa);
      store(w->label_exponent + t * w->width + n, exponent);
    }
  }
}

static void fill(float *x, int64_t count, float value) {
  for (int64_t i = 0; i < count; i++) x[i] = value;
}

/* softmax of a frame, written to `out`. */
static void softmax(const float *x, float *out, int64_t count, float peak, float inverse_size) {
  int64_t i = 0;
  for (; i + LANES <= count; i += LANES) store(out + i, exponential(load(x + i) - peak) * inverse_size);
  if (i < count) {
    vector v = exponential(rest_of(x + i, count - i, -INFINITY) - peak) * inverse_size;
    memcpy(out + i, &v, (size_t)(count - i) * sizeof(float));
  }
}

void row_result(row_workspace *w, const ctc_problem *p, int64_t from, int64_t to) {
  const int32_t *labels = p->labels + w->row * p->count;
  for (int64_t t = from; t < to; t++) {
    float *out = p->result + w->row * p->row_stride + t * p->frame_stride;
    if (w->invalid) {
      fill(out, p->classes, NAN);
      continue;
    }
    if (t >= w->frames || w->impossible) {
      fill(out, p->classes, 0);
      continue;
    }
    const float sign = p->posteriors ? -1.0f : 1.0f;
    if (p->are_logits && !p->posteriors)
      softmax(frame_of(p, w->row, t), out, p->classes, w->peak[t], w->inverse_size[t]);
    else
      fill(out, p->classes, 0);
    const float *share = w->share + t * w->width;
    out[p->blank] -= sign * w->blank_share[t];
    for (int64_t n = 0; n < w->count; n++) out[labels[n]] -= sign * share[n];
  }
}

/* The probability of everything but the target, as a sum of positive terms: what leaves at each frame, and what is
   unfinished at the end. See losses/jax/confident.py. */
double row_probability_of_others(row_workspace *w, const ctc_problem *p) {
  const int32_t *labels = p->labels + w->row * p->count;
  const int64_t count = w->count;
  double others = 0;
  for (int64_t n = 0; n < count; n++) {
    w->first[n] = (int32_t)n;
    for (int64_t k = 0; k < n; k++)
      if (labels[k] == labels[n]) {
        w->first[n] = (int32_t)k;
        break;
      }
  }
  for (int64_t t = 0; t <= w->frames; t++) {
    const float *states = w->states + t * 4 * w->stride;
    const float *bm = states + LANES, *be = bm + w->stride, *lm = be + w->stride, *le = lm + w->stride;
    const int last = t == w->frames;
    float all_labels = 0, foreign = 0;
    if (!last) {
      const float *x = frame_of(p, w->row, t);
      const float *m = w->label_mantissa + t * w->width, *e = w->label_exponent + t * w->width;
      for (int64_t n = 0; n < w->width; n += LANES) store(w->distinct + n, scaled(load(m + n), load(e + n)));
      for (int64_t n = 0; n < count; n++)
        if (w->first[n] != n) w->distinct[n] = 0;
      /* What the target contains is left out by position, so that nothing has to be subtracted. */
      const float peak = w->peak[t];
      for (int64_t c = 0; c < p->classes; c += LANES) {
        float part[LANES];
        vector v = exponential((c + LANES <= p->classes ? load(x + c) : rest_of(x + c, p->classes - c, -INFINITY)) - peak);
        store(part, v);
        for (int64_t k = 0; k < LANES && c + k < p->classes; k++) foreign += w->contained[c + k] ? 0 : part[k];
      }
      foreign *= w->inverse_size[t];
      for (int64_t n = 0; n < count; n++) all_labels += w->distinct[n];
    }
    for (int64_t n = 0; n <= count; n++) {
      const double blank = ldexp(bm[n], be[n] < -2000 ? -2000 : (int)be[n]);
      const double label = ldexp(lm[n], le[n] < -2000 ? -2000 : (int)le[n]);
      if (last) {
        others += (n == count ? 0 : blank) + (n == count - 1 ? 0 : label);
        continue;
      }
      if (blank == 0 && label == 0) continue;
      float from_blank = all_labels, from_label = 0;
      if (n < count) {
        float *y = w->distinct;
        const int32_t here = w->first[n], next = n + 1 < count ? w->first[n + 1] : here;
        const float y_here = y[here], y_next = y[next];
        from_blank = 0;
        y[here] = 0;
        for (int64_t d = 0; d < count; d++) from_blank += y[d];
        y[next] = 0;
        for (int64_t d = 0; d < count; d++) from_label += y[d];
        y[next] = y_next;
        y[here] = y_here;
      }
      others += blank * ((double)foreign + from_blank) + label * ((double)foreign + from_label);
    }
  }
  return others;
}
