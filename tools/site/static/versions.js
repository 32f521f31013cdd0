// The list of versions is a script, not JSON: a page that was opened as a file may load one, but may not fetch.
(() => {
  "use strict";
  const box = document.querySelector(".sidebar-versions");
  if (!box) return;
  const { root, here, page } = box.dataset;
  const list = document.createElement("script");
  list.src = `${root}versions.js`;
  list.onload = () => {
    const versions = window.STATEWARDEN_VERSIONS;
    const select = box.querySelector("select");
    for (const { name } of versions) select.add(new Option(name, name, false, name === here));
    select.onchange = () => {
      const chosen = versions.find(({ name }) => name === select.value);
      const target = chosen.pages.includes(page) ? page : "docs/README";
      window.location.href = `${root}${chosen.name}/${target}.html`;
    };
    box.hidden = versions.length < 2;
  };
  document.head.append(list);
})();
