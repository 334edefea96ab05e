// The course's kernel file by itself, without Python: what it registers, and its fixed kernels.
#include "aligned_array.h"
#include "check.h"

namespace needle {
namespace cpu {
void Fill(AlignedArray* out, scalar_t val);
void Compact(const AlignedArray& a, AlignedArray* out, const Dims& shape, const Dims& strides, int64_t offset);
void Matmul(const AlignedArray& a, const AlignedArray& b, AlignedArray* out, int64_t m, int64_t n, int64_t p);
void MatmulTiled(const AlignedArray& a, const AlignedArray& b, AlignedArray* out, int64_t m, int64_t n, int64_t p);
void ReduceMax(const AlignedArray& a, AlignedArray* out, size_t reduce_size);
}  // namespace cpu
}  // namespace needle

using namespace needle::cpu;

TEST(course_file_registers_every_element_wise_kernel) {
  EXPECT(needle::Registered<EwiseUnary>::Rows().size() == 3);
  EXPECT(needle::Registered<EwiseBinary>::Rows().size() == 6);
  EXPECT(needle::Registered<EwiseScalar>::Rows().size() == 7);
}

TEST(course_blank_says_which_part_it_is) {
  try {
    Blank("hw3/compact");
  } catch (const needle::NotImplemented& error) {
    EXPECT(error.what() == std::string("hw3/compact is not implemented yet"));
    return;
  }
  EXPECT(!"Blank must throw");
}

TEST(course_compact_walks_a_transpose) {
  AlignedArray a(6), out(6);
  for (size_t i = 0; i < 6; i++) a.ptr[i] = static_cast<float>(i);
  Compact(a, &out, {3, 2}, {1, 3}, 0);
  const float wanted[] = {0, 3, 1, 4, 2, 5};
  for (size_t i = 0; i < 6; i++) EXPECT(out.ptr[i] == wanted[i]);
}

TEST(course_tiled_matmul_equals_the_plain_one_on_one_block) {
  AlignedArray a(64), b(64), plain(64), tiled(64);
  const std::vector<float> left = SmallNumbers<float>(64, 12), right = SmallNumbers<float>(64, 13);
  for (size_t i = 0; i < 64; i++) a.ptr[i] = left[i], b.ptr[i] = right[i];
  Fill(&plain, 7);
  Fill(&tiled, 7);  // both must clear what was there
  Matmul(a, b, &plain, 8, 8, 8);
  MatmulTiled(a, b, &tiled, 8, 8, 8);
  for (size_t i = 0; i < 64; i++) EXPECT(plain.ptr[i] == tiled.ptr[i]);
}

TEST(course_reduce_max_of_negative_numbers_is_negative_U076) {
  AlignedArray a(4), out(2);
  Fill(&a, -5);
  ReduceMax(a, &out, 2);
  EXPECT(out.ptr[0] == -5 && out.ptr[1] == -5);
}
