"""The filter, and the only script: filters, deep links, the page's age. Without it the page is whole, but for these.

The form is shown only where the script runs, which then takes away the `hidden` attribute.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence

from agent.contract.audited import FleetIncident
from spark_rollup.report.page.data import SEVERITIES, WORDS, PageData
from spark_rollup.report.page.text import clip

CHOICES = 500  # so many names a list offers


def form(data: PageData, cards: Sequence[FleetIncident]) -> str:
    """Render the form: application, namespace, pod, severity and free text."""
    applications = {x.application_id for x in cards} | set(data.applications())
    namespaces = {x.namespace for x in cards} | {str(row["namespace"] or "") for row in data.pods}
    pods = {str(row["pod"]) for row in data.pods} | {pod for x in cards for pod in x.pods}
    known = "".join(f'<option value="{clip(x, 300)}"></option>' for x in sorted(pods)[:CHOICES])
    fields = {
        "Application": _select("a", _options(applications)),
        "Namespace": _select("n", _options(namespaces)) if len(namespaces - {""}) > 1 else "",
        "Pod": f'<input name="p" list="pods-known" autocomplete="off"><datalist id="pods-known">{known}</datalist>',
        "Severity": _select("s", "".join(f'<option value="{x}">{WORDS[x]}</option>' for x in SEVERITIES)),
        "Text": '<input name="t" type="search" autocomplete="off" placeholder="task, store, issue, word">',
    }
    labels = "".join(
        f"<label><span>{label}</span>{field}</label>" for label, field in fields.items() if field
    )
    return (
        f'<form id="filter" class="filter" role="search" aria-label="Filter this page" hidden>{labels}'
        '<button type="reset">Clear</button><output id="found"></output></form>'
    )


def _options(names: Iterable[str]) -> str:
    return "".join(f"<option>{clip(x, 300)}</option>" for x in sorted(names)[:CHOICES] if x)


def _select(key: str, options: str) -> str:
    return f'<select name="{key}"><option value="">all</option>{options}</select>'


def digest(text: str) -> str:
    """Name an inline script or style to the browser: it runs this one and no other."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


SCRIPT = """
(() => {
  'use strict';
  const form = document.getElementById('filter'), found = document.getElementById('found');
  const blocks = [...document.querySelectorAll('[data-n]')];
  const cards = blocks.filter(x => x.matches('.incident'));
  const folds = [...document.querySelectorAll('details.page')].filter(x => x.querySelector('[data-n]'));
  const lists = document.querySelectorAll('main section');
  const texts = new Map(), keys = ['a', 'n', 'p', 's', 't'], AT_ONCE = 50;
  const text = x => texts.get(x) ?? texts.set(x, x.textContent.toLowerCase()).get(x);
  const has = (x, key, value) => (x.dataset[key] ?? '').split('\\n').includes(value);
  const asked = () => Object.fromEntries(keys.map(k => [k, form.elements[k]?.value.trim() ?? '']));

  const matches = (x, q, words) => !(q.s && x.dataset.s && x.dataset.s !== q.s)
    && (!q.a || has(x, 'a', q.a)) && (!q.n || has(x, 'n', q.n))
    && (!q.p || 'more' in x.dataset || (x.dataset.p ?? '').toLowerCase().includes(q.p.toLowerCase()))
    && words.every(word => text(x).includes(word));

  function apply() {
    const q = asked(), active = keys.some(k => q[k]), words = q.t.toLowerCase().split(/\\s+/).filter(Boolean);
    for (const x of blocks) x.hidden = active && !matches(x, q, words);
    let shown = 0;
    for (const fold of folds) {
      const hits = [...fold.querySelectorAll('[data-n]')].filter(x => !x.hidden).length;
      fold.hidden = active && !hits;
      fold.open = active && hits > 0 && shown + hits <= AT_ONCE;
      if (fold.open) shown += hits;
      fold.firstElementChild.dataset.hits = active ? `: ${hits} match` : '';
    }
    for (const list of lists) {
      const own = list.querySelectorAll('[data-n]');
      list.classList.toggle('empty', active && own.length > 0 && [...own].every(x => x.hidden));
    }
    const left = cards.filter(x => !x.hidden).length;
    found.textContent = active ? `${left} of ${cards.length} incidents on this page match` : '';
    const kept = new URLSearchParams(keys.filter(k => q[k]).map(k => [k, q[k]]));
    const hash = active ? `#?${kept}` : location.hash.startsWith('#?') ? '#' : location.hash;
    if (hash !== location.hash && !(hash === '#' && !location.hash)) history.replaceState(null, '', hash || '#');
  }

  function follow() {
    if (location.hash.startsWith('#?')) {
      const kept = new URLSearchParams(location.hash.slice(2));
      for (const k of keys) if (form.elements[k]) form.elements[k].value = kept.get(k) ?? '';
      return apply();
    }
    let id = location.hash.slice(1);
    try { id = decodeURIComponent(id); } catch { /* not an address of this page */ }
    if (!id) return;
    const target = document.getElementById(id);
    if (!target) {
      if (id.startsWith('i-')) found.textContent = `${id} is not on this page: all incidents are in incidents.jsonl`;
      return;
    }
    if (target.closest('[hidden]')) { form.reset(); for (const x of [...blocks, ...folds]) x.hidden = false; }
    for (let x = target; x; x = x.parentElement) if (x.tagName === 'DETAILS') x.open = true;
    const card = target.closest('.incident');
    if (card) {
      card.querySelector('details.evidence').open = true;
      card.focus({ preventScroll: true });
    }
    const show = () => (card ?? target).scrollIntoView();
    show();
    // what is drawn only when it comes into view has its real height from the next frame on
    requestAnimationFrame(() => requestAnimationFrame(show));
  }

  const age = document.getElementById('age');
  function grow() {
    const minutes = Math.floor((Date.now() - Number(age.dataset.at)) / 60000);
    const words = minutes < 120 ? `${minutes} min` : minutes < 2880 ? `${Math.floor(minutes / 60)} h`
      : `${Math.floor(minutes / 1440)} days`;
    const line = minutes >= 60 ? `This page is ${words} old.` : '';
    if (age.textContent !== line) age.textContent = line;
  }

  let due = 0;
  form.hidden = false;
  form.addEventListener('submit', event => event.preventDefault());
  form.addEventListener('input', () => { clearTimeout(due); due = setTimeout(apply, 120); });
  form.addEventListener('reset', () => setTimeout(apply));
  addEventListener('hashchange', follow);
  if (age) { grow(); setInterval(grow, 60000); }
  follow();
})();
"""
