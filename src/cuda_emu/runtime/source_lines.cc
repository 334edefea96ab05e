#include "source_lines.h"

#include <dlfcn.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>

#include "errors.h"

#ifdef __APPLE__
#include <crt_externs.h>
#define environ (*_NSGetEnviron())  // a shared library has no other way there
#else
extern char** environ;
#endif

namespace cuda_emu {

namespace {

// What a program prints; empty if it cannot be started.  No shell: a path may hold any character.
std::string OutputOf(const std::vector<std::string>& command) {
  int ends[2];
  if (pipe(ends) != 0) return "";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", 1 /* O_WRONLY */, 0);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t child;
  const bool started = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ) == 0;
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string output;
  char buffer[4096];
  for (ssize_t n; started && (n = read(ends[0], buffer, sizeof(buffer))) > 0;) output.append(buffer, n);
  close(ends[0]);
  int status;
  if (started) waitpid(child, &status, 0);
  return output;
}

// "kernel.cu:12 (discriminator 3)" -> "kernel.cu:12", "??:0" -> ""
std::string Cleaned(std::string line) {
  line = line.substr(0, line.find(" (discriminator"));
  const size_t slash = line.rfind('/');
  if (slash != std::string::npos) line = line.substr(slash + 1);
  return line.empty() || line[0] == '?' || line.compare(line.size() - 2, 2, ":?") == 0 ? "" : line;
}

bool IsOurs(const std::string& frame) {
  return frame.find("/cuda_emu/include/") != std::string::npos;
}

// addr2line -a -i prints, for each address: the address, then the inlined calls there, innermost first.  The line is
// that of the innermost which is not a function of the emulator, as atomicAdd is.
std::vector<std::string> Parse(const std::string& output, size_t n) {
  std::vector<std::string> lines;
  for (size_t begin = 0, end; (end = output.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string frame = output.substr(begin, end - begin);
    if (frame.compare(0, 2, "0x") == 0) {
      lines.emplace_back();
    } else if (!lines.empty() && lines.back().empty() && !IsOurs(frame)) {
      lines.back() = Cleaned(frame);
    }
  }
  lines.resize(n);
  return lines;
}

}  // namespace

std::vector<std::string> SourceLines(const std::vector<const void*>& return_addresses) {
  Dl_info module, runtime;
  if (return_addresses.empty() || dladdr(return_addresses[0], &module) == 0 || module.dli_fname == nullptr) {
    return std::vector<std::string>(return_addresses.size());
  }
  if (dladdr(reinterpret_cast<const void*>(&OutputOf), &runtime) != 0 && runtime.dli_fbase == module.dli_fbase) {
    return std::vector<std::string>(return_addresses.size());  // a line of the emulator's says nothing to a reader
  }
  std::vector<std::string> command = {"addr2line", "-a", "-i", "-e", module.dli_fname};
  for (const void* address : return_addresses) {
    // the call itself ends just before the address to which it returns
    const uintptr_t offset = reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(module.dli_fbase) - 1;
    command.push_back(Hex(reinterpret_cast<const void*>(offset)));
  }
  std::string output;
  for (const char* program : {"addr2line", "llvm-addr2line"}) {
    command[0] = program;
    if (output.empty()) output = OutputOf(command);
  }
  return Parse(output, return_addresses.size());
}

}  // namespace cuda_emu
