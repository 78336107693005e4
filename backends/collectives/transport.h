// Transport: what collective algorithms need of the world. MPI, in-process, and a timed fake for tests implement it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace hlorun::collectives {

class NodeWindow;

// A nonblocking operation. Polled by one thread.
class Request {
 public:
  virtual ~Request() = default;
  virtual bool Test() = 0;  // true once complete; throws Error when a peer failed
  // Before then it is not complete, as far as Test() has found out: who waits need not look sooner.
  virtual std::chrono::steady_clock::time_point NotBefore() const { return {}; }
};

// One endpoint of `size` peers; a peer is a process (MPI) or a device (in process). One thread uses an endpoint at a
// time.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Messages between two ranks with one tag arrive in order. Any length; buffers belong to the transport until Test().
  virtual std::unique_ptr<Request> Send(std::span<const std::byte> data, int to, int64_t tag) = 0;
  virtual std::unique_ptr<Request> Receive(std::span<std::byte> data, int from, int64_t tag) = 0;
  // Memory that all endpoints share, each in a process of its own; null where they do not.
  virtual NodeWindow* window() { return nullptr; }
  // Whether messages take time in which this host's cores have nothing to do for them.
  virtual bool is_network() const { return true; }
  // Called by every wait loop: progresses messages, updates this rank's heartbeat, and throws Error kAborted when a
  // peer failed or stopped for longer than the heartbeat limit.
  virtual void Progress() = 0;
  // Between them the calling thread does nothing but wait for messages.
  virtual void WaitBegins() {}
  virtual void WaitEnds() {}
  // Ends the whole job with a message (all ranks exit != 0). In process: fails the other endpoints' waits.
  virtual void Abort(const std::string& message) = 0;
};

class WaitScope {
 public:
  explicit WaitScope(Transport& transport) : transport_(transport) { transport_.WaitBegins(); }
  ~WaitScope() { transport_.WaitEnds(); }
  WaitScope(const WaitScope&) = delete;
  WaitScope& operator=(const WaitScope&) = delete;

 private:
  Transport& transport_;
};

}  // namespace hlorun::collectives
