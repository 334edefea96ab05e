// A small profile of memory (CUEMU_PROFILE=1): how well the lanes of a warp share their loads and stores.
//
// The lanes of a warp that execute the same instruction for the same time make one request.  A request to global memory
// fetches sectors of 32 bytes; a request to shared memory takes as many passes as the busiest of the 32 banks has
// words. It is a model: there is no cache in it.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "check.h"
#include "errors.h"
#include "options.h"
#include "source_lines.h"
#include "worker.h"

namespace cuda_emu {

namespace {

constexpr uint64_t kSectorBytes = 32, kWordBytes = 4, kBanks = 32;

/// Sums over the requests of one instruction, or of one line.
struct Total {
  bool shared = false;
  uint64_t requests = 0;
  uint64_t units = 0;   // sectors fetched, or passes made
  uint64_t fewest = 0;  // that would have been enough
};

struct Request {
  uint32_t n = 0;
  unsigned bytes = 0;
  uint64_t address[kWarpSize];
};

using Totals = std::map<const void*, Total>;  // by address of the instruction
std::map<std::string, Totals>& Profile() {
  static auto* profile = new std::map<std::string, Totals>;  // never destroyed: it is printed when the process ends
  return *profile;
}
Totals* totals;                                  // of the running kernel
std::unordered_map<uint64_t, Request> requests;  // of the running block, by instruction, warp and time
std::unordered_map<uint64_t, uint32_t> times;    // that a thread has executed an instruction

uint64_t RoundedUp(uint64_t n, uint64_t unit) {
  return std::max<uint64_t>(1, (n + unit - 1) / unit);
}

uint64_t Sectors(const Request& request) {
  std::set<uint64_t> sectors;
  for (uint32_t i = 0; i < request.n; i++) {
    sectors.insert(request.address[i] / kSectorBytes);
    sectors.insert((request.address[i] + request.bytes - 1) / kSectorBytes);
  }
  return sectors.size();
}

uint64_t Passes(const Request& request) {
  std::set<uint64_t> words_of_bank[kBanks];
  for (uint32_t i = 0; i < request.n; i++) {
    for (uint64_t k = 0; k < RoundedUp(request.bytes, kWordBytes); k++) {
      const uint64_t word = request.address[i] / kWordBytes + k;
      words_of_bank[word % kBanks].insert(word);
    }
  }
  size_t most = 1;
  for (const auto& words : words_of_bank) most = std::max(most, words.size());
  return most;
}

void Add(Total& total, const Request& request) {
  total.requests++;
  const uint64_t bytes = uint64_t{request.n} * request.bytes;
  total.units += total.shared ? Passes(request) : Sectors(request);
  // several lanes may read one word: no fewer than one unit, and no more than all bytes one after the other
  total.fewest += RoundedUp(bytes, total.shared ? kWordBytes * kBanks : kSectorBytes);
}

/// One line of the table.
struct Row {
  std::string line;
  Total total;

  double PerRequest() const { return static_cast<double>(total.units) / static_cast<double>(total.requests); }
  double Fewest() const {
    return static_cast<double>(std::min(total.fewest, total.units)) / static_cast<double>(total.requests);
  }
};

std::vector<Row> Rows(const Totals& of_kernel) {
  std::vector<const void*> addresses;
  for (const auto& [pc, total] : of_kernel) addresses.push_back(pc);
  const std::vector<std::string> lines = SourceLines(addresses);
  std::map<std::pair<std::string, bool>, Total> by_line;
  size_t i = 0;
  for (const auto& [pc, total] : of_kernel) {
    Total& sum = by_line[{lines[i].empty() ? "unknown line" : lines[i], total.shared}];
    sum.shared = total.shared;
    sum.requests += total.requests;
    sum.units += total.units;
    sum.fewest += total.fewest;
    i++;
  }
  std::vector<Row> rows;
  for (const auto& [key, total] : by_line) rows.push_back({key.first, total});
  return rows;
}

void PrintTable(const std::string& kernel, const std::vector<Row>& rows) {
  std::fprintf(stderr, "\n  %s\n  %-32s %-7s %10s %12s %8s %7s\n", kernel.c_str(), "line", "memory", "requests",
               "per request", "fewest", "factor");
  for (const Row& row : rows) {
    const bool shared = row.total.shared;
    std::fprintf(stderr, "  %-32s %-7s %10llu %5.1f %-6s %8.1f %6.1fx\n", row.line.c_str(),
                 shared ? "shared" : "global", static_cast<unsigned long long>(row.total.requests), row.PerRequest(),
                 shared ? "passes" : "sect.", row.Fewest(), row.PerRequest() / row.Fewest());
  }
}

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

void WriteJson(std::FILE* file, const std::map<std::string, std::vector<Row>>& table) {
  std::fprintf(file, "{\"kernels\": [");
  const char* comma = "";
  for (const auto& [kernel, rows] : table) {
    std::fprintf(file, "%s\n  {\"kernel\": %s, \"lines\": [", comma, Quoted(kernel).c_str());
    comma = ",";
    const char* inner = "";
    for (const Row& row : rows) {
      std::fprintf(
          file,
          "%s\n    {\"line\": %s, \"memory\": \"%s\", \"requests\": %llu, \"per_request\": %.3f, \"fewest\": %.3f}",
          inner, Quoted(row.line).c_str(), row.total.shared ? "shared" : "global",
          static_cast<unsigned long long>(row.total.requests), row.PerRequest(), row.Fewest());
      inner = ",";
    }
    std::fprintf(file, "]}");
  }
  std::fprintf(file, "\n]}\n");
}

void WriteFile(const std::map<std::string, std::vector<Row>>& table) {
  std::FILE* file = std::fopen(options.profile.c_str(), "w");
  if (file == nullptr) {
    std::fprintf(stderr, "[cuda_emu] CUEMU_PROFILE=%s: cannot write to this file\n", options.profile.c_str());
    return;
  }
  WriteJson(file, table);
  std::fclose(file);
}

}  // namespace

bool Profiling() {
  return totals != nullptr;
}

void NoteForProfile(const Access& access, bool shared) {
  const uint64_t pc = ShortPc(access.pc), thread = LinearThread();
  const uint64_t time = times[pc << 16 | thread]++;
  Request& request = requests[pc << 32 | (thread / kWarpSize) << 26 | (time & 0x3ffffff)];
  (*totals)[access.pc].shared = shared;
  request.bytes = access.bytes;
  if (request.n < kWarpSize) request.address[request.n++] = reinterpret_cast<uint64_t>(access.address);
}

void ProfileBlockEnds() {
  if (totals == nullptr) return;
  for (const auto& [key, request] : requests) Add((*totals)[LongPc(static_cast<uint32_t>(key >> 32))], request);
  requests.clear();
  times.clear();
}

void ProfileGridStarts(const Grid& grid) {
  totals = nullptr;
  if (options.profile.empty()) return;
  static const bool once = (std::atexit(PrintProfile), true);
  static_cast<void>(once);
  totals = &Profile()[KernelName(grid.config)];
}

void ProfileGridEnds() {
  totals = nullptr;
}

void PrintProfile() {
  if (Profile().empty()) return;
  std::map<std::string, std::vector<Row>> table;
  for (const auto& [kernel, of_kernel] : Profile()) table[kernel] = Rows(of_kernel);
  std::fprintf(
      stderr,
      "\n[cuda_emu] memory profile: sectors of 32 bytes that each request of a warp fetches from global memory,\n"
      "[cuda_emu] and passes that it makes through the 32 banks of shared memory; factor 1 is best\n");
  for (const auto& [kernel, rows] : table) PrintTable(kernel, rows);
  if (options.profile != "1") WriteFile(table);
  Profile().clear();
}

}  // namespace cuda_emu
