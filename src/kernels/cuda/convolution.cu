// Implicit GEMM: a convolution is the product of the matrix of all windows (one row for each result pixel, one column
// for each kernel element) with the kernel.  That matrix repeats each image element up to KH · KW times, so it is never
// made: operands of TileProduct look its elements up (Chetlur et al. 2014, "cuDNN: efficient primitives for deep
// learning", section 3).
#include "convolution.h"

#include <algorithm>

#include "tile_product.h"

namespace needle {
namespace {

using cuda::Dense;
using cuda::LaunchTileProduct;

/// Extents as kernels take them: 32 bits, in which a GPU divides fast.
struct Geometry {
  uint32_t batch, height, width, channels;
  uint32_t kernel_height, kernel_width, filters;
  uint32_t rows, columns;  // of the result
  uint32_t stride, top, left;

  __host__ __device__ int64_t Pixels() const { return int64_t{batch} * rows * columns; }
  __host__ __device__ int64_t Taps() const { return int64_t{kernel_height} * kernel_width * channels; }
};

// ---- places ---------------------------------------------------------------------------------------------------------

/// A result pixel's window: its image, and where its first row and column lie.  A padded one may lie before the image.
struct Window {
  uint32_t image;
  int32_t row, column;
};

__device__ inline Window WindowOf(const Geometry& g, uint32_t pixel) {
  const uint32_t line = pixel / g.columns, column = pixel - line * g.columns;
  const uint32_t image = line / g.rows, row = line - image * g.rows;
  return {image, static_cast<int32_t>(row * g.stride) - static_cast<int32_t>(g.top),
          static_cast<int32_t>(column * g.stride) - static_cast<int32_t>(g.left)};
}

/// A kernel element without its filter: where in the window, and which channel.
struct Tap {
  int32_t row, column;
  uint32_t channel;
};

__device__ inline Tap TapOf(uint32_t number, uint32_t channels, uint32_t kernel_width) {
  const uint32_t place = number / channels, row = place / kernel_width;
  return {static_cast<int32_t>(row), static_cast<int32_t>(place - row * kernel_width), number - place * channels};
}

template <typename T>
__device__ T ImageAt(const Geometry& g, const T* images, Window window, Tap tap) {
  const int32_t row = window.row + tap.row, column = window.column + tap.column;
  const bool inside =
      row >= 0 && row < static_cast<int32_t>(g.height) && column >= 0 && column < static_cast<int32_t>(g.width);
  if (!inside) return T(0);
  return images[((int64_t{window.image} * g.height + row) * g.width + column) * g.channels + tap.channel];
}

// ---- operands of TileProduct ----------------------------------------------------------------------------------------

/// The matrix of windows as the left operand: (pixels, taps).  Neighbouring taps are neighbouring channels.
template <typename T>
struct Windows {
  static constexpr bool kInnerContiguous = true;
  using OuterPlace = Window;

  Geometry g;
  const T* images;

  __device__ void MoveTo(int64_t) {}
  __device__ Window Outer(int64_t i) const { return WindowOf(g, static_cast<uint32_t>(i)); }
  __device__ Tap Inner(int64_t k) const { return TapOf(static_cast<uint32_t>(k), g.channels, g.kernel_width); }
  __device__ T At(Window window, Tap tap) const { return ImageAt(g, images, window, tap); }
};

/// The same transposed: (taps, pixels).
template <typename T>
struct WindowsTransposed {
  static constexpr bool kInnerContiguous = false;
  using OuterPlace = Tap;

  Geometry g;
  const T* images;

  __device__ void MoveTo(int64_t) {}
  __device__ Tap Outer(int64_t i) const { return TapOf(static_cast<uint32_t>(i), g.channels, g.kernel_width); }
  __device__ Window Inner(int64_t k) const { return WindowOf(g, static_cast<uint32_t>(k)); }
  __device__ T At(Tap tap, Window window) const { return ImageAt(g, images, window, tap); }
};

/// Which result pixels an image pixel has paid into, as the left operand: (image pixels, kernel place and filter).
template <typename T>
struct Payments {
  static constexpr bool kInnerContiguous = true;
  using OuterPlace = Window;  // here: the image pixel itself, counted from the padding's corner

  Geometry g;
  const T* out_grad;

  __device__ void MoveTo(int64_t) {}

  __device__ Window Outer(int64_t i) const {
    const uint32_t pixel = static_cast<uint32_t>(i), line = pixel / g.width, image = line / g.height;
    return {image, static_cast<int32_t>(line - image * g.height + g.top),
            static_cast<int32_t>(pixel - line * g.width + g.left)};
  }

  __device__ Tap Inner(int64_t k) const { return TapOf(static_cast<uint32_t>(k), g.filters, g.kernel_width); }

  /// The window that has the pixel at the tap's place begins a tap before it, if one begins there.
  __device__ T At(Window pixel, Tap tap) const {
    const int32_t stride = static_cast<int32_t>(g.stride);
    const int32_t row = pixel.row - tap.row, column = pixel.column - tap.column;
    if (row < 0 || column < 0 || row % stride || column % stride) return T(0);
    const uint32_t y = row / stride, x = column / stride;
    if (y >= g.rows || x >= g.columns) return T(0);
    return out_grad[((int64_t{pixel.image} * g.rows + y) * g.columns + x) * g.filters + tap.channel];
  }
};

/// The kernel as the right operand of payments: (kernel place and filter, channels).
template <typename T>
struct KernelByChannel {
  static constexpr bool kInnerContiguous = true;  // the filters
  using OuterPlace = int64_t;

  Geometry g;
  const T* kernel;

  __device__ void MoveTo(int64_t) {}
  __device__ int64_t Outer(int64_t channel) const { return channel * g.filters; }
  __device__ int64_t Inner(int64_t k) const {
    const uint32_t place = static_cast<uint32_t>(k) / g.filters, filter = static_cast<uint32_t>(k) - place * g.filters;
    return int64_t{place} * g.channels * g.filters + filter;
  }
  __device__ T At(int64_t outer, int64_t inner) const { return kernel[outer + inner]; }
};

// ---- the sum of the pieces of a long product ------------------------------------------------------------------------

template <typename T>
__global__ void AddLayers(const T* layers, T* out, int64_t size, int64_t count) {
  GRID_STRIDE(i, size) {
    T sum = 0;
    for (int64_t layer = 0; layer < count; layer++) sum += layers[layer * size + i];
    out[i] = sum;
  }
}

template <typename T>
void LaunchAddLayers(const Buffer& layers, Buffer& out, int64_t count) {
  AddLayers<T><<<cuda::BlocksFor(out.size()), cuda::kThreads>>>(layers.as<T>(), out.as<T>(), out.size(), count);
  CUDA_CHECK(cudaGetLastError());
}

/// A kernel has few elements, and very many pixels pay into each: they are cut into pieces that blocks can share.
template <typename T>
void LaunchToKernel(const Geometry& g, const Buffer& images, const Buffer& out_grad, Buffer& out) {
  constexpr int64_t kPiece = 1024, kMostPieces = 64;
  if (out.size() == 0) return;
  const int64_t pixels = g.Pixels();
  const int64_t pieces = std::clamp<int64_t>(pixels / kPiece, 1, kMostPieces);
  const int64_t length = (pixels + pieces - 1) / pieces;
  const WindowsTransposed<T> left{g, images.as<T>()};
  const Dense<T, false> right{out_grad.as<T>(), g.filters, 0};
  if (pieces == 1) return LaunchTileProduct(left, right, out.as<T>(), {g.Taps(), pixels, g.filters, 1, 0, pixels});
  Buffer layers(pieces * out.size(), out.dtype());
  LaunchTileProduct(left, right, layers.as<T>(), {g.Taps(), pixels, g.filters, pieces, length, length});
  LaunchAddLayers<T>(layers, out, pieces);
}

// ---- checks ---------------------------------------------------------------------------------------------------------

uint32_t Small(const char* who, int64_t extent, int64_t least) {
  if (extent < least || extent > INT32_MAX) {
    Refuse(who,
           "an extent of " + std::to_string(extent) + ", wanted one from " + std::to_string(least) + " to 2147483647");
  }
  return static_cast<uint32_t>(extent);
}

void CheckSmallSize(const char* who, const Dims& shape) {
  if (CheckedSize(who, shape) > INT32_MAX) Refuse(who, "shape " + Text(shape) + " has more than 2147483647 elements");
}

Geometry CheckedGeometry(const char* who, const Dims& images, const Dims& kernel, int64_t stride, const Dims& padding) {
  if (images.size() != 4 || kernel.size() != 4 || padding.size() != 2) {
    Refuse(who, "images " + Text(images) + ", kernel " + Text(kernel) + ", padding " + Text(padding) +
                    ", wanted (N, H, W, C), (KH, KW, C, F) and (rows, columns)");
  }
  Geometry g{};
  g.batch = Small(who, images[0], 0), g.height = Small(who, images[1], 0), g.width = Small(who, images[2], 0);
  g.channels = Small(who, images[3], 0), g.filters = Small(who, kernel[3], 0), g.stride = Small(who, stride, 1);
  g.kernel_height = Small(who, kernel[0], 1), g.kernel_width = Small(who, kernel[1], 1);
  g.top = Small(who, padding[0], 0), g.left = Small(who, padding[1], 0);
  const int64_t height = int64_t{g.height} + 2 * int64_t{g.top}, width = int64_t{g.width} + 2 * int64_t{g.left};
  if (kernel[2] != images[3] || kernel[0] > height || kernel[1] > width || std::max(height, width) > INT32_MAX) {
    Refuse(who, "padded images of " + Text({images[0], height, width, images[3]}) + " with a kernel " + Text(kernel));
  }
  g.rows = static_cast<uint32_t>((height - kernel[0]) / stride + 1);
  g.columns = static_cast<uint32_t>((width - kernel[1]) / stride + 1);
  CheckSmallSize(who, images);
  CheckSmallSize(who, kernel);
  CheckSmallSize(who, {g.batch, g.rows, g.columns, std::max<int64_t>(g.filters, 1)});
  CheckSmallSize(who, {g.kernel_height, g.kernel_width, g.channels});
  CheckSmallSize(who, {g.kernel_height, g.kernel_width, g.filters});
  return g;
}

/// Where the extents say how large each array must be.
void CheckArrays(const char* who, const Geometry& g, const char* images_name, const Buffer& images,
                 const char* kernel_name, const Buffer& kernel, const char* results_name, const Buffer& results) {
  const DType dtype = images.dtype();
  CheckSize(who, images_name, images.size(), CheckedSize(who, {g.batch, g.height, g.width, g.channels}));
  CheckBuffer(who, kernel_name, kernel, g.Taps() * g.filters, dtype);
  CheckBuffer(who, results_name, results, g.Pixels() * g.filters, dtype);
}

}  // namespace

// ---- the functions that Python calls --------------------------------------------------------------------------------

void ConvForward(const Buffer& images, const Buffer& kernel, Buffer& out, const Dims& images_shape,
                 const Dims& kernel_shape, int64_t stride, const Dims& padding) {
  const char* who = "conv_forward";
  const Geometry g = CheckedGeometry(who, images_shape, kernel_shape, stride, padding);
  CheckArrays(who, g, "images", images, "kernel", kernel, "out", out);
  CheckApart(who, images, out);
  CheckApart(who, kernel, out);
  VisitOnly<FloatType>(who, images.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const Windows<T> left{g, images.as<T>()};
    const Dense<T, false> right{kernel.as<T>(), g.filters, 0};
    LaunchTileProduct(left, right, out.as<T>(), {g.Pixels(), g.Taps(), g.filters, 1, 0, g.Taps()});
  });
}

void ConvToImages(const Buffer& out_grad, const Buffer& kernel, Buffer& out, const Dims& images_shape,
                  const Dims& kernel_shape, int64_t stride, const Dims& padding) {
  const char* who = "conv_to_images";
  const Geometry g = CheckedGeometry(who, images_shape, kernel_shape, stride, padding);
  CheckArrays(who, g, "out", out, "kernel", kernel, "out_grad", out_grad);
  CheckApart(who, out_grad, out);
  CheckApart(who, kernel, out);
  VisitOnly<FloatType>(who, out.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const int64_t pixels = int64_t{g.batch} * g.height * g.width;
    const int64_t paid = int64_t{g.kernel_height} * g.kernel_width * g.filters;
    const Payments<T> left{g, out_grad.as<T>()};
    const KernelByChannel<T> right{g, kernel.as<T>()};
    LaunchTileProduct(left, right, out.as<T>(), {pixels, paid, g.channels, 1, 0, paid});
  });
}

void ConvToKernel(const Buffer& images, const Buffer& out_grad, Buffer& out, const Dims& images_shape,
                  const Dims& kernel_shape, int64_t stride, const Dims& padding) {
  const char* who = "conv_to_kernel";
  const Geometry g = CheckedGeometry(who, images_shape, kernel_shape, stride, padding);
  CheckArrays(who, g, "images", images, "out", out, "out_grad", out_grad);
  CheckApart(who, images, out);
  CheckApart(who, out_grad, out);
  VisitOnly<FloatType>(who, images.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    LaunchToKernel<T>(g, images, out_grad, out);
  });
}

}  // namespace needle
