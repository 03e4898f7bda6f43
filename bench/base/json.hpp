// Structs as JSON objects. A function `fields(io, value)` next to a struct names its fields once
// and calls io(key, field) for each: a Writer makes the object of that, a Reader reads it back.
//
// null is an empty optional or text, a number that is not finite, and a Counted that is 0.
#pragma once

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace gemm::bench {

// `auto& value` of fields() is Like<T>: a T to read, or a const T to write.
template <typename U, typename T>
concept Like = std::is_same_v<std::remove_const_t<U>, T>;

// The function `fields` of a struct whose keys are the names of its members.
#define JSON_FIELD(name) io(#name, object.name);
#define JSON_FIELDS(Type, ...)                                         \
  template <typename Io>                                               \
  void fields(Io& io, Like<Type> auto& object) {                       \
    NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(JSON_FIELD, __VA_ARGS__)) \
  }

// A number that is 0 where it is not known.
template <typename T>
struct Counted {
  explicit Counted(T& counted) : number(counted) {}
  T& number;
};

using Shares = std::vector<std::pair<std::string, double>>;  // by name: an object

inline nlohmann::ordered_json json_of(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}
inline nlohmann::ordered_json json_of(const std::string& text) {
  return text.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(text);
}
inline nlohmann::ordered_json json_of(const Shares& shares) {
  auto object = nlohmann::ordered_json::object();
  for (const auto& [name, share] : shares) object[name] = share;
  return object;
}
template <typename T>
nlohmann::ordered_json json_of(const T& value) {
  return value;
}
template <typename T>
nlohmann::ordered_json json_of(const Counted<T>& count) {
  return count.number > 0 ? nlohmann::ordered_json(count.number) : nlohmann::ordered_json(nullptr);
}
template <typename T>
nlohmann::ordered_json json_of(const std::optional<T>& value) {
  return value ? json_of(*value) : nlohmann::ordered_json(nullptr);
}

struct Writer {
  nlohmann::ordered_json& object;

  template <typename T>
  void operator()(const char* key, const T& value) {
    object[key] = json_of(value);
  }
};

// Throws nlohmann::json::exception for what no Writer has written.
struct Reader {
  const nlohmann::ordered_json& object;

  void operator()(const char* key, double& field) const {
    const auto& value = object.at(key);
    field = value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
  }
  void operator()(const char* key, std::string& field) const {
    const auto& value = object.at(key);
    field = value.is_null() ? "" : value.get<std::string>();
  }
  void operator()(const char* key, Shares& field) const {
    field.clear();
    for (const auto& [name, share] : object.at(key).items()) field.emplace_back(name, share);
  }
  template <typename T>
  void operator()(const char* key, T& field) const {
    object.at(key).get_to(field);
  }
  template <typename T>
  void operator()(const char* key, Counted<T> field) const {
    const auto& value = object.at(key);
    field.number = value.is_null() ? 0 : value.template get<T>();
  }
  template <typename T>
  void operator()(const char* key, std::optional<T>& field) const {
    field.reset();
    if (!object.at(key).is_null()) field = object.at(key).template get<T>();
  }
};

// What nlohmann::json calls for a struct that has `fields`, alone or in a list.
template <typename T>
requires requires(Writer& io, const T& value) { fields(io, value); }
void to_json(nlohmann::ordered_json& object, const T& value) {
  Writer writer{object};
  fields(writer, value);
}
template <typename T>
requires requires(Reader& io, T& value) { fields(io, value); }
void from_json(const nlohmann::ordered_json& object, T& value) {
  Reader reader{object};
  fields(reader, value);
}

}  // namespace gemm::bench
