// SPDX-License-Identifier: MIT
// A page of more events than a browser can hold at a time. html.c wrote them in pieces, by time. The
// page shows an overview of all of them, or a window of a few pieces that are unpacked when they
// come into view.

const MOST_PIECES = 12, KEPT_PIECES = 20, KEPT_SUMS = 100, MOST_EDGES = 6;

async function unpack(element) {
  const through = new DecompressionStream('gzip'), writer = through.writable.getWriter(), reader = through.readable.getReader();
  const written = [writer.write(decodeBase64(element.textContent)), writer.close()], parts = [];
  for (let part = await reader.read(); !part.done; part = await reader.read()) parts.push(part.value);
  await Promise.all(written);
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

// What was made of elements; those that were not used for the longest time are dropped.
class Kept {
  constructor(most, make) {
    this.most = most;
    this.make = make;
    this.all = new Map();
  }

  get(element) {
    const made = this.all.get(element) || unpack(element).then(this.make);
    this.all.delete(element);
    this.all.set(element, made);
    if (this.all.size > this.most) this.all.delete(this.all.keys().next().value);
    return made;
  }
}

// Sums of what tasks did in a part of the time.
class Sums {
  constructor({ tasks }) {
    for (const name of ['run', 'runs', 'preempted', 'blocked', 'samples']) this[name] = new Float64Array(tasks.length);
    this.idle = this.lost = this.known = 0;
    this.calls = makeColumns({ task: Uint32Array, node: Uint32Array, samples: Float64Array, unweighed: Float64Array, weight: Float64Array });
  }

  // A slice, or a negative part of one.
  time(kind, task, ns, tables) {
    this.known += ns;
    if (kind === LOST) this.lost += ns;
    else if (kind === IDLE || tables.tasks[task][0] === 0) this.idle += ns;
    if (kind === RUN) this.run[task] += ns;
  }

  end(task, how) {
    this.runs[task]++;
    if (how === 1) this.preempted[task]++;
    else if (how === 2) this.blocked[task]++;
  }

  call(row) {
    this.samples[row.task] += row.samples;
    push(this.calls, row);
  }

  // A slice is cut at both times.
  slice(slices, i, start, end, tables) {
    this.time(slices.kind[i], slices.what[i], Math.min(slices.end[i], end) - Math.max(slices.start[i], start), tables);
    if (slices.kind[i] === RUN) this.end(slices.what[i], slices.how[i]);
  }

  // The slices and samples between two times. A slice that is cut counts as one.
  add(cpu, start, end, tables, withLast) {
    const to = lowerBound(cpu.start, end), { time, task, node, weight } = cpu.samples;
    for (let i = lowerBound(cpu.end, start); i < to; i++) this.slice(cpu, i, start, end, tables);
    const last = withLast ? time.length : lowerBound(time, end);
    for (let i = lowerBound(time, start); i < last; i++)
      this.call({ task: task[i], node: node[i], samples: 1, unweighed: weight[i] < 0 ? 1 : 0, weight: Math.max(0, weight[i]) });
  }

  // Sums that html.c wrote.
  read(bytes, tables) {
    const numbers = new Numbers(bytes), idle = numbers.next(), lost = numbers.next();
    this.idle += idle;
    this.lost += lost;
    this.known += idle + lost;
    for (let nr = numbers.next(); nr; nr--) {
      const task = numbers.next();
      this.time(RUN, task, numbers.next(), tables);
      this.runs[task] += numbers.next();
      this.preempted[task] += numbers.next();
      this.blocked[task] += numbers.next();
    }
    while (numbers.more)
      this.call({ task: numbers.next(), node: numbers.next(), samples: numbers.next(), unweighed: numbers.next(), weight: numbers.next() });
  }
}

const elements = name => [...document.getElementsByClassName(name)];

class Thinned {
  constructor(tables) {
    this.tables = tables;
    this.pieces = elements('piece');
    this.sums = elements('sums');
    this.groups = elements('group');
    this.all = elements('all');
    this.kept = new Kept(KEPT_PIECES, bytes => bytes);
    this.keptSums = new Kept(KEPT_SUMS, bytes => bytes);
    this.from = [];
    this.to = [];
    this.crossing = Array.from({ length: tables.facts.cpus }, () => ({ piece: [], start: [], end: [], kind: [], what: [], how: [] }));
  }

  async open() {
    if (!window.DecompressionStream) {
      byId('facts').textContent = 'This page has more records than fit in a page. To unpack them takes a browser of 2023 or later.';
      throw new Error('no DecompressionStream');
    }
    const raw = noEvents(this.tables), { tables } = this;
    let piece = 0;
    for (const element of elements('overview')) this.readOverview(await unpack(element), raw, piece++);
    this.findBorders();
    this.overview = finishCapture(raw, tables);
    this.total = new Sums(tables);
    for (const element of this.all) this.total.read(await unpack(element), tables);
    const { samples, unweighed } = finished(this.total.calls);
    this.weighed = samples.some((nr, i) => nr > unweighed[i]);
    // What the page works with: the columns of the overview, or those of the window.
    const own = columns => ({ ...columns });
    this.capture = {
      ...this.overview, thinned: this,
      cpus: this.overview.cpus.map(cpu => ({ ...cpu, samples: own(cpu.samples), handlers: own(cpu.handlers) })),
      counterTracks: this.overview.counterTracks.map(own), seriesTracks: this.overview.seriesTracks.map(own), wakeups: own(this.overview.wakeups),
    };
    this.shown = this.overview;
    return this.capture;
  }

  readOverview(bytes, raw, piece) {
    const { tables } = this, numbers = new Numbers(bytes), fields = new Array(COLUMNS).fill(numbers), last = clocks(tables), { first } = tables.facts;
    numbers.end -= 24;
    while (numbers.more) {
      const tag = numbers.next(), kind = tag % 16, cpu = Math.floor(tag / 16), c = raw.cpus[cpu];
      if (kind <= LOST || kind === CELL) this.readSlice(numbers, kind, c.slices, last[cpu]);
      else if (kind === CROSSING) this.readCrossing(numbers, this.crossing[cpu], piece, last[cpu]);
      else if (kind === SAMPLE)
        push(c.samples, { time: numbers.time(last[cpu], SAMPLE), task: numbers.next(), node: numbers.next(), count: numbers.next(), kernel: numbers.next() });
      else if (kind === MARK) raw.marks.push(readMark(numbers, cpu, numbers.time(last[cpu], MARK)));
      else if (kind === SOURCE) readSource(fields, raw, cpu, last[cpu]).count.push(numbers.next());
      else {
        const when = numbers.time(last[cpu], kind), id = numbers.next();
        pushValue(kind === COUNTER ? raw.counters : raw.series, tables, id, cpu, when, numbers.next());
      }
    }
    const end = new DataView(bytes.buffer, bytes.byteOffset + numbers.end);
    this.from.push(Number(end.getBigInt64(0, true)) - first);
    this.to.push(Number(end.getBigInt64(8, true)) - first);
  }

  readSlice(numbers, kind, slices, last) {
    const start = numbers.time(last, 0), end = last[0] = start + numbers.next();
    if (kind === CELL) slices.cellBusy.push(numbers.next());
    const what = numbers.next();
    push(slices, { start, end, kind, what: kind === CELL ? what - 1 : kind === RUN ? Math.floor(what / 4) : what, how: kind === RUN ? what % 4 : 0 });
    slices.count.push(kind === CELL ? numbers.next() : 1);
  }

  readCrossing(numbers, slices, piece, last) {
    const start = numbers.time(last, CROSSING), end = start + numbers.next(), kind = numbers.next(), what = numbers.next();
    const row = { piece, start, end, kind, what: kind === RUN ? Math.floor(what / 4) : what, how: kind === RUN ? what % 4 : 0 };
    for (const name in row) slices[name].push(row[name]);
  }

  // Pieces may overlap a little, because records of different CPUs may be out of order.
  findBorders() {
    const nr = this.pieces.length;
    this.until = Float64Array.from(this.to);
    this.since = Float64Array.from(this.from);
    for (let k = 1; k < nr; k++) this.until[k] = Math.max(this.until[k], this.until[k - 1]);
    for (let k = nr - 2; k >= 0; k--) this.since[k] = Math.min(this.since[k], this.since[k + 1]);
  }

  // The first piece with something in this time, and the last one.
  piecesOf(start, end) {
    const last = this.pieces.length - 1;
    return [Math.min(last, lowerBound(this.until, start)), Math.max(0, Math.min(last, lowerBound(this.since, end + 0.5) - 1))];
  }

  // ---- what is shown

  get isFull() { return this.shown !== this.overview; }

  // Use the window, if it has this time; else the overview, until the pieces are there.
  arrange(start, end) {
    const [first, last] = this.piecesOf(start, end), { window: w } = this;
    if (w && first >= w.first && last <= w.last) this.use(w);
    else {
      this.use(this.overview);
      if (last - first < MOST_PIECES) this.load(first, last);
      else this.loading = undefined;
    }
    this.say(start, end);
  }

  async load(first, last) {
    const loading = `${first} ${last}`, parts = [];
    if (this.loading === loading) return;
    this.loading = loading;
    const from = Math.max(0, first - 1), to = Math.min(this.pieces.length - 1, last + 1);
    for (let k = from; k <= to && this.loading === loading; k++) parts.push(await this.kept.get(this.pieces[k]));
    if (this.loading !== loading) return;	// something else is in view by now
    this.window = this.makeWindow(from, to, parts);
    this.loading = undefined;
    this.page.update();
  }

  makeWindow(first, last, parts) {
    const { tables, overview } = this, raw = noEvents(tables);
    for (const bytes of parts) readEvents(fieldsOfPiece(bytes), tables, raw);
    raw.cpus.forEach(({ slices }, cpu) => {
      const { at, crossing } = this.crossingAt(cpu, last);
      if (at < 0) return;
      for (const name of ['start', 'end', 'kind', 'what', 'how']) slices[name].push(crossing[name][at]);
    });
    const tracks = (all, map) => all.map(track => this.windowTrack(track, map.get(trackKey(tables, track.id, track.cpu)), first, last));
    return {
      first, last, cpus: raw.cpus.map(c => finishCpu(c, tables)), wakeups: finishWakeups(raw.wakeups),
      counterTracks: tracks(overview.counterTracks, raw.counters), seriesTracks: tracks(overview.seriesTracks, raw.series),
    };
  }

  // The slice that a CPU is in when a piece ends; it ends in a later piece.
  crossingAt(cpu, piece) {
    const crossing = this.crossing[cpu], at = lowerBound(crossing.piece, piece + 1);
    return { crossing, at: at < crossing.piece.length && crossing.start[at] < this.until[piece] ? at : -1 };
  }

  // The values in the window, the last one before it and the first one behind it.
  windowTrack(track, inside, first, last) {
    const time = new Column(Float64Array), value = new Column(Float64Array), add = i => {
      time.push(track.time[i]);
      value.push(track.value[i]);
    };
    const before = lowerBound(track.time, this.since[first]), behind = lowerBound(track.time, this.until[last] + 0.5);
    if (before > 0) add(before - 1);
    if (inside)
      for (let i = 0; i < inside.time.length; i++) {
        time.push(inside.time.data[i]);
        value.push(inside.value.data[i]);
      }
    if (behind < track.time.length) add(behind);
    return finishDeltas({ id: track.id, cpu: track.cpu, time, value });
  }

  // Others keep references to the objects of the capture, so only what is in them changes.
  use(data) {
    if (this.shown === data) return;
    this.shown = data;
    const { capture } = this;
    capture.cpus.forEach((cpu, i) => {
      const { samples, handlers, ...slices } = data.cpus[i];
      Object.assign(cpu, slices);
      Object.assign(cpu.samples, samples);
      Object.assign(cpu.handlers, handlers);
    });
    for (const name of ['counterTracks', 'seriesTracks']) capture[name].forEach((track, i) => Object.assign(track, data[name][i]));
    Object.assign(capture.wakeups, data.wakeups);
    this.page.timeline.tracksChanged();
  }

  // ---- sums

  // The sums of this time. If they have to be read first, the page is updated when they are there.
  sumsOf(start, end) {
    if (start <= 0 && end >= this.capture.length) return this.total;
    const wanted = `${start} ${end}`;
    if (this.summed && this.summed.wanted === wanted) return this.summed.sums;
    if (this.summing !== wanted) {
      this.summing = wanted;
      this.sumUp(start, end, wanted);
    }
    return undefined;
  }

  async sumUp(start, end, wanted) {
    const [first, last] = this.piecesOf(start, end), { tables } = this, sums = new Sums(tables), { group: size } = tables.thinned;
    const inside = k => this.from[k] >= start && this.to[k] <= end, edges = [];
    for (let k = first; k <= last; k++) if (!inside(k)) edges.push(k);
    sums.isRough = edges.length > MOST_EDGES;
    for (let k = first; k <= last; k++) {
      if (this.summing !== wanted) return;
      const end_of_group = Math.min(k + size, this.pieces.length);
      if (!sums.isRough && edges.includes(k)) this.addEdge(sums, await this.kept.get(this.pieces[k]), k, start, end);
      else if (k % size === 0 && end_of_group <= last + 1 && !edges.some(edge => edge >= k && edge < end_of_group)) {
        sums.read(await this.keptSums.get(this.groups[k / size]), tables);
        k = end_of_group - 1;
      } else sums.read(await this.keptSums.get(this.sums[k]), tables);
    }
    if (this.summing !== wanted) return;
    this.cutCrossing(sums, start, end, first, last, k => sums.isRough || !edges.includes(k));
    this.summing = undefined;
    this.summed = { wanted, sums };
    this.page.update();
  }

  addEdge(sums, bytes, piece, start, end) {
    const raw = readEvents(fieldsOfPiece(bytes), this.tables), withLast = piece === this.pieces.length - 1 && end >= this.capture.length;
    for (const c of raw.cpus) sums.add(finishCpu(c, this.tables), start, end, this.tables, withLast);
  }

  // A piece has the whole of each slice that ends in it.
  cutCrossing(sums, start, end, first, last, isWhole) {
    this.crossing.forEach((slices, cpu) => {
      for (let i = lowerBound(slices.piece, first); i < slices.piece.length && slices.piece[i] <= last; i++)
        if (isWhole(slices.piece[i]) && slices.start[i] < start) sums.time(slices.kind[i], slices.what[i], slices.start[i] - start, this.tables);
      const { at, crossing } = this.crossingAt(cpu, last);
      if (at >= 0 && crossing.start[at] < end) sums.slice(crossing, at, start, end, this.tables);
    });
  }

  // ---- search

  // The nearest begin of a slice behind `middle` (or before it) whose task the search found, or a sample of a function.
  async nearest(middle, forwards, page) {
    const { tables } = this, all = this.pieces.length, step = forwards ? 1 : -1;
    let [k] = this.piecesOf(middle, middle), best = null;
    for (; k >= 0 && k < all; k += step) {
      if (best !== null && (forwards ? this.since[k] > best : this.until[k] < best)) break;
      const sums = new Sums(tables);
      sums.read(await this.keptSums.get(this.sums[k]), tables);
      if (!sums.runs.some((runs, task) => runs && page.searched(task)) && !sums.calls.node.values.some(node => page.isSampleFound(node))) continue;
      const consider = time => {
        if (forwards ? time > middle && (best === null || time < best) : time < middle && (best === null || time > best)) best = time;
      };
      for (const { slices, samples } of readEvents(fieldsOfPiece(await this.kept.get(this.pieces[k])), tables).cpus) {
        for (let i = 0; i < slices.start.length; i++)
          if (slices.kind.data[i] === RUN && page.searched(slices.what.data[i])) consider(slices.start.data[i]);
        for (let i = 0; i < samples.time.length; i++) if (page.isSampleFound(samples.node.data[i])) consider(samples.time.data[i]);
      }
    }
    return best;
  }

  // ---- what the page says

  // How long the time in view may be at most for all its events to be shown.
  longest(middle) {
    const [piece] = this.piecesOf(middle, middle), before = piece - (MOST_PIECES >> 1), behind = before + MOST_PIECES;
    const left = before > 0 ? middle - this.until[before - 1] : Infinity, right = behind < this.pieces.length ? this.since[behind] - middle : Infinity;
    return Math.min(2 * left, 2 * right, this.capture.length);
  }

  say(start, end) {
    const { records } = this.tables.facts;
    const least = this.longest((start + end) / 2), digit = 10 ** Math.floor(Math.log10(Math.max(least, 1)) - 1);
    const shown = this.isFull ? `each record in view is shown, of ${count(records)}` :
      this.loading !== undefined ? 'reading the records in view …' :
        `thinned: ${count(records)} records in cells of ${duration(this.tables.thinned.cell)}; zoom in to less than ${duration(Math.floor(least / digit) * digit)} to see each`;
    byId('thinned').textContent = `${shown}; this page does not say how long tasks waited, kbarman report --latency does`;
  }
}
