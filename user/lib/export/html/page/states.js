// SPDX-License-Identifier: MIT
// The row of one task: when it ran, when it could have run, and when it waited. Each pixel has the parts of
// the three, however many intervals there are.

const STATES = ['running', 'runnable', 'waiting'];

class States {
  // The intervals of a task in what the page has of the capture.
  constructor(capture, tid) {
    this.intervals = { start: [], end: [], state: [] };
    this.capture = capture;
    const woken = this.wakeups(tid), isWhole = !capture.thinned || capture.thinned.isFull;
    let before;
    for (const run of this.runs(tid)) {
      // between two runs in an overview there may be others
      if (isWhole && before && before.how && run.start >= before.end) this.addWait(before, run, woken.get(run.start));
      this.add(run.start, run.end, 0);
      before = run;
    }
    this.sums = STATES.map((_, state) => this.sumsOf(state));
  }

  runs(tid) {
    const { capture } = this, runs = [];
    for (const { start, end, kind, what, how, length } of capture.cpus)
      for (let i = 0; i < length; i++)
        if (kind[i] === RUN && capture.tasks[what[i]][0] === tid) runs.push({ start: start[i], end: end[i], how: how[i] });
    return runs.sort((a, b) => a.start - b.start);
  }

  // When the task was woken, by when it ran then.
  wakeups(tid) {
    const { tasks, wakeups: { from, to, woken, count: nr } } = this.capture, found = new Map();
    for (let i = 0; i < to.length && !nr; i++) if (tasks[woken[i]][0] === tid) found.set(to[i], from[i]);
    return found;
  }

  addWait({ end, how }, { start }, woken = start) {
    const from = how === 1 ? end : Math.max(end, Math.min(start, woken));
    if (from > end) this.add(end, from, 2);
    if (start > from) this.add(from, start, 1);
  }

  add(start, end, state) { push(this.intervals, { start, end, state }); }

  sumsOf(state) {
    const { start, end, state: states } = this.intervals, sums = new Float64Array(start.length + 1);
    for (let i = 0; i < start.length; i++) sums[i + 1] = sums[i] + (states[i] === state ? end[i] - start[i] : 0);
    return sums;
  }

  // How long the task was in a state, up to a time.
  upTo(state, time) {
    const { start, end, state: states } = this.intervals, i = lowerBound(start, time);
    return this.sums[state][i] - (i && states[i - 1] === state ? Math.max(0, end[i - 1] - time) : 0);
  }

  // The interval at a time, or -1.
  at(time) {
    const i = lowerBound(this.intervals.start, time + 1e-6) - 1;
    return i >= 0 && time <= this.intervals.end[i] ? i : -1;
  }
}

// What the rows of tasks show; made anew when the page shows other records.
function statesOf(row, capture) {
  const of = capture.thinned ? capture.thinned.shown : capture;
  if (row.of !== of) Object.assign(row, { of, states: new States(capture, capture.tasks[row.task][0]) });
  return row.states;
}

function drawStates(c, row, y, t) {
  const states = statesOf(row, t.capture), pixels = Math.max(1, t.width - gutter), filled = new Float64Array(pixels), paints = [t.page.colourOf(row.task), colours.softirq, colours.idle];
  paints.forEach((paint, state) => {
    c.fillStyle = paint;
    for (let x = 0, before = states.upTo(state, t.start); x < pixels; x++) {
      const sum = states.upTo(state, t.time(gutter + x + 1)), height = (sum - before) * t.scale * CPU_ROW;
      filled[x] += height;
      if (height > 0) c.fillRect(gutter + x, y + CPU_ROW - filled[x], 1, height);
      before = sum;
    }
  });
  const ran = (states.upTo(0, t.end) - states.upTo(0, t.start)) / (t.end - t.start);
  row.note = t.capture.thinned && !t.capture.thinned.isFull ? 'zoom in to see it' : `${(100 * ran).toFixed(1)} % running`;
}

function describeState(row, time, t) {
  const states = statesOf(row, t.capture), i = states.at(time);
  if (i < 0) return null;
  const { start, end, state } = states.intervals;
  return [`${row.label}: ${STATES[state[i]]}`, `${duration(end[i] - start[i])} from ${duration(start[i], 1 / t.scale)}`];
}
