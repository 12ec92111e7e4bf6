// SPDX-License-Identifier: MIT
// The timeline. Drawing takes a few steps for each pixel, however many events there are. A
// slice wider than a pixel is drawn as it is. For slices that share a pixel the height shows
// how busy the CPU was, and the colour shows the task with most of the time.

const AXIS = 24, CPU_ROW = 30, SAMPLE_ROW = 9, GAP = 7, VALUE_ROW = 34, MARK_ROW = 17;
const MAX_LANES = 8, LOOK_AT = 64;
const GUTTER_MIN = 116, GUTTER_MAX = 320;

let gutter = GUTTER_MIN;	// the width of the labels

class Timeline {
  constructor(capture, page) {
    this.capture = capture;
    this.page = page;
    this.canvas = byId('timeline');
    this.box = byId('rows');
    this.overview = byId('overview');
    this.start = 0;
    this.end = capture.length;
    this.sources = new Sources(this);
    this.rows = this.base = this.layOut();
    this.taskRows = [];
    this.hits = [];
  }

  // ---- rows, from top to bottom

  layOut() {
    const { capture } = this, rows = [];
    let y = AXIS + 4;
    const add = (height, row) => {
      rows.push({ ...row, y, height });
      y += height;
    };
    this.lanes = this.layMarks();
    if (this.lanes) add(this.lanes * MARK_ROW + GAP, { kind: 'marks', label: 'marks' });
    capture.cpus.forEach((cpu, i) => {
      if (!cpu.length && !cpu.samples.time.length && capture.cpus.length > 1) return;
      const sampled = cpu.samples.time.length > 0;
      const { handlers } = cpu, gap = handlers.start.length ? 2 : GAP;
      add(CPU_ROW + (sampled ? SAMPLE_ROW : 0) + gap, { kind: 'cpu', label: `CPU ${i}`, cpu, number: i, sampled });
      if (handlers.start.length) add(IRQ_ROW + GAP, { kind: 'irq', label: 'interrupts', small: true, handlers });
    });
    if (capture.wakeups.to.length) add(VALUE_ROW + GAP, { kind: 'latency', label: 'woken to running' });
    capture.counters.forEach((name, id) => {
      const tracks = capture.counterTracks.filter(track => track.id === id);
      if (tracks.length) add(VALUE_ROW + GAP, { kind: 'rate', label: name, tracks });
    });
    for (const metric of capture.metrics) add(VALUE_ROW + GAP, { kind: 'metric', label: metric.name, metric });
    capture.series.forEach((series, id) => {
      const tracks = capture.seriesTracks.filter(track => track.id === id);
      if (!tracks.length) return;
      if (series.deltas) add(VALUE_ROW + GAP, { kind: 'rate', label: series.name, tracks, scale: series.multiplier, units: series.units });
      else if (!series.percpu) add(VALUE_ROW + GAP, { kind: 'value', label: series.name, track: this.joined(tracks), tracks, series });
      else for (const track of tracks) add(VALUE_ROW + GAP, { kind: 'value', label: `CPU ${track.cpu} ${series.name}`, track, series });
    });
    this.total = y + 4;
    return rows;
  }

  // The rows of these tasks, above all others.
  placeTasks(tasks) {
    const height = CPU_ROW + GAP, by = height * (tasks.length - this.taskRows.length);
    this.taskRows = tasks.map((task, i) => ({ kind: 'task', label: this.page.nameOf(task), task, y: AXIS + 4 + i * height, height }));
    for (const row of this.base) row.y += by;
    this.total += by;
    this.rows = [...this.taskRows, ...this.base];
  }

  tracksChanged() {
    for (const row of this.rows) if (row.kind === 'value' && row.tracks) row.track = this.joined(row.tracks);
  }

  // Values of one series, from all CPUs.
  joined(tracks) {
    if (tracks.length === 1) return tracks[0];
    const all = { time: Float64Array.from(tracks.flatMap(t => [...t.time])), value: Float64Array.from(tracks.flatMap(t => [...t.value])) };
    sortColumns(all, 'time');
    return all;
  }

  // Marks with a duration get the first free lane.
  layMarks() {
    const free = [];
    for (const mark of this.capture.marks) {
      let lane = free.findIndex(end => end <= mark.time);
      if (lane < 0) lane = free.length < MAX_LANES ? free.length : MAX_LANES - 1;
      mark.lane = lane;
      free[lane] = Math.max(mark.end, mark.time);
    }
    return free.length;
  }

  // ---- the part in view

  get scale() { return (this.width - gutter) / (this.end - this.start); }
  x(time) { return gutter + (time - this.start) * this.scale; }
  time(x) { return this.start + (x - gutter) / this.scale; }

  show(start, end) {
    const all = this.capture.length, least = Math.min(20, all);
    let span = Math.max(least, Math.min(end - start, all));
    if (!(span > 0)) span = all;
    this.start = Math.max(0, Math.min((start + end) / 2 - span / 2, all - span));
    this.end = this.start + span;
    this.page.viewChanged();
  }

  zoom(factor, at = (this.start + this.end) / 2) {
    this.show(at - (at - this.start) / factor, at + (this.end - at) / factor);
  }

  move(part) {
    const by = (this.end - this.start) * part;
    this.show(this.start + by, this.end + by);
  }

  // ---- drawing

  draw() {
    this.width = this.box.clientWidth;
    this.height = this.box.clientHeight;
    byId('height').style.height = Math.max(0, this.total - this.height) + 'px';
    const c = this.context = prepareCanvas(this.canvas, this.width, this.height);
    this.fitLabels(c);
    const top = this.box.scrollTop;
    this.drawGrid(c);
    this.foundSamples = 0;
    for (const row of this.rows) {
      const y = row.y - top;
      if (y > this.height || y + row.height < 0) continue;
      c.save();
      c.beginPath();
      c.rect(gutter, Math.max(AXIS, y - 1), this.width - gutter, row.height);
      c.clip();
      if (row.kind === 'cpu') this.drawCpu(c, row, y);
      else if (row.kind === 'irq') this.sources.drawHandlers(c, row, y);
      else if (row.kind === 'latency') this.sources.drawLatency(c, row, y);
      else if (row.kind === 'task') drawStates(c, row, y, this);
      else if (row.kind === 'marks') this.drawMarks(c, y);
      else if (row.kind === 'rate') this.drawRate(c, row, y);
      else if (row.kind === 'metric') this.drawMetric(c, row, y);
      else this.drawValues(c, row, y);
      c.restore();
      this.drawLabel(c, row, y);
    }
    this.sources.drawArrows(c, top);
    this.drawAxis(c);
    this.drawOverview();
  }

  step() {
    const rough = (this.end - this.start) * 90 / (this.width - gutter), power = 10 ** Math.floor(Math.log10(rough));
    return Math.max(1, [1, 2, 5, 10].find(m => m * power >= rough) * power);
  }

  drawGrid(c) {
    const step = this.step();
    c.fillStyle = colours.line;
    for (let t = Math.ceil(this.start / step) * step; t < this.end; t += step)
      c.fillRect(Math.round(this.x(t)), AXIS, 1, this.height);
  }

  drawAxis(c) {
    const step = this.step();
    c.fillStyle = colours.panel;
    c.fillRect(0, 0, this.width, AXIS);
    c.fillStyle = colours.line;
    c.fillRect(0, AXIS - 1, this.width, 1);
    c.fillRect(gutter - 1, 0, 1, this.height);
    c.font = '11px system-ui, "DejaVu Sans", sans-serif';
    c.textBaseline = 'middle';
    c.fillStyle = colours.soft;
    c.fillText(fitText(c, duration(this.end - this.start) + ' in view', gutter - 14), 8, AXIS / 2);
    for (let t = Math.ceil(this.start / step) * step; t < this.end; t += step) {
      const x = this.x(t), text = duration(t, step);
      if (x + c.measureText(text).width + 6 > this.width) continue;
      c.fillText(text, x + 4, AXIS / 2);
      c.fillRect(Math.round(x), AXIS - 6, 1, 5);
    }
  }

  labelFont(row) { return `${row.small ? 10 : 12}px system-ui, "DejaVu Sans", sans-serif`; }

  // The longest label is whole, unless it takes more than a third of the timeline.
  fitLabels(c) {
    let longest = GUTTER_MIN;
    for (const row of this.rows) {
      c.font = this.labelFont(row);
      longest = Math.max(longest, Math.ceil(textWidth(c, row.label)) + 15);
    }
    gutter = Math.max(GUTTER_MIN, Math.min(longest, GUTTER_MAX, Math.floor(this.width / 3)));
  }

  drawLabel(c, row, y) {
    c.fillStyle = colours.paper;
    c.fillRect(0, Math.max(AXIS, y - 1), gutter - 1, row.height);
    c.font = this.labelFont(row);
    c.textBaseline = 'middle';
    c.fillStyle = row.small ? colours.soft : colours.ink;
    c.fillText(fitText(c, row.label, gutter - 14), 8, y + (row.small ? IRQ_ROW / 2 - 1 : 10));
    if (!row.note) return;
    c.font = '10px system-ui, "DejaVu Sans", sans-serif';
    c.fillStyle = colours.soft;
    c.fillText(fitText(c, row.note, gutter - 14), 8, y + 24);
  }

  drawCpu(c, row, y) {
    const { cpu } = row;
    const from = lowerBound(cpu.end, this.start), to = lowerBound(cpu.start, this.end);
    row.note = `${(100 * this.busyBetween(cpu, this.start, this.end) / (this.end - this.start)).toFixed(0)} % busy`;
    c.font = '11px system-ui, "DejaVu Sans", sans-serif';
    c.textBaseline = 'middle';
    for (let i = from; i < to;) {
      const left = this.x(cpu.start[i]), right = this.x(cpu.end[i]);
      if (right - left >= 1) {
        this.drawSlice(c, cpu, i++, Math.max(left, gutter - 5), Math.min(right, this.width + 5), y);
        continue;
      }
      const column = Math.floor(left);
      let next = lowerBound(cpu.start, this.time(column + 1), i + 1, to);
      if (next - 1 > i && (cpu.end[next - 1] - cpu.start[next - 1]) * this.scale >= 1) next--;	// continues behind the pixel
      this.drawColumn(c, cpu, i, next, column, y);
      i = next;
    }
    if (row.sampled) this.drawSamples(c, cpu.samples, y + CPU_ROW + 1);
  }

  drawSlice(c, cpu, i, left, right, y) {
    const width = Math.max(1, right - left - (right - left > 3 ? 0.6 : 0)), kind = cpu.kind[i];
    if (kind === IDLE || (kind === RUN && !isBusy(cpu, i, this.capture))) {
      c.fillStyle = colours.idle;
      const deep = kind === IDLE ? Math.min(cpu.what[i], 5) : 0;
      c.fillRect(left, y + CPU_ROW - 5 - 2 * deep, width, 5 + 2 * deep);
      return;
    }
    if (kind === CELL) {
      this.drawCell(c, cpu, i, left, right - left, y);
      return;
    }
    if (kind === LOST) {
      c.fillStyle = colours.lost;
      c.globalAlpha = 0.35;
      c.fillRect(left, y, width, CPU_ROW);
      c.globalAlpha = 1;
      if (width > 40) this.drawText(c, `${count(cpu.what[i])} lost`, left, width, y);
      return;
    }
    const task = cpu.what[i], lit = this.page.isLit(task);
    c.globalAlpha = lit ? 1 : 0.16;
    c.fillStyle = this.page.colourOf(task);
    c.fillRect(left, y, width, CPU_ROW);
    if (lit && this.page.searched(task)) {
      c.fillStyle = colours.found;
      c.fillRect(left, y, width, 3);
    }
    if (width > 24) this.drawText(c, this.capture.tasks[task][2], left, width, y);
    c.globalAlpha = 1;
  }

  drawText(c, text, left, width, y) {
    const from = Math.max(left, gutter), shown = fitText(c, text, left + width - from - 8);
    if (!shown) return;
    c.fillStyle = colours.ink;
    c.fillText(shown, from + 4, y + CPU_ROW / 2);
  }

  // A cell that is wider than a pixel: as slices that share a pixel.
  drawCell(c, cpu, i, left, width, y) {
    const part = (cpu.busy[i + 1] - cpu.busy[i]) / (cpu.end[i] - cpu.start[i]);
    if (isBusy(cpu, i, this.capture)) this.drawBar(c, this.page.colourOf(cpu.what[i]), this.page.isLit(cpu.what[i]) ? 1 : 0.16, left, y, part, width);
    else {
      c.fillStyle = colours.idle;
      c.fillRect(left, y + CPU_ROW - 5, width, 5);
    }
  }

  // Draw all slices of one pixel.
  drawColumn(c, cpu, from, to, x, y) {
    const span = 1 / this.scale, stride = Math.max(1, Math.floor((to - from) / LOOK_AT));
    const filtered = this.page.filtered();
    let best = -1, most = 0, lost = false, lit = 0;
    for (let i = from; i < to; i += filtered ? 1 : stride) {
      const length = cpu.kind[i] === CELL ? cpu.busy[i + 1] - cpu.busy[i] : cpu.end[i] - cpu.start[i];
      if (cpu.kind[i] === LOST) lost = true;
      if (!isBusy(cpu, i, this.capture)) continue;
      if (filtered) {
        if (!this.page.isLit(cpu.what[i])) continue;
        lit += length;
      }
      if (length >= most) {
        most = length;
        best = cpu.what[i];
      }
    }
    const busy = Math.min(1, (cpu.busy[to] - cpu.busy[from]) / span);
    if (filtered && busy > 0) this.drawBar(c, colours.soft, 0.16, x, y, busy);
    if (best >= 0) this.drawBar(c, this.page.colourOf(best), 1, x, y, filtered ? lit / span : busy);
    else if (!busy) {
      c.fillStyle = colours.idle;
      c.fillRect(x, y + CPU_ROW - 5, 1, 5);
    }
    if (lost) {
      c.fillStyle = colours.lost;
      c.fillRect(x, y, 1, CPU_ROW);
    }
  }

  drawBar(c, colour, alpha, x, y, part, width = 1) {
    const height = Math.max(2, Math.min(1, part) * CPU_ROW);
    c.globalAlpha = alpha;
    c.fillStyle = colour;
    c.fillRect(x, y + CPU_ROW - height, width, height);
    c.globalAlpha = 1;
  }

  // A tick for each sample. With more than one sample in a pixel the tick is darker.
  drawSamples(c, samples, y) {
    const from = lowerBound(samples.time, this.start), to = lowerBound(samples.time, this.end);
    const filtered = this.page.filtered();
    for (let i = from; i < to;) {
      const x = Math.floor(this.x(samples.time[i])), next = lowerBound(samples.time, this.time(x + 1), i + 1, to);
      let kernel = 0, lit = 0, found = false;
      const stride = filtered || this.page.nodeHits ? 1 : Math.max(1, Math.floor((next - i) / LOOK_AT));
      let seen = 0;
      for (let k = i; k < next; k += stride) {
        seen += samples.count ? samples.count[k] : 1;
        kernel += samples.count ? samples.kernel[k] : this.capture.frames[this.capture.nodes[samples.node[k]]][2];
        lit += this.page.isLit(samples.task[k]) ? 1 : 0;
        found = found || this.page.isSampleFound(samples.node[k]);
      }
      if (found) {
        c.globalAlpha = 1;
        c.fillStyle = colours.found;
        c.fillRect(x - 1, y, 3, SAMPLE_ROW - 1);
        this.foundSamples++;
        i = next;
        continue;
      }
      c.globalAlpha = (filtered && !lit ? 0.12 : 1) * Math.min(1, 0.55 + 0.15 * Math.max(seen, next - i));
      c.fillStyle = 2 * kernel > seen ? colours.kernel : colours.user;
      c.fillRect(x, y, 1, SAMPLE_ROW - 2);
      i = next;
    }
    c.globalAlpha = 1;
  }

  drawMarks(c, y) {
    c.font = '11px system-ui, "DejaVu Sans", sans-serif';
    c.textBaseline = 'middle';
    const filled = [];
    for (const mark of this.capture.marks) {
      if (mark.time > this.end) break;
      if (mark.end < this.start) continue;
      const left = Math.max(this.x(mark.time), gutter - 3), right = Math.min(this.x(mark.end), this.width);
      const top = y + mark.lane * MARK_ROW, colour = this.markColour(mark), found = this.page.matches(mark.text);
      if (right - left < 1 && filled[mark.lane] === Math.floor(left) && !found) continue;
      filled[mark.lane] = Math.floor(left);
      c.fillStyle = found ? colours.found : colour;
      c.globalAlpha = mark.end > mark.time ? 0.35 : 1;
      if (mark.end > mark.time) c.fillRect(left, top, Math.max(1, right - left), MARK_ROW - 3);
      c.globalAlpha = 1;
      c.fillRect(left, top, 2, MARK_ROW - 3);
      const next = this.nextInLane(mark), room = Math.min(right > left + 2 ? right - left : 200, (next ? this.x(next.time) : this.width) - left) - 8;
      const text = room > 20 ? fitText(c, mark.text, room) : '';
      if (text) {
        c.fillStyle = colours.ink;
        c.fillText(text, left + 5, top + MARK_ROW / 2 - 1);
      }
    }
  }

  nextInLane(mark) {
    if (!this.nextMarks) {
      this.nextMarks = new Map();
      const last = [];
      for (const m of this.capture.marks) {
        if (last[m.lane]) this.nextMarks.set(last[m.lane], m);
        last[m.lane] = m;
      }
    }
    return this.nextMarks.get(mark);
  }

  markColour(mark) {
    return mark.colour ? '#' + (mark.colour % 0x1000000).toString(16).padStart(6, '0') : colours.mark;
  }

  sumAt(track, time) {
    const i = lowerBound(track.time, time);
    if (i === 0 || i === track.time.length) return track.sum[i];
    const from = track.time[i - 1], to = track.time[i];
    return track.sum[i] + track.value[i] * (to > from ? (time - from) / (to - from) : 1);
  }

  // How far a counter went in each pixel, on these CPUs.
  advances(id, cpus) {
    const pixels = Math.max(1, this.width - gutter), advances = new Float64Array(pixels);
    for (const track of this.capture.counterTracks) {
      if (track.id !== id || !cpus.has(track.cpu)) continue;
      let before = this.sumAt(track, this.start);
      for (let x = 0; x < pixels; x++) {
        const sum = this.sumAt(track, this.time(gutter + x + 1));
        advances[x] += sum - before;
        before = sum;
      }
    }
    return advances;
  }

  // The CPUs that have all counters of a metric: on cores of several kinds some lack one.
  cpusOf(metric) {
    if (metric.cpus) return metric.cpus;
    const has = id => new Set(this.capture.counterTracks.filter(track => track.id === id).map(track => track.cpu));
    const sets = metric.steps.filter(Array.isArray).map(([id]) => has(id));
    metric.cpus = new Set([...sets[0]].filter(cpu => sets.every(set => set.has(cpu))));
    return metric.cpus;
  }

  // What counters say in relation to each other, in each pixel. Where they say nothing, the value is not a number.
  drawMetric(c, row, y) {
    const { steps, unit } = row.metric, pixels = Math.max(1, this.width - gutter), values = new Float64Array(pixels);
    const cpus = this.cpusOf(row.metric);
    const counted = steps.map(step => Array.isArray(step) ? this.advances(step[0], cpus) : null);
    let most = 0, any = false;
    for (let x = 0; x < pixels; x++) {
      values[x] = evaluate(steps, i => counted[i][x]);
      if (!Number.isFinite(values[x])) values[x] = NaN;
      else any = true;
      if (values[x] > most) most = values[x];
    }
    row.note = any ? `max ${metricText(most, unit)}` : '';
    row.values = values;
    c.fillStyle = colours.counter;
    for (let x = 0; x < pixels; x++) {
      const height = values[x] > 0 ? values[x] / most * VALUE_ROW : 0;
      if (height > 0) c.fillRect(gutter + x, y + VALUE_ROW - height, 1, height);
    }
    c.fillStyle = colours.line;
    c.fillRect(gutter, y + VALUE_ROW, pixels, 1);
  }

  // Deltas per second, summed over all CPUs.
  drawRate(c, row, y) {
    const pixels = Math.max(1, this.width - gutter), rates = new Float64Array(pixels), seconds = 1e-9 / this.scale;
    for (const track of row.tracks) {
      let before = this.sumAt(track, this.start);
      for (let x = 0; x < pixels; x++) {
        const sum = this.sumAt(track, this.time(gutter + x + 1));
        rates[x] += (sum - before) / seconds * (row.scale || 1);
        before = sum;
      }
    }
    const most = rates.reduce((a, b) => Math.max(a, b), 0);
    row.note = `max ${amount(most)}${row.units ? ' ' + row.units : ''}/s`;
    row.rates = rates;
    c.fillStyle = colours.counter;
    for (let x = 0; x < pixels; x++) {
      const height = most ? rates[x] / most * VALUE_ROW : 0;
      if (height > 0) c.fillRect(gutter + x, y + VALUE_ROW - height, 1, height);
    }
    c.fillStyle = colours.line;
    c.fillRect(gutter, y + VALUE_ROW, pixels, 1);
  }

  // Each value is valid until the next one.
  drawValues(c, row, y) {
    const { time, value } = row.track, scale = row.series.multiplier, from = Math.max(0, lowerBound(time, this.start) - 1), to = lowerBound(time, this.end);
    let most = -Infinity, least = 0;
    for (let i = from; i < to; i++) {
      most = Math.max(most, value[i] * scale);
      least = Math.min(least, value[i] * scale);
    }
    row.note = to > from ? `max ${amount(most)} ${row.series.units}` : '';
    const span = Math.max(most - least, 1e-300);
    c.fillStyle = colours.counter;
    for (let i = from; i < to;) {
      const left = Math.max(gutter, this.x(time[i]));
      let next = i + 1, top = value[i];
      const column = this.time(Math.floor(left) + 1);
      while (next < to && time[next] < column) top = Math.max(top, value[next++]);
      const right = next < time.length ? this.x(time[next]) : this.width, height = Math.max(1, (top * scale - least) / span * VALUE_ROW);
      c.globalAlpha = 0.5;
      c.fillRect(left, y + VALUE_ROW - height, Math.max(1, right - left), height);
      c.globalAlpha = 1;
      c.fillRect(left, y + VALUE_ROW - height, Math.max(1, right - left), 1.5);
      i = next;
    }
    c.fillStyle = colours.line;
    c.fillRect(gutter, y + VALUE_ROW, this.width - gutter, 1);
  }

  busyAt(cpu, time) {
    const i = lowerBound(cpu.start, time);
    if (!i) return 0;
    const behind = Math.max(0, cpu.end[i - 1] - time);
    if (cpu.kind[i - 1] === CELL && behind) return cpu.busy[i] - (cpu.busy[i] - cpu.busy[i - 1]) * behind / (cpu.end[i - 1] - cpu.start[i - 1]);
    return cpu.busy[i] - (isBusy(cpu, i - 1, this.capture) ? behind : 0);
  }

  busyBetween(cpu, start, end) { return this.busyAt(cpu, end) - this.busyAt(cpu, start); }

  drawOverview() {
    const width = this.overview.clientWidth, height = 46, c = prepareCanvas(this.overview, width, height);
    const span = this.capture.length, pixels = width - gutter, { thinned } = this.capture;
    const cpus = (thinned ? thinned.overview : this.capture).cpus.filter(cpu => cpu.length);
    if (!this.load || this.load.length !== pixels) {
      this.load = new Float64Array(Math.max(1, pixels));
      for (const cpu of cpus) {
        let before = 0;
        for (let x = 0; x < pixels; x++) {
          const busy = this.busyAt(cpu, (x + 1) / pixels * span);
          this.load[x] += (busy - before) / (span / pixels) / cpus.length;
          before = busy;
        }
      }
    }
    c.fillStyle = colours.soft;
    c.font = '11px system-ui, "DejaVu Sans", sans-serif';
    c.textBaseline = 'middle';
    c.fillText(fitText(c, 'all CPUs', gutter - 14), 8, 16);
    c.fillText(fitText(c, duration(span), gutter - 14), 8, 31);
    c.globalAlpha = 0.75;
    for (let x = 0; x < pixels; x++) c.fillRect(gutter + x, height - 3 - this.load[x] * (height - 8), 1, this.load[x] * (height - 8));
    const left = gutter + this.start / span * pixels, right = gutter + this.end / span * pixels;
    c.globalAlpha = 0.6;
    c.fillStyle = colours.paper;
    c.fillRect(gutter, 0, left - gutter, height);
    c.fillRect(right, 0, width - right, height);
    c.globalAlpha = 1;
    c.strokeStyle = colours.accent;
    c.lineWidth = 1.5;
    c.strokeRect(left + 0.75, 2.75, Math.max(2, right - left - 1.5), height - 5.5);
  }

  // ---- the item at a position

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const x = event.clientX - box.left, y = event.clientY - box.top + this.box.scrollTop;
    const row = this.rows.find(r => y >= r.y && y < r.y + r.height);
    return { x, y, row, time: this.time(x), inside: x >= gutter && event.clientY - box.top > AXIS };
  }

  slice(cpu, time) {
    const i = lowerBound(cpu.start, time + 1e-6) - 1;
    return i >= 0 && time < Math.max(cpu.end[i], cpu.start[i] + 1 / this.scale) ? i : -1;
  }

  sample(cpu, time) {
    const { samples } = cpu, i = lowerBound(samples.time, time - 2 / this.scale);
    return i < samples.time.length && samples.time[i] <= time + 2 / this.scale ? i : -1;
  }

  describe(event) {
    const { row, y, time, inside, x } = this.at(event);
    if (row && x < gutter) return [row.label, row.note || ''];
    if (!row || !inside) return null;
    const when = `at ${duration(time, 1 / this.scale)}`;
    if (row.kind === 'marks') return this.describeMark(x, y, row);
    if (row.kind === 'task') return describeState(row, time, this);
    if (row.kind === 'irq') return this.sources.describeHandler(row, time);
    if (row.kind === 'latency') return this.sources.describeLatency(time);
    if (row.kind === 'rate') return [row.label, `${amount(row.rates ? row.rates[Math.floor(x - gutter)] || 0 : 0)} ${row.units || ''}/s ${when}`];
    if (row.kind === 'metric') {
      const value = row.values ? row.values[Math.floor(x - gutter)] : NaN;
      return [row.label, `${Number.isFinite(value) ? metricText(value, row.metric.unit) : 'unknown'} ${when}`, row.metric.what];
    }
    if (row.kind === 'value') {
      const i = lowerBound(row.track.time, time) - 1;
      return i < 0 ? null : [row.label, `${amount(row.track.value[i] * row.series.multiplier)} ${row.series.units} since ${duration(row.track.time[i])}`];
    }
    if (row.sampled && y - row.y > CPU_ROW) {
      const i = this.sample(row.cpu, time);
      return i < 0 ? null : this.describeSample(row, i);
    }
    const i = this.slice(row.cpu, time);
    return i < 0 ? null : this.describeSlice(row, i);
  }

  describeMark(x, y, row) {
    const lane = Math.floor((y - row.y) / MARK_ROW);
    const mark = this.capture.marks.findLast(m => m.lane === lane && this.x(m.time) <= x + 2 && this.x(m.end) >= x - 6);
    if (!mark) return null;
    const held = mark.end > mark.time ? `for ${duration(mark.end - mark.time)} ` : '';
    return [mark.text, `${held}at ${duration(mark.time)}, by ${this.page.nameOf(mark.task)}${mark.channelName ? `, ${mark.channelName}` : ''}`];
  }

  // The functions of a call chain, the called one first.
  chainOf(node) {
    const lines = [];
    for (; node && lines.length < 12; node = this.capture.parents[node]) lines.push(this.capture.frames[this.capture.nodes[node]][0]);
    return node ? [...lines, '…'] : lines;
  }

  describeSample(row, i) {
    const { samples } = row.cpu, lines = this.chainOf(samples.node[i]);
    const one = samples.count && samples.count[i] > 1 ? `One of ${count(samples.count[i])} samples: of ` : 'Sample of ';
    return [`${one}${this.page.nameOf(samples.task[i])}`, `at ${duration(samples.time[i], 1 / this.scale)}\n${lines.join('\n')}`];
  }

  describeSlice(row, i) {
    const { cpu } = row, length = cpu.end[i] - cpu.start[i], when = `${duration(length)} from ${duration(cpu.start[i], 1 / this.scale)}`;
    if (cpu.kind[i] === IDLE) return [`CPU ${row.number} idles`, `${when}\n${cpu.what[i] ? `idle state ${cpu.what[i] - 1}` : 'idle state not known'}`];
    if (cpu.kind[i] === CELL) {
      const part = (cpu.busy[i + 1] - cpu.busy[i]) / Math.max(1, length), longest = cpu.what[i] < 0 ? '' : `\nthe longest run: ${this.page.nameOf(cpu.what[i])}`;
      return [`${(100 * part).toFixed(0)} % busy`, `${when}\n${count(cpu.count[i])} runs and halts${longest}`];
    }
    if (cpu.kind[i] === LOST) return [`${count(cpu.what[i])} records lost`, when];
    const left = this.chainOf(cpu.node[i]), how = ['', 'then preempted', 'then blocked'][cpu.how[i]] || '';
    const lines = [when, left.length ? `${how} in` : how, ...left], woken = this.sources.wakeupOf(row.number, cpu.start[i]);
    if (woken >= 0) lines.push(this.sources.describeWakeup(woken));
    return [this.page.nameOf(cpu.what[i]), lines.filter(line => line).join('\n')];
  }

  // The task under the pointer, or undefined.
  taskAt(event) {
    const { row, y, time, inside } = this.at(event);
    if (!row || !inside || row.kind !== 'cpu') return undefined;
    if (row.sampled && y - row.y > CPU_ROW) {
      const i = this.sample(row.cpu, time);
      return i < 0 ? undefined : row.cpu.samples.task[i];
    }
    const i = this.slice(row.cpu, time);
    return i >= 0 && isBusy(row.cpu, i, this.capture) ? row.cpu.what[i] : undefined;
  }

  // Show the next (or previous) slice, mark or sample that the search found.
  jump(forwards) {
    const middle = (this.start + this.end) / 2, span = this.end - this.start, eps = span * 1e-6;
    let best = null;
    const consider = time => {
      if (forwards ? time > middle + eps && (best === null || time < best) : time < middle - eps && (best === null || time > best)) best = time;
    };
    for (const mark of this.capture.marks) if (this.page.matches(mark.text)) consider(mark.time);
    const { thinned } = this.capture;
    if (thinned) {
      return thinned.nearest(middle + (forwards ? eps : -eps), forwards, this.page).then(time => {
        if (time !== null) consider(time);
        if (best !== null) this.show(best - span / 2, best + span / 2);
        return best !== null;
      });
    }
    for (const cpu of this.capture.cpus)
      for (let i = 0; i < cpu.length; i++)
        if (cpu.kind[i] === RUN && this.page.searched(cpu.what[i])) consider(cpu.start[i]);
    if (this.page.nodeHits) for (const { samples } of this.capture.cpus)
      for (let i = 0; i < samples.time.length; i++) if (this.page.isSampleFound(samples.node[i])) consider(samples.time[i]);
    if (best !== null) this.show(best - span / 2, best + span / 2);
    return best !== null;
  }
}
