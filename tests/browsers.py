"""Which browser the tests look with."""

import shutil

NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "msedge",
)
# path of a Chromium or a relative of it, or None
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)

# words in the SVG of a page that have little contrast with the page's ground, which is drawn around
# them too: axe does not look at them
FAINT = """() => {
  const paint = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const rgba = colour => {
    paint.clearRect(0, 0, 1, 1);
    paint.fillStyle = colour;
    paint.fillRect(0, 0, 1, 1);
    return [...paint.getImageData(0, 0, 1, 1).data];
  };
  const light = colour => rgba(colour).slice(0, 3).map(part => part / 255)
    .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, i) => sum + part * [0.2126, 0.7152, 0.0722][i], 0.05);
  const contrast = (one, other) => {
    const [low, high] = [light(one), light(other)].sort((a, b) => a - b);
    return high / low;
  };
  const groundOf = e => {
    for (let at = e; at; at = at.parentElement) {
      const ground = getComputedStyle(at).backgroundColor;
      if (rgba(ground)[3] === 255) return ground;
    }
    return 'white';
  };
  return [...document.querySelectorAll('svg text')].filter(e => e.checkVisibility()).filter(e => {
    const [style, ground] = [getComputedStyle(e), groundOf(e)];
    return contrast(style.fill, ground) < 4.5
      || style.stroke !== 'none' && contrast(style.stroke, ground) > 1.2;
  }).map(e => `${e.textContent}: ${getComputedStyle(e).fill} on ${groundOf(e)}`);
}"""
