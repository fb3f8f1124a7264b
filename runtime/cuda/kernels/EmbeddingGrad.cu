//===- EmbeddingGrad.cu - the deterministic gradient of a table -----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Every word's gradient is the sum of dy over its tokens, in their order. So
// tokens are first listed by word:
//
//   count     how often each word occurs (integer atomics: order is no matter)
//   place     a part of one list for each word that occurs, wherever
//   scatter   tokens into their word's part, in any order
//   order     each part by token number: a token's place is the number of
//             smaller ones in its part
//   sum       pieces of 64 tokens of one word: a block each. A word of one
//             piece is done, the others' pieces go to scratch
//   fold      adds a word's pieces, in order
//
// Integers: 12 bytes a token and 12 a word, read or written a few times; a word
// with n tokens costs n^2 comparisons of cached numbers (text of 65536 tokens,
// one word of 5 % of them: 10^7, microseconds; one word only: a millisecond).
// dy is read once; gw is written once, and cleared before if it is not
// accumulated into. Pieces are at most rows / 32 rows of f32, an eighth of dy
// in bf16 if all words are frequent, and usually far less.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/kernels/Kernels.h"
#include "runtime/cuda/kernels/Lanes.cuh"

namespace reckon::cuda {

namespace {

constexpr unsigned threads = 256;
constexpr unsigned sumThreads = 128;
/// Tokens of one piece; also the slots that a block of fold looks at.
constexpr int piece = 64;

/// The scratch, part by part.
struct Lists {
  int32_t *next;   ///< [v + 1] occurrences; from place on the next free slot,
                   ///< so at last the end of the word's part; [v] is the cursor
  int32_t *begin;  ///< [v] first slot of the word's part
  int32_t *loose;  ///< [rows] tokens by word, in any order
  int32_t *sorted; ///< [rows] tokens by word and number
  float *pieces;   ///< [2 * ceil(rows / piece), h]
  int64_t bytes;
};

Lists listsAt(void *scratch, const EmbeddingSizes &sizes) {
  int64_t used = 0;
  auto part = [&](int64_t bytes) {
    auto *at = static_cast<unsigned char *>(scratch) + used;
    used += (bytes + 255) / 256 * 256;
    return at;
  };
  Lists lists;
  lists.next = reinterpret_cast<int32_t *>(part((sizes.v + 1) * 4));
  lists.begin = reinterpret_cast<int32_t *>(part(sizes.v * 4));
  lists.loose = reinterpret_cast<int32_t *>(part(sizes.rows * 4));
  lists.sorted = reinterpret_cast<int32_t *>(part(sizes.rows * 4));
  int64_t most = 2 * ((sizes.rows + piece - 1) / piece);
  lists.pieces = reinterpret_cast<float *>(part(most * sizes.h * 4));
  lists.bytes = used;
  return lists;
}

/// A token's row of the table, or -1.
__device__ __forceinline__ int64_t wordOf(const int32_t *tokens, int64_t token,
                                          const EmbeddingSizes &sizes) {
  int64_t word = tokens[token] - sizes.offset;
  return word >= 0 && word < sizes.v ? word : -1;
}

__device__ __forceinline__ int64_t globalThread() {
  return int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
}

__global__ void __launch_bounds__(threads)
    countKernel(const int32_t *tokens, EmbeddingSizes sizes, Lists lists) {
  int64_t token = globalThread();
  if (token >= sizes.rows)
    return;
  if (int64_t word = wordOf(tokens, token, sizes); word >= 0)
    atomicAdd(lists.next + word, 1);
}

/// Parts are taken from the list by warps, each for its 32 words at once.
__global__ void __launch_bounds__(threads)
    placeKernel(EmbeddingSizes sizes, Lists lists) {
  int64_t word = globalThread();
  int count = word < sizes.v ? lists.next[word] : 0;
  int before = count; // then: of this lane and those below
#pragma unroll
  for (int lanes = 1; lanes < 32; lanes *= 2) {
    int other = __shfl_up_sync(0xffffffffu, before, lanes);
    if (threadIdx.x % 32 >= static_cast<unsigned>(lanes))
      before += other;
  }
  int first = 0;
  if (threadIdx.x % 32 == 31 && before > 0)
    first = atomicAdd(lists.next + sizes.v, before);
  first = __shfl_sync(0xffffffffu, first, 31) + before - count;
  if (word < sizes.v)
    lists.begin[word] = lists.next[word] = first;
}

__global__ void __launch_bounds__(threads)
    scatterKernel(const int32_t *tokens, EmbeddingSizes sizes, Lists lists) {
  int64_t token = globalThread();
  if (token >= sizes.rows)
    return;
  if (int64_t word = wordOf(tokens, token, sizes); word >= 0)
    lists.loose[atomicAdd(lists.next + word, 1)] = static_cast<int32_t>(token);
}

/// The slots that are in use: tokens of words of this shard.
__device__ __forceinline__ int64_t slotsOf(const EmbeddingSizes &sizes,
                                           const Lists &lists) {
  return lists.next[sizes.v];
}

__global__ void __launch_bounds__(threads)
    orderKernel(const int32_t *tokens, EmbeddingSizes sizes, Lists lists) {
  int64_t slot = globalThread();
  if (slot >= slotsOf(sizes, lists))
    return;
  int32_t token = lists.loose[slot];
  int64_t word = wordOf(tokens, token, sizes);
  int begin = lists.begin[word], end = lists.next[word];
  int place = begin;
#pragma unroll 8
  for (int i = begin; i < end; ++i)
    place += lists.loose[i] < token;
  lists.sorted[place] = token;
}

/// Row of `pieces` for the piece that starts at a slot, of a word with more
/// than one. 64 slots hold the start of at most one such word's part, and of at
/// most one piece that is not its word's first: those are 64 slots apart in one
/// part, and a part's last piece is followed by another part's first one.
__device__ __forceinline__ int64_t pieceRow(int64_t slot, int begin) {
  return slot / piece * 2 + (slot == begin);
}

/// A block for each slot that starts a piece; the others have nothing to do.
template <typename T, int N>
__global__ void __launch_bounds__(sumThreads, 8)
    sumKernel(const T *dy, const int32_t *tokens, float *gw,
              EmbeddingSizes sizes, Lists lists, bool accumulate) {
  int64_t slot = blockIdx.x;
  if (slot >= slotsOf(sizes, lists))
    return;
  int64_t word = wordOf(tokens, lists.sorted[slot], sizes);
  int begin = lists.begin[word], end = lists.next[word];
  if ((slot - begin) % piece != 0)
    return;
  bool whole = end - begin <= piece;
  int64_t h = sizes.h;
  float *to = whole ? gw + word * h : lists.pieces + pieceRow(slot, begin) * h;
  int64_t last = slot + piece < end ? slot + piece : end;
  for (int64_t i = threadIdx.x * N; i < h; i += sumThreads * N) {
    Lanes<float, N> sums;
    if (whole && accumulate)
      sums = loadLanes<N>(to + i);
    else
#pragma unroll
      for (int k = 0; k < N; ++k)
        sums.at[k] = 0.0f;
#pragma unroll 4
    for (int64_t at = slot; at < last; ++at) {
      Lanes<T, N> d = loadLanes<N>(dy + lists.sorted[at] * h + i);
#pragma unroll
      for (int k = 0; k < N; ++k)
        sums.at[k] += toFloat(d.at[k]);
    }
    storeLanes(to + i, sums);
  }
}

/// A block for every 64 slots: at most one word of more than one piece starts
/// there.
template <int N>
__global__ void __launch_bounds__(sumThreads, 8)
    foldKernel(const int32_t *tokens, float *gw, EmbeddingSizes sizes,
               Lists lists, bool accumulate) {
  RECKON_SHARED(int32_t, found);
  if (threadIdx.x == 0)
    found[0] = -1;
  __syncthreads();
  int64_t slot = int64_t{blockIdx.x} * piece + threadIdx.x;
  if (threadIdx.x < piece && slot < slotsOf(sizes, lists)) {
    int64_t word = wordOf(tokens, lists.sorted[slot], sizes);
    int begin = lists.begin[word];
    if (slot == begin && lists.next[word] - begin > piece)
      found[0] = static_cast<int32_t>(word);
  }
  __syncthreads();
  int64_t word = found[0], h = sizes.h;
  if (word < 0)
    return;
  int begin = lists.begin[word], end = lists.next[word];
  float *to = gw + word * h;
  for (int64_t i = threadIdx.x * N; i < h; i += sumThreads * N) {
    Lanes<float, N> sums;
    if (accumulate)
      sums = loadLanes<N>(to + i);
    else
#pragma unroll
      for (int k = 0; k < N; ++k)
        sums.at[k] = 0.0f;
    for (int64_t at = begin; at < end; at += piece) {
      Lanes<float, N> part =
          loadLanes<N>(lists.pieces + pieceRow(at, begin) * h + i);
#pragma unroll
      for (int k = 0; k < N; ++k)
        sums.at[k] += part.at[k];
    }
    storeLanes(to + i, sums);
  }
}

/// What the steps have in common: they stop at the first that is refused.
class Steps {
public:
  explicit Steps(cudaStream_t stream) : stream_(stream) {}
  template <typename... P, typename... A>
  Steps &run(int64_t blocks, unsigned block, void (*kernel)(P...), A... args) {
    if (error_ == cudaSuccess)
      error_ = launch({static_cast<unsigned>(blocks), block, 16, stream_},
                      kernel, args...);
    return *this;
  }
  Steps &clear(void *memory, int64_t bytes) {
    if (error_ == cudaSuccess)
      error_ = fillZero(memory, bytes, stream_);
    return *this;
  }
  cudaError_t error() const { return error_; }

private:
  cudaStream_t stream_;
  cudaError_t error_ = cudaSuccess;
};

template <typename T, int N>
cudaError_t gradient(const EmbeddingSizes &sizes, bool accumulate, const T *dy,
                     const int32_t *tokens, float *gw, const Lists &lists,
                     cudaStream_t stream) {
  auto blocks = [](int64_t count, int64_t each) {
    return (count + each - 1) / each;
  };
  int64_t byToken = blocks(sizes.rows, threads);
  Steps steps(stream);
  steps.clear(lists.next, (sizes.v + 1) * 4);
  if (!accumulate)
    steps.clear(gw, sizes.v * sizes.h * 4);
  steps.run(byToken, threads, countKernel, tokens, sizes, lists)
      .run(blocks(sizes.v, threads), threads, placeKernel, sizes, lists)
      .run(byToken, threads, scatterKernel, tokens, sizes, lists)
      .run(byToken, threads, orderKernel, tokens, sizes, lists)
      .run(sizes.rows, sumThreads, sumKernel<T, N>, dy, tokens, gw, sizes,
           lists, accumulate);
  if (sizes.rows > piece)
    steps.run(blocks(sizes.rows, piece), sumThreads, foldKernel<N>, tokens, gw,
              sizes, lists, accumulate);
  return steps.error();
}

} // namespace

int64_t embeddingGradScratch(const EmbeddingSizes &sizes) {
  return sizes.rows == 0 ? 0 : listsAt(nullptr, sizes).bytes;
}

cudaError_t embeddingGrad(Storage storage, const EmbeddingSizes &sizes,
                          bool accumulate, const void *dy,
                          const int32_t *tokens, float *gw, void *scratch,
                          cudaStream_t stream) {
  if (sizes.rows > maxGrid || sizes.v > maxGrid)
    return cudaErrorInvalidValue;
  if (sizes.rows == 0)
    return accumulate ? cudaSuccess
                      : fillZero(gw, sizes.v * sizes.h * 4, stream);
  Lists lists = listsAt(scratch, sizes);
  return withStorage(storage, [&](auto *type) {
    using T = std::remove_pointer_t<decltype(type)>;
    auto *from = static_cast<const T *>(dy);
    if (wideRows(sizes.h, from, gw))
      return gradient<T, lanesOf<T>>(sizes, accumulate, from, tokens, gw, lists,
                                     stream);
    return gradient<T, 1>(sizes, accumulate, from, tokens, gw, lists, stream);
  });
}

} // namespace reckon::cuda
