/* Pictures that a reader moves: the chapter computed every frame, this draws the one asked for. */
(() => {
  const safe = (text) => String(text).replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
  const text = (x, y, words, anchor = "start") =>
    `<text x="${x}" y="${y}" text-anchor="${anchor}">${safe(words)}</text>`;
  const line = (x1, y1, x2, y2, kind) =>
    `<line x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}" class="${kind}"/>`;
  const dyed = (colour) => (colour ? ` style="--own: ${safe(colour)}"` : "");
  const ticks = (low, high, most) => {
    const steps = [0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500];
    const step = steps.find((size) => (high - low) / size <= most) ?? high - low;
    const first = Math.ceil(low / step);
    const number = Math.floor(high / step) - first + 1;
    return Array.from({ length: number }, (_, i) => (first + i) * step);
  };
  // lines across, each a height and words
  const levels = ({ across = [] }) => (
    !across.length || Array.isArray(across[0]) ? across : [across]);

  // words below a panel, but for those that have no room beside what stands there already
  const under = (places, y, width) => {
    const taken = [];
    let drawn = "";
    for (const [x, words] of places) {
      const half = 3.7 * String(words).length + 3;
      const at = Math.min(Math.max(x, half), width - half);
      if (taken.every(([low, high]) => at + half < low || at - half > high)) {
        taken.push([at - half, at + half]);
        drawn += text(at, y, words, "middle");
      }
    }
    return drawn;
  };

  // curves and dots of a panel or of a frame, between the ends of the panel
  const curves = ({ lines = [], dots = [] }, shared, x, y, [left, right, floor]) => {
    let drawn = "";
    for (const { x: own = shared, y: heights, words, colour, dashed } of lines) {
      const points = heights.map((height, i) => `${x(own[i]).toFixed(1)},${y(height).toFixed(1)}`);
      const [endX, endY] = points.at(-1).split(",").map(Number);
      const kind = dashed ? "curve dashed" : "curve";
      drawn += `<path class="${kind}"${dyed(colour)} d="M${points.join("L")}"/>`;
      if (words) drawn += text(endX, endY - 6, words, "end");
    }
    for (const { at, words, colour, below, aside } of dots) {
      const [atX, atY] = [x(at[0]), y(at[1])];
      const half = 3.7 * words.length;
      const middle = Math.min(Math.max(atX, left + half), right - half);
      drawn += `<circle class="dot" cx="${atX}" cy="${atY}" r="4.5"${dyed(colour)}/>`
        + (aside ? text(atX + 9, Math.min(atY + 14, floor - 4), words)
          : text(middle, atY + (below ? 20 : -9), words, "middle"));
    }
    return drawn;
  };

  // one panel from a height downwards, and where it ends
  const draw = (panel, now, width, from) => {
    const { names, axis, colour, height = 60, heights: [low, high] } = panel;
    const { bars = [] } = now;
    const range = panel.range ?? [0, bars.length];
    const outline = now.outline ?? panel.outline;
    const [left, right, roof, floor] = [34, width - 8, from + 34, from + 34 + height];
    const gap = (right - left) / bars.length;
    const x = (value) => left + ((value - range[0]) / (range[1] - range[0])) * (right - left);
    const y = (value) => floor - ((value - low) / (high - low)) * height;
    // named bars stand apart, those of a range touch
    const shape = (values) => values.map((value, i) => (names
      ? `M${left + (i + 0.15) * gap},${floor}V${y(value)}H${left + (i + 0.85) * gap}V${floor}`
      : `${i ? "" : `M${left},${floor}`}V${y(value)}H${left + (i + 1) * gap}`
    )).join("") + `V${floor}`;
    let drawn = text(0, from + 14, panel.label ?? "");
    for (const tick of panel.plain ? [] : ticks(low, high, height / 20)) {
      drawn += line(left, y(tick), right, y(tick), "grid")
        + text(left - 6, y(tick) + 4, tick, "end");
    }
    if (bars.length) drawn += `<path class="bars" d="${shape(bars)}"${dyed(colour)}/>`;
    if (outline) drawn += `<path class="outline" d="${shape(outline)}"/>`;
    for (const part of [panel, now]) {
      for (const [level, words] of levels(part)) {
        drawn += line(left, y(level), right, y(level), "level")
          + text(left + 4, y(level) - 5, words);
      }
      if (part.upright) {
        const [place, words] = part.upright;
        drawn += line(x(place), roof - 4, x(place), floor, words ? "level" : "outline")
          + text(x(place) + 5, roof + 4, words);
      }
      drawn += curves(part, panel.x, x, y, [left, right, floor]);
    }
    if (axis === undefined) return [drawn, floor + 10];
    if (names) {
      names.forEach((name, i) => {
        drawn += text(left + (i + 0.5) * gap, floor + 17, name, "middle");
      });
    } else {
      const marks = panel.ticks ?? ticks(...range, 6).map((tick) => [tick, tick]);
      drawn += under(marks.map(([place, words]) => [x(place), words]), floor + 17, width);
    }
    // room parts these words from those of the next panel
    return [drawn + text(left, floor + 36, axis), floor + 54];
  };

  // a slider, or a button for each of a few places that have names
  const control = ({ label, shown, at }, id) => {
    if (shown.length > 8 || shown.some((words) => /\d/.test(words))) {
      return `<div class="slider"><label for="${id}">${safe(label)}</label>
        <span aria-hidden="true"></span><input type="range" id="${id}" min="0"
        max="${shown.length - 1}" value="${at}"></div>`;
    }
    const buttons = shown.map((words, place) => `<label><input type="radio" name="${id}"
      value="${place}"${place === at ? " checked" : ""}> ${safe(words)}</label>`);
    return `<fieldset id="${id}"><legend>${safe(label)}</legend>${buttons.join("")}</fieldset>`;
  };

  const show = (place, number) => {
    const data = JSON.parse(place.querySelector("script").textContent);
    const ids = data.sliders.map((_, slider) => `moving-${number}-${slider}`);
    // the still picture stays, for paper
    place.insertAdjacentHTML("beforeend", `<div class="live">
      <p class="title" id="moving-${number}">${safe(data.title)}</p>
      <div class="controls">${data.sliders.map((of, i) => control(of, ids[i])).join("")}</div>
      <svg aria-hidden="true"></svg><output for="${ids.join(" ")}" aria-live="polite"></output>
      <p class="hint">${safe(data.hint)}</p></div>`);
    place.setAttribute("role", "group");
    place.setAttribute("aria-labelledby", `moving-${number}`);
    const controls = [...place.querySelector(".controls").children];
    const svg = place.querySelector("svg");
    let painted = 0;
    const move = () => {
      let frame = 0;
      const places = data.sliders.map(({ label, shown }, i) => {
        const input = controls[i].querySelector("[type=range], :checked");
        const words = shown[Number(input.value)];
        frame = frame * shown.length + Number(input.value);
        if (input.type === "range") {
          input.setAttribute("aria-valuetext", words);
          input.previousElementSibling.textContent = words;
        }
        return `${label.split(" ").pop()} = ${words}`;
      });
      const [said, now] = data.frames[data.at[frame]];
      place.querySelector("output").textContent = `${places.join(", ")}: ${said}`;
      painted = place.clientWidth;
      const width = Math.max(250, painted - 26);
      let [drawn, end] = ["", 0];
      data.panels.forEach((panel, i) => {
        const [more, below] = draw(panel, now[i], width, end);
        [drawn, end] = [drawn + more, below];
      });
      svg.setAttribute("viewBox", `0 0 ${width} ${end}`);
      svg.innerHTML = drawn;
    };
    place.querySelector(".controls").addEventListener("input", move);
    move();
    // the room also changes when a sidebar folds, and a while after the window did
    new ResizeObserver(() => { if (place.clientWidth !== painted) move(); }).observe(place);
  };
  addEventListener("DOMContentLoaded", () => (
    document.querySelectorAll(".moving:not(.touch)").forEach(show)));
})();
