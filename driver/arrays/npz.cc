#include "driver/arrays/npz.h"

#include <zip.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>

#include "hlo/error.h"

namespace hlorun {
namespace {

struct ZipDiscard {
  void operator()(zip_t* zip) const { zip_discard(zip); }
};
using Zip = std::unique_ptr<zip_t, ZipDiscard>;

Zip Open(const std::string& path, int flags) {
  int code = 0;
  zip_t* zip = zip_open(path.c_str(), flags, &code);
  if (zip == nullptr) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    const std::string message = zip_error_strerror(&error);
    zip_error_fini(&error);
    Invalid("cannot open {} as .npz: {}", path, message);
  }
  return Zip(zip);
}

struct ZipClose {
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};

// All of an entry, however much its directory says there is: what is there is found by reading it, and its checksum is
// compared at the end.
std::string Contents(zip_t* zip, zip_uint64_t entry, const std::string& label) {
  constexpr size_t kChunk = size_t{16} << 20;
  const std::unique_ptr<zip_file_t, ZipClose> file(zip_fopen_index(zip, entry, 0));
  if (file == nullptr) Invalid("{} cannot be read: {}", label, zip_strerror(zip));
  std::string contents;
  size_t size = 0;
  while (true) {
    contents.resize(size + kChunk);
    const zip_int64_t read = zip_fread(file.get(), contents.data() + size, kChunk);
    if (read < 0) Invalid("{} is corrupt: {}", label, zip_file_strerror(file.get()));
    size += static_cast<size_t>(read);
    if (read == 0) break;
  }
  contents.resize(size);
  return contents;
}

}  // namespace

std::vector<std::pair<std::string, NpyArray>> ReadNpz(const std::string& path) {
  const Zip zip = Open(path, ZIP_RDONLY);
  std::vector<std::pair<std::string, NpyArray>> arrays;
  for (zip_int64_t i = 0; i < zip_get_num_entries(zip.get(), 0); ++i) {
    zip_stat_t stat;
    if (zip_stat_index(zip.get(), static_cast<zip_uint64_t>(i), 0, &stat) != 0) {
      Invalid("{}: entry {} cannot be read: {}", path, i, zip_strerror(zip.get()));
    }
    std::string name = stat.name;
    const std::string label = path + ":" + name;
    std::string contents = Contents(zip.get(), static_cast<zip_uint64_t>(i), label);
    if (contents.size() != stat.size) Invalid("{} is corrupt: {} bytes of {}", label, contents.size(), stat.size);
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    arrays.emplace_back(std::move(name), ParseNpy(std::move(contents), label));
  }
  return arrays;
}

void WriteNpz(const std::string& path, const std::vector<std::pair<std::string, hlo::Literal>>& arrays) {
  if (arrays.empty()) {
    // libzip writes no archive without entries: a directory's end alone (APPNOTE.TXT 4.3.16).
    std::string end("PK\x05\x06", 4);
    end.resize(22);
    std::ofstream file(path, std::ios::binary);
    file << end;
    if (!file.flush()) Fail(ErrorCode::kResourceExhausted, "cannot write {}: {}", path, std::strerror(errno));
    return;
  }
  Zip zip = Open(path, ZIP_CREATE | ZIP_TRUNCATE);
  std::vector<std::string> contents;  // must live until the archive is closed
  contents.reserve(arrays.size());
  for (const auto& [name, literal] : arrays) {
    std::string& bytes = contents.emplace_back(NpyHeader(literal.shape()));
    bytes.append(reinterpret_cast<const char*>(literal.data()), static_cast<size_t>(literal.ByteSize()));
    zip_source_t* source = zip_source_buffer(zip.get(), bytes.data(), bytes.size(), 0);
    const zip_int64_t index = zip_file_add(zip.get(), (name + ".npy").c_str(), source, ZIP_FL_ENC_UTF_8);
    if (index < 0) {
      zip_source_free(source);
      Invalid("cannot write {}: {}", path, zip_strerror(zip.get()));
    }
    zip_set_file_compression(zip.get(), static_cast<zip_uint64_t>(index), ZIP_CM_STORE, 0);
  }
  zip_t* open = zip.release();
  if (zip_close(open) != 0) {
    const std::string message = zip_strerror(open);
    zip_discard(open);
    Fail(ErrorCode::kResourceExhausted, "cannot write {}: {}", path, message);
  }
}

}  // namespace hlorun
