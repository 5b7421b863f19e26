/* Vectors of floats as the compiler's vector extension gives them, as wide as the processor's registers. */
#ifndef STABLEGRAD_VECTOR_H
#define STABLEGRAD_VECTOR_H

#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)
#include <immintrin.h>
#define LANES 16
#elif defined(__AVX__)
#include <immintrin.h>
#define LANES 8
#else
#define LANES 4
#endif

typedef float vector __attribute__((vector_size(4 * LANES)));
typedef int32_t whole __attribute__((vector_size(4 * LANES)));

static inline vector load(const float *from) {
  vector v;
  memcpy(&v, from, sizeof v);
  return v;
}

static inline void store(float *to, vector v) { memcpy(to, &v, sizeof v); }

static inline vector all(float x) { return x - (vector){0}; }

/* a < b ? x : y */
static inline vector where_less(vector a, vector b, vector x, vector y) {
#if defined(__AVX512F__)
  return (vector)_mm512_mask_blend_ps(_mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_LT_OQ), (__m512)y, (__m512)x);
#else
  const whole less = a < b;
  return (vector)((less & (whole)x) | (~less & (whole)y));
#endif
}

/* x > y ? x : y, so that NaN in either gives y. */
static inline vector larger(vector x, vector y) {
#if defined(__AVX512F__)
  return (vector)_mm512_max_ps((__m512)x, (__m512)y);
#elif defined(__AVX__)
  return (vector)_mm256_max_ps((__m256)x, (__m256)y);
#else
  return where_less(y, x, x, y);
#endif
}

static inline float sum_of_lanes(vector v) {
  float sum = 0;
  for (int i = 0; i < LANES; i++) sum += v[i];
  return sum;
}

/* x * 2**exponent for a whole exponent; 0 far below the range. Normal x, or 0. */
static inline vector scaled(vector x, vector exponent) {
#if defined(__AVX512F__)
  return (vector)_mm512_scalef_ps((__m512)x, (__m512)exponent);
#else
  exponent = larger(exponent, all(-127.0f));
  exponent = -larger(-exponent, all(-127.0f));
  return x * (vector)((__builtin_convertvector(exponent, whole) + 127) << 23);
#endif
}

/* The exponent e of x = m * 2**e, 1 <= m < 2, for x >= 0; -127 or -inf for 0. */
static inline vector exponent_of(vector x) {
#if defined(__AVX512F__)
  return (vector)_mm512_getexp_ps((__m512)x);
#else
  return __builtin_convertvector(((whole)x >> 23) - 127, vector);
#endif
}

/* The nearest whole number, however large. */
static inline vector rounded(vector x) {
#if defined(__AVX512F__)
  return (vector)_mm512_roundscale_ps((__m512)x, 0);
#else
  const vector zero = all(0), limit = all(8388608.0f); /* from 2**23 on every float is whole */
  const vector large = where_less(x, zero, -limit, limit);
  const vector near = (x + large) - large;
  return where_less(where_less(x, zero, -x, x), limit, near, x);
#endif
}

/* The elements of x moved on by one, after the last of `before`. */
static inline vector moved_on(vector before, vector x) {
#if defined(__AVX512F__)
  return (vector)_mm512_alignr_epi32((__m512i)x, (__m512i)before, 15);
#elif LANES == 8
  return (vector){before[7], x[0], x[1], x[2], x[3], x[4], x[5], x[6]};
#else
  return (vector){before[3], x[0], x[1], x[2]};
#endif
}

static inline vector nearest(vector x) {
  const vector large = all(12582912.0f); /* 1.5 * 2**23: what is added to it is rounded to a whole number */
  return (x + large) - large;
}

/* exp(r) for |r| <= 0.36, to half a unit in the last place or a little more. */
static inline vector small_exponential(vector r) {
  vector p = all(1.3888889e-3f);
  p = p * r + 8.3333333e-3f;
  p = p * r + 4.1666667e-2f;
  p = p * r + 1.6666667e-1f;
  p = p * r + 0.5f;
  return (p * r) * r + r + 1.0f;
}

#define LOG2_E 1.44269504f
#define LN2_HIGH 0.693359375f /* 9 bits: its multiples up to 2**15 are exact, with or without a fused product */
#define LN2_LOW -2.12194440e-4f

/* exp(x) for x <= 0; NaN of NaN. */
static inline vector exponential(vector x) {
  x = larger(all(-104.0f), x); /* in this order NaN stays */
  vector k = nearest(x * LOG2_E);
  vector r = (x - k * LN2_HIGH) - k * LN2_LOW;
  return scaled(small_exponential(r), k);
}

#endif
