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

const RUN = 0, IDLE = 1, LOST = 2, SAMPLE = 3, COUNTER = 4, SERIES = 5, MARK = 6, SOURCE = 7;

function decodeBase64(text) {
  const lines = text.split('\n').filter(line => line), parts = lines.map(atob);
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts)
    for (let i = 0; i < part.length; i++) bytes[at++] = part.charCodeAt(i);
  return bytes;
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
  for (const name in columns) columns[name] = columns[name].map((_, i) => columns[name][order[i]]);
}

function readEvents(bytes, tables) {
  const nr = tables.facts.cpus, origin = tables.facts.first;
  const cpus = [], counters = new Map(), series = new Map(), marks = [];
  const wakeups = {
    from: new Column(Float64Array), to: new Column(Float64Array), waker: new Column(Uint32Array), woken: new Column(Uint32Array),
    fromCpu: new Column(Uint32Array), toCpu: new Column(Uint32Array), context: new Column(Uint8Array),
  };
  const last = [];
  let at = 0;

  function number() {
    let byte = bytes[at++], value = byte & 127;
    if (byte < 128) return value;
    byte = bytes[at++];
    value |= (byte & 127) << 7;
    if (byte < 128) return value;
    byte = bytes[at++];
    value |= (byte & 127) << 14;
    if (byte < 128) return value;
    byte = bytes[at++];
    value |= (byte & 127) << 21;
    let scale = 268435456;
    while (byte >= 128) {
      byte = bytes[at++];
      value += (byte & 127) * scale;
      scale *= 128;
    }
    return value;
  }
  function time(cpu, clock) {
    const delta = number();
    return last[cpu][clock] += delta % 2 ? -(delta + 1) / 2 : delta / 2;
  }
  function valuesOf(map, id, cpu) {
    const key = id * (nr + 1) + cpu;
    let track = map.get(key);
    if (!track) map.set(key, track = { id, cpu, time: new Column(Float64Array), value: new Column(Float64Array) });
    return track;
  }

  for (let cpu = 0; cpu <= nr; cpu++) {
    last.push(new Float64Array(SOURCE + 1).fill(-origin));
    if (cpu < nr)
      cpus.push({
        start: new Column(Float64Array), end: new Column(Float64Array),
        kind: new Column(Uint8Array), what: new Column(Float64Array), how: new Column(Uint8Array),
        sampleTime: new Column(Float64Array), sampleTask: new Column(Uint32Array),
        sampleNode: new Column(Uint32Array), sampleWeight: new Column(Float64Array),
        handlerStart: new Column(Float64Array), handlerLength: new Column(Float64Array), handlerTask: new Column(Uint32Array),
        handlerWhich: new Column(Uint32Array), handlerDepth: new Column(Uint8Array),
      });
  }
  while (at < bytes.length) {
    const tag = number(), kind = tag & 7, cpu = Math.floor(tag / 8), c = cpus[cpu];
    if (kind <= LOST) {
      const start = time(cpu, 0), end = start + number(), what = number();
      last[cpu][0] = end;
      c.start.push(start);
      c.end.push(end);
      c.kind.push(kind);
      c.what.push(kind === RUN ? Math.floor(what / 4) : what);
      c.how.push(kind === RUN ? what % 4 : 0);
    } else if (kind === SAMPLE) {
      c.sampleTime.push(time(cpu, SAMPLE));
      c.sampleTask.push(number());
      c.sampleNode.push(number());
      c.sampleWeight.push(number() - 1);
    } else if (kind === MARK) {
      const mark = { cpu, time: time(cpu, MARK), task: number(), type: number(), channel: number(), colour: number() };
      const length = number();
      mark.text = new TextDecoder().decode(bytes.subarray(at, at + length));
      at += length;
      marks.push(mark);
    } else if (kind === SOURCE) {
      const when = time(cpu, SOURCE), isWakeup = number(), length = number();
      if (isWakeup) {
        wakeups.fromCpu.push(cpu);
        wakeups.from.push(when);
        wakeups.to.push(when + length);
        wakeups.waker.push(number());
        wakeups.woken.push(number());
        wakeups.toCpu.push(number());
        wakeups.context.push(number());
      } else {
        c.handlerStart.push(when);
        c.handlerLength.push(length);
        c.handlerTask.push(number());
        c.handlerWhich.push(number());
        c.handlerDepth.push(number());
      }
    } else {
      const when = time(cpu, kind), id = number();
      const track = valuesOf(kind === COUNTER ? counters : series, id, cpu);
      track.time.push(when);
      track.value.push(number());
    }
  }
  return { cpus, counters: [...counters.values()], series: [...series.values()], marks, wakeups };
}

// The columns of a CPU, and for each slice the total running time of tasks before it.
function finishCpu(c, tables) {
  const slices = { start: c.start.values, end: c.end.values, kind: c.kind.values, what: c.what.values, how: c.how.values };
  const samples = { time: c.sampleTime.values, task: c.sampleTask.values, node: c.sampleNode.values, weight: c.sampleWeight.values };
  const n = slices.start.length, busy = new Float64Array(n + 1);
  for (let i = 0; i < n; i++)
    busy[i + 1] = busy[i] + (isBusy(slices, i, tables) ? slices.end[i] - slices.start[i] : 0);
  sortColumns(samples, 'time');
  return { ...slices, busy, samples, handlers: finishHandlers(c), length: n };
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

// The idle task runs only between halts.
function isBusy(slices, i, tables) {
  return slices.kind[i] === RUN && tables.tasks[slices.what[i]][0] !== 0;
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

function readCapture() {
  const tables = JSON.parse(document.getElementById('tables').textContent);
  const raw = readEvents(decodeBase64(document.getElementById('events').textContent), tables);
  const length = Math.max(tables.facts.last - tables.facts.first, 1);
  return {
    ...tables, length,
    cpus: raw.cpus.map(c => finishCpu(c, tables)),
    counterTracks: raw.counters.map(finishDeltas),
    seriesTracks: raw.series.filter(track => !tables.series[track.id].hidden).sort((a, b) => a.cpu - b.cpu).map(finishDeltas),
    marks: finishMarks(raw.marks, length),
    wakeups: finishWakeups(raw.wakeups),
  };
}
