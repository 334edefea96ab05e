// Folding one run of numbers into one: in lanes, which the compiler turns into vectors, and in a tree over blocks, so
// that the rounding error of a sum grows with the logarithm of its length (Higham 1993, "The accuracy of floating point
// summation", section 3).  The order depends on the length alone, never on the number of threads.
#ifndef NEEDLE_KERNELS_FOLD_H_
#define NEEDLE_KERNELS_FOLD_H_

#include <cstdint>

namespace needle {

constexpr int64_t kLanes = 32;
constexpr int64_t kFoldBlock = 16 * kLanes;

/// Fold [run, run + length), of one block or less; where it is shorter than the lanes, onto `first`.  Not inlined: the
/// unrolled lanes would cost seconds of compilation at every call.
template <typename T, typename Fold>
__attribute__((noinline)) T FoldBlock(const T* run, int64_t length, T first, const Fold& fold) {
  if (length < kLanes) {
    for (int64_t i = 0; i < length; i++) first = fold(first, run[i]);
    return first;
  }
  T lane[kLanes];
  for (int64_t j = 0; j < kLanes; j++) lane[j] = run[j];
  int64_t i = kLanes;
  for (; i + kLanes <= length; i += kLanes) {
    for (int64_t j = 0; j < kLanes; j++) lane[j] = fold(lane[j], run[i + j]);
  }
  for (int64_t j = 0; i + j < length; j++) lane[j] = fold(lane[j], run[i + j]);
  for (int64_t width = kLanes / 2; width > 0; width /= 2) {
    for (int64_t j = 0; j < width; j++) lane[j] = fold(lane[j], lane[j + width]);
  }
  return lane[0];
}

/// Fold a run of any length: blocks, halved like a tree.  `first` may count more than once: it is an identity, or a
/// member of a run whose maximum is sought.
template <typename T, typename Fold>
__attribute__((noinline)) T FoldRun(const T* run, int64_t length, T first, const Fold& fold) {
  if (length <= kFoldBlock) return FoldBlock(run, length, first, fold);
  const int64_t half = length / 2 / kFoldBlock * kFoldBlock;
  const int64_t left = half ? half : kFoldBlock;
  const T folded = FoldRun(run, left, first, fold);  // before the other: memory is fetched ahead if it is read in order
  return fold(folded, FoldRun(run + left, length - left, first, fold));
}

}  // namespace needle

#endif  // NEEDLE_KERNELS_FOLD_H_
