// SPDX-License-Identifier: MIT
// The row of one task: when it ran, when it could have run, and when it waited for what. Each pixel has the
// parts of these, however many intervals there are.

// What a task waits for, in groups that can be told apart; their colours are those of page.css.
const WAITS = { lock: 'lock', file: 'file or disk', socket: 'socket', pipe: 'pipe', timer: 'timer', poll: 'poll', fault: 'page fault', child: 'child process', other: 'other' };
const STATES = ['running', 'runnable', 'waiting', ...Object.values(WAITS).map(name => `waiting: ${name}`)];
const WAITING = 2, OF_DISK = 1, OTHERS = 2, IN_NO_CALL = 4;

// The group of an object as html.c writes it.
function groupOf([kind, call, what, , flags]) {
  if (/^(futex|mutex|semaphore|rwsem_.*)$/.test(kind)) return 'lock';
  if (/^(socket|pipe|fault)$/.test(kind)) return kind;
  if (/^(file|device)$/.test(kind)) return 'file';
  if (/nanosleep/.test(call) || kind === 'anon' && /timerfd/.test(what)) return 'timer';
  if (/poll|select/.test(call)) return 'poll';
  if (/^wait|^vfork$/.test(call)) return 'child';
  return flags & OF_DISK ? 'file' : 'other';
}

class States {
  // The intervals of a task in what the page has of the capture.
  constructor(capture, tid) {
    this.intervals = { start: [], end: [], state: [], before: [], woken: [] };
    this.capture = capture;
    const woken = this.wakeups(tid), isWhole = !capture.thinned || capture.thinned.isFull;
    let before;
    for (const run of this.runs(tid)) {
      // between two runs in an overview there may be others
      if (isWhole && before && before.how && run.start >= before.end) this.addWait(before, run, woken.get(run.start));
      this.add(run.start, run.end, 0, run);
      before = run;
    }
    const found = new Set(this.intervals.state);
    this.sums = STATES.map((_, state) => found.has(state) ? this.sumsOf(state) : undefined);
  }

  runs(tid) {
    const { capture } = this, runs = [];
    for (const { start, end, kind, what, how, node, object, length } of capture.cpus)
      for (let i = 0; i < length; i++)
        if (kind[i] === RUN && capture.tasks[what[i]][0] === tid) runs.push({ start: start[i], end: end[i], how: how[i], node: node[i], object: object[i] });
    return runs.sort((a, b) => a.start - b.start);
  }

  // The wakeups of the task, by when it ran then.
  wakeups(tid) {
    const { tasks, wakeups: { from, to, woken, count: nr } } = this.capture, found = new Map();
    for (let i = 0; i < to.length && !nr; i++) if (tasks[woken[i]][0] === tid) found.set(to[i], i);
    return found;
  }

  addWait(before, { start }, woken) {
    const { end, how, object } = before, { objects, wakeups } = this.capture, at = woken === undefined ? start : wakeups.from[woken];
    const from = how === 1 ? end : Math.max(end, Math.min(start, at));
    if (from > end) this.add(end, from, WAITING + (object ? 1 + Object.keys(WAITS).indexOf(groupOf(objects[object - 1])) : 0), before, woken);
    if (start > from) this.add(from, start, 1, before, woken);
  }

  // Behind the run `before` the task was in this state, until a wakeup, or the run itself.
  add(start, end, state, before, woken) { push(this.intervals, { start, end, state, before, woken }); }

  sumsOf(state) {
    const { start, end, state: states } = this.intervals, sums = new Float64Array(start.length + 1);
    for (let i = 0; i < start.length; i++) sums[i + 1] = sums[i] + (states[i] === state ? end[i] - start[i] : 0);
    return sums;
  }

  // How long the task was in a state, up to a time.
  upTo(state, time) {
    const { start, end, state: states } = this.intervals, i = lowerBound(start, time);
    if (!this.sums[state]) return 0;
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
  const states = statesOf(row, t.capture), pixels = Math.max(1, t.width - gutter), filled = new Float64Array(pixels);
  const paints = [t.page.colourOf(row.task), colours.softirq, colours.idle, ...Object.keys(WAITS).map(group => colours[group])];
  paints.forEach((paint, state) => {
    if (!states.sums[state]) return;
    c.fillStyle = paint;
    for (let x = 0, before = states.upTo(state, t.start); x < pixels; x++) {
      const sum = states.upTo(state, t.time(gutter + x + 1)), height = (sum - before) * t.scale * CPU_ROW;
      filled[x] += height;
      if (height > 0) c.fillRect(gutter + x, y + CPU_ROW - filled[x], 1, height);
      before = sum;
    }
  });
  drawGroups(c, row, y, t);
  const ran = (states.upTo(0, t.end) - states.upTo(0, t.start)) / (t.end - t.start);
  row.note = t.capture.thinned && !t.capture.thinned.isFull ? 'zoom in to see it' : `${(100 * ran).toFixed(1)} % running`;
}

// A name in what is wide enough, and a frame around the piece that was picked.
function drawGroups(c, row, y, t) {
  const { start, end, state } = row.states.intervals;
  c.font = '11px system-ui, "DejaVu Sans", sans-serif';
  c.textBaseline = 'middle';
  const to = lowerBound(start, t.end), { picked } = t.page;
  for (let i = Math.max(0, lowerBound(start, t.start) - 1); i < to;) {
    const left = t.x(start[i]), width = t.x(end[i]) - left;
    if (state[i] > WAITING && width > 24) t.drawText(c, STATES[state[i]].slice(9), left, width, y);
    i = Math.max(i + 1, width < 1 ? lowerBound(start, t.time(left + 1), i) - 1 : 0);	// the last one of a pixel may be wide
  }
  if (!picked || picked.row.task !== row.task) return;
  c.strokeStyle = colours.ink;
  c.lineWidth = 2;
  c.strokeRect(t.x(picked.start), y + 1, Math.max(2, t.x(picked.end) - t.x(picked.start)), CPU_ROW - 2);
}

// What the capture knows of interval `i`; of a wait also for what, who held that, and who ended it.
function describeInterval(row, i, t) {
  const { capture, page } = t, { start, end, state, before, woken } = row.states.intervals, lines = [`${duration(end[i] - start[i])} from ${duration(start[i], 1 / t.scale)}`];
  if (state[i] >= WAITING && before[i].object) {
    const [, call, what, holder, flags] = capture.objects[before[i].object - 1];
    const which = flags & OTHERS ? `one of more objects than the page has room for: ${count(capture.objects.filter(object => !(object[4] & OTHERS)).length)}` : what;
    lines.push([call || (flags & IN_NO_CALL ? which ? '' : 'in no call' : 'another call'), which, flags & OF_DISK ? '(disk)' : ''].filter(word => word).join(' '));
    if (holder) lines.push(`held by ${page.nameOf(holder - 1)} when it began`);
  }
  if (state[i] && woken[i] !== undefined) lines.push(t.sources.describeWakeup(woken[i]));
  return [`${row.label}: ${STATES[state[i]]}`, lines.join('\n')];
}

function describeState(row, time, t) {
  const i = statesOf(row, t.capture).at(time);
  return i < 0 ? null : describeInterval(row, i, t);
}

// The text below the timeline for a piece in which a task waits, with the functions; else undefined.
function pickState(row, i, t) {
  const { start, end, state, before } = statesOf(row, t.capture).intervals;
  if (i < 0 || state[i] < WAITING) return undefined;
  const chain = t.chainOf(before[i].node);
  return { row, start: start[i], end: end[i], text: [...describeInterval(row, i, t), ...chain.length ? [`in ${chain.join(' ← ')}`] : []].join('\n') };
}

// The next piece in which the task of a row waits, or the one before; -1: there is none.
function nextWait(row, time, forwards, t) {
  const { start, state } = statesOf(row, t.capture).intervals, step = forwards ? 1 : -1;
  let i = lowerBound(start, time) - (forwards ? 0 : 1);
  if (forwards && start[i] === time) i++;
  while (state[i] < WAITING) i += step;
  return state[i] === undefined ? -1 : i;
}
