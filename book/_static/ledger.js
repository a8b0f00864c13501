/* The rows of the ledger by their verdict and by the paper's section. Without this script all of
   them are there. */
addEventListener("DOMContentLoaded", () => {
  const rows = [...document.querySelectorAll(".ledger tbody tr")].map((row) => {
    const part = row.closest("section");
    const section = part.querySelector("h2").textContent.match(/Section [\d.]*\d/)[0];
    return { row, part, section, verdict: row.cells[1].textContent.trim() };
  });
  if (!rows.length) return;

  // a claim that goes on from the row above it needs its beginning where that row is hidden
  let beginning = "";
  rows.forEach((one) => {
    const claim = one.row.cells[0].querySelector("br").parentElement;
    const words = claim.firstChild.textContent.trim();
    if (words.startsWith("…")) {
      one.beginning = document.createElement("span");
      one.beginning.textContent = `${beginning} `;
      claim.prepend(one.beginning);
    } else beginning = words;
  });

  const form = document.createElement("form");
  form.className = "ledger-filter";
  form.setAttribute("aria-label", "Rows of the ledger");
  const choice = (key, name, every) => {
    const select = document.createElement("select");
    select.name = key;
    ["", ...new Set(rows.map((one) => one[key]))].forEach((value) => {
      const option = new Option(every, value);
      option.dataset.name = value || every;
      select.add(option);
    });
    const label = document.createElement("label");
    label.append(`${name} `, select);
    form.append(label);
    return select;
  };
  const selects = [
    choice("verdict", "Verdict", "all verdicts"),
    choice("section", "Part of the paper", "all sections"),
  ];
  const said = form.appendChild(document.createElement("output"));
  rows[0].part.before(form);

  const update = () => {
    const found = (one, but) =>
      selects.every((select) => select === but || [one[select.name], ""].includes(select.value));
    // what each choice would find beside the other one
    selects.forEach((select) => [...select.options].forEach((option) => {
      const those = rows.filter((one) => found(one, select));
      const count = those.filter((one) => [one[select.name], ""].includes(option.value)).length;
      option.text = `${option.dataset.name} (${count})`;
    }));
    rows.forEach((one) => { one.row.hidden = !found(one); });
    rows.forEach((one, place) => {
      one.part.hidden = !rows.some((other) => other.part === one.part && !other.row.hidden);
      if (one.beginning) one.beginning.hidden = !rows[place - 1].row.hidden;
    });
    said.value = `${rows.filter((one) => found(one)).length} of ${rows.length} rows`;
  };
  form.addEventListener("change", update);
  // a link to a section that is hidden shows all of them
  addEventListener("hashchange", () => {
    const target = document.getElementById(location.hash.slice(1));
    if (!target?.hidden) return;
    form.reset();
    update();
    target.scrollIntoView();
  });
  update();
});
