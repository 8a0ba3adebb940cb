// Reads and writes the benchmark's folders of PNG images.
#include <charconv>

#include "heed/core/io/files.h"
#include "heed/core/parallel/thread_pool.h"
#include "heed/data/formats/expected_files.h"
#include "heed/data/formats/png.h"
#include "heed/data/synthetic/pathfinder.h"
#include "heed/data/text/text.h"

namespace heed {
namespace {

constexpr int64_t images_per_folder = 1000;

/// The words of a line, which blanks and tabs separate.
std::vector<std::string_view> split_at_blanks(std::string_view line) {
  std::vector<std::string_view> out;
  for (size_t at = 0; at < line.size();) {
    const size_t begin = line.find_first_not_of(" \t", at);
    if (begin == std::string_view::npos) break;
    at = std::min(line.find_first_of(" \t", begin), line.size());
    out.push_back(line.substr(begin, at - begin));
  }
  return out;
}

}  // namespace

void write_pathfinder(const Path& folder, const Sequences& images, const std::vector<PathfinderFacts>& facts,
                      const PathfinderOptions& options, const ProgressCallback& on_progress) {
  io::make_directories(folder / "metadata");
  const int64_t num_folders = (images.count() + images_per_folder - 1) / images_per_folder;
  for (int64_t number = 0; number < num_folders; ++number)
    io::make_directories(folder / "imgs" / std::to_string(number));
  parallel_rows_with_progress(
      num_folders, 1, on_progress,
      [&](int64_t number, int64_t) {
        std::string lines;
        for (int64_t i = number * images_per_folder;
             i < std::min((number + 1) * images_per_folder, images.count()); ++i) {
          const int64_t in_folder = i - number * images_per_folder;
          const std::string file = text("sample_", in_folder, ".png");
          const Path path = folder / "imgs" / std::to_string(number) / file;
          const std::string png = write_png({options.side, options.side, std::string(images.at(i))});
          const std::string_view bytes = png;
          io::write_plain(path, std::span(&bytes, 1), /*synced=*/false);  // sync_all() syncs all files below
          lines += text("imgs/", number, " ", file, " ", in_folder, " ",
                        static_cast<int64_t>(images.labels[static_cast<size_t>(i)]), " ", options.continuity,
                        " ", options.contour, " ", options.distractor, " ", options.dash, " ",
                        options.thickness, " ", facts[static_cast<size_t>(i)].gap, " 1\n");
        }
        const std::string_view bytes = lines;
        io::write_plain(folder / "metadata" / text(number, ".npy"), std::span(&bytes, 1), /*synced=*/false);
      },
      1);
  io::sync_all(folder);
}

std::vector<PathfinderEntry> parse_pathfinder_metadata(std::string_view content, std::string_view name) {
  std::vector<PathfinderEntry> out;
  const std::vector<std::string_view> lines = split_lines(content);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (trimmed(lines[i]).empty()) continue;
    const std::vector<std::string_view> fields = split_at_blanks(lines[i]);
    const auto fail_here = [&](const auto&... said) { fail(Fault::data, name, ":", i + 1, ": ", said...); };
    if (fields.size() < 4)
      fail_here(fields.size(),
                " fields; a line is a folder, a file, a number, a label and more, between blanks.");
    if (fields[3] != "0" && fields[3] != "1")
      fail_here("the label (field 4) is '", shown(fields[3]), "'; it is 0 or 1.");
    for (const std::string_view name_in_path : {fields[0], fields[1]}) {
      if (name_in_path.starts_with('/') || name_in_path.find("..") != std::string_view::npos ||
          name_in_path.find('\0') != std::string_view::npos)
        fail_here("'", shown(name_in_path), "' leads out of the folder.");
    }
    out.push_back(
        {.image = text(fields[0], "/", fields[1]), .label = static_cast<uint8_t>(fields[3][0] - '0')});
  }
  return out;
}

Sequences read_pathfinder(const Path& folder, int64_t side, int64_t* num_skipped) {
  expect_files(folder, {.what = "Pathfinder",
                        .names = {},
                        .bring = "Give that which holds metadata and imgs, or make one: heed data generate "
                                 "pathfinder --out FOLDER."});
  std::vector<PathfinderEntry> entries;
  const Path metadata = folder / "metadata";
  std::vector<std::pair<int64_t, Path>> files;  // numeric order: 10.npy after 9.npy
  for (const Path& name : io::list(metadata)) {
    const std::string stem = name.stem().string();
    int64_t number = 0;
    const char* const stem_end = stem.data() + stem.size();
    const auto [end, fault] = std::from_chars(stem.data(), stem_end, number);
    if (name.extension() == ".npy" && fault == std::errc() && end == stem_end)
      files.emplace_back(number, name);
  }
  std::sort(files.begin(), files.end());
  for (const auto& [number, name] : files) {
    const Path path = metadata / name;
    for (PathfinderEntry& entry : parse_pathfinder_metadata(io::read(path), path.string()))
      entries.push_back(std::move(entry));
  }
  if (entries.empty()) {
    fail(Fault::data, folder,
         ": metadata/0.npy and so on name no image. Give the folder that holds metadata and imgs, or make "
         "one: heed data generate pathfinder --out FOLDER.");
  }
  const auto count = static_cast<int64_t>(entries.size());
  std::vector<std::string> pixels(entries.size());
  parallel_rows(count, 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Path path = folder / entries[static_cast<size_t>(i)].image;
      const std::string bytes = io::read(path);
      if (bytes.empty()) continue;
      GreyImage image = read_png(bytes, path.string());
      if (image.rows != side || image.columns != side) {
        fail(Fault::data, path, ": ", image.rows, " x ", image.columns, " pixels; ", side, " x ", side,
             " are needed. Set data.resolution to the side of the images.");
      }
      pixels[static_cast<size_t>(i)] = std::move(image.pixels);
    }
  });
  Sequences out;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (pixels[i].empty()) continue;
    out.add(pixels[i]);
    out.labels.push_back(entries[i].label);
  }
  if (num_skipped != nullptr) *num_skipped = count - out.count();
  return out;
}

}  // namespace heed
