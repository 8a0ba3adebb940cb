// The style sheet of every page that Heed writes.
#include "attention/picture_script.h"

namespace heed::picture {

std::string_view style() {
  return R"style(:root {
  color-scheme: light dark;
  --paper: #ffffff; --panel: #f7f8fa; --text: #1c2024; --muted: #5c6670; --line: #e1e5ea; --strong: #c3cad2;
  --accent: #1d5fae; --accent-soft: #e6effa; --good: #23744d; --bad: #a8431a;
  --series-0: #2b6cb0; --series-1: #c2560c; --series-2: #2a8253; --series-3: #b02a77;
  --series-4: #6a45bf; --series-5: #8a6a06; --series-6: #0d7780; --series-7: #9b2c2c;
  --font: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  --code: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14161a; --panel: #1b1e23; --text: #e7e9ec; --muted: #9ba5b0; --line: #2a2f36; --strong: #464d57;
    --accent: #7db4f5; --accent-soft: #1d2f45; --good: #6cc797; --bad: #ef9a70;
    --series-0: #6aa9e9; --series-1: #f0975a; --series-2: #62c08d; --series-3: #ec7fbb;
    --series-4: #a88bef; --series-5: #d9b44a; --series-6: #4fc3cd; --series-7: #ee7f7f;
  }
}
* { box-sizing: border-box; }
[hidden] { display: none !important; }
body { margin: 0; background: var(--paper); color: var(--text); font: 15px/1.5 var(--font);
  -webkit-text-size-adjust: 100%; }
main, .top { max-width: 1320px; margin: 0 auto; padding: 0 28px; }
.top { padding-top: 32px; }
h1 { font-size: 24px; line-height: 1.25; font-weight: 650; margin: 0; letter-spacing: -0.01em; }
h2 { font-size: 17px; font-weight: 650; margin: 44px 0 14px; }
h3 { font-size: 15px; font-weight: 650; margin: 0 0 10px; }
h4 { font-size: 13px; font-weight: 600; margin: 0; }
.subtitle, .note { color: var(--muted); margin: 4px 0 0; }
.note { font-size: 13px; margin-top: 10px; }
footer { color: var(--muted); font-size: 12px; max-width: 1320px; margin: 48px auto 32px; padding: 0 28px; }
.scroll { overflow-x: auto; }
.scroll:focus-visible, button:focus-visible, svg:focus-visible, summary:focus-visible {
  outline: 2px solid var(--accent); outline-offset: 2px; }

button { font: inherit; font-size: 13px; color: inherit; background: none; border: 1px solid transparent; padding: 3px 11px;
  border-radius: 6px; cursor: pointer; }
button:hover { background: var(--accent-soft); }
button.quiet { color: var(--muted); border-color: var(--line); padding: 3px 9px; }
button.quiet:hover { color: var(--text); }
button.plain { padding: 0 4px; }
.choice { display: inline-flex; gap: 2px; padding: 2px; border-radius: 8px; background: var(--panel); }
.choice button[aria-pressed=true] { background: var(--paper); border-color: var(--strong); font-weight: 600; }
.choice.right { margin-left: auto; gap: 6px; background: none; }
.bar { display: flex; flex-wrap: wrap; gap: 8px 14px; align-items: center; margin-bottom: 12px; }
.mark { color: var(--muted); font-size: 12px; text-align: center; align-self: center; }
.mark.side { text-align: left; }
.faint { opacity: 0.3; }

section.maps { display: grid; grid-template-columns: minmax(340px, 5fr) minmax(0, 7fr); gap: 28px 44px; margin-top: 22px;
  align-items: start; }
.overview, .detail { min-width: 0; }
.thumbs { display: grid; gap: 6px; margin: 14px 0 22px; overflow-x: auto; padding: 3px; justify-content: start; }
.thumb { padding: 0; border: 0; border-radius: 3px; line-height: 0; outline: 1px solid var(--line);
  justify-self: start; align-self: start; }
.thumb canvas { display: block; image-rendering: pixelated; border-radius: 2px; }
.thumb:hover { outline: 1px solid var(--muted); }
.thumb[aria-pressed=true], .thumb:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }
.chips { display: flex; flex-wrap: wrap; gap: 5px; align-items: center; margin-bottom: 10px; }
.chip { min-width: 28px; padding: 1px 6px; border: 1px solid var(--chip); color: var(--muted); }
.chip:hover { background: none; color: var(--text); }
.chip[aria-pressed=true] { background: var(--chip); color: var(--paper); font-weight: 600; }

svg { display: block; max-width: 100%; height: auto; font-size: 12px; }
svg text { font-family: var(--font); fill: var(--text); }
.chart svg text { fill: var(--muted); }
svg .axis { font-size: 11px; fill: var(--muted); }
svg .frame { fill: none; stroke: var(--strong); }
svg .cursor { fill: none; stroke: var(--text); stroke-width: 1.5; pointer-events: none; }
svg .band { fill: var(--accent); fill-opacity: 0.1; pointer-events: none; }
.matrix text.on { font-weight: 700; fill: var(--accent); }
.link { fill: none; stroke-width: 2; }
.focus .link:not(.on) { stroke: var(--muted); opacity: 0.08; }
.focus text:not(.on):not(.axis) { opacity: 0.4; }
.focus text.on { font-weight: 600; }
.zoom { margin-top: 24px; }
.tip { position: fixed; z-index: 9; pointer-events: none; background: var(--text); color: var(--paper); font-size: 12px;
  line-height: 1.45; padding: 5px 9px; border-radius: 6px; max-width: 340px; font-variant-numeric: tabular-nums; }
.tip div:nth-child(n + 2) { font-weight: 600; }

table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
.numbers { font-size: 12.5px; width: 100%; max-width: 660px; }
caption { text-align: left; color: var(--muted); font-size: 13px; padding-bottom: 8px; }
.numbers th, .numbers td { padding: 4px 5px; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
.numbers thead th { font-weight: 500; color: var(--muted); cursor: help; }
.numbers th:first-child { padding-left: 2px; text-align: left; }
.numbers .word { max-width: 84px; overflow: hidden; text-overflow: ellipsis; }
.numbers tbody tr { cursor: pointer; }
.numbers tbody tr:hover { background: var(--panel); }
.numbers tr[aria-selected=true] { background: var(--accent-soft); }
.numbers .meter { background: linear-gradient(var(--accent), var(--accent)) no-repeat 0 100% / calc(var(--part) * 100%) 2px; }

.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(150px, 1fr)); gap: 1px; margin: 24px 0 0; padding: 1px; }
.cards div { box-shadow: 0 0 0 1px var(--line); padding: 12px 16px; }
.cards dt { color: var(--muted); font-size: 12.5px; }
.cards dd { margin: 0; font-size: 19px; font-weight: 600; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.cards dd.note { font-size: 12.5px; font-weight: 400; margin: 0; }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 372px), 1fr)); gap: 28px 36px; }
figure { margin: 0; min-width: 0; }
figcaption { display: flex; gap: 6px; align-items: center; font-weight: 600; font-size: 14px; margin-bottom: 4px; }
figcaption .right { margin-left: auto; display: flex; gap: 4px; }
figcaption button.quiet { font-size: 11.5px; padding: 1px 7px; }
figcaption button[aria-pressed=true] { color: var(--accent); border-color: var(--accent); }
.legend { display: flex; flex-wrap: wrap; gap: 2px 16px; font-size: 12.5px; color: var(--muted); min-height: 20px; }
.legend i { display: inline-block; width: 14px; height: 3px; border-radius: 2px; margin-right: 6px; vertical-align: middle; }
.legend .series-0 { background: var(--series-0); } .legend .series-1 { background: var(--series-1); }
.legend .series-2 { background: var(--series-2); } .legend .series-3 { background: var(--series-3); }
.legend .series-4 { background: var(--series-4); } .legend .series-5 { background: var(--series-5); }
.legend .series-6 { background: var(--series-6); } .legend .series-7 { background: var(--series-7); }
.words { width: 100%; font-size: 14px; }
.words th { text-align: left; font-weight: 500; color: var(--muted); font-size: 12.5px; }
.words th, .words td { padding: 7px 18px 7px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
.confusion { font-size: 12.5px; }
.confusion th, .confusion td { padding: 5px 9px; text-align: right; min-width: 38px; }
.confusion th { color: var(--muted); font-weight: 500; }
.confusion td { border: 1px solid var(--paper); }
.confusion .good { background: color-mix(in srgb, var(--good) var(--shade, 0%), transparent); }
.confusion .bad { background: color-mix(in srgb, var(--bad) var(--shade, 0%), transparent); }
pre { background: var(--panel); border-radius: 8px; padding: 14px 18px; overflow: auto; font: 12.5px/1.55 var(--code); margin: 0; }
@media (max-width: 1180px) { section.maps { grid-template-columns: minmax(0, 1fr); } main, .top, footer { padding-left: 16px; padding-right: 16px; } }
@media print { .bar, .chips, .choice { display: none; } body { font-size: 12px; } }
)style";
}

}  // namespace heed::picture
