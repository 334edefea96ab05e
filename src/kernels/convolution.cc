// Implicit products.  A convolution is a matrix product whose left factor, the windows, is never made: its element for
// pixel p and tap t lies in the images at place(p) + place(t), and the micro-kernel adds the two (after M. Dukhan, "The
// indirect convolution algorithm", 2019).  The same holds for both gradients:
//
//   results     rows: pixels of out      sum over: taps and channels             in the images
//   to images   rows: pixels of images   sum over: taps that meet and filters    in out_grad
//   to kernel   rows: taps and channels  sum over: pixels of out                 in the images
//
// Pixels that see the same taps are multiplied together.  So zeros around the images are neither made nor multiplied,
// and a gradient of images that were seen with a stride needs nothing of its own: which taps meet is all that differs.
// Images whose channels lie apart are first turned, piece by piece, each small enough for the second-level cache.
// Whatever is summed is cut by the problem alone, so that the number of threads changes nothing.
#include "convolution.h"

#include <algorithm>
#include <array>
#include <vector>

#include "convolution_loops.h"
#include "parallel.h"
#include "rounding.h"
#include "scratch.h"

namespace needle {
namespace {

constexpr int64_t kDepth = 256;           // products in a sum before it is added to out: such a panel stays in the L1
constexpr int64_t kPieceBytes = 1 << 17;  // of images, for one thread at a time
constexpr int64_t kThreadWork = 1 << 18;  // multiplications that are worth a thread
constexpr int64_t kManyPixels = 1 << 10;  // for so many a kernel is worth packing
constexpr int64_t kFewChannels = 4;       // so many may lie apart

// a gradient of a kernel is summed in so many chunks at most, each of so many pixels at least, all in so many bytes
constexpr int64_t kChunks = 8, kChunkPixels = 256, kChunkBytes = 1 << 21;

constexpr int64_t kLargest = int64_t{1} << 31;  // of strides, paddings, extents: what follows from them fits 63 bits

// ---- one axis of a convolution --------------------------------------------------------------------------------------

struct Tap {
  int64_t index;   // in the kernel
  int64_t offset;  // in the source, from what the first tap sees
  int64_t slot;    // among the taps that see anything at all
};

/// Where a result stands, and what its first tap sees.
struct Result {
  int64_t place, source;
};

/// Results that see the same taps, from left to right.
struct Kind {
  std::vector<Tap> taps;
  std::vector<Result> results;

  bool Sees(const std::vector<Tap>& other) const {
    const auto same = [](const Tap& a, const Tap& b) { return a.index == b.index && a.offset == b.offset; };
    return std::equal(taps.begin(), taps.end(), other.begin(), other.end(), same);
  }

  /// The first result at `place` or after it.
  const Result* From(int64_t place) const {
    const auto before = [](const Result& result, int64_t p) { return result.place < p; };
    return results.data() + (std::lower_bound(results.begin(), results.end(), place, before) - results.begin());
  }
};

struct Span {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};

struct Axis {
  int64_t count;
  std::vector<Kind> kinds;
  std::vector<int64_t> useful;  // the taps of all kinds

  /// sees(result, tap): a place of the source, or -1.
  template <typename Sees>
  Axis(int64_t results, int64_t taps, const Sees& sees) : count(results) {
    std::vector<Tap> seen;
    for (int64_t i = 0; i < results; i++) {
      int64_t first = 0;
      seen.clear();
      for (int64_t t = 0; t < taps; t++) {
        const int64_t place = sees(i, t);
        if (place < 0) continue;
        if (seen.empty()) first = place;
        seen.push_back({t, place - first, 0});
      }
      KindOf(seen).results.push_back({i, first});
    }
    NumberTaps(taps);
  }

  Kind& KindOf(const std::vector<Tap>& taps) {
    for (Kind& kind : kinds) {
      if (kind.Sees(taps)) return kind;
    }
    kinds.push_back({taps, {}});
    return kinds.back();
  }

  void NumberTaps(int64_t taps) {
    std::vector<int64_t> slots(static_cast<size_t>(taps), -1);
    for (const Kind& kind : kinds) {
      for (const Tap& tap : kind.taps) slots[tap.index] = 0;
    }
    for (int64_t t = 0; t < taps; t++) {
      if (slots[t] < 0) continue;
      slots[t] = static_cast<int64_t>(useful.size());
      useful.push_back(t);
    }
    for (Kind& kind : kinds) {
      for (Tap& tap : kind.taps) tap.slot = slots[tap.index];
    }
  }

  /// How many pairs of a result and a tap there are.
  int64_t Pairs() const {
    size_t pairs = 0;
    for (const Kind& kind : kinds) pairs += kind.taps.size() * kind.results.size();
    return static_cast<int64_t>(pairs);
  }

  /// What results [begin, end) see of the source.
  Span Seen(int64_t begin, int64_t end) const {
    Span seen{kLargest, 0};
    for (const Kind& kind : kinds) {
      const Result *first = kind.From(begin), *last = kind.From(end) - 1;
      if (first > last) continue;
      for (const Tap& tap : kind.taps) {
        seen.begin = std::min(seen.begin, first->source + tap.offset);
        seen.end = std::max(seen.end, last->source + tap.offset + 1);
      }
    }
    return seen.end ? seen : Span{0, 0};
  }
};

struct Extents {
  int64_t size, kernel, stride, padding, dilation;

  int64_t Results() const {
    const int64_t room = size + 2 * padding - dilation * (kernel - 1) - 1;
    return room < 0 ? 0 : room / stride + 1;
  }

  Axis ToResults() const {
    return Axis(Results(), kernel, [this](int64_t result, int64_t tap) {
      const int64_t place = stride * result + dilation * tap - padding;
      return place < size ? place : -1;
    });
  }

  /// A place of the images was seen, by a tap, from where stride * result + dilation * tap - padding is that place.
  Axis ToImages() const {
    return Axis(size, kernel, [this, results = Results()](int64_t place, int64_t tap) {
      const int64_t at = place + padding - dilation * tap;
      return at >= 0 && at % stride == 0 && at / stride < results ? at / stride : -1;
    });
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

// ---- images ---------------------------------------------------------------------------------------------------------

/// The strides of a view of images, safe to follow.  A view that repeats elements is refused: the work would then not
/// be bounded by the storage.
Dims CheckedView(const char* who, const Dims& shape, const Dims& strides, int64_t offset, const Buffer& storage) {
  if (CheckedSize(who, shape) > storage.size()) {
    Refuse(who, "a view " + Text(shape) + " of " + std::to_string(storage.size()) + " elements");
  }
  return CheckedStrides(who, shape, strides, offset, storage.size());
}

struct Layout {
  int64_t image, row, column, channel;
};

/// A view (N, H, W, C).
template <typename T>
struct Images {
  const T* data;
  std::array<int64_t, 4> shape;
  Layout at;

  Images(const Buffer& buffer, const Dims& dims, const Dims& strides, int64_t offset)
      : data(buffer.as<T>() + offset),
        shape{dims[0], dims[1], dims[2], dims[3]},
        at{strides[0], strides[1], strides[2], dims[3] == 1 ? 1 : strides[3]} {}

  int64_t Bytes() const { return shape[1] * shape[2] * shape[3] * static_cast<int64_t>(sizeof(T)); }  // of one
};

/// Some results: those of some images, or of some rows of one; and the rows of the source that they see.
struct Piece {
  int64_t image, images, row, rows;
  Span seen;

  bool Like(const Piece& other) const { return images == other.images && row == other.row && rows == other.rows; }
};

/// How the results are cut into pieces, as equal as can be.
class Pieces {
 public:
  /// At least `wanted` pieces, if there is enough to do, and a multiple of it; each sees about kPieceBytes of images.
  Pieces(int64_t images, int64_t image_bytes, const Axis& rows, int64_t wanted) : images_(images), rows_(rows.count) {
    const int64_t fit = std::clamp<int64_t>(kPieceBytes / std::max<int64_t>(image_bytes, 1), 1, images);
    groups_ = std::min(RoundUp(CeilDiv(images, fit), wanted), images);
    const int64_t bands = groups_ < images ? 1 : std::max(CeilDiv(image_bytes, kPieceBytes), CeilDiv(wanted, images));
    bands_ = std::clamp<int64_t>(bands, 1, rows_);
    for (int64_t band = 0; band < bands_; band++) seen_.push_back(rows.Seen(Row(band), Row(band + 1)));
  }

  int64_t count() const { return groups_ * bands_; }
  int64_t most_images() const { return CeilDiv(images_, groups_); }
  int64_t most_rows() const { return CeilDiv(rows_, bands_); }
  int64_t most_seen() const {
    int64_t most = 0;
    for (const Span& seen : seen_) most = std::max(most, seen.size());
    return most;
  }

  Piece operator[](int64_t i) const {
    const int64_t image = Image(i / bands_), band = i % bands_, row = Row(band);
    return {image, Image(i / bands_ + 1) - image, row, Row(band + 1) - row, seen_[band]};
  }

 private:
  int64_t Image(int64_t group) const { return images_ * group / groups_; }
  int64_t Row(int64_t band) const { return rows_ * band / bands_; }

  int64_t images_, rows_, groups_, bands_;
  std::vector<Span> seen_;
};

/// Images as the loops read them: where they lie, if that will do; else some rows of them, copied with channels last.
template <typename T>
class Source {
 public:
  Source(const Images<T>& images, bool in_place, const Pieces& pieces, int64_t rows)
      : images_(images), in_place_(in_place) {
    const int64_t channels = images.shape[3], row = images.shape[2] * channels;
    layout = in_place ? images.at : Layout{CheckedSize("convolution", {rows, row}), row, channels, 1};
    const Dims room{pieces.most_images(), layout.image, static_cast<int64_t>(sizeof(T))};
    size_ = in_place ? 0 : static_cast<size_t>(CheckedSize("convolution", room)) / sizeof(T);
  }

  Layout layout;

  /// These rows of a piece's images: where the first of them begins.  `scratch` holds the copy, and some elements more,
  /// so that whole vectors may be read.
  const T* Rows(const Piece& piece, const Span& rows, int64_t more, Scratch& scratch) const {
    const T* from = images_.data + piece.image * images_.at.image + rows.begin * images_.at.row;
    if (in_place_) return from;
    T* to = scratch.Get<T>(size_ + static_cast<size_t>(more));
    for (int64_t n = 0; n < piece.images; n++) {
      CopyRows(from + n * images_.at.image, rows.size(), to + n * layout.image);
    }
    return to;
  }

 private:
  void CopyRows(const T* from, int64_t rows, T* to) const {
    const Layout& at = images_.at;
    const int64_t columns = images_.shape[2], channels = images_.shape[3];
    const bool one = at.row == columns * at.column;  // all rows are like one long one
    for (int64_t y = 0; y < rows; y += one ? rows : 1) {
      loops_.copy(from + y * at.row, at.column, at.channel, one ? rows * columns : columns, channels,
                  to + y * layout.row, channels);
    }
  }

  const Images<T>& images_;
  const bool in_place_;
  const ConvolutionLoops<T> loops_ = NEEDLE_DISPATCH(LoopsOfConvolution<T>)();
  size_t size_;
};

// ---- results that see the same taps ---------------------------------------------------------------------------------

/// Results of one kind of rows and one of columns; the taps that they see, each with its channels: where in a window,
/// and `other` a place in the kernel.
struct Part {
  const Kind *rows, *columns;
  std::vector<Place> taps;

  size_t MostPixels(const Pieces& pieces) const {
    const int64_t most = std::min(pieces.most_rows(), static_cast<int64_t>(rows->results.size()));
    return static_cast<size_t>(pieces.most_images() * most) * columns->results.size();
  }

  /// For each pixel of the part in a piece: where its window begins, and where in `out` it stands.
  Place* Pixels(const Piece& piece, int64_t first_row, const Layout& source, const Layout& out, Place* pixels) const {
    const Result *begin = rows->From(piece.row), *end = rows->From(piece.row + piece.rows);
    for (int64_t n = 0; n < piece.images; n++) {
      for (const Result* y = begin; y < end; y++) {
        const int64_t from = n * source.image + (y->source - first_row) * source.row;
        const int64_t to = n * out.image + (y->place - piece.row) * out.row;
        for (const Result& x : columns->results) {
          *pixels++ = {from + x.source * source.column, to + x.place * out.column};
        }
      }
    }
    return pixels;
  }
};

/// All parts; in the kernel, tap (i, j) of channel c stands at kernel(i, j) + c * step.
template <typename PlaceOfTap>
std::vector<Part> PartsOf(const Axis& rows, const Axis& columns, const Layout& source, int64_t channels, int64_t step,
                          const PlaceOfTap& kernel) {
  std::vector<Part> parts;
  for (const Kind& row : rows.kinds) {
    for (const Kind& column : columns.kinds) {
      parts.push_back({&row, &column, {}});
      parts.back().taps.reserve(row.taps.size() * column.taps.size() * static_cast<size_t>(channels));
      for (const Tap& i : row.taps) {
        for (const Tap& j : column.taps) {
          const int64_t at = i.offset * source.row + j.offset * source.column, to = kernel(i, j);
          for (int64_t c = 0; c < channels; c++) {
            parts.back().taps.push_back({at + c * source.channel, to + c * step});
          }
        }
      }
    }
  }
  return parts;
}

/// The pixels of all parts of a piece, listed anew only if the last piece was of another form.
class Pixels {
 public:
  Pixels(const std::vector<Part>& parts, const Pieces& pieces) : parts_(parts), ends_(parts.size()) {
    size_t most = 0;
    for (const Part& part : parts) most += part.MostPixels(pieces);
    places_ = scratch_.Get<Place>(most);
  }

  void List(const Piece& piece, int64_t first_row, const Layout& source, const Layout& out) {
    if (piece.Like(listed_)) return;
    listed_ = piece;
    Place* end = places_;
    for (size_t p = 0; p < parts_.size(); p++) ends_[p] = end = parts_[p].Pixels(piece, first_row, source, out, end);
  }

  const Place* Begin(size_t part) const { return part ? ends_[part - 1] : places_; }
  int64_t Count(size_t part) const { return ends_[part] - Begin(part); }

 private:
  const std::vector<Part>& parts_;
  std::vector<Place*> ends_;
  Scratch scratch_;
  Place* places_;
  Piece listed_{0, 0, 0, 0, {0, 0}};
};

// ---- the other factor -----------------------------------------------------------------------------------------------

/// How one factor is read: for each group, panels of a few columns; but for a depthwise convolution a plain matrix with
/// a column for each channel.
template <typename T>
struct Panels {
  Panels(const Problem& problem, int64_t group_columns)
      : loops(NEEDLE_DISPATCH(LoopsOfConvolution<T>)()),
        channelwise(problem.Channelwise()),
        groups(channelwise ? 1 : problem.groups),
        columns(channelwise ? problem.groups : group_columns),
        width(channelwise ? columns : std::min(RoundUp(columns, loops.lanes), loops.tile_columns)),
        group_count(CeilDiv(columns, width)) {}

  ConvolutionLoops<T> loops;
  bool channelwise;
  int64_t groups, columns, width, group_count;  // columns of a group and of a panel; panels of a group

  int64_t count() const { return groups * group_count; }
  int64_t AllColumns() const { return groups * columns; }
  int64_t Group(int64_t panel) const { return panel / group_count; }
  int64_t FirstColumn(int64_t panel) const { return Group(panel) * columns + panel % group_count * width; }
  int64_t Columns(int64_t panel) const { return std::min(width, columns - panel % group_count * width); }
  MultiplyGathered<T> Multiply() const { return channelwise ? loops.multiply_channelwise : loops.multiply; }

  /// Whether images can be read where they lie, as the factor that is taken number by number.
  bool ReadsInPlace(const Images<T>& images) const {
    const Layout& at = images.at;
    return at.channel == 1 || (!channelwise && at.column == 1 && images.shape[3] <= kFewChannels);
  }
};

/// The number of threads that so many multiplications are worth.
int64_t ThreadsFor(int64_t work) {
  return std::min<int64_t>(NumThreads(), 1 + work / kThreadWork);
}

// ---- results, and gradients of images -------------------------------------------------------------------------------

/// The kernel as a product wants it: element (k, j) of group g by tap t stands at
/// t * tap + k * row + j * column + g * group.
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
  ImagesTimesKernel(const Problem& problem, const Images<T>& images, const Axis& rows, const Axis& columns,
                    const Weights<T>& weights, int64_t group_results, const Target<T>& out)
      : problem_(problem),
        rows_(rows),
        columns_(columns),
        weights_(weights),
        out_(out),
        panels_(problem, group_results),
        channels_(images.shape[3] / problem.groups),
        depth_(static_cast<int64_t>(rows.useful.size() * columns.useful.size()) * channels_),
        threads_(ThreadsFor(images.shape[0] * rows.Pairs() * columns.Pairs() * channels_ * panels_.AllColumns())),
        packed_(Packs(images.shape[0] * rows.count * columns.count)),
        pieces_(images.shape[0], images.Bytes(), rows, threads_),
        source_(images, panels_.ReadsInPlace(images), pieces_, pieces_.most_seen()) {
    if (packed_) PackKernel();
  }

  void Run() const {
    ParallelFor(pieces_.count(), pieces_.count() / threads_, [&](int64_t begin, int64_t end) {
      const std::vector<Part> parts = Parts();  // lists of its own for each thread, close to it
      Scratch copy;
      Pixels pixels(parts, pieces_);
      for (int64_t p = begin; p < end; p++) RunPiece(pieces_[p], parts, pixels, copy);
    });
  }

 private:
  // ---- the kernel: where it lies if its rows can be read there and each is not read often, else packed

  bool Packs(int64_t pixels) const {
    const bool readable = panels_.channelwise || (weights_.column == 1 && panels_.columns % panels_.loops.lanes == 0);
    return !readable || (panels_.columns > panels_.width && pixels >= kManyPixels);
  }

  /// Panels, one after the other, of depth_ rows: the useful taps with their channels.
  void PackKernel() {
    T* to = scratch_.Get<T>(static_cast<size_t>(panels_.count() * panels_.width * depth_));
    panels_at_ = to;
    for (int64_t i : rows_.useful) {
      for (int64_t j : columns_.useful) {
        for (int64_t panel = 0; panel < panels_.count(); panel++) {
          PackTap(i, j, panel, to + panel * depth_ * panels_.width);
        }
        to += channels_ * panels_.width;
      }
    }
  }

  void PackTap(int64_t i, int64_t j, int64_t panel, T* to) const {
    const int64_t columns = panels_.Columns(panel), width = panels_.width;
    const T* from = InKernel(panel) + (i * problem_.columns.kernel + j) * weights_.tap;
    panels_.loops.copy(from, weights_.row, weights_.column, channels_, columns, to, width);
    for (int64_t k = 0; k < channels_ && columns < width; k++) {
      std::fill(to + k * width + columns, to + (k + 1) * width, T(0));
    }
  }

  const T* InKernel(int64_t panel) const {
    const int64_t column = panel % panels_.group_count * panels_.width;
    return weights_.data + panels_.Group(panel) * weights_.group + column * weights_.column;
  }

  const T* Panel(int64_t panel) const {
    return packed_ ? panels_at_ + panel * depth_ * panels_.width : InKernel(panel);
  }

  std::vector<Part> Parts() const {
    const int64_t row = packed_ ? panels_.width : weights_.row, tap = packed_ ? channels_ * row : weights_.tap;
    const int64_t taps = packed_ ? static_cast<int64_t>(columns_.useful.size()) : problem_.columns.kernel;
    return PartsOf(rows_, columns_, source_.layout, channels_, row, [&](const Tap& i, const Tap& j) {
      return (packed_ ? i.slot * taps + j.slot : i.index * taps + j.index) * tap;
    });
  }

  // ---- the product

  void RunPiece(const Piece& piece, const std::vector<Part>& parts, Pixels& pixels, Scratch& copy) const {
    const T* x = source_.Rows(piece, piece.seen, 0, copy);
    T* out = out_.data + piece.image * out_.layout.image + piece.row * out_.layout.row;
    pixels.List(piece, piece.seen.begin, source_.layout, out_.layout);
    for (size_t p = 0; p < parts.size(); p++) {
      const int64_t depth = static_cast<int64_t>(parts[p].taps.size());
      for (int64_t k = 0; k == 0 || k < depth; k += kDepth) {
        for (int64_t panel = 0; panel < panels_.count(); panel++) {
          Multiply(x, pixels.Begin(p), pixels.Count(p), parts[p].taps, panel, k, out);
        }
      }
    }
  }

  /// Steps [k, k + kDepth) of the sums for one panel.
  void Multiply(const T* x, const Place* pixels, int64_t count, const std::vector<Place>& taps, int64_t panel,
                int64_t k, T* out) const {
    const int64_t column = panels_.FirstColumn(panel), depth = static_cast<int64_t>(taps.size());
    const bool last = k + kDepth >= depth;
    const Finish<T> finish{k > 0, last && out_.bias ? out_.bias + column : nullptr, last && out_.relu};
    panels_.Multiply()(x + panels_.Group(panel) * channels_ * source_.layout.channel, pixels, count, taps.data() + k,
                       std::min(kDepth, depth - k), Panel(panel), out + column, panels_.Columns(panel), finish);
  }

  const Problem& problem_;
  const Axis &rows_, &columns_;
  const Weights<T>& weights_;
  const Target<T>& out_;
  const Panels<T> panels_;
  const int64_t channels_, depth_, threads_;
  const bool packed_;
  const Pieces pieces_;
  const Source<T> source_;
  Scratch scratch_;
  const T* panels_at_ = nullptr;
};

// ---- gradients of kernels -------------------------------------------------------------------------------------------

/// Windows, turned, times the gradient of the results.  The sums over pixels are cut into chunks, what is to be summed
/// into panels and rows (a tap and a channel), and threads share all of these; at last the chunks are added.
template <typename T>
class WindowsTimesGradient {
 public:
  WindowsTimesGradient(const Problem& problem, const Images<T>& images, const Images<T>& grad, const Axis& rows,
                       const Axis& columns, T* out, T* bias_out)
      : rows_(rows),
        columns_(columns),
        kernel_columns_(problem.columns.kernel),
        out_(out),
        bias_out_(bias_out),
        panels_(problem, problem.filters / problem.groups),
        channels_(problem.channels / problem.groups),
        filters_(problem.filters),
        weights_(problem.rows.kernel * problem.columns.kernel * channels_ * filters_),
        threads_(ThreadsFor(images.shape[0] * rows.Pairs() * columns.Pairs() * channels_ * filters_)),
        chunks_(Chunks(images.shape[0] * rows.count * columns.count)),
        pieces_(images.shape[0], images.Bytes(), rows, chunks_),
        images_(images, panels_.ReadsInPlace(images), pieces_, pieces_.most_seen()),
        grad_(grad, InPlace(grad), pieces_, pieces_.most_rows()) {
    for (int64_t i : rows.useful) {
      for (int64_t j : columns.useful) {
        for (int64_t c = 0; c < channels_; c++) outs_.push_back(OutPlace(i, j) + c * filters_);
      }
    }
  }

  void Run() {
    const int64_t room = (chunks_ - 1) * (weights_ + filters_), tasks = panels_.count() * OutRows();  // of a chunk
    sums_ = scratch_.Get<T>(static_cast<size_t>(room));
    std::fill_n(sums_, room, T(0));
    ParallelFor(chunks_ * tasks, chunks_ * tasks / threads_, [&](int64_t begin, int64_t end) {
      const std::vector<Part> parts = Parts();
      Scratch images, grad;
      Pixels pixels(parts, pieces_);
      for (int64_t chunk = begin / tasks; chunk * tasks < end; chunk++) {
        const Span mine{std::max<int64_t>(begin - chunk * tasks, 0), std::min(end - chunk * tasks, tasks)};
        for (int64_t p = FirstPiece(chunk); p < FirstPiece(chunk + 1); p++) {
          RunPiece(pieces_[p], chunk, mine, parts, pixels, images, grad);
        }
      }
    });
    AddChunks();
  }

 private:
  int64_t OutPlace(int64_t i, int64_t j) const { return (i * kernel_columns_ + j) * channels_ * filters_; }
  std::vector<Part> Parts() const {
    return PartsOf(rows_, columns_, images_.layout, channels_, filters_,
                   [this](const Tap& i, const Tap& j) { return OutPlace(i.index, j.index); });
  }

  int64_t OutRows() const { return std::max<int64_t>(static_cast<int64_t>(outs_.size()), 1); }  // the bias has one, too
  int64_t FirstPiece(int64_t chunk) const { return pieces_.count() * chunk / chunks_; }
  T* Sums(int64_t chunk) const { return chunk ? sums_ + (chunk - 1) * (weights_ + filters_) : out_; }
  T* BiasSums(int64_t chunk) const { return chunk ? Sums(chunk) + weights_ : bias_out_; }

  int64_t Chunks(int64_t pixels) const {
    const int64_t fit = kChunkBytes / static_cast<int64_t>(sizeof(T)) / (weights_ + filters_);
    return std::clamp<int64_t>(std::min(pixels / kChunkPixels, fit), 1, kChunks);
  }

  bool InPlace(const Images<T>& grad) const {
    return grad.at.channel == 1 && (panels_.channelwise || panels_.columns % panels_.loops.lanes == 0);
  }

  /// What a piece adds to the sums of a chunk, for these of its tasks.
  void RunPiece(const Piece& piece, int64_t chunk, const Span& tasks, const std::vector<Part>& parts, Pixels& pixels,
                Scratch& images_copy, Scratch& grad_copy) const {
    const T* x = images_.Rows(piece, piece.seen, 0, images_copy);
    const T* grad = grad_.Rows(piece, {piece.row, piece.row + piece.rows}, panels_.width, grad_copy);
    pixels.List(piece, piece.seen.begin, images_.layout, grad_.layout);
    for (size_t p = 0; p < parts.size(); p++) {
      for (int64_t k = 0; k < pixels.Count(p); k += kDepth) {
        const Place* steps = pixels.Begin(p) + k;
        const int64_t depth = std::min(kDepth, pixels.Count(p) - k);
        for (int64_t panel = tasks.begin / OutRows(); panel * OutRows() < tasks.end; panel++) {
          const Span rows{std::max<int64_t>(tasks.begin - panel * OutRows(), 0),
                          std::min(tasks.end - panel * OutRows(), OutRows())};
          AddBias(grad, steps, depth, panel, rows, chunk);
          Multiply(x, grad, steps, depth, parts[p].taps, panel, rows, chunk);
        }
      }
    }
  }

  void AddBias(const T* grad, const Place* steps, int64_t depth, int64_t panel, const Span& rows, int64_t chunk) const {
    const int64_t column = panels_.FirstColumn(panel);
    if (!bias_out_ || rows.begin) return;
    panels_.loops.sum_columns(grad + column, steps, depth, panels_.Columns(panel), BiasSums(chunk) + column);
  }

  /// For those of the taps that are among the rows.
  void Multiply(const T* x, const T* grad, const Place* steps, int64_t depth, const std::vector<Place>& taps,
                int64_t panel, const Span& rows, int64_t chunk) const {
    const int64_t column = panels_.FirstColumn(panel);
    const Place *first = FirstTap(taps, rows.begin), *last = FirstTap(taps, rows.end);
    panels_.Multiply()(x + panels_.Group(panel) * channels_ * images_.layout.channel, first, last - first, steps, depth,
                       grad + column, Sums(chunk) + column, panels_.Columns(panel), {true, nullptr, false});
  }

  /// The first of the taps that belongs to row `row` of those to be summed, or to one behind it.
  const Place* FirstTap(const std::vector<Place>& taps, int64_t row) const {
    const Place* end = taps.data() + taps.size();
    if (row >= static_cast<int64_t>(outs_.size())) return end;
    const auto before = [](const Place& tap, int64_t out) { return tap.other < out; };
    return std::lower_bound(taps.data(), end, outs_[row], before);
  }

  void AddChunks() const {
    ParallelFor(weights_, kThreadWork / chunks_, [&](int64_t begin, int64_t end) {
      for (int64_t chunk = 1; chunk < chunks_; chunk++) Add(Sums(chunk) + begin, end - begin, out_ + begin);
    });
    for (int64_t chunk = 1; bias_out_ && chunk < chunks_; chunk++) Add(BiasSums(chunk), filters_, bias_out_);
  }

  static void Add(const T* from, int64_t count, T* to) {
    for (int64_t i = 0; i < count; i++) to[i] += from[i];
  }

  const Axis &rows_, &columns_;
  const int64_t kernel_columns_;
  T *out_, *bias_out_;
  const Panels<T> panels_;
  const int64_t channels_, filters_, weights_, threads_, chunks_;
  const Pieces pieces_;
  const Source<T> images_, grad_;
  std::vector<int64_t> outs_;  // where each row that is summed stands in the kernel
  Scratch scratch_;
  T* sums_;
};

// ---- what the three ask of their arguments --------------------------------------------------------------------------

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
    const Axis rows = problem.rows.ToImages(), columns = problem.columns.ToImages();
    ImagesTimesKernel<T>(problem, source, rows, columns, weights, channels, target).Run();
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
    for (const Buffer* other : {&images, &out_grad, static_cast<const Buffer*>(&out)}) {
      CheckApart(who, *other, *bias_out);
    }
  }
  VisitOnly<FloatType>(who, images.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    T* bias_grad = bias_out ? bias_out->as<T>() : nullptr;
    std::fill_n(out.as<T>(), out.size(), T(0));
    if (bias_grad) std::fill_n(bias_grad, problem.filters, T(0));
    if (CheckedSize(who, grad_shape) == 0) return;
    const Axis rows = problem.rows.ToResults(), columns = problem.columns.ToResults();
    const Images<T> source(images, images_shape, strides, images_offset);
    const Images<T> grad(out_grad, grad_shape, steps, grad_offset);
    WindowsTimesGradient<T>(problem, source, grad, rows, columns, out.as<T>(), bias_grad).Run();
  });
}

}  // namespace needle
