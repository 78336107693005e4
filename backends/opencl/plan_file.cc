// The file of a saved plan:
//
//   Header, then sections without gaps. Header and sections carry checksums over all of their bytes, padding included,
//   so that no byte of the file is unchecked. The constants' section starts on a page, each constant on 64 bytes (large
//   ones on a page), so that they are used where the file is mapped.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_STATIC_LINKING_ONLY  // XXH3_state_t as a member
#include <xxhash.h>

#include <array>

#include "backends/opencl/plan_archive.h"
#include "backends/opencl/plan_builder.h"
#include "hlo/atomic_file.h"

namespace hlorun::opencl {
namespace {

constexpr char kMagic[8] = {'h', 'l', 'o', 'r', 'p', 'l', 'a', 'n'};
constexpr uint32_t kVersion = 13;
constexpr int64_t kPage = 4096;
constexpr int64_t kConstantAlignment = 64;

enum SectionKind : size_t { kPlan, kBinaries, kModuleText, kConstants, kSectionCount };
constexpr const char* kSectionNames[] = {"plan", "kernel binaries", "module text", "constants"};

struct Section {
  uint64_t offset = 0, bytes = 0, checksum = 0;
};

struct Header {
  char magic[8];
  uint32_t version = kVersion;
  uint32_t section_count = kSectionCount;
  uint64_t file_bytes = 0;
  Section sections[kSectionCount];
  uint64_t checksum = 0;  // of everything before

  uint64_t Checksum() const { return XXH3_64bits(this, offsetof(Header, checksum)); }
};

// Where a constant lies in its section.
struct ConstantPlace {
  hlo::Shape shape;
  int64_t offset = 0;
};

template <typename A>
void Describe(A& archive, ConstantPlace& place) {
  archive(place.shape, place.offset);
}

int64_t RoundUp(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

int64_t AlignmentOf(int64_t bytes) { return bytes >= kPage ? kPage : kConstantAlignment; }

const std::string& Zeros() {
  static const std::string zeros(kPage, '\0');
  return zeros;
}

// The file as pieces, in order, with the constants' bytes where they are: a model's weights are not copied to be saved.
class FileImage {
 public:
  explicit FileImage(const SavedPlan& saved) {
    std::vector<ConstantPlace> places;
    int64_t at = 0;
    for (const hlo::Literal& constant : saved.plan.constants) {
      at = RoundUp(at, AlignmentOf(constant.ByteSize()));
      places.push_back({constant.shape(), at});
      at += constant.ByteSize();
    }
    Writer plan, binaries;
    plan(saved.plan, saved.fingerprint, places);
    binaries(saved.binaries, saved.programs);
    texts_ = {plan.Take(), binaries.Take(), saved.plan.module_text};
    // The last of them ends where a page does.
    const size_t before = sizeof(Header) + texts_[0].size() + texts_[1].size() + texts_[2].size();
    texts_[2].resize(texts_[2].size() + static_cast<size_t>(RoundUp(static_cast<int64_t>(before), kPage)) - before,
                     '\0');
    parts_.emplace_back();  // the header
    for (size_t s = 0; s < texts_.size(); ++s) {
      StartSection(s);
      Add(texts_[s]);
      EndSection(s);
    }
    StartSection(kConstants);
    int64_t written = 0;
    for (size_t i = 0; i < places.size(); ++i) {
      const hlo::Literal& constant = saved.plan.constants[i];
      Add(std::string_view(Zeros()).substr(0, static_cast<size_t>(places[i].offset - written)));
      Add({reinterpret_cast<const char*>(constant.data()), static_cast<size_t>(constant.ByteSize())});
      written = places[i].offset + constant.ByteSize();
    }
    EndSection(kConstants);
    std::memcpy(header_.magic, kMagic, sizeof(kMagic));
    header_.file_bytes = bytes_;
    header_.checksum = header_.Checksum();
    parts_[0] = {reinterpret_cast<const char*>(&header_), sizeof(header_)};
  }

  const std::vector<std::string_view>& parts() const { return parts_; }

 private:
  void StartSection(size_t s) {
    header_.sections[s].offset = bytes_;
    XXH3_64bits_reset(&state_);
  }
  void Add(std::string_view part) {
    if (part.empty()) return;
    XXH3_64bits_update(&state_, part.data(), part.size());
    bytes_ += part.size();
    parts_.push_back(part);
  }
  void EndSection(size_t s) {
    header_.sections[s].bytes = bytes_ - header_.sections[s].offset;
    header_.sections[s].checksum = XXH3_64bits_digest(&state_);
  }

  Header header_{};
  std::vector<std::string> texts_;
  std::vector<std::string_view> parts_;
  uint64_t bytes_ = sizeof(Header);
  XXH3_state_t state_;
};

// A file mapped for reading; unmapped when the last constant that lies in it goes.
std::shared_ptr<const std::byte> MapFile(const std::string& path, size_t& bytes) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) Fail(ErrorCode::kNotFound, "cannot open {}: {}", path, std::strerror(errno));
  struct stat status;
  const bool known = fstat(file, &status) == 0;
  bytes = known ? static_cast<size_t>(status.st_size) : 0;
  void* data = bytes >= sizeof(Header) ? mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
  close(file);
  if (data == MAP_FAILED) Fail(ErrorCode::kDataLoss, "{} is too short to be a plan ({} bytes)", path, bytes);
  return {static_cast<const std::byte*>(data),
          [bytes](const std::byte* p) { munmap(const_cast<std::byte*>(p), bytes); }};
}

Header CheckedHeader(const std::string& path, std::string_view file) {
  Header header;
  std::memcpy(&header, file.data(), sizeof(header));
  if (!LooksLikePlan(file)) Fail(ErrorCode::kDataLoss, "{} is not a saved plan", path);
  if (header.version != kVersion) {
    Fail(ErrorCode::kFailedPrecondition,
         "{} is a plan of format {}, this hlorun reads format {}: save it again from the module", path, header.version,
         kVersion);
  }
  if (header.checksum != header.Checksum())
    Fail(ErrorCode::kDataLoss, "{} is corrupt: the header's checksum is wrong", path);
  if (header.section_count != kSectionCount || header.file_bytes != file.size()) {
    Fail(ErrorCode::kDataLoss, "{} is corrupt: {} bytes where its header says {}", path, file.size(),
         header.file_bytes);
  }
  for (size_t s = 0; s < kSectionCount; ++s) {
    const Section& section = header.sections[s];
    if (section.offset > file.size() || section.bytes > file.size() - section.offset) {
      Fail(ErrorCode::kDataLoss, "{} is corrupt: the section of the {} lies outside the file", path, kSectionNames[s]);
    }
    if (XXH3_64bits(file.data() + section.offset, section.bytes) != section.checksum) {
      Fail(ErrorCode::kDataLoss, "{} is corrupt: the checksum of the {} is wrong", path, kSectionNames[s]);
    }
  }
  return header;
}

void CheckPrograms(const SavedPlan& saved, const std::string& path) {
  std::vector<bool> found(saved.plan.kernels.size(), false);
  bool good = saved.programs.size() == saved.binaries.size();
  for (const auto& program : saved.programs) {
    for (int32_t k : program) {
      good = good && k >= 0 && static_cast<size_t>(k) < found.size();
      if (good) found[static_cast<size_t>(k)] = true;
    }
  }
  for (const bool f : found) good = good && f;
  if (!good) Fail(ErrorCode::kDataLoss, "{} is corrupt: its programs and kernels do not match", path);
}

}  // namespace

void SavePlan(const SavedPlan& saved, const std::string& path) { WriteFileAtomically(path, FileImage(saved).parts()); }

SavedPlan LoadPlan(const std::string& path) {
  size_t bytes = 0;
  const std::shared_ptr<const std::byte> file = MapFile(path, bytes);
  const std::string_view text(reinterpret_cast<const char*>(file.get()), bytes);
  const Header header = CheckedHeader(path, text);
  const auto section = [&](SectionKind s) { return text.substr(header.sections[s].offset, header.sections[s].bytes); };

  SavedPlan saved;
  std::vector<ConstantPlace> places;
  Reader plan(section(kPlan)), binaries(section(kBinaries));
  plan(saved.plan, saved.fingerprint, places);
  binaries(saved.binaries, saved.programs);
  const std::string_view module_text = section(kModuleText);
  saved.plan.module_text = module_text.substr(0, module_text.find_last_not_of('\0') + 1);
  const Section& constants = header.sections[kConstants];
  for (const ConstantPlace& place : places) {
    const int64_t size = place.shape.IsTuple() ? -1 : place.shape.ByteSize();
    if (size < 0 || place.offset < 0 || place.offset > static_cast<int64_t>(constants.bytes) - size) {
      Fail(ErrorCode::kDataLoss, "{} is corrupt: a constant lies outside its section", path);
    }
    const std::byte* data = file.get() + constants.offset + place.offset;
    saved.plan.constants.push_back(hlo::Literal::View(place.shape, data, file));
  }
  CheckPrograms(saved, path);
  return saved;
}

bool LooksLikePlan(std::string_view bytes) {
  return bytes.substr(0, sizeof(kMagic)) == std::string_view(kMagic, sizeof(kMagic));
}

}  // namespace hlorun::opencl
