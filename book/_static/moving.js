/* Pictures that a reader moves: the library computed their numbers, this draws them. */
(() => {
  const fixed = (value, digits = 2) => value.toFixed(digits).replace(/^-(0\.?0*)$/, "$1");
  const safe = (text) => String(text).replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
  const text = (x, y, words, anchor = "start") =>
    `<text x="${x}" y="${y}" text-anchor="${anchor}">${safe(words)}</text>`;
  const line = (x1, y1, x2, y2, kind) =>
    `<line x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}" class="${kind}"/>`;
  const box = (x, y, width, height, kind) =>
    `<rect x="${x}" y="${y}" width="${width}" height="${height}" class="${kind}"/>`;
  const ticks = (top) => {
    const step = [0.5, 1, 2, 5, 10, 20, 50, 100].find((size) => top / size <= 5) ?? top;
    return Array.from({ length: Math.floor(top / step) + 1 }, (_, place) => place * step);
  };

  // c, g and M over the weights of a few counts: step 1 of the algorithm, and step 2 at the
  // smallest and the largest draw of the new fit
  const weights = {
    state(data, [c, g, m]) {
      const { bounds, counts, factorials, scales, shifts, limits } = data;
      const lowest = Math.min(...bounds);
      const span = Math.max(...bounds) - lowest || 1;
      const alpha = bounds.map((bound) => {
        const weight = scales[c] * (1 - (bound - lowest) / span) + shifts[g];
        const cut = Math.min(1, Math.max(0, weight));
        return limits[m] !== null && cut * bound > limits[m] ? 0 : cut;
      });
      const ends = data.ends[(c * shifts.length + g) * limits.length + m];
      const after = alpha.map((weight, i) => weight && weight * Math.max(
        ...ends.map((mu) => Math.abs(counts[i] * Math.log(mu) - mu - factorials[i])),
      ));
      const delta = Math.max(...after);
      return { alpha, after, delta, epsilon: 2 * delta };
    },
    say({ names, bounds }, { alpha, delta, epsilon }) {
      const order = names.map((_, i) => i).sort((i, j) => alpha[i] - alpha[j]);
      const least = order.slice(0, 3).map((i) => `${names[i]} ${fixed(alpha[i])}`).join(", ");
      return `Δ = ${fixed(delta)} nats, ε of one release = ${fixed(epsilon)} nats `
        + `(without weights ${fixed(2 * Math.max(...bounds))}). Smallest weights: ${least}.`;
    },
    draw({ names, counts, bounds }, { alpha, after, delta }, width) {
      const [left, right, floor, base] = [44, width - 52, 205, 305];
      const top = 1.06 * Math.max(...bounds, ...after);
      const y = (bound) => floor - (bound / top) * 165;
      const gap = (right - left) / names.length;
      const x = (i) => left + (i + 0.5) * gap;
      let drawn = text(0, 14, "Bound of a record, nats: ○ before, ■ after");
      for (const tick of ticks(top)) {
        drawn += line(left, y(tick), right, y(tick), "grid")
          + text(left - 6, y(tick) + 4, tick, "end");
      }
      names.forEach((name, i) => {
        drawn += line(x(i), y(bounds[i]), x(i), y(after[i]), "stem")
          + `<circle cx="${x(i)}" cy="${y(bounds[i])}" r="6" class="before"/>`
          + box(x(i) - 5, y(after[i]) - 5, 10, 10, "after")
          + box(x(i) - 0.3 * gap, base - 60 * alpha[i], 0.6 * gap, 60 * alpha[i], "after")
          + text(x(i), base + 17, name, "middle") + text(x(i), base + 34, counts[i], "middle");
      });
      return [drawn + line(left, y(delta), right, y(delta), "level")
        + text(right + 4, y(delta) + 4, `Δ ${fixed(delta)}`)
        + text(0, 232, "Weight") + text(0, base + 34, "Count")
        + line(left, base, right, base, "grid")
        + line(left, base - 60, right, base - 60, "grid")
        + text(left - 6, base + 4, 0, "end") + text(left - 6, base - 56, 1, "end"), base + 40];
    },
  };

  // n over the distribution of the local bound Δ of many databases
  const contraction = {
    state: ({ mechanisms }, [n]) => ({
      rows: mechanisms.map(({ name, sizes }) => ({ name, ...sizes[n] })),
    }),
    say: ({ databases }, { rows }) =>
      `Δ of ${databases} databases, nats: ` + rows.map(({ name, smallest, median, largest, above }) =>
        `${name} ${fixed(smallest)} to ${fixed(largest)} (median ${fixed(median)}), `
        + `${fixed(100 * above, 0)} % above M`).join("; ") + ".",
    draw({ mechanisms, limit }, { rows }, width) {
      const top = 1.05 * Math.max(...mechanisms.flatMap(({ sizes }) => sizes.map((row) => row.largest)));
      const x = (bound) => 4 + (bound / top) * (width - 8);
      const floor = 70 * rows.length + 6;
      let drawn = "";
      for (const tick of ticks(top)) {
        drawn += line(x(tick), 0, x(tick), floor, "grid")
          + text(Math.max(8, x(tick)), floor + 17, tick, "middle");
      }
      rows.forEach(({ name, smallest, median, largest, heights }, row) => {
        const y = 70 * row + 46;
        const place = (bin) => x(smallest + ((bin + 0.5) / heights.length) * (largest - smallest));
        const upper = heights.map((high, bin) => `${place(bin)},${y - 3 - 16 * high}`);
        const lower = heights.map((high, bin) => `${place(bin)},${y + 3 + 16 * high}`).reverse();
        drawn += text(width - 4, y - 28, name, "end")
          + `<polygon points="${x(smallest)},${y} ${upper.join(" ")} ${x(largest)},${y} `
          + `${lower.join(" ")}" class="after m${row}"/>`
          + line(x(median), y - 20, x(median), y + 20, "median");
      });
      return [drawn + line(x(limit), 0, x(limit), floor, "level")
        + text(x(limit) + 5, 14, `M ${limit}`)
        + text(4, floor + 36, "Local bound Δ, nats; upright: median"), floor + 42];
    },
  };

  // ε of a strict release over what it promises, and over the release beside the original
  const release = {
    state({ original, mechanisms, words }, [width, name]) {
      const { shares, errors } = mechanisms[name][width];
      const apart = shares.reduce((sum, share, bin) => sum + Math.abs(share - original[bin]), 0) / 2;
      return { at: width, shares, errors, apart, ...words[width] };
    },
    say: ({ alarms }, { word, detection, apart, errors }) =>
      `this ε ${word} (at ${100 * alarms} % false alarms a test detects a value that took part with `
      + `at most ${fixed(100 * detection, 0)} % probability). Median size of a release's error: `
      + errors.map(([name, error]) => `${name} ${fixed(error, 1)} %`).join(", ")
      + `. ${fixed(100 * apart, 1)} % of the incomes drawn here would have to change bins to match.`,
    draw({ original, words, edges, unit }, { at, shares }, width) {
      const [floor, side] = [285, 54];
      const x = (place) => side + (place / Math.max(1, words.length - 1)) * (width - 2 * side);
      let drawn = text(0, 14, "ε of one release, nats") + line(x(0), 44, x(words.length - 1), 44, "stem");
      words.forEach(({ epsilon }, place) => {
        drawn += text(x(place), 32, epsilon, "middle")
          + `<circle cx="${x(place)}" cy="44" r="${place === at ? 8 : 4}" class="after"/>`;
      });
      // one word for all neighbours that share it, on lines in turn
      const starts = words.map((_, i) => i).filter((i) => words[i].word !== words[i - 1]?.word);
      starts.forEach((start, group) => {
        const end = (starts[group + 1] ?? words.length) - 1;
        drawn += text((x(start) + x(end)) / 2, 66 + 17 * (group % 2), words[start].word, "middle");
      });
      const high = 1.05 * Math.max(...original, ...shares);
      const gap = width / original.length;
      const y = (share) => floor - (share / high) * 150;
      let path = `M0,${floor}`;
      shares.forEach((share, bin) => {
        drawn += box(bin * gap + 1, y(share), gap - 2, floor - y(share), "after");
        path += `V${y(original[bin])}H${(bin + 1) * gap}`;
      });
      edges.forEach((edge, bin) => {
        if (bin % 5 === 0) drawn += text((bin + 1) * gap, floor + 17, edge, "middle");
      });
      return [`${drawn}<path d="${path}V${floor}" class="before"/>`
        + text(0, 118, "Share of units: outline original, filled synthetic")
        + text(0, floor + 36, unit), floor + 42];
    },
  };

  const kinds = { weights, contraction, release };
  if (typeof module === "object") {
    module.exports = kinds;
    return;
  }

  const show = (place) => {
    const data = JSON.parse(place.querySelector("script").textContent);
    const { state, say, draw } = kinds[data.kind];
    const ids = data.sliders.map((_, number) => `${place.id}-${number}`);
    place.insertAdjacentHTML("beforeend", `<p class="title" id="${place.id}-title"></p>
      <div class="controls">${ids.map((id, number) => `<div><label for="${id}"></label>
      <input type="range" id="${id}" min="0" max="${data.sliders[number].shown.length - 1}"
      value="${data.sliders[number].at}"><span aria-hidden="true"></span></div>`).join("")}</div>
      <svg aria-hidden="true"></svg><output for="${ids.join(" ")}" aria-live="polite"></output>
      <p class="hint"></p>`);
    place.setAttribute("role", "group");
    place.setAttribute("aria-labelledby", `${place.id}-title`);
    place.querySelector(".title").textContent = data.title;
    place.querySelector(".hint").textContent = data.hint;
    const sliders = [...place.querySelectorAll("input")];
    const svg = place.querySelector("svg");
    let painted = 0;
    const paint = (found) => {
      painted = place.clientWidth;
      const width = Math.max(280, painted - 26);
      const [drawn, height] = draw(data, found, width);
      svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
      svg.innerHTML = drawn;
    };
    const move = () => {
      const at = sliders.map((slider) => Number(slider.value));
      const words = data.sliders.map((slider, number) => {
        sliders[number].setAttribute("aria-valuetext", slider.shown[at[number]]);
        sliders[number].nextElementSibling.textContent = slider.shown[at[number]];
        return `${slider.short} = ${slider.shown[at[number]]}`;
      });
      const found = state(data, at);
      place.querySelector("output").textContent = `${words.join(", ")}: ${say(data, found)}`;
      paint(found);
    };
    data.sliders.forEach(({ label }, number) => {
      sliders[number].previousElementSibling.textContent = label;
      sliders[number].addEventListener("input", move);
    });
    place.hidden = false;
    move();
    // the room also changes when a sidebar folds, and a while after the window did
    new ResizeObserver(() => { if (place.clientWidth !== painted) move(); }).observe(place);
  };
  addEventListener("DOMContentLoaded", () => document.querySelectorAll(".moving").forEach(show));
})();
