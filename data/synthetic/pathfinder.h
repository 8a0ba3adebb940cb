// Pathfinder: images in which one asks whether two discs are on the ends of one dashed curve.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heed/data/progress_callback.h"
#include "heed/data/text/labelled_sequences.h"

namespace heed {

/// Settings of an image, in pixels. The generator is that of Linsley et al. 2018 (drewlinsley/pathfinder,
/// snakes2.py), the numbers are those of the Long Range Arena (lra_benchmarks/data/pathfinder.py).
struct PathfinderOptions {
  int64_t side = 32;             ///< side of the image
  int64_t padding = 1;           ///< width of the border that curves keep free
  int64_t dash = 2;              ///< length of a dash
  double thickness = 0.5;        ///< thickness of a dash, a multiple of 0.5
  std::vector<int64_t> gaps{1};  ///< gaps around dashes; each image uses one of them, drawn at random
  double marker = 1.5;           ///< radius of a disc
  int64_t contour = 14;          ///< dashes of each of the two target curves
  int64_t distractor = 4;        ///< dashes of a distractor
  int64_t distractors = 5;       ///< number of distractor curves
  int64_t apart = 7;             ///< distance between the starts of both target curves
  double continuity = 1;         ///< turns of at least 90 degrees / continuity are excluded
  double contrast = 2;           ///< contrast of distractors, relative to a disc
  double dash_contrast = 0.75;   ///< contrast of target curves is this times `contrast`
};

/// The settings of the hard set (contour length 14) with a side of 32, 64, 128 (Path-X) or 256; Fault::usage
/// for other sides.
PathfinderOptions pathfinder_options(int64_t side);

/// Metadata of an image.
struct PathfinderFacts {
  int64_t gap = 0;             ///< gap around its dashes, one of PathfinderOptions::gaps
  int64_t markers[2][2] = {};  ///< row and column of the disc at a start, then of the disc at an end
};

/// `count` images of side x side grey pixels, labelled 1 when both discs are on one curve. The background is
/// 0, the brightest pixel 255. Equal arguments give equal images, for any number of threads. `facts`, if
/// given, gets one entry per image; on_progress gets the number of finished images.
Sequences pathfinder(int64_t count, uint64_t seed, const PathfinderOptions& options,
                     std::vector<PathfinderFacts>* facts = nullptr, const ProgressCallback& on_progress = {});

/// Writes imgs/N/sample_M.png, 1000 per folder N, and metadata/N.npy, which is text: folder, file, number,
/// label, continuity, contour length, distractor length, dash length, thickness, gap, number of contrasts.
/// on_progress gets the number of folders written.
void write_pathfinder(const Path& folder, const Sequences& images, const std::vector<PathfinderFacts>& facts,
                      const PathfinderOptions& options, const ProgressCallback& on_progress = {});

/// Reads a folder of the benchmark: metadata/*.npy as text and the PNG files that they name, in their order.
/// Skips empty files (the released easy set has one) and counts them in `num_skipped`, if given. Fault::data
/// that names a malformed line or file, or an image without side x side pixels.
Sequences read_pathfinder(const Path& folder, int64_t side, int64_t* num_skipped = nullptr);

/// An image named by a line of metadata: its path within the folder and its label.
struct PathfinderEntry {
  std::string image;  ///< path of the PNG file below the folder of the set
  uint8_t label = 0;  ///< 1 where one curve connects both discs
};

/// Parses a metadata file: fields separated by white space, label in the fourth. Fault::data that names the
/// line.
std::vector<PathfinderEntry> parse_pathfinder_metadata(std::string_view content, std::string_view name);

}  // namespace heed
