"""Looks and behaviour of the page: one style sheet, one short script, no other file."""

CSS = """
:root { color-scheme: light dark; --paper: #f7f7f4; --card: #fff; --ink: #1c2330; --quiet: #5c6675;
  --line: #dfe2e6; --track: #e9ebee; --kept: #2f6db5; --lost: #c2512f; --dead: #8a6d1a;
  --mark: #ffe08a; --mark-ink: #3d2c00; --hue0: #2f6db5; --hue1: #d0802b; --hue2: #3f8f5f;
  --hue3: #8e5bb0; --hue4: #b8475c; --hue5: #2a8c9c; --hue6: #7a7340; --hue7: #7b8490; }
@media (prefers-color-scheme: dark) { :root { --paper: #14171c; --card: #1c2027; --ink: #e4e7ec;
  --quiet: #9aa4b2; --line: #323842; --track: #2b3039; --kept: #6aa5e8; --lost: #e58463;
  --dead: #d5b44f; --mark: #6b5200; --mark-ink: #fff3cc; --hue0: #6aa5e8; --hue1: #e5a45c;
  --hue2: #6fbf8f; --hue3: #b78bd6; --hue4: #e07b8e; --hue5: #5cc0cf; --hue6: #b3aa6b;
  --hue7: #9aa4b2; } }
* { box-sizing: border-box; }
html { scroll-padding-top: 3.4rem; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "PingFang SC",
  "Hiragino Sans GB", "Microsoft YaHei", "Noto Sans CJK SC", "Noto Sans SC",
  "WenQuanYi Micro Hei", sans-serif; }
main, header > div, nav > div { max-width: 1240px; margin: 0 auto; padding: 0 20px; }
header { padding: 28px 0 6px; }
h1 { font-size: 1.7rem; margin: 0 0 4px; letter-spacing: -0.01em; }
h2 { font-size: 1.25rem; margin: 0 0 4px; }
h3 { font-size: 1rem; margin: 22px 0 6px; }
p { margin: 6px 0 12px; max-width: 78ch; }
a { color: var(--kept); }
.quiet, caption { color: var(--quiet); }
.skip { position: absolute; left: -999px; }
.skip:focus { left: 8px; top: 8px; background: var(--card); padding: 8px; z-index: 3; }
nav { position: sticky; top: 0; background: var(--paper); border-bottom: 1px solid var(--line);
  z-index: 2; }
nav ul { display: flex; gap: 4px 18px; flex-wrap: wrap; list-style: none; margin: 0; padding: 9px 0;
  font-size: 0.9rem; }
nav a { text-decoration: none; }
nav a:hover { text-decoration: underline; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 20px 22px; margin: 18px 0; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(140px, 1fr)); gap: 12px;
  margin: 16px 0 4px; }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 12px 14px; }
.tile b { display: block; font-size: 1.4rem; line-height: 1.3;
  white-space: nowrap; font-weight: 650;
  font-variant-numeric: tabular-nums; }
.glance { margin: 8px 0 0; padding-left: 20px; }
.glance li { margin: 3px 0; }
.glance .warn::marker { content: "⚠ "; color: var(--lost); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; min-width: min(100%, 34rem);
  font-size: 0.92rem; margin: 6px 0 10px; }
caption { text-align: left; font-size: 0.88rem; padding-bottom: 4px; }
th, td { text-align: left; padding: 5px 12px 5px 0; border-bottom: 1px solid var(--line);
  vertical-align: top; }
tbody th, tfoot th { font-weight: 600; white-space: nowrap; }
tbody th bdi { white-space: normal; overflow-wrap: anywhere; font-weight: 400; }
thead th { font-weight: 600; color: var(--quiet); white-space: nowrap; }
tfoot th, tfoot td { font-weight: 650; border-bottom: 0; }
thead button { all: unset; cursor: pointer; }
thead button:hover, thead button:focus-visible { text-decoration: underline; }
th[aria-sort=ascending] button::after { content: " ▲"; }
th[aria-sort=descending] button::after { content: " ▼"; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.bar { display: inline-block; width: 100%; min-width: 90px; height: 10px; border-radius: 3px;
  background: var(--track); overflow: hidden; vertical-align: middle; }
.fill { display: block; height: 100%; background: var(--kept); min-width: 1px; }
.fill.lost { background: var(--lost); } .fill.dead { background: var(--dead); }
.funnel { display: grid; grid-template-columns: minmax(90px, max-content) 1fr max-content;
  gap: 7px 14px; align-items: center; margin: 12px 0 16px; }
.funnel .step { display: flex; height: 22px; background: var(--track); border-radius: 4px;
  overflow: hidden; }
.funnel .stays { background: var(--kept); } .funnel .goes { background: var(--lost); }
.funnel .count { font-variant-numeric: tabular-nums; text-align: right; white-space: nowrap; }
.stacked { display: flex; height: 20px; border-radius: 4px; overflow: hidden; margin: 8px 0 6px; }
.part + .part { border-left: 1px solid var(--card); }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: 2px 18px; padding: 0;
  margin: 0 0 10px; font-size: 0.9rem; }
.key { display: inline-block; width: 11px; height: 11px; border-radius: 3px; margin-right: 6px; }
.hue0 { background: var(--hue0); } .hue1 { background: var(--hue1); }
.hue2 { background: var(--hue2); } .hue3 { background: var(--hue3); }
.hue4 { background: var(--hue4); } .hue5 { background: var(--hue5); }
.hue6 { background: var(--hue6); } .hue7 { background: var(--hue7); }
.grid { display: grid; grid-template-columns: repeat(auto-fit, minmax(310px, 1fr)); gap: 8px 28px; }
figure { margin: 8px 0; } figcaption { font-size: 0.9rem; }
svg { width: 100%; height: auto; display: block; }
.column { fill: var(--kept); } .column:hover { fill: var(--hue1); }
.axis { stroke: var(--quiet); stroke-width: 1; }
.median { stroke: var(--lost); stroke-width: 1.5; stroke-dasharray: 3 3; }
.tick { fill: var(--quiet); font-size: 11px; }
details { border-top: 1px solid var(--line); padding: 8px 0; }
details details { border: 0; padding: 2px 0; }
summary { cursor: pointer; padding: 2px 0; }
summary b { font-weight: 600; }
.sample { border: 1px solid var(--line); border-radius: 8px; margin: 10px 0; overflow: hidden; }
.sample > div { padding: 8px 12px; font-size: 0.88rem; background: var(--paper);
  border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
.sample pre { margin: 0; padding: 10px 12px; max-height: 13em; overflow: auto; font: inherit;
  font-size: 0.92rem; white-space: pre-wrap; overflow-wrap: anywhere; tab-size: 4;
  unicode-bidi: isolate; }
.sample pre.code { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas,
  "Noto Sans Mono CJK SC", monospace; font-size: 0.85rem; }
.chip { display: inline-block; border: 1px solid var(--line); border-radius: 99px; padding: 0 9px;
  margin: 2px 4px 2px 0; background: var(--card); font-size: 0.84rem; }
.chip.why { border-color: var(--lost); color: var(--lost); }
mark { background: var(--mark); color: var(--mark-ink); border-radius: 2px; }
footer { color: var(--quiet); font-size: 0.88rem; padding: 4px 0 40px; }
@media print { nav { display: none; } section { break-inside: avoid; } }
"""

SCRIPT = """
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0];
  table.tHead.querySelectorAll("th").forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      head.parentNode.childNodes.forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const key = row => row.cells[column].dataset.key ?? row.cells[column].textContent;
      const order = (a, b) => isNaN(key(a)) || isNaN(key(b)) ?
        key(a).localeCompare(key(b)) : key(a) - key(b);
      body.append(...[...body.rows].sort((a, b) => down ? order(b, a) : order(a, b)));
    });
  });
}
"""
