// Work that threads share: each piece is done once, whoever does it, and whoever else wants the threads.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "check.h"

using namespace needle;

/// How often each of `count` items was visited.
static std::vector<int> Visits(int64_t count, int64_t grain) {
  std::vector<int> visits(static_cast<size_t>(count));
  ParallelFor(count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) visits[i]++;
  });
  return visits;
}

TEST(parallel_for_visits_each_item_once) {
  for (int64_t threads : {1, 2, 3, 8}) {
    SetNumThreads(threads);
    for (int64_t count : {0, 1, 2, 7, 1000}) {
      for (int64_t grain : {0, 1, 3, 2000}) EXPECT(Visits(count, grain) == std::vector<int>(count, 1));
    }
  }
  SetNumThreads(1);
}

TEST(parallel_for_gives_each_piece_a_grain) {
  SetNumThreads(8);
  std::atomic<int64_t> shortest{1000};
  ParallelFor(100, 30, [&](int64_t begin, int64_t end) {
    for (int64_t known = shortest; end - begin < known && !shortest.compare_exchange_weak(known, end - begin);) {
    }
  });
  EXPECT(shortest == 33);
  SetNumThreads(1);
}

// many short ones, so that now a thread comes in time, and now its piece is taken back; then ones that find them asleep
TEST(parallel_for_is_right_however_late_a_thread_comes) {
  SetNumThreads(3);
  for (int round = 0; round < 3000; round++) {
    if (round % 600 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(15));
    EXPECT(Visits(30, 1) == std::vector<int>(30, 1));
  }
  SetNumThreads(1);
}

TEST(parallel_for_throws_what_a_piece_throws_and_goes_on_working) {
  SetNumThreads(3);
  for (int64_t bad : {0, 50, 99}) {
    EXPECT_THROW(std::out_of_range, ParallelFor(100, 1, [&](int64_t begin, int64_t end) {
                   if (begin <= bad && bad < end) throw std::out_of_range("bad");
                 }));
    EXPECT(Visits(100, 1) == std::vector<int>(100, 1));
  }
  SetNumThreads(1);
}

TEST(parallel_for_inside_another_is_serial) {
  SetNumThreads(3);
  std::atomic<int> pieces{0};
  ParallelFor(3, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) ParallelFor(100, 1, [&](int64_t, int64_t) { pieces++; });
  });
  EXPECT(pieces == 3);
  SetNumThreads(1);
}

TEST(parallel_for_serves_several_callers) {
  SetNumThreads(3);
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int caller = 0; caller < 4; caller++) {
    callers.emplace_back([&] {
      for (int round = 0; round < 300; round++) wrong += Visits(50, 1) != std::vector<int>(50, 1);
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT(wrong == 0);
  SetNumThreads(1);
}

#ifndef NEEDLE_THREAD_SANITIZER  // which forbids new threads in a forked child
TEST(a_forked_child_has_threads_of_its_own) {
  SetNumThreads(3);
  Visits(100, 1);  // so that the parent has some
  const pid_t child = fork();
  if (child == 0) {
    bool right = NumThreads() == 1 && Visits(100, 1) == std::vector<int>(100, 1);
    SetNumThreads(3);
    right = right && Visits(100, 1) == std::vector<int>(100, 1);
    _exit(right ? 0 : 1);
  }
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT(status == 0);
  SetNumThreads(1);
}
#endif
