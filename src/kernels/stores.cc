#include "stores.h"

#include <fstream>

namespace needle {
namespace {

/// Bytes of the last cache; where the system does not tell, as much as few processors exceed.  (On some processors
/// sysconf() adds up what cores do not share.)
int64_t LastCache() {
  int64_t kib = 0;
  std::ifstream("/sys/devices/system/cpu/cpu0/cache/index3/size") >> kib;  // such as 32768K
  return (kib > 0 ? kib : 32768) << 10;
}

}  // namespace

Stores StoresFor(const Buffer& out, std::initializer_list<const Buffer*> inputs) {
  static const int64_t last_cache = LastCache();
  if (out.bytes() <= last_cache || reinterpret_cast<uintptr_t>(out.data()) % ItemSize(out.dtype())) {
    return Stores::kCached;  // the latter is memory of somebody else's, in which no element begins on a line
  }
  for (const Buffer* input : inputs) {
    if (input->Overlaps(out)) return Stores::kCached;
  }
  return Stores::kStreamed;
}

}  // namespace needle
