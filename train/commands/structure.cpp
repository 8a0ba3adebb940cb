// heed structure: measures how near the maps of heads are to structured matrices.
#include <map>

#include "heed/core/io/files.h"
#include "heed/core/parallel/thread_pool.h"
#include "heed/train/commands/command_declarations.h"
#include "heed/train/inspect/stored_maps.h"
#include "heed/train/report/structure_report.h"
#include "heed/train/session/loaded_run.h"
#include "heed/train/tasks/map_provider.h"

namespace heed {
namespace {

StructureOptions structure_options(const ParsedArguments& arguments) {
  StructureOptions out;
  out.width = arguments.integer("width", out.width, 0, max_structured_size);
  out.num_pos = arguments.integer("num-pos", out.num_pos, 1, max_structured_size);
  out.errors = arguments.integer("errors", out.errors, 0, max_structured_size);
  out.max_width = arguments.integer("max-width", out.max_width, 0, max_structured_size);
  out.search_draws = arguments.integer("search", 0, 0, 1000);
  out.seed = static_cast<uint64_t>(arguments.integer("seed", 1, 0, INT64_MAX));
  out.dropout = arguments.number("dropout", out.dropout);
  out.eps = arguments.number("eps", out.eps);
  if (!(out.dropout >= 0 && out.dropout < 1))
    fail("--dropout = ", out.dropout, ". It must be at least 0 and below 1.");
  if (!(out.eps >= 0)) fail("--eps = ", out.eps, ". It must be at least 0, such as 0.1.");
  if (arguments.has("errors") && out.eps == 0) fail("--errors goes with --eps: add --eps 0.1.");
  return out;
}

/// Collects the structure of each head over maps that are added one by one. Maps of one name are of one
/// attention, on several inputs.
class StructureOfHeads {
 public:
  /// `kind`: part of the kind of maps to analyse; empty: all. `keeps_maps`: whether first_maps() are kept.
  StructureOfHeads(const StructureOptions& options, std::string kind, bool keeps_maps)
      : options_(options), kind_(std::move(kind)), keeps_maps_(keeps_maps) {}

  /// Analyses every head of a map. Only square maps of the kind are; others are counted or passed over.
  void add(const MapView& map) {
    if (!kind_.empty() && map.kind.find(kind_) == std::string::npos) return;
    if (map.queries != map.keys) {
      ++num_not_square_;
      return;
    }
    const bool is_new = !structures_.contains(map.name);
    if (is_new) names_.push_back(map.name);
    std::vector<std::vector<HeadStructure>>& heads = structures_[map.name];
    if (is_new) heads.resize(static_cast<size_t>(map.heads));
    if (static_cast<int64_t>(heads.size()) != map.heads)
      fail(Fault::data, "structure: ", map.name, " has ", map.heads, " heads here and ", heads.size(),
           " before.");
    parallel_rows(map.heads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t head = begin; head < end; ++head) {
        const size_t cells = static_cast<size_t>(map.queries * map.keys);
        const auto weights = std::span(map.weights).subspan(static_cast<size_t>(head) * cells, cells);
        heads[static_cast<size_t>(head)].push_back(
            head_structure(SquareMatrix::of(map.queries, weights), options_, static_cast<uint64_t>(head)));
      }
    });
    if (is_new && keeps_maps_) first_maps_.push_back(map);
  }

  /// The mean structure of each head over the maps of its attention.
  std::vector<AnalysedHead> heads() const {
    std::vector<AnalysedHead> out;
    for (const std::string& name : names_) {
      const auto& heads = structures_.at(name);
      for (size_t head = 0; head < heads.size(); ++head)
        out.push_back({.map = name,
                       .head = static_cast<int64_t>(head),
                       .num_maps = static_cast<int64_t>(heads[head].size()),
                       .structure = mean_structure(heads[head])});
    }
    return out;
  }

  int64_t num_not_square() const { return num_not_square_; }
  /// The first map of each name.
  const std::vector<MapView>& first_maps() const { return first_maps_; }

 private:
  const StructureOptions& options_;
  std::string kind_;
  bool keeps_maps_;
  std::vector<MapView> first_maps_;
  std::vector<std::string> names_;  // in the order of their first map
  std::map<std::string, std::vector<std::vector<HeadStructure>>> structures_;  // by name: [heads][maps]
  int64_t num_not_square_ = 0;
};

/// Writes the page, the JSON and a chart for each attention into a folder.
void write_structure(const Path& out, const StructureOfHeads& structure, const StructureOptions& options,
                     const std::string& title, const std::string& caption) {
  const std::vector<AnalysedHead> heads = structure.heads();
  io::make_directories(out);
  io::write(out / "structure.html", structure_page(heads, options, title, structure.first_maps(), caption));
  io::write(out / "structure.json", structure_json(heads, options).dump(1) + "\n");
  int64_t number = 0;
  for (size_t i = 0; i < heads.size(); ++i) {
    if (i > 0 && heads[i].map == heads[i - 1].map) continue;
    io::write(out / text("sweep-", number++, ".svg"), chart_svg(structure_chart(heads, heads[i].map)));
  }
}

int run_structure(const ParsedArguments& arguments) {
  apply_machine(arguments);
  const StructureOptions options = structure_options(arguments);
  const Path source = arguments.positional[0];
  StructureOfHeads structure(options, arguments.word("kind", {"encoder", "decoder"}, ""),
                             arguments.has("out"));
  std::string caption = "the first map of each attention";
  if (io::exists(source / "config.toml")) {
    const std::string input = arguments.positional.size() > 1 ? arguments.positional[1] : "";
    LoadedRun run = load_run(source, {.checkpoint = arguments.get("checkpoint"), .with_data = input.empty()});
    for (const MapView& map : map_provider(*run.config.task).maps(*run.model, input, caption))
      structure.add(map);
    if (!arguments.has("json")) io::print(caption + "\n\n");
  } else {
    if (arguments.has("checkpoint"))
      fail("structure: --checkpoint is for a run, and ", source.string(), " is none.");
    if (arguments.positional.size() > 1)
      fail("structure: a TEXT goes with a run, and ", source.string(), " is none. Leave it out.");
    visit_stored_maps(source, [&](const MapView& map) { structure.add(map); });
  }
  const std::vector<AnalysedHead> heads = structure.heads();
  if (heads.empty())
    fail(Fault::data, "structure: ", source.string(), " has no square map of this kind; ",
         structure.num_not_square(), " maps have not as many queries as keys.");
  if (arguments.has("json"))
    io::print_data(structure_json(heads, options).dump() + "\n");
  else
    io::print(structure_text(heads, options));
  if (!arguments.has("json") && structure.num_not_square() > 0)
    io::print(text(structure.num_not_square(), structure.num_not_square() == 1 ? " map" : " maps",
                   " left out: only square maps are analysed, with as many queries as keys\n"));
  if (!arguments.has("out")) return 0;
  const Path out = arguments.get("out");
  write_structure(out, structure, options, source.filename().string() + ": structure of the heads", caption);
  if (!arguments.has("json")) io::print(text("page: ", (out / "structure.html").string(), "\n"));
  return 0;
}

}  // namespace

Command command::structure() {
  return {
      .name = "structure",
      .about = "measure how near the maps of heads are to diagonal, band and bar matrices (Conti 2024)",
      .positional = "MAPS|RUN [TEXT]",
      .positional_help =
          "a .npy [heads, n, n] or .safetensors file, a folder of heed maps, or a run and an input for it",
      .min_positional = 1,
      .max_positional = 2,
      .options = with_machine_options(
          {{"width", "W", "width of the band and of the bars (default: 3)"},
           {"num-pos", "N", "bars: rare tokens that W rows attend to (default: 2)"},
           {"dropout", "P", "share of a row's band that is zero (default: 0)"},
           {"eps", "E", "size of an error at most (default: 0, no errors)"},
           {"errors", "N", "errors in a row at most (default: 1)"},
           {"max-width", "W", "greatest w of the sweep (default: 32)"},
           {"search", "DRAWS", "the random search of the thesis too, which draws 30 (default: 0, none)"},
           {"seed", "N", "seed of the search (default: 1)"},
           {"kind", "WORD", "encoder or decoder: only these maps"},
           {"json", "", "all numbers as JSON"},
           {"out", "FOLDER", "a page, the JSON and the sweep as SVG go here"},
           {"checkpoint", "WHICH", "checkpoint of a run: best, last or a step (default: best)"}}),
      .run = run_structure};
}

}  // namespace heed
