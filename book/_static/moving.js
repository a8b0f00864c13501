/* Pictures that a reader moves: the chapter computed every frame, this draws the one asked for. */
(() => {
  const safe = (text) => String(text).replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
  const text = (x, y, words, anchor = "start") =>
    `<text x="${x}" y="${y}" text-anchor="${anchor}">${safe(words)}</text>`;
  const line = (x1, y1, x2, y2, kind) =>
    `<line x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}" class="${kind}"/>`;
  const ticks = (low, high, most) => {
    const steps = [0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500];
    const step = steps.find((size) => (high - low) / size <= most) ?? high - low;
    const first = Math.ceil(low / step);
    return Array.from({ length: Math.floor(high / step) - first + 1 }, (_, i) => (first + i) * step);
  };

  // one panel from a height downwards, and where it ends; heights of bars go up to `top`
  const draw = (panel, now, top, width, from) => {
    const { names, axis, colour, height = 60, range = [0, now.bars.length] } = panel;
    const outline = now.outline ?? panel.outline;
    const [left, right, roof, floor] = [34, width - 8, from + 34, from + 34 + height];
    const gap = (right - left) / now.bars.length;
    const x = (value) => left + ((value - range[0]) / (range[1] - range[0])) * (right - left);
    const y = (value) => floor - (value / top) * height;
    // named bars stand apart, those of a range touch
    const shape = (bars) => bars.map((value, i) => (names
      ? `M${left + (i + 0.15) * gap},${floor}V${y(value)}H${left + (i + 0.85) * gap}V${floor}`
      : `${i ? "" : `M${left},${floor}`}V${y(value)}H${left + (i + 1) * gap}`
    )).join("") + `V${floor}`;
    let drawn = text(0, from + 14, panel.label ?? "");
    for (const tick of ticks(0, top, height / 20)) {
      drawn += line(left, y(tick), right, y(tick), "grid") + text(left - 6, y(tick) + 4, tick, "end");
    }
    drawn += `<path class="bars" d="${shape(now.bars)}"${colour ? ` style="fill: ${safe(colour)}"` : ""}/>`;
    if (outline) drawn += `<path class="outline" d="${shape(outline)}"/>`;
    for (const { across, upright } of [panel, now]) {
      if (across) {
        drawn += line(left, y(across[0]), right, y(across[0]), "level")
          + text(left + 4, y(across[0]) - 5, across[1]);
      }
      if (upright) {
        const kind = upright[1] ? "level" : "outline";
        drawn += line(x(upright[0]), roof - 4, x(upright[0]), floor, kind)
          + text(x(upright[0]) + 5, roof + 4, upright[1]);
      }
    }
    if (axis === undefined) return [drawn, floor + 10];
    const under = names ? names.map((name, i) => [left + (i + 0.5) * gap, name])
      : ticks(...range, 6).map((tick) => [x(tick), tick]);
    for (const [place, words] of under) drawn += text(place, floor + 17, words, "middle");
    return [drawn + text(left, floor + 36, axis), floor + 42];
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
    const highest = ({ bars = [], outline = [], across = [0] }) => (
      Math.max(...bars, ...outline, across[0]));
    const tops = data.panels.map((panel, i) => Math.max(
      highest(panel), ...data.frames.map(([, now]) => highest(now[i])),
    ) || 1);
    place.innerHTML = `<p class="title" id="moving-${number}">${safe(data.title)}</p>
      <div class="controls">${data.sliders.map((of, i) => control(of, ids[i])).join("")}</div>
      <svg aria-hidden="true"></svg><output for="${ids.join(" ")}" aria-live="polite"></output>
      <p class="hint">${safe(data.hint)}</p>`;
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
        const [more, below] = draw(panel, now[i], tops[i], width, end);
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
  addEventListener("DOMContentLoaded", () => document.querySelectorAll(".moving").forEach(show));
})();
