"""The page's style on narrow screens and on paper."""

CSS = """
@media (max-width: 1100px) {
  th, td { padding: 8px 9px; } .strip { width: 120px; }
}
@media screen and (max-width: 860px) { .index { columns: 1; } }
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
  :root { --paper: #fff; --card: #fff; }
  body { font-size: 11px; } nav, .skip, .filter { display: none; }
  main, header, footer { padding-left: 0; padding-right: 0; max-width: none; }
  h1 { font-size: 21px; } h2 { margin-top: 22px; font-size: 15px; } .incident h3 { font-size: 12.5px; }
  h2, h3, .lead, .legend { break-after: avoid; }
  .tiles { grid-template-columns: repeat(5, 1fr); gap: 8px; } .tile { padding: 8px 10px; } .tile b { font-size: 20px; }
  .tile, .restart, figure, .scroll { border-color: #bbb; }
  .card, .todo, .unseen { border-top-color: #bbb; border-right-color: #bbb; border-bottom-color: #bbb; }
  .chip { font-size: 9.5px; padding: 0 6px; } .todo h2, .unseen h2 { font-size: 13px; } .todo li { margin: 5px 0; }
  .card, .todo, .unseen { padding: 8px 14px 9px; }
  .incident, .restart, .index li, figure { content-visibility: visible; }
  .incident .when, .restart .say, .restart .tasks, .index, dl, .facts { font-size: 10.5px; }
  code, ol.chain small { font-size: 9.5px; }
  .incident h3, .incident .where, summary { break-after: avoid; }
  .action, .say, ol.chain li, tr, .todo li, .restart .tasks > li { break-inside: avoid; }
  .meta, .legend, ol.chain time, .tile span { font-size: 10px; }
  .scroll, figure { overflow: visible; } figure > svg { min-width: 0; width: 100%; }
  table { font-size: 10px; } th, td { padding: 4px 6px; } th { font-size: 9.5px; white-space: normal; }
  .strip { width: 96px; } .bars { width: 150px; }
  /* evidence, and what is dangerous to restart, are paper's business; folded pages of thousands are not */
  .evidence::details-content, .finding::details-content, .restart.bad::details-content
    { content-visibility: visible; display: block; }
  svg, .chip, .action, .todo, .card, .unseen { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""
