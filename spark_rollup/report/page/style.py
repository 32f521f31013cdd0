"""The page's style sheet: light and dark from one set of colour names, then phones and paper."""

CSS = """
:root {
  color-scheme: light dark;
  --paper: light-dark(#f7f6f3, #14171b); --card: light-dark(#ffffff, #1c2025); --ink: light-dark(#1d2126, #e6e4df);
  --soft: light-dark(#5b6470, #a0a8b2); --line: light-dark(#dedbd3, #333a42); --edge: light-dark(#8a8f96, #7c858f);
  --wash: light-dark(#efede7, #23282e); --hatch: light-dark(#9aa1a9, #6b737c); --hold: light-dark(#3d6f9e, #6ea3d3);
  --puts: light-dark(#c9b27c, #83713f); --offset: light-dark(#7a4d9c, #c49be6);
  --critical: light-dark(#b3261e, #ff8a80); --critical-wash: light-dark(#fbe9e7, #3a1f1e);
  --warning: light-dark(#8a5a00, #f0c063); --warning-wash: light-dark(#fdf3dc, #352a15);
  --info: light-dark(#2b5f8a, #8fc1ea); --info-wash: light-dark(#e8f1f8, #1b2b38);
  --good: light-dark(#2e6b46, #8fd1a8); --good-wash: light-dark(#e6f2ea, #1b3024);
}
.critical { --tone: var(--critical); --tone-wash: var(--critical-wash); }
.warning, .undecided { --tone: var(--warning); --tone-wash: var(--warning-wash); }
.info { --tone: var(--info); --tone-wash: var(--info-wash); }
.good { --tone: var(--good); --tone-wash: var(--good-wash); }
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, "Segoe UI", "Helvetica Neue", "DejaVu Sans", sans-serif;
}
main, header, footer { max-width: 1140px; margin: 0 auto; padding: 0 28px; }
.skip { position: absolute; left: -9999px; }
.skip:focus { left: 12px; top: 12px; background: var(--card); padding: 8px 14px; z-index: 2; }
a { color: inherit; text-decoration-color: var(--soft); text-underline-offset: 2px; }
:focus-visible { outline: 2px solid var(--info); outline-offset: 2px; border-radius: 4px; }
header { padding-top: 34px; padding-bottom: 8px; }
.brand { letter-spacing: .09em; text-transform: uppercase; font-size: 12px; color: var(--soft); margin: 0; }
h1 { font-size: 29px; line-height: 1.22; font-weight: 640; margin: 8px 0 8px; letter-spacing: -.012em;
  max-width: 30em; }
h1 bdi { display: inline-block; max-width: 100%; }
.facts { color: var(--soft); margin: 0; }
nav { margin: 18px 0 0; display: flex; gap: 18px; flex-wrap: wrap; font-size: 14px; }
h2 { font-size: 19px; font-weight: 640; margin: 40px 0 4px; letter-spacing: -.005em; }
h3 { font-size: 15px; font-weight: 640; margin: 22px 0 6px; }
.lead { color: var(--soft); margin: 0 0 12px; max-width: 46em; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(128px, 1fr)); gap: 12px; margin: 22px 0 0; }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 12px 16px 11px; }
.tile b { display: block; font-size: 27px; line-height: 1.15; font-weight: 620; font-variant-numeric: tabular-nums;
  color: var(--tone, inherit); }
.tile span { color: var(--soft); font-size: 13px; }
.tile.none b { color: var(--soft); font-weight: 400; }
.todo, .unseen, .card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; }
.todo, .unseen { padding: 12px 20px 14px; margin: 18px 0 0; border-left: 4px solid var(--critical); }
.unseen { border-left-color: var(--hatch); }
.todo h2, .unseen h2 { margin: 0 0 6px; font-size: 16px; }
.todo ol { margin: 0; padding-left: 22px; } .todo li { margin: 8px 0; }
.todo li::marker { font-weight: 600; }
.unseen .lead { margin: 0 0 6px; } .unseen ul { margin: 0; padding-left: 18px; } .unseen li { margin: 3px 0; }
.who, .unseen small { color: var(--soft); }
#age:not(:empty) { color: var(--warning); background: var(--warning-wash); border-radius: 999px; padding: 1px 9px; }
.filter { position: sticky; top: 0; z-index: 1; display: flex; flex-wrap: wrap; gap: 8px 12px; align-items: end;
  background: var(--paper); border-bottom: 1px solid var(--line); margin: 22px -8px 0; padding: 10px 8px; }
.filter[hidden] { display: none; }
.filter label { display: grid; gap: 2px; font-size: 12.5px; color: var(--soft); flex: 1 1 140px; min-width: 0; }
.filter select, .filter input, .filter button { font: inherit; font-size: 14px; color: var(--ink);
  min-width: 0; width: 100%;
  background: var(--card); border: 1px solid var(--edge); border-radius: 7px; padding: 6px 9px; height: 36px; }
.filter ::placeholder { color: var(--soft); opacity: 1; }
.filter button { flex: 0 0 auto; width: auto; cursor: pointer; }
.filter output { flex-basis: 100%; font-size: 13px; color: var(--soft); } .filter output:empty { display: none; }
[hidden] { display: none !important; } section.empty { display: none; }
section.empty:has(#incidents) { display: block; }
h2, h3, figure, .incident, .restart { scroll-margin-top: 100px; }
.card { padding: 12px 20px 12px; margin: 12px 0; }
.card.calm, .card.doubt { border-left: 4px solid var(--good); } .card.doubt { border-left-color: var(--hatch); }
.incident { border-left: 4px solid var(--tone); content-visibility: auto; contain-intrinsic-size: auto 210px; }
.incident.done { border-left-color: var(--line); }
.incident:target, .incident:has(.also:target) { outline: 3px solid var(--info); outline-offset: 1px; }
.incident:focus:not(:target) { outline: none; } .incident h3 { margin: 0 0 4px; font-size: 16px; line-height: 1.4; }
.incident h3 .chip { margin-right: 4px; } .incident .id { font-weight: 400; color: var(--soft); white-space: nowrap; }
.incident p { margin: 3px 0; } .incident .where { font-weight: 600; overflow-wrap: anywhere; }
.incident .when { color: var(--soft); font-size: 14px; } .incident .say { margin: 7px 0; max-width: 60em; }
.incident .also { display: block; scroll-margin-top: 100px; }
.sure { font-weight: 600; color: var(--ink); }
figure, .restart { content-visibility: auto; }
figure { contain-intrinsic-size: auto 120px; } .restart { contain-intrinsic-size: auto 44px; }
.page { margin: 8px 0; } .page > summary { cursor: pointer; color: var(--soft); font-size: 14px; padding: 6px 2px; }
.scroll { overflow-x: auto; background: var(--card); border: 1px solid var(--line); border-radius: 10px; }
table { border-collapse: collapse; width: 100%; font-size: 14px; }
th { text-align: left; font-weight: 560; font-size: 12.5px; color: var(--soft); white-space: nowrap; }
th, td { padding: 8px 14px; border-bottom: 1px solid var(--line); vertical-align: middle; }
tr:last-child td { border-bottom: 0; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
td.n, td .chip { white-space: nowrap; } td.k { overflow-wrap: anywhere; min-width: 8em; }
td .chip { margin: 1px 0; }
.strip { display: block; width: 190px; height: 12px; }
.chip { display: inline-block; border-radius: 999px; padding: 1px 9px; font-size: 12px; font-weight: 600;
  white-space: nowrap; border: 1px solid transparent; color: var(--tone); background: var(--tone-wash); }
.chip.quiet { color: var(--soft); background: none; border-color: var(--line); }
details > summary { cursor: pointer; }
.evidence { margin: 8px 0 0; } .evidence > summary { font-size: 14px; font-weight: 560; padding: 4px 0; }
.evidence > summary small { font-weight: 400; color: var(--soft); }
.finding { border-top: 1px solid var(--line); padding: 7px 0 3px 14px; margin-left: 4px; overflow-wrap: anywhere; }
.finding > summary { padding: 2px 0; } .finding > summary small { color: var(--soft); }
.finding > p { max-width: 60em; }
.role { display: inline-block; font-size: 12px; font-weight: 600; color: var(--soft); border: 1px solid var(--line);
  border-radius: 5px; padding: 0 6px; margin-right: 2px; }
.word { font-weight: 600; color: var(--tone); }
.action { border-left: 3px solid var(--good); padding: 7px 13px; background: var(--good-wash); max-width: 60em;
  border-radius: 0 6px 6px 0; } .action b { color: var(--good); margin-right: 4px; }
.done .action { border-left-color: var(--line); background: none; color: var(--soft); }
.done .action b { color: inherit; }
.page > summary::after { content: attr(data-hits); font-weight: 600; }
.restart { background: var(--card); border: 1px solid var(--line); border-radius: 8px; margin: 6px 0; }
.restart .line { padding: 8px 14px; overflow-wrap: anywhere; } .restart .where { font-weight: 600; }
.restart .kinds { margin: 0 6px; } .restart .say { color: var(--soft); font-size: 14px; }
.restart .tasks { margin: 0; padding: 2px 14px 10px 34px; font-size: 14px; } .restart .tasks li { margin: 5px 0; }
.restart .tasks ul { padding-left: 2px; list-style: none; color: var(--soft); }
.restart .tasks ul b { font-weight: 560; }
.restart .tasks ul li { margin: 1px 0; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 5px 12px; margin: 6px 0 10px; font-size: 14px; }
dd { margin: 0; }
.rest { border: 1px dashed var(--hatch); border-radius: 8px; padding: 8px 14px; max-width: none; margin: 10px 0; }
.defs { position: absolute; }
.meta { color: var(--soft); font-size: 13px; }
ol.chain { list-style: none; margin: 12px 0 6px; padding: 0; position: relative; }
ol.chain li { display: grid; grid-template-columns: 106px 1fr; gap: 14px; padding: 0 0 10px; position: relative; }
ol.chain li::before { content: ""; position: absolute; left: 112px; top: 7px; width: 7px; height: 7px;
  margin-left: -4px;
  border-radius: 50%; background: var(--soft); }
ol.chain li::after { content: ""; position: absolute; left: 112px; top: 18px; bottom: -3px; width: 1px;
  background: var(--line); margin-left: -1px; }
ol.chain li:last-child::after { display: none; }
ol.chain time { color: var(--soft); font-size: 13px; font-variant-numeric: tabular-nums; white-space: nowrap; }
ol.chain div { padding-left: 14px; overflow-wrap: anywhere; }
ol.chain small { color: var(--soft); display: block;
  font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: 12px; }
code { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: 13px; overflow-wrap: anywhere; }
.page.group > summary { font-size: 15px; font-weight: 560; color: var(--ink); }
figure { margin: 0 0 14px; background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 12px 16px 6px; overflow-x: auto; break-inside: avoid; }
figure > svg { max-width: 100%; min-width: 720px; height: auto; display: block; }
figcaption { font-weight: 600; margin-bottom: 4px; } figcaption small { font-weight: 400; color: var(--soft); }
svg text { font: 11.5px system-ui, "DejaVu Sans", sans-serif; fill: var(--soft); }
svg .pod { fill: var(--ink); font-size: 12.5px; font-weight: 560; }
svg .grid { stroke: var(--line); stroke-width: 1; }
svg .hold { fill: var(--hold); } svg .cleaner { fill: none; stroke: var(--soft); stroke-dasharray: 2 2; }
svg .puts { fill: var(--puts); opacity: .55; }
svg .offset { fill: none; stroke: var(--offset); stroke-width: 1.6; }
svg .tick { stroke: var(--card); stroke-width: 1.2; }
svg .made { fill: var(--good); } svg .gone { stroke: var(--critical); stroke-width: 2; fill: none; }
svg .blind { stroke: var(--hatch); stroke-width: 1; } svg .unwatched { fill: var(--wash); opacity: .8; }
svg .flag { stroke: var(--tone); stroke-width: 1.6; stroke-dasharray: 4 3; fill: none; } svg .pin { fill: var(--tone); }
svg .seen { fill: var(--good); opacity: .75; } svg .unseen { fill: var(--hatch); }
.legend { display: flex; flex-wrap: wrap; gap: 6px 20px; margin: 4px 0 12px; font-size: 13px; color: var(--soft); }
.legend span { display: inline-flex; align-items: center; gap: 7px; } .legend svg { width: 26px; height: 14px; }
footer { color: var(--soft); font-size: 13px; padding-top: 26px; padding-bottom: 44px; }
footer ul { padding-left: 18px; margin: 6px 0; }
@media (max-width: 1100px) {
  th, td { padding: 8px 9px; } .strip { width: 120px; }
}
@media screen and (max-width: 1000px) {
  table.stack, .stack tbody { display: block; } .stack thead { display: none; }
  .stack tr { display: flex; flex-wrap: wrap; gap: 3px 12px; padding: 10px 14px; border-bottom: 1px solid var(--line); }
  .stack tr:last-child { border-bottom: 0; }
  .stack td { padding: 0; border: 0; text-align: left; white-space: normal; overflow-wrap: anywhere; }
  .stack td:empty { display: none; } .stack td:first-child { font-weight: 600; }
  .stack td[data-name]::before { content: attr(data-name) " "; color: var(--soft); font-size: 12.5px; }
  .stack td:has(> svg) { flex-basis: 100%; }
  .stack td[data-name="watched"]::before { content: none; }
}
@media screen and (max-width: 720px) {
  main, header, footer { padding-left: 16px; padding-right: 16px; }
  header { padding-top: 20px; } h1 { font-size: 22px; overflow-wrap: anywhere; }
  .tiles { grid-template-columns: repeat(auto-fit, minmax(96px, 1fr)); gap: 8px; }
  .tile { padding: 9px 12px; } .tile b { font-size: 21px; } .tile:last-child { grid-column: span 2; }
  nav a { padding: 6px 0; } .card, .todo, .unseen { padding: 11px 14px 13px; }
  .filter { position: static; } .filter label { flex-basis: 40%; }
  h2, h3, figure, .incident { scroll-margin-top: 12px; }
  .finding { padding-left: 0; margin-left: 0; } .restart .tasks { padding-left: 22px; }
  dl { grid-template-columns: 1fr; gap: 2px; } dd { margin-bottom: 6px; }
  ol.chain li { grid-template-columns: 1fr; gap: 0; padding-left: 14px; }
  ol.chain li::before { left: 4px; } ol.chain li::after { left: 4px; } ol.chain div { padding-left: 0; }
}
@media print {
  @page { margin: 14mm 12mm; }
  :root { color-scheme: light; --paper: #fff; --card: #fff; }
  body { font-size: 11px; } nav, .skip, .filter { display: none; }
  main, header, footer { padding-left: 0; padding-right: 0; max-width: none; }
  h1 { font-size: 21px; } h2 { margin-top: 22px; font-size: 15px; } .incident h3 { font-size: 12.5px; }
  h2, h3, .lead, .legend { break-after: avoid; }
  .tiles { grid-template-columns: repeat(5, 1fr); gap: 8px; } .tile { padding: 8px 10px; } .tile b { font-size: 20px; }
  .tile, .restart, figure, .scroll { border-color: #bbb; }
  .card, .todo, .unseen { border-top-color: #bbb; border-right-color: #bbb; border-bottom-color: #bbb; }
  .chip { font-size: 9.5px; padding: 0 6px; } .todo h2, .unseen h2 { font-size: 13px; } .todo li { margin: 5px 0; }
  .card, .todo, .unseen { padding: 8px 14px 9px; }
  .incident, .restart, figure { content-visibility: visible; }
  .incident .when, .restart .say, .restart .tasks, dl, .facts { font-size: 10.5px; }
  code, ol.chain small { font-size: 9.5px; }
  .incident h3, .incident .where, summary { break-after: avoid; }
  .action, .say, ol.chain li, tr, .todo li, .restart .tasks > li { break-inside: avoid; }
  .meta, .legend, ol.chain time, .tile span { font-size: 10px; }
  .scroll, figure { overflow: visible; } figure > svg { min-width: 0; width: 100%; }
  table { font-size: 10px; } th, td { padding: 4px 6px; } th { font-size: 9.5px; white-space: normal; }
  .strip { width: 96px; }
  /* evidence, and what is dangerous to restart, are paper's business; folded pages of thousands are not */
  .evidence::details-content, .finding::details-content, .restart.bad::details-content
    { content-visibility: visible; display: block; }
  svg, .chip, .action, .todo, .card, .unseen { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""
