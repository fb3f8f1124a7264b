//===- Norms.cpp - RMSNorm and LayerNorm, forward and backward ------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/kernels/isa/Rows.h"

namespace reckon::device::RECKON_ISA {

namespace {

/// Sum over a row of f(i, n), where f gives lanes [i, i + n). Lane sums go to
/// f64 every 64 vectors so that the error does not grow with the row.
template <typename Lanes> RECKON_INLINE double rowSum(int64_t n, Lanes lanes) {
  double total = 0.0;
  int64_t i = 0;
  while (i + W <= n) {
    int64_t stop = i + 64 * W < n ? i + 64 * W : n;
    F a{}, b{};
    for (; i + 2 * W <= stop; i += 2 * W) {
      a += lanes(i, W);
      b += lanes(i + W, W);
    }
    for (; i + W <= stop; i += W)
      a += lanes(i, W);
    total += sum(a + b);
  }
  if (i < n)
    total += sum(lanes(i, n - i));
  return total;
}

template <typename T>
RECKON_INLINE float inverse(const T *x, int64_t h, float eps) {
  double squares = rowSum(h, [=](int64_t i, int64_t n) {
    F v = take(x + i, n);
    return v * v;
  });
  return static_cast<float>(
      1.0 / __builtin_sqrt(squares / static_cast<double>(h) + eps));
}

struct Stats {
  float mean, rstd;
};

/// A row's mean and 1 / sqrt(variance + eps). The variance is that of
/// differences to the mean: E(x^2) - E(x)^2 would lose what a large mean leaves
/// of it.
template <typename T>
RECKON_INLINE Stats statistics(const T *x, int64_t h, float eps) {
  double total =
      rowSum(h, [=](int64_t i, int64_t n) { return take(x + i, n); });
  auto mean = static_cast<float>(total / static_cast<double>(h));
  double squares = rowSum(h, [=](int64_t i, int64_t n) {
    // Lanes behind the row are 0 and would count mean^2.
    F v = (n == W ? load(x + i) : loadPart(x + i, n, mean)) - mean;
    return v * v;
  });
  return {mean,
          static_cast<float>(
              1.0 / __builtin_sqrt(squares / static_cast<double>(h) + eps))};
}

} // namespace

template <typename T>
void Norms<T>::rmsNorm(const T *x, const T *w, T *y, int64_t rows, int64_t h,
                       float eps) {
  for (int64_t r = 0; r < rows; ++r, x += h, y += h) {
    float rstd = inverse(x, h, eps);
    int64_t i = 0;
    for (; i + W <= h; i += W)
      store(y + i, load(x + i) * rstd * load(w + i));
    for (; i < h; ++i)
      store1(y + i, load1(x + i) * rstd * load1(w + i));
  }
}

template <typename T>
void Norms<T>::rmsInverse(const T *x, float *rstd, int64_t rows, int64_t h,
                          float eps) {
  for (int64_t r = 0; r < rows; ++r)
    rstd[r] = inverse(x + r * h, h, eps);
}

// With n = x * rstd: dx = rstd * (dy * w - n * mean(dy * w * n)).
template <typename T>
void Norms<T>::rmsNormGradInput(const T *dy, const T *x, const T *w, T *dx,
                                int64_t rows, int64_t h, float eps) {
  for (int64_t r = 0; r < rows; ++r, dy += h, x += h, dx += h) {
    float rstd = inverse(x, h, eps);
    double dot = rowSum(h, [=](int64_t i, int64_t n) {
      return take(dy + i, n) * take(w + i, n) * take(x + i, n);
    });
    float mean = static_cast<float>(dot * rstd / static_cast<double>(h)) * rstd;
    int64_t i = 0;
    for (; i + W <= h; i += W)
      store(dx + i, (load(dy + i) * load(w + i) - load(x + i) * mean) * rstd);
    for (; i < h; ++i)
      store1(dx + i,
             (load1(dy + i) * load1(w + i) - load1(x + i) * mean) * rstd);
  }
}

template <typename T>
void Norms<T>::rmsNormGradWeight(const T *dy, const T *x, const float *rstd,
                                 float *gw, int64_t rows, int64_t h,
                                 int64_t begin, int64_t end, bool accumulate) {
  // Blocks of rows keep the f32 sums short, panels of columns keep the running
  // sums in registers.
  constexpr int64_t block = 64;
  auto panel = [&](int64_t c, int64_t n) {
    F total = accumulate ? take(gw + c, n) : F{};
    for (int64_t first = 0; first < rows; first += block) {
      int64_t last = first + block < rows ? first + block : rows;
      F part{};
      for (int64_t r = first; r < last; ++r)
        part += take(dy + r * h + c, n) * take(x + r * h + c, n) * rstd[r];
      total += part;
    }
    put(gw + c, total, n);
  };
  constexpr int64_t panels = 4;
  int64_t c = begin;
  for (; c + panels * W <= end; c += panels * W) {
    F total[panels];
    for (int64_t j = 0; j < panels; ++j)
      total[j] = accumulate ? load(gw + c + j * W) : F{};
    for (int64_t first = 0; first < rows; first += block) {
      int64_t last = first + block < rows ? first + block : rows;
      F part[panels] = {};
      for (int64_t r = first; r < last; ++r)
        for (int64_t j = 0; j < panels; ++j)
          part[j] += load(dy + r * h + c + j * W) *
                     load(x + r * h + c + j * W) * rstd[r];
      for (int64_t j = 0; j < panels; ++j)
        total[j] += part[j];
    }
    for (int64_t j = 0; j < panels; ++j)
      store(gw + c + j * W, total[j]);
  }
  for (; c + W <= end; c += W)
    panel(c, W);
  if (c < end)
    panel(c, end - c);
}

template <typename T>
void Norms<T>::layerNorm(const T *x, const T *w, const T *b, T *y, int64_t rows,
                         int64_t h, float eps) {
  for (int64_t r = 0; r < rows; ++r, x += h, y += h) {
    auto [mean, rstd] = statistics(x, h, eps);
    int64_t i = 0;
    for (; i + W <= h; i += W)
      store(y + i, (load(x + i) - mean) * rstd * load(w + i) + load(b + i));
    for (; i < h; ++i)
      store1(y + i, (load1(x + i) - mean) * rstd * load1(w + i) + load1(b + i));
  }
}

template <typename T>
void Norms<T>::layerNormStats(const T *x, float *means, float *rstds,
                              int64_t rows, int64_t h, float eps) {
  for (int64_t r = 0; r < rows; ++r) {
    auto [mean, rstd] = statistics(x + r * h, h, eps);
    means[r] = mean;
    rstds[r] = rstd;
  }
}

// With n = (x - mean) * rstd and g = dy * w:
// dx = rstd * (g - mean(g) - n * mean(g * n)).
template <typename T>
void Norms<T>::layerNormGradInput(const T *dy, const T *x, const T *w, T *dx,
                                  int64_t rows, int64_t h, float eps) {
  auto count = static_cast<double>(h);
  for (int64_t r = 0; r < rows; ++r, dy += h, x += h, dx += h) {
    auto [mean, rstd] = statistics(x, h, eps);
    double total = rowSum(h, [=](int64_t i, int64_t n) {
      return take(dy + i, n) * take(w + i, n);
    });
    // Lanes behind the row have dy = 0.
    double dot = rowSum(h, [=, mean = mean](int64_t i, int64_t n) {
      return take(dy + i, n) * take(w + i, n) * (take(x + i, n) - mean);
    });
    auto level = static_cast<float>(total / count);
    float along = static_cast<float>(dot * rstd / count) * rstd;
    int64_t i = 0;
    for (; i + W <= h; i += W)
      store(dx + i, (load(dy + i) * load(w + i) - level -
                     (load(x + i) - mean) * along) *
                        rstd);
    for (; i < h; ++i)
      store1(dx + i, (load1(dy + i) * load1(w + i) - level -
                      (load1(x + i) - mean) * along) *
                         rstd);
  }
}

template <typename T>
void Norms<T>::layerNormGradWeight(const T *dy, const T *x, const float *means,
                                   const float *rstds, float *gw, float *gb,
                                   int64_t rows, int64_t h, int64_t begin,
                                   int64_t end, bool accumulate) {
  // As for RMSNorm: blocks of rows keep the f32 sums short.
  constexpr int64_t block = 64;
  for (int64_t c = begin; c < end; c += W) {
    int64_t n = end - c < W ? end - c : W;
    F weight = accumulate ? take(gw + c, n) : F{};
    F bias = accumulate ? take(gb + c, n) : F{};
    for (int64_t first = 0; first < rows; first += block) {
      int64_t last = first + block < rows ? first + block : rows;
      F partW{}, partB{};
      for (int64_t r = first; r < last; ++r) {
        F d = take(dy + r * h + c, n);
        partW += d * ((take(x + r * h + c, n) - means[r]) * rstds[r]);
        partB += d;
      }
      weight += partW;
      bias += partB;
    }
    put(gw + c, weight, n);
    put(gb + c, bias, n);
  }
}

template struct Norms<float>;
template struct Norms<Bf16>;

} // namespace reckon::device::RECKON_ISA
