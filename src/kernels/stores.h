// Which results are written past the caches.
#ifndef NEEDLE_KERNELS_STORES_H_
#define NEEDLE_KERNELS_STORES_H_

#include <initializer_list>

#include "buffer.h"
#include "float_loops.h"

namespace needle {

/// Streamed where the result is larger than the last cache: none of it would be left there for a reader who begins at
/// its beginning.  But not where it replaces an input, whose lines have been read anyway.
Stores StoresFor(const Buffer& out, std::initializer_list<const Buffer*> inputs);

}  // namespace needle

#endif  // NEEDLE_KERNELS_STORES_H_
