// Runs every TEST that was linked in; exits 1 if one failed.
#include <exception>

#include "check.h"

int main() {
  for (const TestCase& test : Tests()) {
    const int before = Failures();
    try {
      test.run();
    } catch (const std::exception& error) {
      std::printf("%s threw: %s\n", test.name, error.what());
      Failures()++;
    }
    std::printf("%s %s\n", Failures() == before ? "passed" : "FAILED", test.name);
  }
  std::printf("%zu tests, %d failures\n", Tests().size(), Failures());
  return Failures() ? 1 : 0;
}
