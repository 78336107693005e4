#include "backends/opencl/runtime/lane.h"

#include "backends/collectives/short_slices.h"
#include "backends/opencl/runtime/run_event.h"

namespace hlorun::opencl {

// A thread over a queue of work. Its state outlives it, for the last piece of work may drop the last reference to the
// device, and with it the lane, on this very thread.
struct Lane::Worker {
  explicit Worker(void (*begin)() = nullptr) { state->begin = begin; }

  struct State {
    void (*begin)() = nullptr;  // what the thread does first
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::function<void()>> work;
    std::atomic<size_t> outstanding = 0;
    bool stop = false;
  };
  std::shared_ptr<State> state = std::make_shared<State>();
  std::thread thread;

  ~Worker() {
    {
      std::lock_guard lock(state->mutex);
      state->stop = true;
      state->changed.notify_all();
    }
    if (!thread.joinable()) return;
    if (thread.get_id() == std::this_thread::get_id()) {
      thread.detach();
    } else {
      thread.join();
    }
  }

  void Post(std::function<void()> work) {
    std::lock_guard lock(state->mutex);
    if (!thread.joinable()) StartThread();  // first: what nobody will do is not to be waited for
    state->work.push_back(std::move(work));
    ++state->outstanding;
    state->changed.notify_all();
  }

  void StartThread() {
    try {
      thread = std::thread([s = state] { Loop(s); });
    } catch (const std::system_error& error) {
      Fail(ErrorCode::kResourceExhausted, "cannot start a thread ({}): raise the limit of processes (ulimit -u)",
           error.what());
    }
  }

  bool Idle() const { return state->outstanding == 0; }

  static void Loop(std::shared_ptr<State> state) {
    if (state->begin != nullptr) state->begin();
    std::unique_lock lock(state->mutex);
    while (true) {
      state->changed.wait(lock, [&] { return state->stop || !state->work.empty(); });
      if (state->work.empty()) return;
      std::function<void()> work = std::move(state->work.front());
      state->work.pop_front();
      lock.unlock();
      work();
      work = nullptr;
      lock.lock();
      --state->outstanding;
    }
  }
};

Lane::Lane(cl::CommandQueue queue)
    : queue_(std::move(queue)),
      driver_(std::make_unique<Worker>()),
      watcher_(std::make_unique<Worker>()),
      exchanger_(std::make_unique<Worker>(&collectives::AskForShortSlices)),
      caller_(std::make_unique<Worker>()) {}

Lane::~Lane() {
  watcher_.reset();
  driver_.reset();
  exchanger_.reset();
  // What is let go of at a run's end may be the caller's, whose code may come back here: nothing is locked meanwhile.
  for (const auto& event : in_flight_) event->WaitQuietly();
  caller_.reset();
}

const cl::CommandQueue& Lane::second_queue() {
  std::call_once(has_second_queue_, [this] {
    try {
      second_queue_ = cl::CommandQueue(queue_.getInfo<CL_QUEUE_CONTEXT>(), queue_.getInfo<CL_QUEUE_DEVICE>());
    } catch (const cl::Error&) {
      // One does.
    }
  });
  return second_queue_;
}

void Lane::Drain() {
  if (second_queue_() != nullptr) clFinish(second_queue_());
  clFinish(queue_());
}

bool Lane::RunInline(const std::function<void()>& work) {
  std::lock_guard lock(order_);
  if (!driver_->Idle()) return false;
  work();
  return true;
}

void Lane::Post(std::function<void()> work) {
  std::lock_guard lock(order_);
  driver_->Post(std::move(work));
}

void Lane::PostExchange(std::function<void()> work) { exchanger_->Post(std::move(work)); }

void Lane::Watch(std::shared_ptr<RunEvent> event) {
  watcher_->Post([event = std::move(event)] { event->WaitQuietly(); });
}

void Lane::Call(std::function<void()> callback) { caller_->Post(std::move(callback)); }

void Lane::Admit(std::shared_ptr<RunEvent> event) {
  Reap();
  std::shared_ptr<RunEvent> oldest;
  {
    std::lock_guard lock(flight_mutex_);
    in_flight_.push_back(std::move(event));
    if (in_flight_.size() > kRunsInFlight) {
      oldest = std::move(in_flight_.front());
      in_flight_.pop_front();
    }
    flying_ = in_flight_.size();
  }
  if (oldest != nullptr) oldest->WaitQuietly();
}

bool Lane::Reap() {
  for (;;) {
    std::shared_ptr<RunEvent> oldest;
    {
      std::lock_guard lock(flight_mutex_);
      if (in_flight_.empty()) return true;
      oldest = in_flight_.front();
    }
    // Without the lock: noticing an end lets go of memory, of the caller's too.
    if (!oldest->Ready()) return false;
    std::lock_guard lock(flight_mutex_);
    if (in_flight_.empty() || in_flight_.front() != oldest) continue;  // another thread was quicker
    in_flight_.pop_front();
    flying_ = in_flight_.size();
  }
}

bool Lane::Quiet() { return driver_->Idle() && (flying_ == 0 || Reap()); }

}  // namespace hlorun::opencl
