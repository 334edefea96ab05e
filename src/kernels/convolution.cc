// Implicit products.  A convolution is a matrix product whose left factor, the windows, is never made: its element for
// pixel p and tap t lies in the (padded) image at place(p) + place(t), and the micro-kernel adds the two (after
// M. Dukhan, "The indirect convolution algorithm", 2019).  The same holds for both gradients:
//
//   results     rows: pixels of out      sum over: taps and channels             images padded
//   to images   rows: pixels of images   sum over: taps that meet and filters    out_grad padded; s x s products of stride 1
//   to kernel   rows: taps and channels  sum over: pixels of out                 images padded
//
// Images are padded piece by piece, each piece small enough for the second-level cache; taps that only ever see zeros
// are left out.  No element of a result is shared between threads, so that their number changes nothing.
#include "convolution.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "convolution_loops.h"
#include "parallel.h"
#include "scratch.h"

namespace needle {
namespace {

constexpr int64_t kDepth = 256;             // products in a sum before it is added to out: such a panel stays in the first cache
constexpr int64_t kPieceBytes = 1 << 17;    // of padded images, for one thread
constexpr int64_t kSharedBytes = 1 << 19;   // and for all of them
constexpr int64_t kThreadWork = 1 << 18;    // multiplications that are worth a thread
constexpr int64_t kLargest = int64_t{1} << 31;  // strides, paddings, extents: what is computed from them fits into 63 bits

int64_t CeilDiv(int64_t a, int64_t b) {
  return a >= 0 ? (a + b - 1) / b : -(-a / b);
}

int64_t RoundUp(int64_t a, int64_t multiple) {
  return CeilDiv(a, multiple) * multiple;
}

int64_t FloorDiv(int64_t a, int64_t b) {
  return -CeilDiv(-a, b);
}

// ---- one axis of a convolution --------------------------------------------------------------------------------------

struct Tap {
  int64_t index;   // in the kernel
  int64_t offset;  // in the source
};

/// Result i of `count` stands at out_first + out_step * i and sees, by each tap, place in_first + in_step * i + offset.
struct Axis {
  int64_t count, out_first, out_step, in_first, in_step;
  std::vector<Tap> taps;
  int64_t lowest = 0, highest = 0;  // offsets of the taps

  /// Leave out taps that never meet one of the source's places [0, size).
  void KeepUsefulTaps(int64_t size) {
    const auto useless = [&](const Tap& tap) {
      const int64_t place = in_first + tap.offset;  // of result 0
      return std::max<int64_t>(0, CeilDiv(-place, in_step)) > std::min(count - 1, FloorDiv(size - 1 - place, in_step));
    };
    taps.erase(std::remove_if(taps.begin(), taps.end(), useless), taps.end());
    for (const Tap& tap : taps) {
      lowest = &tap == &taps[0] ? tap.offset : std::min(lowest, tap.offset);
      highest = &tap == &taps[0] ? tap.offset : std::max(highest, tap.offset);
    }
  }

  /// The first place that result i sees, and how many places some results in a row do.
  int64_t First(int64_t i) const { return in_first + in_step * i + lowest; }
  int64_t Reach(int64_t results) const { return in_step * (results - 1) + highest - lowest + 1; }

  /// Whether nothing outside of the source's places [0, size) is seen.
  bool Inside(int64_t size) const { return First(0) >= 0 && First(0) + Reach(count) <= size; }
};

struct Extents {
  int64_t size, kernel, stride, padding, dilation;

  int64_t Results() const {
    const int64_t room = size + 2 * padding - dilation * (kernel - 1) - 1;
    return room < 0 ? 0 : room / stride + 1;
  }

  Axis ToResults() const {
    Axis axis{Results(), 0, 1, -padding, stride, {}};
    for (int64_t t = 0; t < kernel; t++) axis.taps.push_back({t, t * dilation});
    axis.KeepUsefulTaps(size);
    return axis;
  }

  /// Every stride-th place of the images, from `start` on.  In the padded image they lie `phase` behind the multiples
  /// q of the stride, and result y has met one by tap t if y = q - (t * dilation - phase) / stride.
  Axis ToImages(int64_t start) const {
    const int64_t phase = (start + padding) % stride;
    const int64_t first = CeilDiv(padding - phase, stride), last = FloorDiv(size - 1 + padding - phase, stride);
    Axis axis{std::max<int64_t>(0, last - first + 1), stride * first + phase - padding, stride, first, 1, {}};
    for (int64_t t = 0; t < kernel; t++) {
      if ((t * dilation - phase) % stride == 0) axis.taps.push_back({t, (phase - t * dilation) / stride});
    }
    axis.KeepUsefulTaps(Results());
    return axis;
  }
};

// ---- what was asked for ---------------------------------------------------------------------------------------------

struct Problem {
  int64_t images, channels, filters, groups;
  Extents rows, columns;

  bool Channelwise() const { return groups > 1 && channels == groups && filters == groups; }
  Dims OutShape() const { return {images, rows.Results(), columns.Results(), filters}; }
  int64_t Work() const {
    return images * rows.Results() * columns.Results() * rows.kernel * columns.kernel * (channels / groups) * filters;
  }
};

void CheckNumbers(const char* who, const char* what, const Dims& numbers, size_t length, int64_t smallest) {
  bool good = numbers.size() == length;
  for (int64_t number : numbers) good = good && number >= smallest && number < kLargest;
  if (!good) {
    Refuse(who, std::string(what) + " " + Text(numbers) + ", wanted " + std::to_string(length) + " numbers from " +
                    std::to_string(smallest) + " on");
  }
}

Problem Checked(const char* who, const Dims& images, const Dims& kernel, const Dims& stride, const Dims& padding,
                const Dims& dilation, int64_t groups) {
  CheckNumbers(who, "images", images, 4, 0);
  CheckNumbers(who, "kernel", kernel, 4, 1);
  CheckNumbers(who, "stride", stride, 2, 1);
  CheckNumbers(who, "padding", padding, 2, 0);
  CheckNumbers(who, "dilation", dilation, 2, 1);
  if (groups < 1 || images[3] % groups || kernel[3] % groups || kernel[2] != images[3] / groups) {
    Refuse(who, "images " + Text(images) + " and kernel " + Text(kernel) + " do not fit " + std::to_string(groups) +
                    " groups of channels");
  }
  CheckedSize(who, images);
  CheckedSize(who, kernel);
  return {images[0],
          images[3],
          kernel[3],
          groups,
          {images[1], kernel[0], stride[0], padding[0], dilation[0]},
          {images[2], kernel[1], stride[1], padding[1], dilation[1]}};
}

// ---- pieces of images, padded ---------------------------------------------------------------------------------------

/// The strides of a view of images, safe to follow.  A view that repeats elements is refused: the work would then not be
/// bounded by the storage.
Dims CheckedView(const char* who, const Dims& shape, const Dims& strides, int64_t offset, const Buffer& storage) {
  if (CheckedSize(who, shape) > storage.size()) Refuse(who, "a view " + Text(shape) + " of " + std::to_string(storage.size()) + " elements");
  return CheckedStrides(who, shape, strides, offset, storage.size());
}

/// A view (N, H, W, C).
template <typename T>
struct Images {
  const T* data;
  std::array<int64_t, 4> shape, strides;

  Images(const Buffer& buffer, const Dims& dims, const Dims& steps, int64_t offset)
      : data(buffer.as<T>() + offset), shape{dims[0], dims[1], dims[2], dims[3]},
        strides{steps[0], steps[1], steps[2], steps[3]} {}

  /// Whether every channel is a plane of its own, with pixels side by side: N C H W.
  bool Planar() const { return strides[2] == 1 && strides[3] != 1; }

  /// The same images with one channel.
  Images Plane(int64_t channel) const {
    Images plane = *this;
    plane.data += channel * strides[3];
    plane.shape[3] = plane.strides[3] = 1;
    return plane;
  }

  /// Copy one row of pixels, from place `first` on, to `width` pixels; zeros where there is none.
  void CopyRow(int64_t image, int64_t row, int64_t first, int64_t width, T* to) const {
    const int64_t channels = shape[3];
    if (row < 0 || row >= shape[1]) return std::fill_n(to, width * channels, T(0)), void();
    const int64_t begin = std::clamp<int64_t>(-first, 0, width);
    const int64_t end = std::clamp<int64_t>(shape[2] - first, begin, width);
    std::fill_n(to, begin * channels, T(0));
    const T* from = data + image * strides[0] + row * strides[1] + (first + begin) * strides[2];
    CopyPixels(from, end - begin, to + begin * channels);
    std::fill_n(to + end * channels, (width - end) * channels, T(0));
  }

  void CopyPixels(const T* from, int64_t count, T* to) const {
    const int64_t channels = shape[3];
    if (strides[3] == 1 && strides[2] == channels) {
      std::copy_n(from, count * channels, to);
    } else if (strides[3] == 1) {
      for (int64_t i = 0; i < count; i++) std::copy_n(from + i * strides[2], channels, to + i * channels);
    } else {
      for (int64_t c = 0; c < channels; c++) {
        for (int64_t i = 0; i < count; i++) to[i * channels + c] = from[i * strides[2] + c * strides[3]];
      }
    }
  }
};

/// Where things lie in a padded piece, or in the images themselves if they need no padding.
struct Layout {
  int64_t image, row, column, channel;
};

/// Some results: those of some images, or of some rows of one.
struct Piece {
  int64_t image, images, row, rows;
};

/// How the results are cut into pieces.
template <typename T>
class Pieces {
 public:
  /// At least `wanted` pieces, if there is enough to do, each of about `bytes` of images.
  Pieces(const Images<T>& source, const Axis& rows, const Axis& columns, bool channelwise, int64_t bytes, int64_t wanted)
      : source_(source),
        rows_(rows),
        columns_(columns),
        width_(columns.Reach(columns.count)),
        planes_(source.Planar() && !channelwise ? source.shape[3] : 1) {
    const int64_t images = source.shape[0], channels = source.shape[3];
    copied_ = source.strides[3] != 1 || !rows.Inside(source.shape[1]) || !columns.Inside(source.shape[2]);
    const int64_t row = CheckedSize("convolution", {width_, channels, static_cast<int64_t>(sizeof(T))});
    const int64_t image = CheckedSize("convolution", {row, rows.Reach(rows.count)});
    images_ = std::clamp<int64_t>(std::min(bytes / std::max<int64_t>(image, 1), CeilDiv(images, wanted)), 1, images);
    images_ = CeilDiv(images, RoundUp(CeilDiv(images, images_), wanted));  // as many pieces for each thread
    bands_ = images_ > 1 ? 1 : std::min(rows.count, std::max(CeilDiv(image, bytes), CeilDiv(wanted, images)));
    band_ = CeilDiv(rows.count, bands_);
    bands_ = CeilDiv(rows.count, band_);
    const int64_t height = rows.Reach(band_);
    layout_ = planes_ > 1 ? Layout{channels * height * width_, width_, 1, height * width_}
              : copied_   ? Layout{height * width_ * channels, width_ * channels, channels, 1}
                          : Layout{source.strides[0], source.strides[1], source.strides[2], 1};
  }

  int64_t count() const { return CeilDiv(source_.shape[0], images_) * bands_; }
  int64_t most_pixels() const { return images_ * band_ * columns_.count; }
  const Layout& layout() const { return layout_; }
  bool copied() const { return copied_; }
  size_t scratch_size() const { return copied_ ? static_cast<size_t>(images_ * layout_.image) : 0; }

  Piece operator[](int64_t i) const {
    const int64_t image = i / bands_ * images_, row = i % bands_ * band_;
    return {image, std::min(images_, source_.shape[0] - image), row, std::min(band_, rows_.count - row)};
  }

  /// Rows of pixels to copy, and the copying of some of them.
  int64_t SourceRows(const Piece& piece) const { return piece.images * planes_ * rows_.Reach(piece.rows); }
  void Copy(const Piece& piece, int64_t begin, int64_t end, T* scratch) const {
    const int64_t reach = rows_.Reach(piece.rows);
    for (int64_t i = begin; i < end; i++) {
      const int64_t plane = i / reach, row = i % reach;
      const Images<T> source = planes_ > 1 ? source_.Plane(plane % planes_) : source_;
      source.CopyRow(piece.image + plane / planes_, rows_.First(piece.row) + row, columns_.First(0), width_,
                     scratch + plane * (layout_.image / planes_) + row * layout_.row);
    }
  }

  /// Where the taps' offsets count from.
  const T* Origin(const Piece& piece, const T* scratch) const {
    if (copied_) return scratch;
    const Layout& at = layout_;
    return source_.data + piece.image * at.image + rows_.First(piece.row) * at.row + columns_.First(0) * at.column;
  }

  /// For each pixel of the piece, in order: where its window begins, and where its result stands.
  void Windows(const Piece& piece, int64_t* windows) const {
    for (int64_t n = 0; n < piece.images; n++) {
      for (int64_t y = 0; y < piece.rows; y++) {
        const int64_t row = n * layout_.image + y * rows_.in_step * layout_.row;
        for (int64_t x = 0; x < columns_.count; x++) *windows++ = row + x * columns_.in_step * layout_.column;
      }
    }
  }

  void Results(const Piece& piece, const Layout& out, int64_t* results) const {
    for (int64_t n = 0; n < piece.images; n++) {
      for (int64_t y = 0; y < piece.rows; y++) {
        const int64_t row = (piece.image + n) * out.image + (rows_.out_first + (piece.row + y) * rows_.out_step) * out.row;
        for (int64_t x = 0; x < columns_.count; x++) {
          *results++ = row + (columns_.out_first + x * columns_.out_step) * out.column;
        }
      }
    }
  }

  /// For each tap, and for each of its channels: where it lies in a window.
  std::vector<int64_t> TapPlaces(int64_t channels) const {
    std::vector<int64_t> places;
    for (const Tap& i : rows_.taps) {
      for (const Tap& j : columns_.taps) {
        const int64_t at = (i.offset - rows_.lowest) * layout_.row + (j.offset - columns_.lowest) * layout_.column;
        for (int64_t c = 0; c < channels; c++) places.push_back(at + c * layout_.channel);
      }
    }
    return places;
  }

 private:
  const Images<T>& source_;
  const Axis &rows_, &columns_;
  int64_t width_, planes_, images_, bands_, band_;
  bool copied_;
  Layout layout_;
};

// ---- the packed factor ----------------------------------------------------------------------------------------------

/// How one factor is packed: panels of a few columns, one after the other for each group; but for a depthwise
/// convolution a plain matrix with a column for each channel.
template <typename T>
struct Panels {
  Panels(const Problem& problem, int64_t group_columns)
      : loops(NEEDLE_DISPATCH(LoopsOfConvolution<T>)()),
        channelwise(problem.Channelwise()),
        groups(channelwise ? 1 : problem.groups),
        columns(channelwise ? problem.groups : group_columns),
        width(channelwise ? columns : loops.tile_columns),
        group_count(CeilDiv(columns, width)) {}

  ConvolutionLoops<T> loops;
  bool channelwise;
  int64_t groups, columns, width, group_count;  // columns of a group and of a panel; panels of a group

  int64_t count() const { return groups * group_count; }
  size_t Size(int64_t depth) const { return static_cast<size_t>(count() * width * depth); }
  int64_t Group(int64_t panel) const { return panel / group_count; }
  int64_t FirstColumn(int64_t panel) const { return Group(panel) * columns + panel % group_count * width; }
  int64_t Columns(int64_t panel) const { return std::min(width, columns - panel % group_count * width); }

  /// Pack `rows` rows, of every group, as the rows [at, at + rows) of panels with `depth` rows.
  void Pack(const T* from, int64_t row, int64_t column, int64_t group, int64_t rows, T* packed, int64_t depth,
            int64_t at) const {
    for (int64_t g = 0; !channelwise && g < groups; g++) {
      T* to = packed + (g * group_count * depth + at) * width;
      loops.pack(from + g * group, row, column, rows, columns, to, width * depth);
    }
    for (int64_t k = 0; channelwise && k < rows; k++) {
      for (int64_t j = 0; j < columns; j++) packed[(at + k) * columns + j] = from[k * row + j * group];
    }
  }

  MultiplyGathered<T> Multiply() const { return channelwise ? loops.multiply_channelwise : loops.multiply; }

  /// out (+)= the sums of a panel's columns over its rows [first, first + rows).
  void SumColumns(const T* panel, int64_t rows, int64_t panel_columns, T* out, bool accumulate) const {
    if (!channelwise) return loops.sum_panel(panel, rows, panel_columns, out, accumulate);
    if (!accumulate) std::fill_n(out, panel_columns, T(0));
    for (int64_t k = 0; k < rows; k++) {
      for (int64_t j = 0; j < panel_columns; j++) out[j] += panel[k * panel_columns + j];
    }
  }
};

/// The number of threads that so many multiplications are worth.
int64_t ThreadsFor(int64_t work) {
  return std::min<int64_t>(NumThreads(), 1 + work / kThreadWork);
}

// ---- results, and gradients of images -------------------------------------------------------------------------------

/// The kernel as a product wants it: element (k, j) of group g by tap t stands at t * tap + k * row + j * column + g * group.
template <typename T>
struct Weights {
  const T* data;
  int64_t tap, row, column, group;
};

template <typename T>
struct Target {
  T* data;
  Layout layout;
  const T* bias;
  bool relu;
};

/// The results that `rows` and `columns` describe.
template <typename T>
class ImagesTimesKernel {
 public:
  ImagesTimesKernel(const Problem& problem, const Images<T>& source, const Axis& rows, const Axis& columns,
                    const Weights<T>& weights, int64_t group_results, const Target<T>& out)
      : problem_(problem),
        rows_(rows),
        columns_(columns),
        out_(out),
        panels_(problem, group_results),
        channels_(source.shape[3] / problem.groups),
        depth_(static_cast<int64_t>(rows.taps.size() * columns.taps.size()) * channels_),
        threads_(ThreadsFor(source.shape[0] * rows.count * columns.count * depth_ * panels_.groups * panels_.columns)),
        pieces_(source, rows, columns, panels_.channelwise, kPieceBytes, threads_),
        depths_(pieces_.TapPlaces(channels_)) {
    PackKernel(weights);
  }

  void Run() const {
    ParallelFor(pieces_.count(), CeilDiv(pieces_.count(), threads_), [&](int64_t begin, int64_t end) {
      Scratch padded, places;
      for (int64_t p = begin; p < end; p++) {
        T* scratch = padded.Get<T>(pieces_.scratch_size());
        RunPiece(pieces_[p], scratch, places.Get<int64_t>(static_cast<size_t>(2 * pieces_.most_pixels())));
      }
    });
  }

 private:
  void PackKernel(const Weights<T>& weights) {
    packed_ = scratch_.Get<T>(panels_.Size(depth_));
    int64_t at = 0;
    for (const Tap& i : rows_.taps) {
      for (const Tap& j : columns_.taps) {
        const T* from = weights.data + (i.index * problem_.columns.kernel + j.index) * weights.tap;
        panels_.Pack(from, weights.row, weights.column, weights.group, channels_, packed_, depth_, at);
        at += channels_;
      }
    }
  }

  void RunPiece(const Piece& piece, T* scratch, int64_t* windows) const {
    const int64_t pixels = piece.images * piece.rows * columns_.count;
    if (pieces_.copied()) pieces_.Copy(piece, 0, pieces_.SourceRows(piece), scratch);
    pieces_.Windows(piece, windows);
    pieces_.Results(piece, out_.layout, windows + pixels);
    for (int64_t k = 0; k == 0 || k < depth_; k += kDepth) {
      for (int64_t panel = 0; panel < panels_.count(); panel++) {
        Multiply(pieces_.Origin(piece, scratch), windows, pixels, panel, k);
      }
    }
  }

  /// Rows [k, k + kDepth) of a panel.
  void Multiply(const T* origin, const int64_t* windows, int64_t pixels, int64_t panel, int64_t k) const {
    const int64_t column = panels_.FirstColumn(panel), rows = std::min(kDepth, depth_ - k);
    const bool last = k + rows == depth_;
    const Finish<T> finish{k > 0, last && out_.bias ? out_.bias + column : nullptr, last && out_.relu};
    panels_.Multiply()(origin + panels_.Group(panel) * channels_ * pieces_.layout().channel, windows, pixels, depths_.data() + k, rows,
                       packed_ + (panel * depth_ + k) * panels_.width, out_.data + column, windows + pixels,
                       panels_.Columns(panel), finish);
  }

  const Problem& problem_;
  const Axis &rows_, &columns_;
  const Target<T>& out_;
  const Panels<T> panels_;
  const int64_t channels_, depth_, threads_;
  const Pieces<T> pieces_;
  const std::vector<int64_t> depths_;
  Scratch scratch_;
  T* packed_;
};

// ---- gradients of kernels -------------------------------------------------------------------------------------------

/// Windows, turned, times the gradient of the results: threads share the taps and filters, and go through the pixels
/// together, piece by piece.
template <typename T>
class WindowsTimesGradient {
 public:
  WindowsTimesGradient(const Problem& problem, const Images<T>& source, const Images<T>& grad, const Axis& rows,
                       const Axis& columns, T* out, T* bias_out)
      : problem_(problem),
        grad_(grad),
        columns_(columns),
        out_(out),
        bias_out_(bias_out),
        panels_(problem, problem.filters / problem.groups),
        channels_(problem.channels / problem.groups),
        threads_(ThreadsFor(problem.Work())),
        pieces_(source, rows, columns, panels_.channelwise, kSharedBytes, 1),
        places_(pieces_.TapPlaces(channels_)) {
    for (const Tap& i : rows.taps) {
      for (const Tap& j : columns.taps) {
        for (int64_t c = 0; c < channels_; c++) {
          outs_.push_back(((i.index * problem.columns.kernel + j.index) * channels_ + c) * problem.filters);
        }
      }
    }
  }

  void Run() const {
    Scratch padded, packed, places;
    T* scratch = padded.Get<T>(pieces_.scratch_size());
    T* panels = packed.Get<T>(panels_.Size(pieces_.most_pixels()));
    int64_t* windows = places.Get<int64_t>(static_cast<size_t>(pieces_.most_pixels()));
    const int64_t tile = panels_.loops.tile_rows, strips = std::max<int64_t>(CeilDiv(taps(), tile), 1), tasks = strips * panels_.count();
    for (int64_t p = 0; p < pieces_.count(); p++) {
      Prepare(pieces_[p], scratch, panels, windows);
      ParallelFor(tasks, CeilDiv(tasks, threads_), [&](int64_t begin, int64_t end) {
        for (int64_t k = 0; k < Pixels(pieces_[p]); k += kDepth) {
          for (int64_t task = begin; task < end; task++) {
            Multiply(pieces_[p], scratch, panels, windows, task % strips * tile, task / strips, k);
          }
        }
      });
    }
  }

 private:
  int64_t taps() const { return static_cast<int64_t>(outs_.size()); }
  int64_t Pixels(const Piece& piece) const { return piece.images * piece.rows * columns_.count; }

  /// Pad a piece of the images, and pack the gradient of its results.
  void Prepare(const Piece& piece, T* scratch, T* panels, int64_t* windows) const {
    pieces_.Windows(piece, windows);
    const int64_t rows = pieces_.copied() ? pieces_.SourceRows(piece) : 0, packs = piece.images * piece.rows;
    ParallelFor(rows + packs, CeilDiv(rows + packs, threads_), [&](int64_t begin, int64_t end) {
      pieces_.Copy(piece, std::min(begin, rows), std::min(end, rows), scratch);
      for (int64_t i = std::max<int64_t>(begin - rows, 0); i < end - rows; i++) PackGradient(piece, i, panels);
    });
  }

  void PackGradient(const Piece& piece, int64_t row, T* panels) const {
    const auto& at = grad_.strides;
    const T* from = grad_.data + (piece.image + row / piece.rows) * at[0] + (piece.row + row % piece.rows) * at[1];
    panels_.Pack(from, at[2], at[3], (panels_.channelwise ? 1 : panels_.columns) * at[3],
                 columns_.count, panels, Pixels(piece), row * columns_.count);
  }

  /// The part of out in some rows of taps and one panel's columns: what pixels [k, k + kDepth) give.
  void Multiply(const Piece& piece, const T* scratch, const T* panels, const int64_t* windows, int64_t tap,
                int64_t panel, int64_t k) const {
    const int64_t column = panels_.FirstColumn(panel), pixels = Pixels(piece), rows = std::min(kDepth, pixels - k);
    const Finish<T> finish{piece.image + piece.row + k > 0, nullptr, false};
    const T* from = panels + (panel * pixels + k) * panels_.width;
    const T* origin = pieces_.Origin(piece, scratch) + panels_.Group(panel) * channels_ * pieces_.layout().channel;
    panels_.Multiply()(origin, places_.data() + tap, std::min(panels_.loops.tile_rows, taps() - tap), windows + k, rows,
                       from, out_ + column, outs_.data() + tap, panels_.Columns(panel), finish);
    if (tap == 0 && bias_out_) {
      panels_.SumColumns(from, rows, panels_.Columns(panel), bias_out_ + column, finish.accumulate);
    }
  }

  const Problem& problem_;
  const Images<T>& grad_;
  const Axis& columns_;
  T *out_, *bias_out_;
  const Panels<T> panels_;
  const int64_t channels_, threads_;
  const Pieces<T> pieces_;
  const std::vector<int64_t> places_;
  std::vector<int64_t> outs_;
};

// ---- what the three ask of their arguments ---------------------------------------------------------------------------

Layout RowMajor(const Dims& shape) {
  return {shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3], 1};
}

}  // namespace

void Convolution(const Buffer& images, const Buffer& kernel, const Buffer* bias, Buffer& out, const Dims& images_shape,
                 const Dims& images_strides, int64_t images_offset, const Dims& kernel_shape, const Dims& stride,
                 const Dims& padding, const Dims& dilation, int64_t groups, bool relu) {
  const char* who = "convolution";
  const Problem problem = Checked(who, images_shape, kernel_shape, stride, padding, dilation, groups);
  const Dims strides = CheckedView(who, images_shape, images_strides, images_offset, images);
  const Dims out_shape = problem.OutShape();
  CheckBuffer(who, "kernel", kernel, CheckedSize(who, kernel_shape), images.dtype());
  CheckBuffer(who, "out", out, CheckedSize(who, out_shape), images.dtype());
  if (bias) CheckBuffer(who, "bias", *bias, problem.filters, images.dtype());
  CheckApart(who, images, out);
  CheckApart(who, kernel, out);
  if (bias) CheckApart(who, *bias, out);
  VisitOnly<FloatType>(who, images.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    if (out.size() == 0) return;
    const Images<T> source(images, images_shape, strides, images_offset);
    const Axis rows = problem.rows.ToResults(), columns = problem.columns.ToResults();
    const int64_t filters = problem.filters / groups;
    const Weights<T> weights{kernel.as<T>(), kernel_shape[2] * problem.filters, problem.filters, 1, filters};
    const Target<T> target{out.as<T>(), RowMajor(out_shape), bias ? bias->as<T>() : nullptr, relu};
    ImagesTimesKernel<T>(problem, source, rows, columns, weights, filters, target).Run();
  });
}

void ConvolutionToImages(const Buffer& out_grad, const Buffer& kernel, Buffer& out, const Dims& grad_strides,
                         int64_t grad_offset, const Dims& images_shape, const Dims& kernel_shape, const Dims& stride,
                         const Dims& padding, const Dims& dilation, int64_t groups) {
  const char* who = "convolution_to_images";
  const Problem problem = Checked(who, images_shape, kernel_shape, stride, padding, dilation, groups);
  const Dims grad_shape = problem.OutShape();
  const Dims strides = CheckedStrides(who, grad_shape, grad_strides, grad_offset, out_grad.size());
  CheckBuffer(who, "kernel", kernel, CheckedSize(who, kernel_shape), out_grad.dtype());
  CheckBuffer(who, "out", out, CheckedSize(who, images_shape), out_grad.dtype());
  CheckApart(who, out_grad, out);
  CheckApart(who, kernel, out);
  VisitOnly<FloatType>(who, out_grad.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    if (out.size() == 0) return;
    if (CheckedSize(who, grad_shape) == 0) return std::fill_n(out.as<T>(), out.size(), T(0)), void();
    const Images<T> source(out_grad, grad_shape, strides, grad_offset);
    const int64_t channels = problem.channels / groups, filters = problem.filters / groups;
    const Weights<T> weights{kernel.as<T>(), channels * problem.filters, 1, problem.filters, filters};
    const Target<T> target{out.as<T>(), RowMajor(images_shape), nullptr, false};
    for (int64_t i = 0; i < std::min(stride[0], images_shape[1]); i++) {
      const Axis rows = problem.rows.ToImages(i);
      for (int64_t j = 0; j < std::min(stride[1], images_shape[2]); j++) {
        const Axis columns = problem.columns.ToImages(j);
        ImagesTimesKernel<T>(problem, source, rows, columns, weights, channels, target).Run();
      }
    }
  });
}

void ConvolutionToKernel(const Buffer& images, const Buffer& out_grad, Buffer& out, Buffer* bias_out,
                         const Dims& images_shape, const Dims& images_strides, int64_t images_offset,
                         const Dims& grad_strides, int64_t grad_offset, const Dims& kernel_shape, const Dims& stride,
                         const Dims& padding, const Dims& dilation, int64_t groups) {
  const char* who = "convolution_to_kernel";
  const Problem problem = Checked(who, images_shape, kernel_shape, stride, padding, dilation, groups);
  const Dims strides = CheckedView(who, images_shape, images_strides, images_offset, images);
  const Dims grad_shape = problem.OutShape();
  const Dims steps = CheckedStrides(who, grad_shape, grad_strides, grad_offset, out_grad.size());
  CheckDType(who, "out_grad", out_grad, images.dtype());
  CheckBuffer(who, "out", out, CheckedSize(who, kernel_shape), images.dtype());
  CheckApart(who, images, out);
  CheckApart(who, out_grad, out);
  if (bias_out) {
    CheckBuffer(who, "bias_out", *bias_out, problem.filters, images.dtype());
    for (const Buffer* other : {&images, &out_grad, static_cast<const Buffer*>(&out)}) CheckApart(who, *other, *bias_out);
  }
  VisitOnly<FloatType>(who, images.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    T* bias_grad = bias_out ? bias_out->as<T>() : nullptr;
    const Axis rows = problem.rows.ToResults(), columns = problem.columns.ToResults();
    std::fill_n(out.as<T>(), out.size(), T(0));  // what no tap adds to
    if (bias_grad) std::fill_n(bias_grad, problem.filters, T(0));
    if (CheckedSize(who, grad_shape) == 0) return;
    const Images<T> source(images, images_shape, strides, images_offset);
    const Images<T> grad(out_grad, grad_shape, steps, grad_offset);
    WindowsTimesGradient<T>(problem, source, grad, rows, columns, out.as<T>(), bias_grad).Run();
  });
}

}  // namespace needle
