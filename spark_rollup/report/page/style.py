"""The page's style sheet: the common look, then what only a report has, then phones and paper."""

from agent.contract.markup import LOOK

CSS = (
    LOOK
    + """
:root { --edge: light-dark(#8a8f96, #7c858f); --hatch: light-dark(#9aa1a9, #6b737c);
  --hold: light-dark(#3d6f9e, #6ea3d3); --puts: light-dark(#c9b27c, #83713f); --offset: light-dark(#7a4d9c, #c49be6); }
main, header, footer { max-width: 1140px; margin: 0 auto; padding: 0 28px; }
header { padding-top: 34px; padding-bottom: 8px; }
h1 { font-size: 29px; margin: 8px 0 8px; max-width: 30em; } h1 bdi { display: inline-block; max-width: 100%; }
nav { margin: 18px 0 0; gap: 18px; }
h2 { margin: 40px 0 4px; letter-spacing: -.005em; }
.who, .unseen small, .lead, .tile span, .meta, figcaption small, .legend { color: var(--soft); }
.lead { margin: 0 0 12px; max-width: 46em; } .meta, .tile span, .legend { font-size: 13px; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(128px, 1fr)); gap: 12px; margin: 22px 0 0; }
.tile, .todo, .unseen, .scroll, figure, .restart { background: var(--card); border: 1px solid var(--line);
  border-radius: 10px; }
.tile { padding: 12px 16px 11px; }
.tile b { display: block; font-size: 27px; line-height: 1.15; font-weight: 620; font-variant-numeric: tabular-nums;
  color: var(--tone, inherit); }
.tile.none b { color: var(--soft); font-weight: 400; }
.todo, .unseen { padding: 12px 20px 14px; margin: 18px 0 0; border-left: 4px solid var(--critical); }
.unseen { border-left-color: var(--hatch); } .todo h2, .unseen h2 { margin: 0 0 6px; font-size: 16px; }
.todo ol { margin: 0; padding-left: 22px; } .todo li { margin: 8px 0; } .todo li::marker { font-weight: 600; }
.unseen .lead { margin: 0 0 6px; } .unseen ul { margin: 0; padding-left: 18px; } .unseen li { margin: 3px 0; }
#age:not(:empty) { color: var(--warning); background: var(--warning-wash); border-radius: 999px; padding: 1px 9px; }
.filter { position: sticky; top: 0; z-index: 1; display: flex; flex-wrap: wrap; gap: 8px 12px; align-items: end;
  background: var(--paper); border-bottom: 1px solid var(--line); margin: 22px -8px 0; padding: 10px 8px; }
.filter label { display: grid; gap: 2px; font-size: 12.5px; color: var(--soft); flex: 1 1 140px; min-width: 0; }
.filter :is(select, input, button) { font: inherit; font-size: 14px; color: var(--ink); min-width: 0; width: 100%;
  background: var(--card); border: 1px solid var(--edge); border-radius: 7px; padding: 6px 9px; height: 36px; }
.filter ::placeholder { color: var(--soft); opacity: 1; }
.filter button { flex: 0 0 auto; width: auto; cursor: pointer; }
.filter output { flex-basis: 100%; font-size: 13px; color: var(--soft); } .filter output:empty { display: none; }
[hidden] { display: none !important; } section.empty:not(:has(#incidents)) { display: none; }
h2, h3, figure, .incident, .restart { scroll-margin-top: 100px; }
.card { padding: 12px 20px; margin: 12px 0; }
.card:is(.calm, .doubt) { border-left: 4px solid var(--good); } .card.doubt { border-left-color: var(--hatch); }
figure, .restart, .incident { content-visibility: auto; contain-intrinsic-size: auto 120px; }
.incident { border-left: 4px solid var(--tone); contain-intrinsic-size: auto 210px; }
.incident.done { border-left-color: var(--line); }
.incident:target, .incident:has(.also:target) { outline: 3px solid var(--info); outline-offset: 1px; }
.incident:focus:not(:target) { outline: none; } .incident h3 { margin: 0 0 4px; font-size: 16px; line-height: 1.4; }
.incident h3 .chip { margin-right: 4px; } .incident .id { font-weight: 400; color: var(--soft); white-space: nowrap; }
.incident p { margin: 3px 0; } .incident .where { font-weight: 600; overflow-wrap: anywhere; }
.incident .when { color: var(--soft); font-size: 14px; } .incident .say { margin: 7px 0; max-width: 60em; }
.incident .also { display: block; scroll-margin-top: 100px; }
.sure { font-weight: 600; color: var(--ink); }
summary { cursor: pointer; }
.page { margin: 8px 0; } .page > summary { color: var(--soft); font-size: 14px; padding: 6px 2px; }
.page > summary::after { content: attr(data-hits); font-weight: 600; }
.page.group > summary { font-size: 15px; font-weight: 560; color: var(--ink); }
.scroll { overflow-x: auto; }
th, td { padding: 8px 14px; border-bottom: 1px solid var(--line); vertical-align: middle; }
tr:last-child td { border-bottom: 0; }
.n { text-align: right; font-variant-numeric: tabular-nums; } td.n { white-space: nowrap; }
td.k { overflow-wrap: anywhere; min-width: 8em; } td .chip { margin: 1px 0; }
.strip { display: block; width: 190px; height: 12px; }
.chip { white-space: nowrap; border: 1px solid transparent; }
.chip.quiet { background: none; border-color: var(--line); }
.evidence { margin: 8px 0 0; } .evidence > summary { font-size: 14px; font-weight: 560; padding: 4px 0; }
.evidence > summary small { font-weight: 400; } :is(.evidence, .finding) > summary small { color: var(--soft); }
.finding { border-top: 1px solid var(--line); padding: 7px 0 3px 14px; margin-left: 4px; overflow-wrap: anywhere; }
.finding > summary { padding: 2px 0; } .finding > p { max-width: 60em; }
.role { display: inline-block; font-size: 12px; font-weight: 600; color: var(--soft); border: 1px solid var(--line);
  border-radius: 5px; padding: 0 6px; margin-right: 2px; }
.word { font-weight: 600; color: var(--tone); }
.action { border-left: 3px solid var(--good); padding: 7px 13px; background: var(--good-wash); max-width: 60em;
  border-radius: 0 6px 6px 0; } .action b { color: var(--good); margin-right: 4px; }
.done .action { border-left-color: var(--line); background: none; } .done .action, .done b { color: var(--soft); }
.restart { border-radius: 8px; margin: 6px 0; contain-intrinsic-size: auto 44px; }
.restart .line { padding: 8px 14px; overflow-wrap: anywhere; } .restart .where { font-weight: 600; }
.restart .kinds { margin: 0 6px; } .restart .say { color: var(--soft); font-size: 14px; }
.restart .tasks { margin: 0; padding: 2px 14px 10px 34px; font-size: 14px; } .restart .tasks li { margin: 5px 0; }
.restart .tasks ul { padding-left: 2px; list-style: none; color: var(--soft); }
.restart .tasks ul b { font-weight: 560; } .restart .tasks ul li { margin: 1px 0; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 5px 12px; margin: 6px 0 10px; font-size: 14px; }
dd { margin: 0; }
.rest { border: 1px dashed var(--hatch); border-radius: 8px; padding: 8px 14px; max-width: none; margin: 10px 0; }
.defs { position: absolute; }
ol.chain { list-style: none; margin: 12px 0 6px; padding: 0; position: relative; }
ol.chain li { display: grid; grid-template-columns: 106px 1fr; gap: 14px; padding: 0 0 10px; position: relative; }
ol.chain li::before { content: ""; position: absolute; left: 112px; top: 7px; width: 7px; height: 7px;
  margin-left: -4px; border-radius: 50%; background: var(--soft); }
ol.chain li:not(:last-child)::after { content: ""; position: absolute; left: 112px; top: 18px; bottom: -3px; width: 1px;
  background: var(--line); margin-left: -1px; }
ol.chain time { color: var(--soft); font-size: 13px; font-variant-numeric: tabular-nums; white-space: nowrap; }
ol.chain div { padding-left: 14px; overflow-wrap: anywhere; }
ol.chain small { color: var(--soft); display: block; font-size: 12px;
  font-family: ui-monospace, "DejaVu Sans Mono", monospace; }
figure { margin: 0 0 14px; padding: 12px 16px 6px; overflow-x: auto; break-inside: avoid; }
figure > svg { max-width: 100%; min-width: 720px; height: auto; display: block; }
figcaption { font-weight: 600; margin-bottom: 4px; } figcaption small { font-weight: 400; }
svg text { font: 11.5px system-ui, "DejaVu Sans", sans-serif; fill: var(--soft); }
svg .pod { fill: var(--ink); font-size: 12.5px; font-weight: 560; }
svg .grid { stroke: var(--line); } svg .blind { stroke: var(--hatch); }
svg .unwatched { fill: var(--wash); opacity: .8; }
svg .hold { fill: var(--hold); } svg .cleaner { fill: none; stroke: var(--soft); stroke-dasharray: 2 2; }
svg .puts { fill: var(--puts); opacity: .55; }
svg .offset { fill: none; stroke: var(--offset); stroke-width: 1.6; }
svg .tick { stroke: var(--card); stroke-width: 1.2; }
svg .made { fill: var(--good); } svg .gone { stroke: var(--critical); stroke-width: 2; fill: none; }
svg .flag { stroke: var(--tone); stroke-width: 1.6; stroke-dasharray: 4 3; fill: none; } svg .pin { fill: var(--tone); }
svg .seen { fill: var(--good); opacity: .75; } svg .unseen { fill: var(--hatch); }
.legend { display: flex; flex-wrap: wrap; gap: 6px 20px; margin: 4px 0 12px; }
.legend span { display: inline-flex; align-items: center; gap: 7px; } .legend svg { width: 26px; height: 14px; }
footer { padding-top: 26px; padding-bottom: 44px; } footer ul { padding-left: 18px; margin: 6px 0; }
@media (max-width: 1100px) { th, td { padding: 8px 9px; } .strip { width: 120px; } }
@media screen and (max-width: 1000px) {
  table.stack, .stack tbody { display: block; } .stack thead { display: none; }
  .stack tr { display: flex; flex-wrap: wrap; gap: 3px 12px; padding: 10px 14px; border-bottom: 1px solid var(--line); }
  .stack tr:last-child { border-bottom: 0; }
  .stack td { padding: 0; border: 0; text-align: left; white-space: normal; overflow-wrap: anywhere; }
  .stack td:empty { display: none; } .stack td:first-child { font-weight: 600; }
  .stack td[data-name]::before { content: attr(data-name) " "; color: var(--soft); font-size: 12.5px; }
  .stack td:has(> svg) { flex-basis: 100%; } .stack td[data-name="watched"]::before { content: none; }
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
  ol.chain li::before, ol.chain li:not(:last-child)::after { left: 4px; } ol.chain div { padding-left: 0; }
}
@media print {
  @page { margin: 14mm 12mm; }
  :root { color-scheme: light; --paper: #fff; --card: #fff; }
  body { font-size: 11px; } nav, .skip, .filter { display: none; }
  main, header, footer { padding-left: 0; padding-right: 0; max-width: none; }
  h1 { font-size: 21px; } h2 { margin-top: 22px; font-size: 15px; }
  .incident h3 { font-size: 12.5px; } .todo h2, .unseen h2 { font-size: 13px; }
  h2, h3, .lead, .legend, .incident .where, summary { break-after: avoid; }
  .tiles { grid-template-columns: repeat(5, 1fr); gap: 8px; } .tile { padding: 8px 10px; } .tile b { font-size: 20px; }
  .tile, .restart, figure, .scroll { border-color: #bbb; }
  .card, .todo, .unseen { border-top-color: #bbb; border-right-color: #bbb; border-bottom-color: #bbb;
    padding: 8px 14px 9px; }
  .todo li { margin: 5px 0; }
  .incident, .restart, figure { content-visibility: visible; }
  .incident .when, .restart .say, .restart .tasks, dl, .facts { font-size: 10.5px; }
  .meta, .legend, ol.chain time, .tile span, table { font-size: 10px; }
  code, ol.chain small, .chip, th { font-size: 9.5px; } .chip { padding: 0 6px; }
  .action, .say, ol.chain li, tr, .todo li, .restart .tasks > li { break-inside: avoid; }
  .scroll, figure { overflow: visible; } figure > svg { min-width: 0; width: 100%; }
  th, td { padding: 4px 6px; } th { white-space: normal; } .strip { width: 96px; }
  /* evidence, and what is dangerous to restart, are paper's business; folded pages of thousands are not */
  .evidence::details-content, .finding::details-content, .restart.bad::details-content
    { content-visibility: visible; display: block; }
  svg, .chip, .action, .todo, .card, .unseen { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""
)
