#include "options.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "checks.h"

namespace cuda_emu {

Options options;

namespace {

constexpr const char* kNames[] = {"WORKERS", "ORDER", "SEED",  "GUARD",  "STICKY", "STRICT",
                                  "TIMEOUT", "STACK", "RACES", "UNINIT", "PROFILE"};

bool ReadNumber(const char* text, double low, double high, double* number) {
  char* end;
  *number = std::strtod(text, &end);
  return end != text && *end == '\0' && *number >= low && *number <= high;
}

bool ReadSwitch(const char* text, bool* value) {
  if (std::strcmp(text, "0") != 0 && std::strcmp(text, "1") != 0) return false;
  *value = *text == '1';
  return true;
}

bool ReadOrder(const std::string& text) {
  if (text == "forward") {
    options.order = Order::kForward;
  } else if (text == "reverse") {
    options.order = Order::kReverse;
  } else if (text == "random") {
    options.order = Order::kRandom;
  } else {
    return false;
  }
  return true;
}

int DefaultWorkers() {
  if (checks->OneWorker()) return 1;
  const char* wanted = std::getenv("NEEDLE_NUM_THREADS");
  double number;
  if (wanted != nullptr && ReadNumber(wanted, 1, 1e6, &number)) return std::min(static_cast<int>(number), 32);
  return static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 32u));
}

}  // namespace

void ReadEnvironment() {
  options.workers = DefaultWorkers();
  for (const char* name : kNames) {
    const std::string variable =
        std::strcmp(name, "PROFILE") == 0 ? "CUEMU_PROFILE" : std::string("NEEDLE_CUDA_EMU_") + name;
    const char* value = std::getenv(variable.c_str());
    if (value == nullptr || *value == '\0' || cuda_emu_set_option(name, value)) continue;
    std::fprintf(stderr,
                 "[cuda_emu] %s=%s is no value of this variable; it is ignored (docs/cuda_emulator.md lists them)\n",
                 variable.c_str(), value);
  }
}

}  // namespace cuda_emu

bool cuda_emu_set_option(const char* name, const char* value) {
  using namespace cuda_emu;
  const std::string option = name;
  double number;
  if (option == "ORDER") return ReadOrder(value);
  if (option == "GUARD") return ReadSwitch(value, &options.guard);
  if (option == "STICKY") return ReadSwitch(value, &options.sticky);
  if (option == "STRICT") return ReadSwitch(value, &options.strict);
  if (option == "RACES") return ReadSwitch(value, &options.races);
  if (option == "UNINIT") return ReadSwitch(value, &options.uninit);
  if (option == "PROFILE") {
    options.profile = std::strcmp(value, "0") == 0 ? "" : value;
    return true;
  }
  if (option == "WORKERS") {
    if (!ReadNumber(value, 0, 32, &number)) return false;
    options.workers = number == 0 ? DefaultWorkers() : static_cast<int>(number);
    return true;
  }
  if (option == "SEED") {
    if (!ReadNumber(value, 0, 4294967295.0, &number)) return false;
    options.seed = static_cast<unsigned>(number);
    return true;
  }
  if (option == "TIMEOUT") return ReadNumber(value, 0.001, 1e9, &options.timeout);
  if (option == "STACK") {  // the stacks are laid out once, so this one holds only from the environment
    if (!ReadNumber(value, 16, 65536, &number)) return false;
    options.stack_bytes = static_cast<size_t>(number) << 10;
    return true;
  }
  return false;
}
