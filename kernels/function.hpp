// What headers that every kernel's file includes have in place of std::function and
// std::shared_ptr.
//
// nvcc reads headers twice for the host and once for each architecture: <functional>, <memory> and
// <atomic> would take a third of the time that a small kernel takes to compile.
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace gemm {

// What its owners delete together. Any number of threads may hold owners of one object.
class Shared {
 public:
  Shared() = default;
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  virtual ~Shared() = default;

  void acquire();  // one owner more
  void release();  // one owner less: the last one deletes it

 private:
  int owners_ = 1;
};

// An owner of a T, which derives from Shared, or of nothing.
template <typename T>
class Owner {
 public:
  Owner() = default;
  explicit Owner(T* created) : object_(created) {}
  Owner(const Owner& other) : object_(other.object_) {
    if (object_ != nullptr) object_->acquire();
  }
  Owner(Owner&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Owner& operator=(Owner other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Owner() {
    if (object_ != nullptr) object_->release();
  }

  T* get() const { return object_; }

 private:
  T* object_ = nullptr;
};

// What a Caller, which is not itself meant, can call with these arguments.
template <typename F, typename Caller, typename Result, typename... Arguments>
concept CalledBy = !std::same_as<std::decay_t<F>, Caller> &&
                   std::is_invocable_r_v<Result, std::decay_t<F>&, Arguments...>;

template <typename Signature>
class Function;

// Calls the function object that it was made from, which copies share. Null by default, and then
// not to be called.
template <typename Result, typename... Arguments>
class Function<Result(Arguments...)> {
 public:
  Function() = default;
  Function(std::nullptr_t) {}
  template <CalledBy<Function, Result, Arguments...> F>
  Function(F&& f) : callee_(new Holder<std::decay_t<F>>(std::forward<F>(f))) {}

  explicit operator bool() const { return callee_.get() != nullptr; }
  bool operator==(std::nullptr_t) const { return callee_.get() == nullptr; }
  Result operator()(Arguments... arguments) const {
    return callee_.get()->call(std::forward<Arguments>(arguments)...);
  }

 private:
  struct Callee : Shared {
    virtual Result call(Arguments... arguments) = 0;
  };
  template <typename F>
  struct Holder final : Callee {
    template <typename From>
    explicit Holder(From&& from) : f(std::forward<From>(from)) {}
    Result call(Arguments... arguments) override {
      return static_cast<Result>(f(std::forward<Arguments>(arguments)...));
    }
    F f;
  };

  Owner<Callee> callee_;
};

}  // namespace gemm
