// What the course's kernel files share, on every device: how a blank throws, and where element-wise kernels register.
#ifndef NEEDLE_REGISTERED_H_
#define NEEDLE_REGISTERED_H_

#include <stdexcept>
#include <string>
#include <vector>

namespace needle {

/// Thrown by what a learner has still to write; Python sees a NotImplementedError: "hw3/compact is not implemented
/// yet".
struct NotImplemented : std::logic_error {
  explicit NotImplemented(const char* part) : std::logic_error(std::string(part) + " is not implemented yet") {}
};

/// The element-wise kernels of one kind that the kernel file defines, by their Python names.
template <typename Kernel>
struct Registered {
  struct Row {
    const char* name;
    Kernel kernel;
  };

  Registered(const char* name, Kernel kernel) { Rows().push_back({name, kernel}); }

  static std::vector<Row>& Rows() {
    static std::vector<Row> rows;
    return rows;
  }
};

}  // namespace needle

#endif  // NEEDLE_REGISTERED_H_
