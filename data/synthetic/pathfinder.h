// Pathfinder: are two discs on the ends of one dashed curve?
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/sequences.h"
#include "data/told.h"

namespace heed {

/// What an image is drawn by, in pixels. The generator is that of Linsley et al. 2018
/// (drewlinsley/pathfinder, snakes2.py), the numbers are those of the Long Range Arena
/// (lra_benchmarks/data/pathfinder.py).
struct PathfinderOptions {
  int64_t side = 32;             ///< of the image
  int64_t padding = 1;           ///< pixels at the border that stay free of target curves
  int64_t dash = 2;              ///< length of a dash
  double thickness = 0.5;        ///< of a dash; twice it must be whole
  std::vector<int64_t> gaps{1};  ///< around dashes; one is drawn for each image
  double marker = 1.5;           ///< radius of a disc
  int64_t contour = 14;          ///< dashes of each of the two target curves
  int64_t distractor = 4;        ///< dashes of a distractor
  int64_t distractors = 5;
  int64_t apart = 7;            ///< distance of the beginnings of both target curves
  double continuity = 1;        ///< turns of 90 degrees divided by this and more are not taken
  double contrast = 2;          ///< of distractors, where a disc is 1
  double dash_contrast = 0.75;  ///< times `contrast`: of target curves
};

/// The hard set (contour length 14) of a side: 32, 64, 128 (Path-X) or 256. Usage error otherwise.
PathfinderOptions pathfinder_options(int64_t side);

/// What is known of an image besides its pixels.
struct PathfinderFacts {
  int64_t gap = 0;
  int64_t markers[2][2] = {};  ///< row and column of the disc on a beginning and of the one on an end
};

/// `count` images of side x side grey pixels, and whether the discs share a curve. The background is 0, the
/// brightest dash 255. The same arguments give the same ones, for any number of threads. `facts`, where
/// given, gets one entry an image; `told` hears how many are drawn.
Sequences pathfinder(int64_t count, uint64_t seed, const PathfinderOptions& options,
                     std::vector<PathfinderFacts>* facts = nullptr, const Told& told = {});

/// Writes imgs/N/sample_M.png, 1000 a folder N, and metadata/N.npy, which is text: folder, file, number,
/// label, continuity, contour length, distractor length, dash length, thickness, gap, number of contrasts.
/// `told` hears how many thousands are written.
void write_pathfinder(const Path& folder, const Sequences& images, const std::vector<PathfinderFacts>& facts,
                      const PathfinderOptions& options, const Told& told = {});

/// A folder of the benchmark: metadata/*.npy as text and the PNG files that they name, in the order of the
/// metadata. A file without a byte is left out (the released easy set has one); `left_out`, where given, gets
/// their number. Fault::data naming the line or file that is not as it should be, or whose image has not
/// side x side pixels.
Sequences read_pathfinder(const Path& folder, int64_t side, int64_t* left_out = nullptr);

/// One image that a line of metadata names: the path below the folder, and the label.
struct PathfinderEntry {
  std::string image;
  uint8_t label = 0;
};

/// The lines of a metadata file: white space between fields, label in the fourth. Fault::data naming the
/// line.
std::vector<PathfinderEntry> parse_pathfinder_metadata(std::string_view all, std::string_view name);

}  // namespace heed
