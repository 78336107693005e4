#include "driver/arrays/array_set.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "driver/arrays/npy.h"
#include "driver/arrays/npz.h"
#include "hlo/error.h"

namespace hlorun {
namespace {

hlo::Literal Convert(const NpyArray& array, const ArraySlot& slot, const std::string& what, const std::string& file) {
  try {
    return ToLiteral(array, slot.shape);
  } catch (const Error& e) {
    throw Error(e.code(), fmt::format("{} {} from {}: {}", what, slot.Describe(), file, e.message()));
  }
}

std::vector<hlo::Literal> LoadDirectory(const std::string& path, const std::vector<ArraySlot>& slots,
                                        const std::string& what) {
  std::vector<hlo::Literal> arrays;
  arrays.reserve(slots.size());
  for (const ArraySlot& slot : slots) {
    if (slot.shape.IsToken()) {  // without elements, and without a file
      arrays.emplace_back(slot.shape);
      continue;
    }
    const std::string file = fmt::format("{}/{}.npy", path, slot.index);
    if (!std::filesystem::exists(file)) {
      Fail(ErrorCode::kNotFound, "{} {} is missing: there is no {}", what, slot.Describe(), file);
    }
    arrays.push_back(Convert(ReadNpy(file), slot, what, file));
  }
  const std::string surplus = fmt::format("{}/{}.npy", path, slots.size());
  if (std::filesystem::exists(surplus)) {
    Invalid("{} holds more arrays than the module has {}s: it has {}, but there is {}", path, what, slots.size(),
            surplus);
  }
  return arrays;
}

std::vector<hlo::Literal> LoadNpz(const std::string& path, const std::vector<ArraySlot>& slots,
                                  const std::string& what) {
  const auto entries = ReadNpz(path);
  const auto find = [&](const ArraySlot& slot) -> const NpyArray* {
    for (const std::string& name : {slot.name, slot.op_name, DottedPath(slot.op_name), std::to_string(slot.index)}) {
      for (const auto& [entry, array] : entries) {
        if (!name.empty() && entry == name) return &array;
      }
    }
    return nullptr;
  };
  const auto is_missing = [&](const ArraySlot& s) { return !s.shape.IsToken() && find(s) == nullptr; };
  const auto missing = std::find_if(slots.begin(), slots.end(), is_missing);
  const bool by_name = missing == slots.end();
  const auto wanted = static_cast<size_t>(
      std::count_if(slots.begin(), slots.end(), [](const ArraySlot& s) { return !s.shape.IsToken(); }));
  const bool is_named = std::any_of(slots.begin(), slots.end(), [&](const ArraySlot& s) { return find(s) != nullptr; });
  if (!by_name && (is_named || entries.size() != wanted)) {
    Fail(ErrorCode::kNotFound, "{} holds {} arrays, the module has {} {}s, and none is named like {}", path,
         entries.size(), wanted, what, missing->Describe());
  }
  std::vector<hlo::Literal> arrays;
  size_t next = 0;
  for (const ArraySlot& slot : slots) {
    if (slot.shape.IsToken()) {
      arrays.emplace_back(slot.shape);
    } else {
      arrays.push_back(Convert(by_name ? *find(slot) : entries[next++].second, slot, what, path));
    }
  }
  return arrays;
}

}  // namespace

std::string DottedPath(const std::string& op_name) {
  std::string path;
  for (char c : op_name) {
    if (c == '[' || c == '.') {
      if (!path.empty() && path.back() != '.') path += '.';
    } else if (c != ']' && c != '\'' && c != '"') {
      path += c;
    }
  }
  return path;
}

std::vector<hlo::Literal> LoadArrays(const std::string& path, const std::vector<ArraySlot>& slots,
                                     const std::string& what) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0)
    Fail(ErrorCode::kNotFound, "there is no file or directory {} for the {}s", path, what);
  if (S_ISDIR(info.st_mode)) return LoadDirectory(path, slots, what);
  if (path.ends_with(".npz")) return LoadNpz(path, slots, what);
  if (slots.size() != 1) {
    Invalid("{} is one file, the module has {} {}s: give a directory of 0.npy, 1.npy ... or an .npz", path,
            slots.size(), what);
  }
  return {Convert(ReadNpy(path), slots[0], what, path)};
}

void StageArrays(AtomicFiles& files, const std::string& path, const std::vector<hlo::Literal>& arrays) {
  if (path.ends_with(".npz")) {
    std::vector<std::pair<std::string, hlo::Literal>> named;
    for (size_t i = 0; i < arrays.size(); ++i) {
      if (!arrays[i].shape().IsToken()) named.emplace_back(std::to_string(i), arrays[i]);
    }
    WriteNpz(files.Reserve(path), named);
    return;
  }
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (arrays[i].shape().IsToken()) continue;
    const std::string header = NpyHeader(arrays[i].shape());
    files.Write(fmt::format("{}/{}.npy", path, i),
                {header, {reinterpret_cast<const char*>(arrays[i].data()), static_cast<size_t>(arrays[i].ByteSize())}});
  }
}

void SaveArrays(const std::string& path, const std::vector<hlo::Literal>& arrays) {
  AtomicFiles files;
  StageArrays(files, path, arrays);
  files.Commit();
}

}  // namespace hlorun
