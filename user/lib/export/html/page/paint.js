// SPDX-License-Identifier: MIT
// Colours, units and canvases for all parts of the page.

let colours = {};

function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ['paper', 'panel', 'line', 'ink', 'soft', 'accent', 'mark', 'found', 'idle', 'lost', 'kernel', 'user', 'counter', 'irq', 'ipi', 'softirq', ...Object.keys(WAITS)])
    colours[name] = style.getPropertyValue('--' + name).trim();
  colours.dark = document.documentElement.classList.contains('dark');
}

function hash(text) {
  let h = 2166136261;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 16777619);
  return (h ^ h >>> 15) >>> 0;
}

// A name always has the same colour.
function taskColour(name) {
  const h = hash(name), hue = h % 360, more = (h >>> 9) % 14;
  return colours.dark ? `hsl(${hue} ${38 + more}% ${36 + (h >>> 17) % 8}%)` : `hsl(${hue} ${52 + more}% ${70 + (h >>> 17) % 8}%)`;
}

function frameColour(name, kernel) {
  const h = hash(name), hue = kernel ? 205 + h % 25 : 12 + h % 40;
  return colours.dark ? `hsl(${hue} ${kernel ? 40 : 50}% ${32 + (h >>> 8) % 9}%)` : `hsl(${hue} ${kernel ? 60 : 85}% ${70 + (h >>> 8) % 10}%)`;
}

// A duration with three digits. With `step` it has enough digits to distinguish times that
// differ by `step`.
function duration(ns, step = Math.abs(ns) / 100) {
  const units = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']];
  const [size, unit] = units.find(([limit]) => Math.abs(ns) >= limit) || (ns ? units[3] : [1e9, 's']);
  const digits = Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / size) - 1e-9)));
  return (ns / size).toFixed(step ? digits : 0) + ' ' + unit;
}

function amount(value) {
  const units = [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']];
  const [size, unit] = units.find(([limit]) => Math.abs(value) >= limit) || [1, ''];
  const shown = value / size;
  return (Number.isInteger(shown) ? String(shown) : shown.toFixed(Math.abs(shown) < 10 ? 2 : Math.abs(shown) < 100 ? 1 : 0)) + (unit && ' ' + unit);
}

// A metric without a unit is a part of a whole.
const metricText = (value, unit) => unit === '1' ? `${(100 * value).toFixed(1)}%` : `${value.toFixed(3)} ${unit}`;

const count = value => value.toLocaleString('en');

// A canvas with the resolution of the screen. Drawing uses CSS pixels.
function prepareCanvas(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  const w = Math.max(1, Math.round(width * ratio)), h = Math.max(1, Math.round(height * ratio));
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
    canvas.style.height = height + 'px';
  }
  const context = canvas.getContext('2d');
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.fillStyle = colours.paper;
  context.fillRect(0, 0, width, height);
  return context;
}

const textWidths = new Map();

function textWidth(context, text) {
  const key = context.font + text;
  let width = textWidths.get(key);
  if (width === undefined) {
    if (textWidths.size > 20000) textWidths.clear();
    textWidths.set(key, width = context.measureText(text).width);
  }
  return width;
}

// The part of the text that fits.
function fitText(context, text, room) {
  const width = textWidth(context, text);
  if (width <= room) return text;
  let keep = Math.floor(text.length * room / width) - 1;
  while (keep >= 3 && textWidth(context, text.slice(0, keep) + '…') > room) keep--;
  return keep >= 3 ? text.slice(0, keep) + '…' : '';
}

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

const byId = id => document.getElementById(id);

const tip = {
  show(event, title, text) {
    const box = byId('tip');
    box.replaceChildren(element('b', {}, title), text);
    box.hidden = false;
    const { width, height } = box.getBoundingClientRect();
    box.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - width - 6)) + 'px';
    box.style.top = (event.clientY + 18 + height > innerHeight ? Math.max(4, event.clientY - height - 12) : event.clientY + 18) + 'px';
  },
  hide() { byId('tip').hidden = true; },
};
