// SPDX-License-Identifier: MIT
// Interrupts as a row below their CPU, arrows from wakers to the tasks that they wake, and how long
// these tasks waited for a CPU. As in the timeline, drawing takes a few steps for each pixel.

const IRQ_ROW = 13, MOST_ARROWS = 500, LOOK_FOR_ARROWS = 20000;
const CONTEXTS = ['a task', 'a softirq', 'an interrupt', 'the idle task'];

// The largest value of any range: level k has those of blocks of 2^k values.
class Largest {
  constructor(values) {
    this.levels = [values];
    for (let below = values; below.length > 1;) {
      const level = new Float64Array(below.length >> 1);
      for (let i = 0; i < level.length; i++) level[i] = Math.max(below[2 * i], below[2 * i + 1]);
      this.levels.push(below = level);
    }
  }

  // Of the values from `from` up to `to`; 0 if there are none.
  between(from, to) {
    let most = 0;
    for (let k = 0; from < to; k++, from >>= 1, to >>= 1) {
      if (from & 1) most = Math.max(most, this.levels[k][from++]);
      if (to & 1) most = Math.max(most, this.levels[k][--to]);
    }
    return most;
  }
}

// Handlers of a CPU by their begin. Those around others come first.
function finishHandlers(c) {
  const handlers = finished(c);
  const order = Uint32Array.from(handlers.start.keys()).sort((a, b) => handlers.start[a] - handlers.start[b] || handlers.depth[a] - handlers.depth[b]);
  for (const name in handlers) if (handlers[name]) handlers[name] = handlers[name].map((_, i) => handlers[name][order[i]]);
  return { ...handlers, longest: handlers.length.reduce((a, b) => Math.max(a, b), 0) };
}

// Wakeups by the time at which the woken task runs.
function finishWakeups(wakeups) {
  const columns = finished(wakeups);
  sortColumns(columns, 'to');
  const wait = columns.to.map((to, i) => to - columns.from[i]);
  return { ...columns, wait, longest: new Largest(wait) };
}

class Sources {
  constructor(timeline) {
    this.timeline = timeline;
    this.capture = timeline.capture;
    this.wakeups = this.capture.wakeups;
  }

  get page() { return this.timeline.page; }
  nameOf(handlers, i) { return this.capture.handlers[handlers.which[i]][0]; }
  kindOf(handlers, i) { return this.capture.handlers[handlers.which[i]][1]; }

  // ---- interrupts

  drawHandlers(c, row, y) {
    const t = this.timeline, { handlers } = row;
    let i = lowerBound(handlers.start, t.start - handlers.longest);
    const to = lowerBound(handlers.start, t.end);
    c.font = '10px system-ui, "DejaVu Sans", sans-serif';
    c.textBaseline = 'middle';
    while (i < to) {
      const left = t.x(handlers.start[i]), width = handlers.length[i] * t.scale;
      if (left + width >= gutter) this.drawHandler(c, handlers, i, left, width, y);
      i++;
      if (width >= 1) continue;
      // The others of this pixel, unless one of the next ones is wider.
      const next = lowerBound(handlers.start, t.time(Math.floor(left) + 1), i, to), last = Math.min(next, i + LOOK_AT);
      let k = i;
      while (k < last && handlers.length[k] * t.scale < 1) k++;
      i = k < last ? k : next;
    }
    c.globalAlpha = 1;
  }

  drawHandler(c, handlers, i, left, width, y) {
    const lit = this.page.isLit(handlers.task[i]), inside = Math.min(handlers.depth[i], 3) * 3, right = Math.min(left + width, this.timeline.width + 5);
    const found = this.page.matches(this.nameOf(handlers, i));
    left = Math.max(left, gutter - 5);
    c.globalAlpha = lit || found ? 1 : 0.25;
    c.fillStyle = found ? colours.found : colours[this.kindOf(handlers, i)];
    c.fillRect(left, y + inside, Math.max(1, right - left - (width > 3 ? 0.6 : 0)), IRQ_ROW - 2 - inside);
    if (width < 40 || inside) return;
    const text = fitText(c, this.nameOf(handlers, i), right - left - 6);
    c.fillStyle = colours.paper;
    if (text) c.fillText(text, left + 3, y + IRQ_ROW / 2 - 1);
  }

  // The innermost handler at a time, or -1.
  handlerAt(handlers, time) {
    const slack = 1 / this.timeline.scale;
    let found = -1;
    for (let i = lowerBound(handlers.start, time + slack) - 1, looked = 0; i >= 0 && looked < LOOK_AT; i--, looked++) {
      if (handlers.start[i] < time - handlers.longest - slack) break;
      if (time > handlers.start[i] + Math.max(handlers.length[i], slack)) continue;
      if (found < 0 || handlers.depth[i] > handlers.depth[found]) found = i;
    }
    return found;
  }

  describeHandler(row, time) {
    const { handlers } = row, i = this.handlerAt(handlers, time);
    if (i < 0) return null;
    return [this.nameOf(handlers, i), `${duration(handlers.length[i])} from ${duration(handlers.start[i], 1 / this.timeline.scale)}\nin the time of ${this.page.nameOf(handlers.task[i])}`];
  }

  // ---- wakeups

  // The wakeup because of which a slice of a CPU began, or -1.
  wakeupOf(cpu, start) {
    const { to, toCpu } = this.wakeups;
    for (let i = lowerBound(to, start); i < to.length && to[i] === start; i++)
      if (toCpu[i] === cpu) return i;
    return -1;
  }

  describeWakeup(i) {
    const { waker, wait, context } = this.wakeups;
    return `woken by ${this.page.nameOf(waker[i])}${context[i] ? `, from ${CONTEXTS[context[i]] || '?'},` : ''} ${duration(wait[i])} before`;
  }

  // Those in view: all of them if they are few, or those of the chosen task.
  arrows() {
    const t = this.timeline, { to, from, waker, woken } = this.wakeups, found = [];
    if (this.wakeups.count) return found;	// they stand for others
    const first = lowerBound(to, t.start), last = lowerBound(to, t.end + 1), chosen = this.page.chosen;
    if (chosen === undefined && last - first > MOST_ARROWS) return found;
    for (let i = first; i < last && i < first + LOOK_FOR_ARROWS && found.length < MOST_ARROWS; i++)
      if (from[i] <= t.end && (chosen === undefined || this.page.isLit(waker[i]) || this.page.isLit(woken[i]))) found.push(i);
    return found;
  }

  drawArrows(c, top) {
    const rows = new Map(this.timeline.rows.filter(row => row.kind === 'cpu').map(row => [row.number, row.y - top]));
    c.save();
    c.beginPath();
    c.rect(gutter, AXIS, this.timeline.width - gutter, this.timeline.height - AXIS);
    c.clip();
    c.strokeStyle = c.fillStyle = colours.accent;
    c.lineWidth = 1;
    c.globalAlpha = 0.75;
    for (const i of this.arrows()) this.drawArrow(c, i, rows);
    c.restore();
  }

  drawArrow(c, i, rows) {
    const { from, to, fromCpu, toCpu } = this.wakeups, y = rows.get(fromCpu[i]), end = rows.get(toCpu[i]);
    if (y === undefined || end === undefined) return;
    const x1 = this.timeline.x(from[i]), x2 = this.timeline.x(to[i]), down = end > y;
    const y1 = end === y ? y + 5 : down ? y + CPU_ROW : y, y2 = end === y ? y + 5 : down ? end : end + CPU_ROW;
    const bend = end === y ? y - 7 : (y1 + y2) / 2;
    c.beginPath();
    c.moveTo(x1, y1);
    if (end === y) c.quadraticCurveTo((x1 + x2) / 2, bend, x2, y2);
    else c.bezierCurveTo(x1, bend, x2, bend, x2, y2);
    c.stroke();
    c.beginPath();
    const tip = end === y || down ? -5 : 5;
    c.moveTo(x2, y2);
    c.lineTo(x2 - 2.5, y2 + tip);
    c.lineTo(x2 + 2.5, y2 + tip);
    c.fill();
  }

  // How long tasks waited between their wakeup and their run: the longest wait of each pixel.
  drawLatency(c, row, y) {
    const t = this.timeline, { to, longest } = this.wakeups, pixels = Math.max(1, t.width - gutter), waits = new Float64Array(pixels);
    let at = lowerBound(to, t.start);
    for (let x = 0; x < pixels; x++) {
      const next = lowerBound(to, t.time(gutter + x + 1), at);
      waits[x] = longest.between(at, next);
      at = next;
    }
    const most = waits.reduce((a, b) => Math.max(a, b), 0);
    row.note = most ? `max ${duration(most)}` : '';
    c.fillStyle = colours.accent;
    for (let x = 0; x < pixels; x++)
      if (waits[x]) c.fillRect(gutter + x, y + VALUE_ROW - Math.max(1, waits[x] / most * VALUE_ROW), 1, Math.max(1, waits[x] / most * VALUE_ROW));
    c.fillStyle = colours.line;
    c.fillRect(gutter, y + VALUE_ROW, pixels, 1);
  }

  describeLatency(time) {
    const { to, wait, woken } = this.wakeups, slack = 2 / this.timeline.scale;
    let best = -1;
    for (let i = lowerBound(to, time - slack), looked = 0; i < to.length && to[i] <= time + slack && looked < LOOK_AT; i++, looked++)
      if (best < 0 || wait[i] > wait[best]) best = i;
    return best < 0 ? null : [`${this.page.nameOf(woken[best])} waited ${duration(wait[best])}`, this.describeWakeup(best)];
  }
}
