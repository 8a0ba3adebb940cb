// Steps as trace events, by Google's "Trace Event Format": complete events (ph X), counters (ph C) and names
// of threads (ph M).
#include "heed/train/loop/step_trace.h"

#include <algorithm>
#include <map>
#include <set>

#include "heed/core/io/json.h"

namespace heed {
namespace {

constexpr const char* step_name = "step";

double microseconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1000; }

}  // namespace

std::string chrome_trace(const std::vector<TimelineEvent>& events, Module& model) {
  std::map<const void*, std::string> names;  // names of modules so far
  const auto module_name = [&](const void* module) -> const std::string& {
    const auto [entry, is_new] = names.try_emplace(module, "model");
    if (std::string name; is_new && module != nullptr && !(name = name_of(model, module)).empty())
      entry->second = name;
    return entry->second;
  };
  int64_t start = events.empty() ? 0 : events.front().begin;
  std::set<int> threads;
  for (const TimelineEvent& event : events) {
    start = std::min(start, event.begin);
    threads.insert(event.thread);
  }
  Json::List list;
  for (const int thread : threads) {
    Json name = Json::object(
        {{"name", thread == *threads.begin() ? std::string("training") : text("worker ", thread)}});
    list.push_back(Json::object(
        {{"name", "thread_name"}, {"ph", "M"}, {"pid", 1}, {"tid", thread}, {"args", std::move(name)}}));
  }
  for (const TimelineEvent& event : events) {
    const std::string name = event.name != nullptr ? event.name : module_name(event.module);
    Json json = Json::object({{"name", name},
                              {"cat", event.kind},
                              {"ph", event.value < 0 ? "X" : "C"},
                              {"pid", 1},
                              {"tid", event.thread},
                              {"ts", microseconds(event.begin - start)}});
    if (event.value >= 0) {
      json.set("args", Json::object({{"MiB", static_cast<double>(event.value) / (1 << 20)}}));
    } else {
      json.set("dur", microseconds(event.end - event.begin));
      if (event.name != nullptr && event.module != nullptr)
        json.set("args", Json::object({{"module", module_name(event.module)}}));
    }
    list.push_back(std::move(json));
  }
  return Json::object({{"displayTimeUnit", "ms"}, {"traceEvents", std::move(list)}}).dump() + "\n";
}

void StepTrace::before_step(const TrainContext&, StepBatches&) {
  ++taken_;
  if (done_ || taken_ < first_) return;
  timeline_ = std::make_unique<Timeline>();
  step_began_ = part_began_ = Timeline::now();
  timeline_->mark();
}

void StepTrace::after_backward(const TrainContext&) {
  if (timeline_ == nullptr) return;
  timeline_->slice(step_name, "forward and backward", nullptr, part_began_);
  part_began_ = Timeline::now();
  timeline_->mark();
}

void StepTrace::after_step(const TrainContext& context, const StepResult&) {
  if (timeline_ == nullptr) return;
  timeline_->slice(step_name, "update", nullptr, part_began_);
  timeline_->slice(step_name, step_name, nullptr, step_began_);
  ++recorded_;
  const std::vector<TimelineEvent> events_of_step = timeline_->events();
  events_.insert(events_.end(), events_of_step.begin(), events_of_step.end());
  dropped_ += timeline_->dropped();
  timeline_.reset();  // work between two steps, such as a validation, is not recorded
  if (recorded_ == steps_) write(context.model);
}

void StepTrace::write(Module& model) {
  done_ = true;
  try {
    io::write(file_, chrome_trace(events_, model));
  } catch (const Error& error) {
    failure_ = error.what();
  }
}

std::string StepTrace::finish(Module& model) {
  if (!done_ && recorded_ > 0) write(model);
  if (recorded_ == 0) return text("nothing is recorded: the session has no step ", first_);
  if (!failure_.empty()) return failure_;
  return text(file_, ": ", recorded_, recorded_ == 1 ? " step, " : " steps, ", events_.size(), " events",
              dropped_ > 0 ? text("; ", dropped_, " more found no place") : std::string(),
              "; open it in chrome://tracing or ui.perfetto.dev");
}

}  // namespace heed
