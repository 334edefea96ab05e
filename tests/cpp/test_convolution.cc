// Convolution and its gradients against the sum that defines them, product by product.
#include <algorithm>

#include "check.h"
#include "kernels/convolution.h"

using namespace needle;

struct ConvolutionCase {
  Dims images, kernel, stride, padding, dilation;  // (N, H, W, C), (KH, KW, C / groups, F), then (rows, columns)
  int64_t groups;

  int64_t Results(size_t axis) const {
    const int64_t room = images[1 + axis] + 2 * padding[axis] - dilation[axis] * (kernel[axis] - 1) - 1;
    return room < 0 ? 0 : room / stride[axis] + 1;
  }
  Dims OutShape() const { return {images[0], Results(0), Results(1), kernel[3]}; }

  /// The place in the images that a tap of the kernel meets, or -1 where that lies outside.
  int64_t Place(size_t axis, int64_t result, int64_t tap) const {
    const int64_t place = stride[axis] * result + dilation[axis] * tap - padding[axis];
    return place < images[1 + axis] ? place : -1;
  }

  /// Call visit(element of images, of kernel, of out) for every product.
  template <typename Visit>
  void ForEachProduct(const Visit& visit) const {
    const Dims out = OutShape();
    const int64_t channels = kernel[2], filters = kernel[3] / groups;
    for (int64_t pixel = 0; pixel < out[0] * out[1] * out[2]; pixel++) {
      const int64_t n = pixel / (out[1] * out[2]), y = pixel / out[2] % out[1], x = pixel % out[2];
      for (int64_t tap = 0; tap < kernel[0] * kernel[1]; tap++) {
        const int64_t row = Place(0, y, tap / kernel[1]), column = Place(1, x, tap % kernel[1]);
        if (row < 0 || column < 0) continue;
        const int64_t seen = ((n * images[1] + row) * images[2] + column) * images[3];
        for (int64_t c = 0; c < channels; c++) {
          for (int64_t f = 0; f < kernel[3]; f++) {
            visit(seen + f / filters * channels + c, (tap * channels + c) * kernel[3] + f, pixel * kernel[3] + f);
          }
        }
      }
    }
  }
};

static int64_t SizeOf(const Dims& shape) {
  return CheckedSize("test", shape);
}

// one of each kind, at the edges of tiles, of the depth that is summed at once, and of the pieces that images are cut
// in
static const std::vector<ConvolutionCase> kCases = {
    {{1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1}, {0, 0}, {1, 1}, 1},
    {{0, 5, 5, 3}, {3, 3, 3, 2}, {1, 1}, {1, 1}, {1, 1}, 1},  // no images
    {{2, 0, 3, 2}, {3, 3, 2, 2}, {1, 1}, {2, 2}, {1, 1}, 1},  // nothing but padding
    {{2, 2, 2, 3}, {3, 3, 3, 2}, {1, 1}, {0, 0}, {1, 1}, 1},  // no results
    {{2, 7, 9, 3}, {3, 3, 3, 5}, {1, 1}, {1, 1}, {1, 1}, 1},
    {{3, 9, 8, 4}, {1, 1, 4, 35}, {1, 1}, {0, 0}, {1, 1}, 1},
    {{1, 9, 8, 5}, {3, 2, 5, 33}, {2, 3}, {2, 0}, {2, 1}, 1},
    {{1, 3, 3, 2}, {5, 5, 2, 3}, {1, 1}, {4, 4}, {2, 2}, 1},  // most taps see nothing
    {{2, 11, 10, 3}, {7, 7, 3, 16}, {4, 4}, {3, 3}, {1, 1}, 1},
    {{2, 6, 6, 40}, {3, 3, 40, 17}, {1, 1}, {1, 1}, {1, 1}, 1},     // 360 products in a sum
    {{2, 5, 6, 6}, {3, 3, 2, 9}, {1, 1}, {1, 1}, {1, 1}, 3},        // groups
    {{1, 6, 5, 4}, {2, 2, 1, 8}, {1, 2}, {1, 0}, {1, 1}, 4},        // two filters for each channel
    {{2, 6, 7, 37}, {3, 3, 1, 37}, {2, 1}, {1, 1}, {1, 2}, 37},     // depthwise
    {{3, 12, 12, 16}, {3, 3, 16, 24}, {1, 1}, {1, 1}, {1, 1}, 1},   // enough for three threads
    {{1, 100, 100, 16}, {2, 2, 16, 3}, {1, 1}, {1, 1}, {1, 1}, 1},  // several pieces
};

/// Values of a shape (N, H, W, C) as they are, or with the channels in planes and some elements before the first.
template <typename T>
struct Laid {
  std::vector<T> memory;
  Dims strides;
  int64_t offset;

  Laid(const std::vector<T>& values, const Dims& s, bool planes)
      : memory(values), strides{s[1] * s[2] * s[3], s[2] * s[3], s[3], 1}, offset(planes ? 3 : 0) {
    if (!planes) return;
    memory.assign(values.size() + 3, T(77));
    strides = {s[3] * s[1] * s[2], s[2], 1, s[1] * s[2]};
    for (size_t i = 0; i < values.size(); i++) {
      const int64_t channel = static_cast<int64_t>(i) % s[3], pixel = static_cast<int64_t>(i) / s[3];
      const int64_t image = pixel / (s[1] * s[2]);
      memory[offset + image * strides[0] + channel * strides[3] + pixel % (s[1] * s[2])] = values[i];
    }
  }
};

template <typename T>
struct ConvolutionResults {
  std::vector<T> out, bent, to_images, to_kernel, to_bias;  // bent: with bias and relu

  bool operator==(const ConvolutionResults& b) const {
    return out == b.out && bent == b.bent && to_images == b.to_images && to_kernel == b.to_kernel &&
           to_bias == b.to_bias;
  }
};

template <typename T>
struct ConvolutionOperands {
  std::vector<T> images, kernel, bias, grad;

  ConvolutionOperands(const ConvolutionCase& c, std::vector<T> (*numbers)(int64_t, unsigned))
      : images(numbers(SizeOf(c.images), 1)),
        kernel(numbers(SizeOf(c.kernel), 2)),
        bias(numbers(c.kernel[3], 3)),
        grad(numbers(SizeOf(c.OutShape()), 4)) {}
};

template <typename T>
static ConvolutionResults<T> Plain(const ConvolutionCase& c, const ConvolutionOperands<T>& x) {
  ConvolutionResults<T> wanted{std::vector<T>(x.grad.size()),
                               {},
                               std::vector<T>(x.images.size()),
                               std::vector<T>(x.kernel.size()),
                               std::vector<T>(x.bias.size())};
  c.ForEachProduct([&](int64_t image, int64_t kernel, int64_t out) {
    wanted.out[out] += x.images[image] * x.kernel[kernel];
    wanted.to_images[image] += x.grad[out] * x.kernel[kernel];
    wanted.to_kernel[kernel] += x.images[image] * x.grad[out];
  });
  wanted.bent = wanted.out;
  for (size_t i = 0; i < wanted.out.size(); i++) {
    wanted.bent[i] = std::max(T(0), wanted.bent[i] + x.bias[i % x.bias.size()]);
    wanted.to_bias[i % x.bias.size()] += x.grad[i];
  }
  return wanted;
}

/// What the kernels make of them, where 99 stood before.
template <typename T>
static ConvolutionResults<T> Fast(const ConvolutionCase& c, const ConvolutionOperands<T>& x, bool planes) {
  Laid<T> images(x.images, c.images, planes), grads(x.grad, c.OutShape(), planes);
  std::vector<T> weights = x.kernel, biases = x.bias;
  const auto room = [](const std::vector<T>& like) { return std::vector<T>(like.size(), T(99)); };
  ConvolutionResults<T> got{room(x.grad), room(x.grad), room(x.images), room(x.kernel), room(x.bias)};
  Buffer in = View(images.memory), kernel = View(weights), bias = View(biases), grad = View(grads.memory),
         out = View(got.out), bent = View(got.bent), to_images = View(got.to_images), to_kernel = View(got.to_kernel),
         to_bias = View(got.to_bias);
  const auto forward = [&](const Buffer* b, Buffer& result, bool relu) {
    Convolution(in, kernel, b, result, c.images, images.strides, images.offset, c.kernel, c.stride, c.padding,
                c.dilation, c.groups, relu);
  };
  forward(nullptr, out, false);
  forward(&bias, bent, true);
  ConvolutionToImages(grad, kernel, to_images, grads.strides, grads.offset, c.images, c.kernel, c.stride, c.padding,
                      c.dilation, c.groups);
  ConvolutionToKernel(in, grad, to_kernel, &to_bias, c.images, images.strides, images.offset, grads.strides,
                      grads.offset, c.kernel, c.stride, c.padding, c.dilation, c.groups);
  return got;
}

// sums of small whole numbers are exact, so that any order of adding gives the same bits
template <typename T>
static void ExpectConvolution(const ConvolutionCase& c) {
  const ConvolutionOperands<T> x(c, SmallNumbers<T>);
  const ConvolutionResults<T> wanted = Plain(c, x);
  ForEachSetting([&] {
    for (bool planes : {false, true}) EXPECT(Fast(c, x, planes) == wanted);
  });
}

TEST(convolution_and_its_gradients_equal_the_sum_that_defines_them) {
  for (const ConvolutionCase& c : kCases) {
    ExpectConvolution<float>(c);
    ExpectConvolution<double>(c);
  }
}

TEST(convolution_has_the_same_bits_on_any_number_of_threads) {
  for (const ConvolutionCase& c : kCases) {
    const ConvolutionOperands<float> x(c, Reals<float>);
    EXPECT(SameOnAnyThreads([&] { return Fast(c, x, false); }));
  }
}

TEST(convolution_leaves_a_nan_through_relu_and_spreads_it_no_farther_than_the_windows) {
  const ConvolutionCase c{{1, 5, 5, 2}, {3, 3, 2, 7}, {1, 1}, {1, 1}, {1, 1}, 1};
  ConvolutionOperands<float> x(c, SmallNumbers<float>);
  x.images[(1 * 5 + 2) * 2] = std::nanf("");  // row 1, column 2
  ForEachSetting([&] {
    const ConvolutionResults<float> got = Fast(c, x, false);
    for (int64_t i = 0; i < 5 * 5 * 7; i++) {
      const bool sees = i / 35 <= 2 && i / 7 % 5 >= 1 && i / 7 % 5 <= 3;
      EXPECT(std::isnan(got.bent[i]) == sees);
    }
  });
}

TEST(convolution_refuses_what_does_not_fit) {
  std::vector<float> a(2 * 4 * 4 * 3), k(3 * 3 * 3 * 5), o(2 * 4 * 4 * 5);
  Buffer images = View(a), kernel = View(k), out = View(o);
  const auto call = [&](const Dims& shape, const Dims& kernel_shape, const Dims& stride, int64_t groups) {
    Convolution(images, kernel, nullptr, out, shape, {48, 12, 3, 1}, 0, kernel_shape, stride, {1, 1}, {1, 1}, groups,
                false);
  };
  call({2, 4, 4, 3}, {3, 3, 3, 5}, {1, 1}, 1);
  EXPECT_THROW(std::invalid_argument, call({2, 4, 5, 3}, {3, 3, 3, 5}, {1, 1}, 1));  // reaches outside
  EXPECT_THROW(std::invalid_argument, call({2, 4, 4, 3}, {3, 3, 3, 5}, {0, 1}, 1));
  EXPECT_THROW(std::invalid_argument, call({2, 4, 4, 3}, {3, 3, 3, 5}, {2, 1}, 1));  // out is too large
  EXPECT_THROW(std::invalid_argument, call({2, 4, 4, 3}, {3, 3, 3, 5}, {1, 1}, 3));
}
