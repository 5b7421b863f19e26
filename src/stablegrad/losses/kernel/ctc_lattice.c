/* The sums over all alignments of a row. The numbers are those of losses/jax/lattice.py: a mantissa and an exponent of
   its own for each state, blanks and labels apart, every sum taken relative to its greatest term. */
#include <math.h>

#include "ctc_row.h"
#include "vector.h"

typedef struct {
  float *bm, *be, *lm, *le; /* blanks and labels, mantissas and exponents */
} states;

static states states_at(float *memory, int64_t stride) {
  float *start = memory + LANES; /* room for a vector before and behind each array */
  return (states){start, start + stride, start + 2 * stride, start + 3 * stride};
}

/* Zero everywhere, what stands behind the last state included. */
static void clear(states s, int64_t width) {
  for (int64_t n = 0; n <= width; n++) {
    s.bm[n] = s.lm[n] = 0;
    s.be[n] = s.le[n] = LOWEST;
  }
}

static inline vector top(vector mantissa, vector exponent) { return exponent + exponent_of(mantissa); }

/* The states after a frame from those before it. */
static void step(const row_workspace *w, states old, states new, int64_t t) {
  const float *ym = w->label_mantissa + t * w->width, *ye = w->label_exponent + t * w->width;
  const vector blank_mantissa = all(w->blank_mantissa[t]), blank_exponent = all(w->blank_exponent[t]);
  vector last_m = all(0), last_e = all(LOWEST);
  for (int64_t n = 0; n < w->width; n += LANES) {
    const vector bm = load(old.bm + n), be = load(old.be + n), lm = load(old.lm + n), le = load(old.le + n);
    const vector sm = moved_on(last_m, lm), se = moved_on(last_e, le);
    last_m = lm, last_e = le;
    const vector jm = sm * load(w->jump + n), je = se + load(w->jump_exponent + n);
    const vector above = larger(all(LOWEST), top(bm, be)); /* where all are 0 there is no exponent */
    const vector to_blank = larger(above, top(sm, se));
    const vector to_label = larger(larger(above, top(lm, le)), top(jm, je));
    store(new.bm + n, (scaled(bm, be - to_blank) + scaled(sm, se - to_blank)) * blank_mantissa);
    store(new.be + n, to_blank + blank_exponent);
    const vector m = scaled(bm, be - to_label) + scaled(lm, le - to_label) + scaled(jm, je - to_label);
    store(new.lm + n, m * load(ym + n));
    store(new.le + n, to_label + load(ye + n));
  }
}

/* Far out, where whole exponents are not all floats, differences of sums of them do not hold: there the shares of a
   frame are taken relative to each other instead of to all alignments. `far` holds mantissas and exponents of the
   blanks, then of the labels. */
static void share_out(row_workspace *w, const float *far, int64_t t) {
  const int64_t width = w->width;
  vector most = all(LOWEST * 8);
  for (int64_t n = 0; n < 2 * width; n += LANES) {
    const float *mantissa = far + (n < width ? n : n + width);
    const vector m = load(mantissa), e = top(m, load(mantissa + width));
    most = larger(where_less(all(0), m, e, most), most);
  }
  float greatest = most[0];
  for (int k = 1; k < LANES; k++) greatest = most[k] > greatest ? most[k] : greatest;
  vector in_blank = all(0), in_label = all(0);
  for (int64_t n = 0; n < width; n += LANES) {
    in_blank += scaled(load(far + n), load(far + width + n) - greatest);
    const vector label = scaled(load(far + 2 * width + n), load(far + 3 * width + n) - greatest);
    store(w->share + t * width + n, label);
    in_label += label;
  }
  const float sum = sum_of_lanes(in_blank) + sum_of_lanes(in_label);
  w->blank_share[t] = sum_of_lanes(in_blank) / sum;
  for (int64_t n = 0; n < width; n++) w->share[t * width + n] /= sum;
}

/* One frame backwards: from the ways on at frame t + 1, that frame included, to those at frame t; and the share of
   alignments in each state of frame t. */
static void step_back(row_workspace *w, states after, states new, states there, int64_t t, float total_mantissa,
                      float total_exponent, float *far) {
  const float *ym = w->label_mantissa + t * w->width, *ye = w->label_exponent + t * w->width;
  const vector blank_mantissa = all(w->blank_mantissa[t]), blank_exponent = all(w->blank_exponent[t]);
  vector in_blank = all(0);
  for (int64_t n = 0; n < w->width; n += LANES) {
    const vector bm = load(after.bm + n), be = load(after.be + n), lm = load(after.lm + n), le = load(after.le + n);
    const vector nbm = load(after.bm + n + 1), nbe = load(after.be + n + 1);
    const vector jm = load(after.lm + n + 1) * load(w->jump + n + 1);
    const vector je = load(after.le + n + 1) + load(w->jump_exponent + n + 1);
    const vector above = larger(all(LOWEST), top(lm, le));
    const vector from_blank = larger(above, top(bm, be));
    const vector from_label = larger(larger(above, top(nbm, nbe)), top(jm, je));
    const vector b = scaled(bm, be - from_blank) + scaled(lm, le - from_blank);
    const vector l = scaled(lm, le - from_label) + scaled(nbm, nbe - from_label) + scaled(jm, je - from_label);
    const vector blank = load(there.bm + n) * b * total_mantissa, label = load(there.lm + n) * l * total_mantissa;
    const vector of_blank = load(there.be + n) + from_blank, of_label = load(there.le + n) + from_label;
    in_blank += scaled(blank, of_blank - total_exponent);
    store(w->share + t * w->width + n, scaled(label, of_label - total_exponent));
    if (far) {
      store(far + n, blank), store(far + w->width + n, of_blank);
      store(far + 2 * w->width + n, label), store(far + 3 * w->width + n, of_label);
    }
    store(new.bm + n, b * blank_mantissa);
    store(new.be + n, from_blank + blank_exponent);
    store(new.lm + n, l * load(ym + n));
    store(new.le + n, from_label + load(ye + n));
  }
  w->blank_share[t] = sum_of_lanes(in_blank);
  if (far) share_out(w, far, t);
}

static float loss_of(row_workspace *w, const ctc_problem *p, states end, float *mantissa, float *exponent) {
  const int64_t s = w->count;
  float m = end.bm[s], e = end.be[s];
  if (s > 0) {
    int from, other;
    frexpf(m, &from);
    frexpf(end.lm[s - 1], &other);
    float greatest = e + from, of_label = end.le[s - 1] + other;
    if (m == 0 || (end.lm[s - 1] != 0 && of_label > greatest)) greatest = of_label;
    m = (float)(ldexp(m, e - greatest < -300 ? -300 : (int)(e - greatest)) +
                ldexp(end.lm[s - 1], end.le[s - 1] - greatest < -300 ? -300 : (int)(end.le[s - 1] - greatest)));
    e = greatest;
  }
  *mantissa = m;
  *exponent = e;
  w->impossible = m == 0;
  if (m == 0) return INFINITY;
  double loss = -(log((double)m) + (double)e * 0.69314718055994531);
  if (p->are_logits && loss < 0.69314718055994531) loss = -log1p(-row_probability_of_others(w, p));
  return (float)loss;
}

void row_alignments(row_workspace *w, const ctc_problem *p) {
  if (w->invalid) {
    if (p->loss) p->loss[w->row] = NAN;
    return;
  }
  const int64_t block = 4 * w->stride;
  states there = states_at(w->states, w->stride);
  clear(there, w->width);
  there.bm[0] = 1;
  there.be[0] = 0;
  for (int64_t t = 0; t < w->frames; t++) {
    states next = states_at(w->states + (t + 1) * block, w->stride);
    step(w, states_at(w->states + t * block, w->stride), next, t);
  }
  float mantissa, exponent;
  const float loss = loss_of(w, p, states_at(w->states + w->frames * block, w->stride), &mantissa, &exponent);
  if (p->loss) p->loss[w->row] = loss;
  if (!p->result || w->impossible) return;

  /* After the last frame: certain in the last blank, reached from there or from the last label. */
  states after = states_at(w->back, w->stride), new = states_at(w->back + block + LANES, w->stride);
  clear(after, w->width);
  clear(new, w->width);
  after.bm[w->count] = 1;
  after.be[w->count] = 0;
  float *far = fabsf(exponent) > 4194304 ? w->far : 0;
  for (int64_t t = w->frames - 1; t >= 0; t--) {
    states at = states_at(w->states + (t + 1) * block, w->stride);
    step_back(w, after, new, at, t, 1 / mantissa, exponent, far);
    states swap = after;
    after = new;
    new = swap;
  }
}
