// SPDX-License-Identifier: MIT
// Reads the events that html.c wrote into columns of numbers. Times are ns since the first
// event, as doubles, which are ready for drawing.

// A column that grows.
class Column {
  constructor(Type) {
    this.data = new Type(1024);
    this.length = 0;
  }

  push(value) {
    if (this.length === this.data.length) {
      const wider = new this.data.constructor(2 * this.length);
      wider.set(this.data);
      this.data = wider;
    }
    this.data[this.length++] = value;
  }

  get values() { return this.data.subarray(0, this.length); }
}

const RUN = 0, IDLE = 1, LOST = 2, SAMPLE = 3, COUNTER = 4, SERIES = 5, MARK = 6, SOURCE = 7, CELL = 8, CROSSING = 9;

function decodeBase64(text) {
  const lines = text.split('\n').filter(line => line), parts = lines.map(atob);
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts)
    for (let i = 0; i < part.length; i++) bytes[at++] = part.charCodeAt(i);
  return bytes;
}

// Numbers as html.c writes them.
class Numbers {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
    this.end = bytes.length;
  }

  get more() { return this.at < this.end; }

  next() {
    const { bytes } = this;
    let byte = bytes[this.at++], value = byte & 127;
    if (byte < 128) return value;
    byte = bytes[this.at++];
    value |= (byte & 127) << 7;
    if (byte < 128) return value;
    byte = bytes[this.at++];
    value |= (byte & 127) << 14;
    if (byte < 128) return value;
    byte = bytes[this.at++];
    value |= (byte & 127) << 21;
    let scale = 268435456;
    while (byte >= 128) {
      byte = bytes[this.at++];
      value += (byte & 127) * scale;
      scale *= 128;
    }
    return value;
  }

  // A time that is stored as the difference to the one before it.
  time(last, clock) {
    const delta = this.next();
    return last[clock] += delta % 2 ? -(delta + 1) / 2 : delta / 2;
  }

  text(length) {
    const text = new TextDecoder().decode(this.bytes.subarray(this.at, this.at + length));
    this.at += length;
    return text;
  }
}

// The first index whose value is at least `value`, in sorted numbers from `low` on.
function lowerBound(values, value, low = 0, high = values.length) {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

// Records of a CPU may be out of order. Columns for drawing are sorted.
function sortColumns(columns, key) {
  const times = columns[key];
  let sorted = true;
  for (let i = 1; i < times.length && sorted; i++) sorted = times[i - 1] <= times[i];
  if (sorted) return;
  const order = Uint32Array.from(times.keys()).sort((a, b) => times[a] - times[b] || a - b);
  for (const name in columns) if (columns[name]) columns[name] = columns[name].map((_, i) => columns[name][order[i]]);
}

// Columns for events, each with the type of its numbers.
const SLICES = { start: Float64Array, end: Float64Array, kind: Uint8Array, what: Float64Array, how: Uint8Array, node: Uint32Array, object: Uint32Array, count: Float64Array, cellBusy: Float64Array };
const SAMPLES = { time: Float64Array, task: Uint32Array, node: Uint32Array, weight: Float64Array, count: Float64Array, kernel: Float64Array };
const HANDLERS = { start: Float64Array, length: Float64Array, task: Uint32Array, which: Uint32Array, depth: Uint8Array, count: Float64Array };
const WAKEUPS = { from: Float64Array, to: Float64Array, waker: Uint32Array, woken: Uint32Array, fromCpu: Uint32Array, toCpu: Uint32Array, context: Uint8Array, count: Float64Array };

const makeColumns = types => Object.fromEntries(Object.entries(types).map(([name, Type]) => [name, new Column(Type)]));

function push(columns, row) {
  for (const name in row) columns[name].push(row[name]);
}

// What was pushed; columns without any are not there.
const finished = columns => Object.fromEntries(Object.entries(columns).map(([name, column]) => [name, column.length || name !== 'count' && name !== 'kernel' ? column.values : undefined]));

function noEvents({ facts }) {
  const cpus = Array.from({ length: facts.cpus }, () => ({ slices: makeColumns(SLICES), samples: makeColumns(SAMPLES), handlers: makeColumns(HANDLERS) }));
  return { cpus, counters: new Map(), series: new Map(), marks: [], wakeups: makeColumns(WAKEUPS) };
}

const clocks = ({ facts }) => Array.from({ length: facts.cpus + 1 }, () => new Float64Array(SOURCE + 3).fill(-facts.first));

const trackKey = (tables, id, cpu) => id * (tables.facts.cpus + 1) + cpu;

function pushValue(map, tables, id, cpu, when, value) {
  const key = trackKey(tables, id, cpu);
  let track = map.get(key);
  if (!track) map.set(key, track = { id, cpu, time: new Column(Float64Array), value: new Column(Float64Array) });
  track.time.push(when);
  track.value.push(value);
}

function readMark(numbers, cpu, time) {
  const mark = { cpu, time, task: numbers.next(), type: numbers.next(), channel: numbers.next(), colour: numbers.next() };
  mark.text = numbers.text(numbers.next());
  return mark;
}

// The columns of events, as html_kinds.h has them.
const TAG = 0, GAP_COLUMN = 1, LENGTH_COLUMN = 2, WHAT_COLUMN = 3, SAMPLE_COLUMN = 6, COUNTER_COLUMN = 10, SERIES_COLUMN = 13, SOURCE_COLUMN = 16,
  HANDLER_COLUMN = 19, WAKEUP_COLUMN = 22, MARK_COLUMN = 26, COLUMNS = 26;

// Events as they are: all columns are in one place.
const fieldsOf = bytes => new Array(COLUMNS + 1).fill(new Numbers(bytes));

// A piece has each column on its own.
function fieldsOfPiece(bytes) {
  const lengths = new Numbers(bytes), fields = [];
  for (let i = 0; i < COLUMNS; i++) {
    const length = lengths.next();
    fields.push(new Numbers(bytes.subarray(lengths.at, lengths.at += length)));
  }
  return fields;
}

// Adds the events to `raw`.
function readEvents(fields, tables, raw = noEvents(tables)) {
  const last = clocks(tables), tags = fields[TAG];
  const gaps = fields[GAP_COLUMN], lengths = fields[LENGTH_COLUMN];
  const [sampleTimes, sampleTasks, sampleNodes, sampleWeights] = fields.slice(SAMPLE_COLUMN);
  while (tags.more) {
    const tag = tags.next(), kind = tag & 7, cpu = Math.floor(tag / 8), c = raw.cpus[cpu];
    if (kind <= LOST) {
      const start = gaps.time(last[cpu], 0), end = start + lengths.next(), what = fields[WHAT_COLUMN + kind].next(), { slices } = c;
      const how = kind === RUN ? what % 4 : 0, left = how === 3 ? fields[WHAT_COLUMN].next() : 0;
      last[cpu][0] = end;
      slices.start.push(start);
      slices.end.push(end);
      slices.kind.push(kind);
      slices.what.push(kind === RUN ? Math.floor(what / 4) : what);
      slices.how.push(how === 3 ? 1 + left % 2 : how);
      slices.node.push(Math.floor(left / 4));
      slices.object.push(left & 2 ? fields[WHAT_COLUMN].next() + 1 : 0);
    } else if (kind === SAMPLE) {
      c.samples.time.push(sampleTimes.time(last[cpu], SAMPLE));
      c.samples.task.push(sampleTasks.next());
      c.samples.node.push(sampleNodes.next());
      c.samples.weight.push(sampleWeights.next() - 1);
    } else if (kind === MARK) raw.marks.push(readMark(fields[MARK_COLUMN], cpu, fields[MARK_COLUMN].time(last[cpu], MARK)));
    else if (kind === SOURCE) readSource(fields, raw, cpu, last[cpu]);
    else {
      const column = kind === COUNTER ? COUNTER_COLUMN : SERIES_COLUMN, when = fields[column].time(last[cpu], kind), id = fields[column + 1].next();
      pushValue(kind === COUNTER ? raw.counters : raw.series, tables, id, cpu, when, fields[column + 2].next());
    }
  }
  return raw;
}

// Returns the columns to which it was added.
function readSource(fields, raw, cpu, last) {
  const [times, whiches, lengths] = fields.slice(SOURCE_COLUMN, SOURCE_COLUMN + 3);
  const when = times.time(last, SOURCE), isWakeup = whiches.next(), length = lengths.next(), next = (column, i) => fields[column + i].next();
  const columns = isWakeup ? raw.wakeups : raw.cpus[cpu].handlers;
  if (isWakeup)
    push(columns, { fromCpu: cpu, from: when, to: when + length, waker: next(WAKEUP_COLUMN, 0), woken: next(WAKEUP_COLUMN, 1), toCpu: next(WAKEUP_COLUMN, 2), context: next(WAKEUP_COLUMN, 3) });
  else push(columns, { start: when, length, task: next(HANDLER_COLUMN, 0), which: next(HANDLER_COLUMN, 1), depth: next(HANDLER_COLUMN, 2) });
  return columns;
}

// The columns of a CPU, and for each slice the total running time of tasks before it.
function finishCpu(c, tables) {
  const { cellBusy, ...slices } = finished(c.slices), samples = finished(c.samples);
  const n = slices.start.length, busy = new Float64Array(n + 1);
  for (let i = 0, cell = 0; i < n; i++) {
    const time = slices.kind[i] === CELL ? cellBusy[cell++] : isBusy(slices, i, tables) ? slices.end[i] - slices.start[i] : 0;
    busy[i + 1] = busy[i] + time;
  }
  sortColumns(samples, 'time');
  return { ...slices, busy, samples, handlers: finishHandlers(c.handlers), length: n };
}

// The steps of a formula, operands first; valueAt(i) is that of the counter in step i.
function evaluate(steps, valueAt) {
  const stack = [];
  steps.forEach((step, i) => {
    if (Array.isArray(step)) return stack.push(valueAt(i));
    if (typeof step === 'number') return stack.push(step);
    const b = stack.pop(), a = stack.pop();
    return stack.push(step === '+' ? a + b : step === '-' ? a - b : step === '*' ? a * b : a / b);
  });
  return stack[0];
}

// The idle task runs only between halts. A cell has the task of its longest run, or -1.
function isBusy(slices, i, tables) {
  return slices.kind[i] === RUN ? tables.tasks[slices.what[i]][0] !== 0 : slices.kind[i] === CELL && slices.what[i] >= 0;
}

// Deltas become running sums. Between two of them the sum grows linearly.
function finishDeltas(track) {
  const columns = { time: track.time.values, value: track.value.values };
  sortColumns(columns, 'time');
  const sum = new Float64Array(columns.time.length + 1);
  for (let i = 0; i < columns.time.length; i++) sum[i + 1] = sum[i] + columns.value[i];
  return { ...track, ...columns, sum };
}

// A channel's text lasts until the next or an empty text, or the end of the capture.
function finishMarks(marks, length) {
  const open = new Map(), names = new Map(), out = [];
  for (const mark of marks.sort((a, b) => a.time - b.time)) {
    const key = `${mark.task} ${mark.channel}`;
    if (mark.type === 2) names.set(key, mark.text);
    if (mark.type === 0) {
      if (open.has(key)) open.get(key).end = mark.time;
      open.delete(key);
    }
    if (mark.type === 2 || mark.type === 3 || (mark.type === 0 && !mark.text)) continue;
    mark.end = mark.type === 0 ? length : mark.time;
    mark.channelName = names.get(key) || '';
    if (mark.type === 0) open.set(key, mark);
    out.push(mark);
  }
  return out;
}

const readTables = () => JSON.parse(document.getElementById('tables').textContent);

function finishCapture(raw, tables) {
  const length = Math.max(tables.facts.last - tables.facts.first, 1);
  return {
    ...tables, length,
    cpus: raw.cpus.map(c => finishCpu(c, tables)),
    counterTracks: [...raw.counters.values()].map(finishDeltas),
    seriesTracks: [...raw.series.values()].filter(track => !tables.series[track.id].hidden).sort((a, b) => a.cpu - b.cpu).map(finishDeltas),
    marks: finishMarks(raw.marks, length),
    wakeups: finishWakeups(raw.wakeups),
  };
}

function readCapture() {
  const tables = readTables();
  return finishCapture(readEvents(fieldsOf(decodeBase64(document.getElementById('events').textContent)), tables), tables);
}
