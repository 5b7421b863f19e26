/* Drives the kernel with random shapes, labels and lengths, invalid ones included, in buffers of exactly their size.
   fuzz COUNT SEED: exit status 1, and a line, for a result that cannot be right. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctc.h"

static uint64_t state;

static uint64_t any(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

static int64_t below(int64_t limit) { return limit > 0 ? (int64_t)(any() % (uint64_t)limit) : 0; }
static int chance(int64_t one_in) { return below(one_in) == 0; }

static float score(float scale, int odd) {
  if (odd && chance(20)) {
    const float values[] = {INFINITY, -INFINITY, NAN, 1e30f, -1e30f, 3e38f, -3e38f, 1e-40f, 0.0f};
    return values[below(9)];
  }
  return scale * ((float)below(20001) / 5000.0f - 2.0f);
}

static void *exactly(int64_t count, size_t size) { return malloc(count > 0 ? (size_t)count * size : 1); }

static int wrong(int64_t number, const char *what) {
  printf("case %lld: %s\n", (long long)number, what);
  return 1;
}

static int one(int64_t number) {
  ctc_problem p = {0};
  const int large = chance(50);
  p.rows = below(6);
  p.frames = below(large ? 400 : 24);
  p.classes = 1 + below(large ? 300 : 40);
  p.count = below(large ? 120 : 12);
  const int64_t padding = chance(3) ? below(5) : 0;
  const int frames_first = chance(3); /* the layout of torch */
  p.frame_stride = (p.classes + padding) * (frames_first ? (p.rows ? p.rows : 1) : 1);
  p.row_stride = frames_first ? p.classes + padding : p.frame_stride * p.frames + padding;
  p.blank = (int32_t)below(p.classes);
  p.are_logits = !chance(4);
  p.posteriors = chance(4);
  const int64_t used = p.rows && p.frames
                           ? (p.rows - 1) * p.row_stride + (p.frames - 1) * p.frame_stride + p.classes
                           : 0;
  float *scores = exactly(used, sizeof(float));
  float *result = chance(5) ? 0 : exactly(used, sizeof(float)), *again = exactly(used, sizeof(float));
  float *loss = exactly(p.rows, sizeof(float)), *loss_again = exactly(p.rows, sizeof(float));
  int32_t *labels = exactly(p.rows * p.count, sizeof(int32_t));
  int32_t *frames = exactly(p.rows, sizeof(int32_t)), *lengths = exactly(p.rows, sizeof(int32_t));
  const float scales[] = {0, 0.1f, 1, 10, 100, 1e4f, 1e9f};
  const float scale = scales[below(7)];
  const int odd = chance(3);
  /* Log-probabilities are at most 0; odd ones are anything. */
  for (int64_t i = 0; i < used; i++) {
    scores[i] = score(scale, odd);
    if (!p.are_logits && !odd) scores[i] = -fabsf(scores[i]);
  }
  if (result) memset(result, 0x7f, (size_t)used * sizeof(float));
  memset(again, 0x7f, (size_t)used * sizeof(float));
  for (int64_t i = 0; i < p.rows * p.count; i++) {
    labels[i] = (int32_t)below(p.classes);
    if (labels[i] == p.blank && !chance(30)) labels[i] = (labels[i] + 1) % (int32_t)p.classes;
    if (chance(200)) labels[i] = (int32_t)any();
    if (chance(200)) labels[i] = (int32_t)(p.classes + below(3));
    if (chance(200)) labels[i] = -(int32_t)below(3);
  }
  for (int64_t n = 0; n < p.rows; n++) {
    frames[n] = (int32_t)(chance(2) ? p.frames : below(p.frames + 1));
    lengths[n] = (int32_t)(chance(2) ? p.count : below(p.count + 1));
    if (chance(30)) frames[n] = chance(2) ? (int32_t)any() : (int32_t)(p.frames + 1);
    if (chance(30)) lengths[n] = chance(2) ? (int32_t)any() : -1;
  }
  p.scores = scores;
  p.labels = labels;
  p.input_lengths = frames;
  p.label_lengths = lengths;
  p.loss = loss;
  p.result = result;
  int bad = ctc_compute(&p, 1);
  p.loss = loss_again;
  p.result = result ? again : 0;
  bad = bad || ctc_compute(&p, chance(4) ? (int)(2 + below(7)) : 0);
  if (bad) bad = wrong(number, "no memory");
  for (int64_t n = 0; n < p.rows && !bad; n++) {
    int valid = frames[n] >= 0 && frames[n] <= p.frames && lengths[n] >= 0 && lengths[n] <= p.count;
    for (int64_t k = 0; valid && k < lengths[n]; k++) {
      const int32_t label = labels[n * p.count + k];
      valid = label >= 0 && label < p.classes && label != p.blank;
    }
    if (!valid && !isnan(loss[n])) bad = wrong(number, "an invalid row is not NaN");
    if (memcmp(&loss[n], &loss_again[n], sizeof(float)) && !(isnan(loss[n]) && isnan(loss_again[n])))
      bad = wrong(number, "another number of threads, another loss");
    if (valid && !odd && isnan(loss[n])) bad = wrong(number, "NaN from numbers");
    if (valid && !odd && p.are_logits && loss[n] < 0) bad = wrong(number, "a negative loss");
    for (int64_t t = 0; result && t < p.frames && !bad; t++)
      for (int64_t c = 0; c < p.classes && !bad; c++) {
        const int64_t at = n * p.row_stride + t * p.frame_stride + c;
        const float g = result[at], h = again[at];
        if (memcmp(&g, &h, sizeof g) && !(isnan(g) && isnan(h))) bad = wrong(number, "another number of threads");
        if (!valid && !isnan(g)) bad = wrong(number, "the result of an invalid row is not NaN");
        if (valid && t >= frames[n] && g != 0) bad = wrong(number, "the result of padding is not 0");
        if (valid && loss[n] == INFINITY && g != 0) bad = wrong(number, "the result of an impossible row is not 0");
        if (valid && !odd && !(g > -1.01f && g < 1.01f)) bad = wrong(number, "a result beyond 1");
      }
  }
  free(scores), free(result), free(again), free(loss), free(loss_again), free(labels), free(frames), free(lengths);
  return bad;
}

int main(int count, char **arguments) {
  const int64_t cases = count > 1 ? atoll(arguments[1]) : 1000;
  const uint64_t seed = count > 2 ? (uint64_t)atoll(arguments[2]) : 1;
  int64_t failed = 0;
  for (int64_t i = 0; i < cases && failed < 10; i++) {
    state = (seed << 32) ^ ((uint64_t)i * 0x9e3779b97f4a7c15u) ^ 0x2545f4914f6cdd1du;
    for (int k = 0; k < 8; k++) any();
    failed += one(i);
  }
  printf("%lld cases, %lld failed\n", (long long)cases, (long long)failed);
  return failed > 0;
}
