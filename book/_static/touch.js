/* Take one household away: a picture that a reader touches. All that it shows is computed here, as
   finite sums over the public values of μ. A test of the book holds it against the library. */

// The model, without the page: Node can load it.
const takeAway = (() => {
  const ROUNDING = 1e-9; // above 2Δ by less than this is rounding

  function valuesOfMu([low, high, number]) {
    const step = (high - low) / (number - 1);
    return Array.from({ length: number }, (_, k) => (k < number - 1 ? low + k * step : high));
  }

  function logFactorial(count) {
    let sum = 0;
    for (let factor = 2; factor <= count; factor += 1) sum += Math.log(factor);
    return sum;
  }

  // log p of a count at every μ
  function logProbabilities(count, means) {
    const constant = logFactorial(count);
    return means.map((mu) => count * Math.log(mu) - mu - constant);
  }

  function largest(values) {
    return values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  }

  // ppm.record_weights: where all bounds are equal, no record is a risk
  function recordWeights(bounds, { scale, shift, truncate_at: threshold }) {
    const lowest = Math.min(...bounds);
    const span = Math.max(...bounds) - lowest || 1;
    return bounds.map((bound) => {
      const weight = Math.min(1, Math.max(0, scale * (1 - (bound - lowest) / span) + shift));
      return threshold !== null && weight * bound > threshold ? 0 : weight;
    });
  }

  // the same when the record in one place is away: it has no weight, and its bound no say
  function weightsWithout(away, bounds, settings) {
    const others = recordWeights(bounds.filter((_, i) => i !== away), settings);
    return [...others.slice(0, away), 0, ...others.slice(away)];
  }

  // log probability of every μ, with a uniform prior
  function logPosterior(weights, terms) {
    const sums = terms[0].map((_, k) => (
      terms.reduce((sum, term, i) => sum + weights[i] * term[k], 0)));
    const top = Math.max(...sums);
    const norm = top + Math.log(sums.reduce((sum, value) => sum + Math.exp(value - top), 0));
    return sums.map((value) => value - norm);
  }

  function state(settings, grid) {
    const { counts, away, again } = settings;
    const means = valuesOfMu(grid);
    const terms = counts.map((count) => logProbabilities(count, means));
    const bounds = terms.map(largest);
    const weights = recordWeights(bounds, settings);
    let left = weights;
    if (away !== null) {
      left = again ? weightsWithout(away, bounds, settings)
        : weights.map((weight, i) => (i === away ? 0 : weight));
    }
    const before = logPosterior(weights, terms);
    const after = logPosterior(left, terms);
    const ratio = before.map((value, k) => value - after[k]);
    const loss = largest(ratio);
    return {
      means, weights, left, before, after, ratio, loss,
      delta: largest(bounds.map((bound, i) => bound * weights[i])),
      at: ratio.findIndex((value) => Math.abs(value) === loss),
    };
  }

  function isAbove({ loss, delta }) {
    return loss > 2 * delta + ROUNDING;
  }

  // on one line, on a phone too
  function unbroken(said) {
    return said.replaceAll(" ", "\u00a0");
  }

  // what it says of the loss, and of the weights
  function words(found, names, { away, again }) {
    const twice = 2 * found.delta;
    const bound = unbroken(`2Δ = ${twice.toFixed(2)}`);
    if (away === null) {
      return [`Nobody is away. Δ = ${found.delta.toFixed(2)} nats, and ${bound}.`, ""];
    }
    const who = names[away];
    const changes = `Without ${who} the log probability of a μ changes by up to `
      + `${found.loss.toFixed(2)} nats`;
    let said = `Without ${who} no probability changes: 0.00 nats, where ${bound}.`;
    if (isAbove(found)) {
      said = `${changes}: more than ${bound}.`;
    } else if (twice === 0) {
      said = `All weights are 0, so no probability changes: ${bound}.`;
    } else if (found.loss >= ROUNDING) {
      // short of 2Δ, however near
      const percent = Math.min(99, Math.floor((100 * found.loss) / twice + 0.5));
      said = `${changes}: ${percent < 1 ? "less than 1" : percent} % of ${bound}.`;
    }
    const moved = names
      .map((name, i) => [name, found.weights[i], found.left[i], i])
      .filter(([, before, after, i]) => i !== away && Math.abs(after - before) > 0.005)
      .map(([name, before, after]) => (
        unbroken(`${name} ${before.toFixed(2)} → ${after.toFixed(2)}`)));
    if (moved.length) return [said, `The others’ weights: ${moved.join(", ")}.`];
    return [said, again ? "The others’ weights, computed again, are as before."
      : "The others keep their weights."];
  }

  // which counts and which M another state has, beside the start
  function changes(start, { counts, truncate_at: threshold }, names) {
    const changed = names
      .map((name, i) => `${name} ${start.counts[i]} → ${counts[i]} visits`)
      .filter((_, i) => counts[i] !== start.counts[i]);
    if (threshold !== start.truncate_at) changed.push(`M = ${threshold ?? "none"}`);
    return `Changed: ${changed.map(unbroken).join(", ")}.`;
  }

  return { state, words, changes, isAbove };
})();
if (typeof module !== "undefined") module.exports = takeAway;

// The page
(() => {
  if (typeof document === "undefined") return;
  const { state, words, changes, isAbove } = takeAway;
  const SMALLEST = 0.05; // of c
  const NEAR = 24; // so many pixels from a disc still mean it
  const STILL = 4; // a pointer that moves less takes away, and does not drag
  const [ROOF, FLOOR] = [26, 160]; // of a panel

  const safe = (text) => String(text).replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
  const dyed = (colour) => (colour ? ` style="--own: ${safe(colour)}"` : "");
  const text = (x, y, said, anchor = "start", kind = "") =>
    `<text x="${x}" y="${y}" text-anchor="${anchor}" class="${kind}">${safe(said)}</text>`;
  const across = (left, right, y, kind) =>
    `<line x1="${left}" x2="${right}" y1="${y}" y2="${y}" class="${kind}"/>`;

  function slider(id, label, low, high, step) {
    return `<div class="slider"><label for="${id}">${label}</label>
      <output for="${id}" aria-live="off"></output>
      <input type="range" id="${id}" min="${low}" max="${high}" step="${step}"></div>`;
  }

  function household(name, place, most) {
    return `<div><button type="button" data-place="${place}" aria-pressed="false"
        aria-label="Take ${safe(name)} away">${safe(name)}</button>
      <input type="number" data-place="${place}" min="0" max="${most}" step="1"
        inputmode="numeric" aria-label="Visits of ${safe(name)}"></div>`;
  }

  function others(id) {
    const choices = ["frozen", "computed again"].map((choice, again) => `<label><input
      type="radio" name="${id}" value="${again}"> ${choice}</label>`);
    return `<fieldset><legend>Others’ weights</legend>${choices.join("")}</fieldset>`;
  }

  // what one reaches for first stands beside what it changes, so that both are on one screen
  function controls(data, id, most, thresholds) {
    return `<p class="title" id="${id}">${safe(data.title)}</p>
      ${data.hint ? `<p class="hint">${safe(data.hint)}</p>` : ""}
      <p class="how">Press a letter to take that household away. Drag a disc, or type, to change
        its visits.</p>
      <svg class="discs" aria-hidden="true"></svg>
      <div class="people">
        ${data.names.map((name, place) => household(name, place, most)).join("")}</div>
      <div class="ways">
        ${data.switch ? others(`${id}-others`) : ""}
        <p class="buttons">
          ${Object.keys(data.breaking).map((said) => (
            `<button type="button" class="break">${safe(said)}</button>`)).join("")}
          <button type="button" class="reset">Start again</button></p></div>
      <div class="told" aria-hidden="true"><p class="said"></p><p class="more"></p>
        <p class="changed"></p></div>
      <output class="heard" aria-live="polite"></output>
      <div class="panels" aria-hidden="true">
        <svg class="of-ratio"></svg><svg class="of-posteriors"></svg></div>
      <div class="sliders">
        ${slider(`${id}-scale`, "Scale c", SMALLEST, 1, 0.05)}
        ${data.threshold ? slider(`${id}-threshold`, "Threshold M", 1, thresholds, 0.1) : ""}
      </div>`;
  }

  // where the discs stand, those of one count above each other
  function placesOfDiscs(counts, x, floor, radius) {
    const number = new Map();
    counts.forEach((count) => number.set(count, (number.get(count) ?? 0) + 1));
    const risen = new Map();
    return counts.map((count) => {
      const level = risen.get(count) ?? 0;
      risen.set(count, level + 1);
      // many of one count overlap
      const step = Math.min(2 * radius + 2, (floor - 24 - 2 * radius) / (number.get(count) - 1));
      return [x(count), floor - radius - 2 - (level ? level * step : 0)];
    });
  }

  function drawDiscs(data, { away }, found, places, x, most, { left, right, floor, radius }) {
    let drawn = text(0, 14, "Visits; area of a disc: its weight")
      + across(left, right, floor, "grid");
    const step = most > 50 ? 20 : 5;
    for (let count = 0; count <= most; count += step) {
      drawn += text(x(count), floor + 17, count, "middle");
    }
    places.forEach(([atX, atY], i) => {
      const inside = radius * Math.sqrt(found.left[i]);
      drawn += `<g class="disc${i === away ? " away" : ""}"${dyed(data.colours[i])}>
        <circle class="grip" cx="${atX}" cy="${atY}" r="${Math.max(radius, NEAR / 2)}"/>
        <circle class="edge" cx="${atX}" cy="${atY}" r="${radius}"/>
        <circle class="weight" cx="${atX}" cy="${atY}" r="${inside}"/>
        ${text(atX, atY + 4.5, data.names[i], "middle")}</g>`;
    });
    return drawn;
  }

  function pathOf(points) {
    return `M${points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join("L")}`;
  }

  // both panels have one axis of μ: its scale, its ends, and what is drawn below
  function axisOfMu([low, high], width, floor) {
    const [left, right] = [16, width - 8];
    const x = (mu) => left + ((mu - low) / (high - low)) * (right - left);
    const ticks = Array.from({ length: 6 }, (_, i) => low + ((high - low) * i) / 5);
    const marks = ticks.map((mu) => text(x(mu), floor + 17, Number(mu.toFixed(2)), "middle"));
    return { x, left, right, drawn: marks.join("") };
  }

  function drawPosteriors(data, { away }, found, width) {
    const [roof, floor] = [ROOF + 10, FLOOR];
    const { x, left, right, drawn: axis } = axisOfMu(data.grid, width, floor);
    const top = Math.exp(Math.max(...found.before, ...found.after));
    const y = (value) => floor - (Math.exp(value) / top) * (floor - roof);
    const curve = (values) => pathOf(values.map((value, k) => [x(found.means[k]), y(value)]));
    // words where the curve is not
    const peak = found.before.indexOf(Math.max(...found.before));
    const [at, anchor] = peak > found.means.length / 2 ? [left + 4, "start"] : [right, "end"];
    let drawn = text(0, 14, "Pseudo posterior of the mean μ (visits)") + across(left, right, floor, "grid")
      + `<path class="under" d="${curve(found.before)}L${right},${floor}L${left},${floor}Z"/>
        <path class="curve" d="${curve(found.before)}"/>`
      + text(at, roof + 16, "with everybody", anchor, "mechanism");
    if (away !== null) {
      drawn += `<path class="outline dashed" d="${curve(found.after)}"/>`
        + text(at, roof + 33, `without ${data.names[away]} (dashed)`, anchor);
    }
    return drawn + axis;
  }

  // the parts of a curve that are outside the band
  function outside(points, ratio, twice) {
    let drawn = "";
    points.forEach(([x, y], k) => {
      if (k && Math.max(Math.abs(ratio[k]), Math.abs(ratio[k - 1])) > twice) {
        drawn += pathOf([points[k - 1], [x, y]]);
      }
    });
    return drawn;
  }

  function drawRatio(data, { away }, found, width) {
    const { x, left, right, drawn: axis } = axisOfMu(data.grid, width, FLOOR);
    const twice = 2 * found.delta;
    const most = Math.max(twice, found.loss) * 1.2 || 1;
    const y = (value) => (ROOF + FLOOR) / 2 - ((value / most) * (FLOOR - ROOF)) / 2;
    const above = isAbove(found);
    let drawn = text(0, 14, "Log ratio of each μ, with against without (nats)")
      + `<rect class="under" x="${left}" width="${right - left}" y="${y(twice)}"
        height="${y(-twice) - y(twice)}"/>`
      + [twice, -twice].map((level) => across(left, right, y(level), "level")).join("")
      + across(left, right, y(0), "grid") + text(left - 6, y(0) + 4, 0, "end")
      // in the middle, because the curve is far out at the ends
      + text((left + right) / 2, y(twice) - 5, `2Δ = ${twice.toFixed(2)}`, "middle")
      + text((left + right) / 2, y(-twice) + 15, "−2Δ", "middle");
    if (away !== null) {
      const points = found.ratio.map((value, k) => [x(found.means[k]), y(value)]);
      const [atX, atY] = points[found.at];
      const kind = above ? "above" : "mechanism";
      const [anchor, aside] = atX > (left + right) / 2 ? ["end", -8] : ["start", 8];
      const lift = found.ratio[found.at] < 0 ? 14 : -9;
      drawn += `<path class="curve" d="${pathOf(points)}"/>
        <path class="curve above" d="${outside(points, found.ratio, twice)}"/>
        <circle class="dot ${kind}" cx="${atX}" cy="${atY}" r="4.5"/>`
        + text(atX + aside, atY + lift, `${found.loss.toFixed(2)} nats`, anchor, kind);
    }
    return drawn + axis;
  }

  function show(place, number) {
    const data = JSON.parse(place.querySelector("script").textContent);
    const id = `touch-${number}`;
    const broken = Object.values(data.breaking);
    const starts = [data.start, ...broken];
    const most = 5 * Math.ceil(Math.max(25, ...starts.flatMap(({ counts }) => counts)) / 5);
    // the end of the slider means no threshold
    const highest = Math.max(...starts.map((one) => one.truncate_at ?? 0));
    const thresholds = Math.max(10, Math.ceil(highest + 1));
    const settings = {};
    const live = document.createElement("div");
    live.className = "live";
    live.innerHTML = controls(data, id, most, thresholds);
    place.append(live); // the still picture stays, for paper
    place.setAttribute("role", "group");
    place.setAttribute("aria-labelledby", id);
    const find = (what) => live.querySelector(what);
    const discs = find(".discs");
    let [painted, drawnAt, x] = [0, [], (count) => count];

    function setSlider(name, value, said) {
      const input = find(`#${id}-${name}`);
      if (!input) return;
      input.value = value;
      input.setAttribute("aria-valuetext", said);
      input.previousElementSibling.textContent = said;
    }

    // the table and the M of a button
    function isBroken() {
      const table = ({ counts, truncate_at: threshold }) => JSON.stringify([counts, threshold]);
      return broken.some((one) => table(settings) === table(one));
    }

    function draw() {
      const found = state({ ...settings, shift: data.shift }, data.grid);
      painted = place.clientWidth;
      const width = Math.max(250, painted - 26);
      const size = { left: 16, right: width - 16 };
      x = (count) => size.left + (count / most) * (size.right - size.left);
      size.radius = Math.min(14, Math.max(8, (x(1) - x(0)) / 2 + 2));
      size.floor = 24 + 3 * (2 * size.radius + 2);
      drawnAt = placesOfDiscs(settings.counts, x, size.floor, size.radius);
      discs.setAttribute("viewBox", `0 0 ${width} ${size.floor + 20}`);
      discs.innerHTML = drawDiscs(data, settings, found, drawnAt, x, most, size);
      for (const [name, drawn] of [["of-ratio", drawRatio], ["of-posteriors", drawPosteriors]]) {
        const panel = find(`.${name}`);
        const room = Math.max(250, panel.getBoundingClientRect().width);
        panel.setAttribute("viewBox", `0 0 ${room} ${FLOOR + 24}`);
        panel.innerHTML = drawn(data, settings, found, room);
      }
      live.querySelectorAll(".people button").forEach((button, i) => {
        button.setAttribute("aria-pressed", i === settings.away);
      });
      live.querySelectorAll("[type=number]").forEach((field, i) => {
        // what is being typed stays
        if (document.activeElement !== field) field.value = settings.counts[i];
      });
      live.querySelectorAll("[type=radio]").forEach((choice) => {
        choice.checked = Boolean(Number(choice.value)) === settings.again;
      });
      setSlider("scale", settings.scale, Number(settings.scale.toFixed(3)).toFixed(2));
      const threshold = settings.truncate_at;
      setSlider("threshold", threshold ?? thresholds, threshold === null ? "none" : threshold);
      const [said, more] = words(found, data.names, settings);
      find(".said").textContent = said;
      find(".more").textContent = more;
      find(".changed").textContent = isBroken() ? changes(data.start, settings, data.names) : "";
      find(".told").classList.toggle("above", isAbove(found));
    }

    // for those who listen: not while something moves
    function say() {
      const told = [...live.querySelectorAll(".told p")].map((said) => said.textContent);
      find(".heard").textContent = told.filter(Boolean).join(" ");
    }

    function begin(from) {
      Object.assign(settings, structuredClone(from));
      draw();
      say();
    }

    function takeOrReturn(i) {
      settings.away = settings.away === i ? null : i;
      draw();
      say();
    }

    function countOf(value) {
      return Math.min(most, Math.max(0, Math.round(value)));
    }

    function read(input) {
      if (input.type === "number" && input.value !== "") {
        settings.counts[input.dataset.place] = countOf(Number(input.value));
      } else if (input.type === "radio") {
        settings.again = input.value === "1";
      } else if (input.id === `${id}-scale`) {
        settings.scale = Number(input.value);
      } else if (input.id === `${id}-threshold`) {
        settings.truncate_at = Number(input.value) >= thresholds ? null : Number(input.value);
      }
    }

    live.addEventListener("input", ({ target }) => {
      read(target);
      draw();
    });
    live.addEventListener("change", ({ target }) => {
      if (target.type === "number") target.value = settings.counts[target.dataset.place];
      say();
    });
    live.addEventListener("click", ({ target }) => {
      if (target.matches(".reset")) begin(data.start);
      else if (target.matches(".break")) begin(data.breaking[target.textContent]);
      else if (target.matches("button[data-place]")) takeOrReturn(Number(target.dataset.place));
    });

    // a disc in the hand: which one, where it was taken, and whether it has moved
    let held = null;
    const placeOf = (event) => {
      const box = discs.getBoundingClientRect();
      const scale = discs.viewBox.baseVal.width / box.width;
      return [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
    };
    discs.addEventListener("pointerdown", (event) => {
      const [atX, atY] = placeOf(event);
      const far = drawnAt.map(([discX, discY]) => Math.hypot(discX - atX, discY - atY));
      const nearest = far.indexOf(Math.min(...far));
      if (far[nearest] > NEAR) return;
      held = { disc: nearest, from: atX, moved: false };
      discs.setPointerCapture(event.pointerId);
    });
    discs.addEventListener("pointermove", (event) => {
      if (!held) return;
      const [atX] = placeOf(event);
      held.moved ||= Math.abs(atX - held.from) > STILL;
      const count = countOf((atX - x(0)) / (x(1) - x(0)));
      if (held.moved && count !== settings.counts[held.disc]) {
        settings.counts[held.disc] = count;
        draw();
      }
    });
    discs.addEventListener("pointerup", () => {
      if (held && !held.moved) takeOrReturn(held.disc);
      else if (held) say();
      held = null;
    });
    discs.addEventListener("pointercancel", () => { held = null; });

    begin(data.start);
    // the room also changes when a sidebar folds, and a while after the window did
    new ResizeObserver(() => { if (place.clientWidth !== painted) draw(); }).observe(place);
  }

  addEventListener("DOMContentLoaded", () => document.querySelectorAll(".touch").forEach(show));
})();
