"""The page's style sheet: light and dark, wide and narrow, from one set of colour names."""

CSS = """
:root { color-scheme: light dark;
  --paper: #f7f6f3; --card: #fff; --ink: #1d2126; --soft: #5b6470; --line: #dedbd3; --wash: #efede7;
  --critical: #b3261e; --critical-wash: #fbe9e7; --warning: #855600; --warning-wash: #fdf3dc;
  --info: #2b5f8a; --info-wash: #e8f1f8; --good: #2e6b46; --good-wash: #e6f2ea; }
@media (prefers-color-scheme: dark) { :root {
  --paper: #14171b; --card: #1c2025; --ink: #e6e4df; --soft: #a0a8b2; --line: #333a42; --wash: #23282e;
  --critical: #ff8a80; --critical-wash: #3a1f1e; --warning: #f0c063; --warning-wash: #352a15;
  --info: #8fc1ea; --info-wash: #1b2b38; --good: #8fd1a8; --good-wash: #1b3024; } }
* { box-sizing: border-box; }
html { scroll-padding-top: 12px; -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, "Segoe UI", "Helvetica Neue", "DejaVu Sans", sans-serif; }
header, main, footer { max-width: 1080px; margin: 0 auto; padding: 0 24px; }
header { padding-top: 28px; }
.skip { position: absolute; left: -9999px; }
.skip:focus { left: 12px; top: 12px; background: var(--card); padding: 8px 14px; z-index: 2; }
a { color: inherit; text-decoration-color: var(--soft); text-underline-offset: 3px; }
a:hover { text-decoration-color: currentColor; }
:focus-visible { outline: 2px solid var(--info); outline-offset: 2px; border-radius: 4px; }
.brand { letter-spacing: .09em; text-transform: uppercase; font-size: 12px; color: var(--soft); margin: 0; }
h1 { font-size: 27px; line-height: 1.22; font-weight: 640; margin: 6px 0 8px; letter-spacing: -.012em; }
h2 { font-size: 19px; font-weight: 640; margin: 36px 0 10px; }
h3 { font-size: 16px; font-weight: 640; margin: 0; overflow-wrap: anywhere; }
small, .soft { color: var(--soft); font-size: 13px; }
.facts { color: var(--soft); margin: 0; overflow-wrap: anywhere; }
.facts b { color: var(--ink); font-weight: 560; }
nav { margin: 16px 0 0; display: flex; gap: 6px 18px; flex-wrap: wrap; font-size: 14px; }
nav a { padding: 4px 0; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 14px 18px;
  margin: 0 0 12px; }
.card.critical { border-left: 4px solid var(--critical); }
.card.warning { border-left: 4px solid var(--warning); }
.card.info { border-left: 4px solid var(--info); }
.card.good { border-left: 4px solid var(--good); }
main > .card:first-child { margin-top: 16px; }
.card p { margin: 6px 0 0; max-width: 78ch; overflow-wrap: anywhere; }
.where { color: var(--soft); font-size: 14px; margin: 2px 0 0; overflow-wrap: anywhere; }
.chip { display: inline-block; border-radius: 999px; padding: 1px 9px; font-size: 12px; font-weight: 600;
  overflow-wrap: anywhere; background: var(--wash); color: var(--soft); }
.chip.critical { background: var(--critical-wash); color: var(--critical); }
.chip.warning { background: var(--warning-wash); color: var(--warning); }
.chip.info { background: var(--info-wash); color: var(--info); }
.chip.good { background: var(--good-wash); color: var(--good); }
.next { border-top: 1px solid var(--line); margin-top: 10px; padding-top: 8px; }
details { margin-top: 8px; }
summary { cursor: pointer; padding: 4px 0; font-size: 14px; }
ol.chain { list-style: none; margin: 4px 0 0; padding: 0 0 0 14px; border-left: 2px solid var(--line);
  font-size: 14px; }
ol.chain li { margin: 6px 0; overflow-wrap: anywhere; }
code { font: 13px/1.45 ui-monospace, "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; font-size: 14px; }
th { text-align: left; font-weight: 560; font-size: 12.5px; color: var(--soft); white-space: nowrap; }
th, td { padding: 7px 16px 7px 0; border-bottom: 1px solid var(--line); vertical-align: top; overflow-wrap: anywhere; }
th:last-child, td:last-child { padding-right: 0; }
tbody:last-child tr:last-child td { border-bottom: 0; }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
tr.store td { border-bottom: 0; padding-top: 2px; padding-bottom: 2px; color: var(--soft); font-size: 13px; }
tr.store td:first-child { padding-left: 14px; }
tr.task td { border-top: 1px solid var(--line); border-bottom: 0; }
tbody:first-of-type tr.task td { border-top: 0; }
footer { color: var(--soft); font-size: 13px; padding-top: 28px; padding-bottom: 40px; }
@media (max-width: 640px) {
  header, main, footer { padding-left: 14px; padding-right: 14px; }
  h1 { font-size: 23px; }
  .card { padding: 12px 14px; }
  thead { position: absolute; left: -9999px; }
  table, tbody { display: block; }
  tr { display: flex; flex-wrap: wrap; gap: 1px 14px; padding: 8px 0; border-bottom: 1px solid var(--line); }
  td { padding: 0; border: 0 !important; }
  tr.task { border-bottom: 0; padding-bottom: 2px; }
  tr.store { padding: 3px 0 3px 14px; border-bottom: 0; }
  tr.store td:first-child { padding-left: 0; flex-basis: 100%; color: var(--ink); }
  tbody + tbody { border-top: 1px solid var(--line); }
  td[data-name]::before { content: attr(data-name) " "; color: var(--soft); font-size: 13px; }
  .n { text-align: left; }
  td:empty { display: none; }
  td code { overflow-wrap: anywhere; }
  summary, nav a { padding: 8px 0; }
}
@media print { nav, .skip { display: none; } .card { break-inside: avoid; } }
"""
