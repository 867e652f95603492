// Feeds files to a fuzz target, and with `--mutate N` also N variants of each: where there is no libFuzzer.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

void mutate(std::vector<std::uint8_t>& bytes, std::mt19937& random) {
  static constexpr char pieces[] = "|:. \t\n\r#-+e09,'aq\0\x7F\xFF^18446744073709551616";
  for (std::size_t times = random() % 4 + 1; times-- > 0;) {
    const std::size_t at = bytes.empty() ? 0 : random() % bytes.size();
    const auto place = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    const auto byte = static_cast<std::uint8_t>(pieces[random() % (sizeof pieces - 1)]);
    switch (random() % 4) {
      case 0: bytes.insert(place, byte); break;
      case 1:
        if (!bytes.empty()) *place = byte;
        break;
      case 2:
        if (!bytes.empty()) bytes.erase(place);
        break;
      default: {
        const std::size_t count = std::min<std::size_t>(random() % 40, bytes.size() - at);
        const std::vector<std::uint8_t> part(place, place + static_cast<std::ptrdiff_t>(count));
        bytes.insert(bytes.end(), part.begin(), part.end());
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  long variants = 0;
  std::mt19937 random(1);
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--mutate") && i + 1 < argc) {
      variants = std::strtol(argv[++i], nullptr, 10);
      continue;
    }
    std::ifstream file(argv[i], std::ios::binary);
    if (!file) return std::fprintf(stderr, "cannot open %s\n", argv[i]), 1;
    const std::vector<std::uint8_t> bytes{std::istreambuf_iterator<char>(file), {}};
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    std::vector<std::uint8_t> variant;
    for (long n = 0; n < variants; ++n) {
      if (n % 16 == 0) variant = bytes;
      mutate(variant, random);
      LLVMFuzzerTestOneInput(variant.data(), variant.size());
    }
  }
  return 0;
}
